"""A chip that was searched for and every model on it: what the answer of a search, its page and the
page of one design of a front show.

The document (``phaze.result/1``) is enough. What needs the chip itself, the layers of its models or
chips to compare it with (the floor plan, ratios, the cause of every cost, timelines, operators)
stands where a :class:`ChipPage` brings it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.evaluate.idle import idle_words
from phaze.hardware.chip import Chip
from phaze.hardware.formats import PLAIN
from phaze.report.answer_text import PROVISIONAL, basis_words, job_words
from phaze.report.drawings import Bars
from phaze.report.explanation_file import ExplanationTable
from phaze.report.memory_bars import memory_bars
from phaze.report.models_table import models_table, whole_plan
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.page.baseline_sections import by_baseline, chip_card, versus_card
from phaze.report.page.floor_plan import OtherDie, components_table, floor_plan
from phaze.report.page.operators import operators_group
from phaze.report.page.pipeline_timeline import pipeline_timeline
from phaze.report.page.stacked_bars import stacked_sections
from phaze.report.plan_cards import fit_of, percent, run_cost
from phaze.report.plan_text import batch_text, exchange_rows, flops_text, keeping_rows
from phaze.report.search_cards import (
    RETICLE_MM2,
    chip_words,
    physical_card,
    plausible_card,
    title_of,
)
from phaze.report.sections import Card, Figures, Group, Notes, Section, Table, Variant, Variants
from phaze.report.step_time import step_time
from phaze.report.view_model import Story

Limits = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class ChipPage:
    """What a page tells beside the document: the chip, the stories of its models, and the chips
    that it is compared with."""

    chip: Chip
    stories: Sequence[Story]
    comparisons: Sequence[BaselineComparison]


@dataclass(frozen=True, slots=True)
class ChipAnswer:
    """A chip with its answer as ``phaze.result/1`` states one; ``limits`` are those of its space,
    as far as they are known."""

    result: Mapping[str, Any]
    limits: Limits
    page: ChipPage | None = None
    explanation: ExplanationTable | None = None

    @property
    def comparisons(self) -> Sequence[BaselineComparison]:
        """The chips that it is compared with."""
        return () if self.page is None else self.page.comparisons

    def headline(self) -> list[Section]:
        """The answer in a sentence beside each baseline, and the chip in words."""
        words = [chip_words(self.result)]
        title: Section = Notes(words, title_of(self.result, None))
        if self.comparisons:
            title = by_baseline(
                self.comparisons, lambda baseline: [Notes(words, title_of(self.result, baseline))]
            )
        if not self.result.get("provisional"):
            return [title]
        return [title, Notes([PROVISIONAL], look="warning")]

    def cards(self) -> list[Card]:
        """The chip to scale, what it is better than, its physical design, and whether that is
        plausible."""
        stated = [physical_card(self.result, self.limits), plausible_card(self.result)]
        if self.page is None:
            return stated
        dies = [
            OtherDie(chip.name, chip.die_mm2, chip.key) for chip in self.comparisons if chip.die_mm2
        ]
        plan = floor_plan(self.page.chip, [OtherDie("reticle", RETICLE_MM2), *dies])
        return [
            chip_card(plan, float(self.result["chip"]["area_mm2"]), self.comparisons),
            *([versus_card(self.result, self.comparisons)] if self.comparisons else []),
            *stated,
        ]

    def components(self) -> list[Section]:
        """Every part of the chip."""
        if self.page is None:
            return []
        table = Group(
            [components_table(self.page.chip)], folded="Every component with its area and share"
        )
        return [Group([table], "Components")]

    def models(self) -> list[Section]:
        """The step of each model beside that on a baseline, all models as a table, and each in
        full."""
        sections = list[Section]()
        if self.page is not None and any(any(chip.steps) for chip in self.comparisons):
            stories = self.page.stories
            sections.append(
                by_baseline(self.comparisons, lambda chip: [stacked_sections(stories, chip)])
            )

        def table(baseline: BaselineComparison | None) -> Table:
            return models_table(self.result, baseline, self.explanation)

        tables = (
            by_baseline(self.comparisons, lambda chip: [table(chip)])
            if self.comparisons
            else table(None)
        )
        variants = [
            self._model(number, model) for number, model in enumerate(self.result["models"])
        ]
        return [*sections, tables, Variants("model", variants, "bar", together=True)]

    def _model(self, number: int, model: Mapping[str, Any]) -> Variant:
        plan = whole_plan(model)
        story = None if self.page is None else self.page.stories[number]
        caption = f"{model['name']}." if len(self.result["models"]) > 1 else ""
        memory = self._memory(model, plan)
        steps = [] if story is None else story.steps
        devices = 0 if story is None else story.split.devices
        run = model.get("training_run")
        sections: list[Section] = [
            replace(self._facts(model, plan), title="" if not caption else model["name"]),
            *([run_cost(run, int(model["devices"]))] if run else []),
            Group(step_time(plan, steps, devices), "Step time", caption),
            replace(memory, caption=f"{caption} {memory.caption}".strip()),
            *([pipeline_timeline(story), operators_group(story)] if story else []),
        ]
        return Variant(f"m{number}", model["name"], sections)

    def _device(self, model: Mapping[str, Any]) -> DeviceMemory:
        headroom = float((model.get("memory_left") or {}).get("headroom", 0.0))
        return DeviceMemory(float(self.result["chip"]["hbm_bytes"]), headroom)

    def _memory(self, model: Mapping[str, Any], plan: Mapping[str, Any]) -> Bars:
        return memory_bars(plan, self._device(model))

    def _facts(self, model: Mapping[str, Any], plan: Mapping[str, Any]) -> Figures:
        """What a model reaches and how its plan keeps state, beside the table of all models."""
        fit = fit_of({**plan, "memory_left": model.get("memory_left")}, self._device(model))
        free = fit.device.headroom
        kept = f", of which {percent(free)} are kept free" if free else ""
        rate = (
            f"{model['throughput_per_s']:,.6g} sequences/s, {model['tokens_per_s']:,.0f} tokens/s"
        )
        rows = [
            ("throughput", rate),
            ("HFU", f"{100 * model['hfu']:.1f} %"),
            ("global batch", batch_text(model)),
            ("devices", idle_words(model)),
            *keeping_rows({**model, "data": plan["data"], "precision": None}),
            *exchange_rows(model),
            ("memory left", f"{fit.left}{kept}; it fits with a chance of {percent(fit.chance)}"),
        ]
        return Figures([(name, text) for name, text in rows if text], paired=True)

    def assumed(self) -> list[str]:
        """What the answer holds under, in sentences."""
        result, lines = self.result, list[str]()
        precision = str(result["setting"].get("precision", PLAIN))
        for model in result["models"]:
            name = f"{model['name']}: " if len(result["models"]) > 1 else ""
            lines.append(f"{name}{flops_text(model, precision)}")
        links = (result.get("cluster") or {}).get("links")
        lines += [str(links)] if links else []
        lines += dict.fromkeys(
            str(note) for model in result["models"] for note in model.get("notes", ())
        )
        return [f"Times: {basis_words(result)}", f"Job: {job_words(result)}", *lines]


def settings_group(settings: Sequence[tuple[str, str, str]]) -> Group:
    """Every key of a study with its value and where that comes from."""
    table = Table(("Key", "Value", "Where it comes from"), settings, texts=3)
    return Group([table], folded=f"Every setting, and where its value comes from: {len(settings)}")
