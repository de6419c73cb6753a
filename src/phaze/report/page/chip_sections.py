"""What the pages of a search and of one design of a front have in common: a chip, and every model
on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.evaluate.idle import idle_words
from phaze.hardware.chip import Chip
from phaze.hardware.formats import PLAIN
from phaze.report.answer_text import basis_words, job_words
from phaze.report.explanation_file import ExplanationTable
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.page.baseline_sections import by_baseline, chip_card, versus_card
from phaze.report.page.floor_plan import OtherDie, components_table, floor_plan
from phaze.report.page.memory_bars import memory_bars
from phaze.report.page.models_table import models_table
from phaze.report.page.operators import operators_group
from phaze.report.page.pipeline_timeline import pipeline_timeline
from phaze.report.page.search_cards import (
    RETICLE_MM2,
    chip_words,
    physical_card,
    plausible_card,
    title_of,
)
from phaze.report.page.stacked_bars import stacked_sections
from phaze.report.plan_text import flops_text, training_rows
from phaze.report.sections import Card, Group, Notes, Section, Table, Variant, Variants
from phaze.report.step_time import step_time
from phaze.report.view_model import Story
from phaze.search.task import SearchJob


@dataclass(frozen=True, slots=True)
class ChipOnPage:
    """A chip with its answer as ``phaze.result/1`` states one, its models, and the chips that it is
    compared with."""

    job: SearchJob
    result: Mapping[str, Any]
    chip: Chip
    stories: Sequence[Story]
    comparisons: Sequence[BaselineComparison]
    explanation: ExplanationTable | None = None

    def headline(self) -> Section:
        """The answer in a sentence beside each baseline, and the chip in words."""
        words = [chip_words(self.result)]
        if not self.comparisons:
            return Notes(words, title_of(self.result, None))
        return by_baseline(
            self.comparisons, lambda baseline: [Notes(words, title_of(self.result, baseline))]
        )

    def cards(self) -> list[Card]:
        """The chip to scale, what it is better than, its physical design, and whether that is
        plausible."""
        dies = [
            OtherDie(chip.name, chip.die_mm2, chip.key) for chip in self.comparisons if chip.die_mm2
        ]
        plan = floor_plan(self.chip, [OtherDie("reticle", RETICLE_MM2), *dies])
        return [
            chip_card(plan, float(self.result["chip"]["area_mm2"]), self.comparisons),
            *([versus_card(self.result, self.comparisons)] if self.comparisons else []),
            physical_card(self.job, self.result),
            plausible_card(self.result),
        ]

    def components(self) -> Group:
        """Every part of the chip."""
        table = Group(
            [components_table(self.chip)], folded="Every component with its area and share"
        )
        return Group([table], "Components", str(self.result["chip"]["name"]))

    def models(self) -> list[Section]:
        """The step of each model beside that on a baseline, all models as a table, and each in
        full."""
        stories, sections = self.stories, list[Section]()
        if any(any(chip.steps) for chip in self.comparisons):
            sections.append(
                by_baseline(self.comparisons, lambda chip: [stacked_sections(stories, chip)])
            )

        def table(baseline: BaselineComparison | None) -> Table:
            return models_table(self.result, stories, baseline, self.explanation)

        tables = (
            by_baseline(self.comparisons, lambda chip: [table(chip)])
            if self.comparisons
            else table(None)
        )
        variants = [self._model(number, story) for number, story in enumerate(stories)]
        return [*sections, tables, Variants("model", variants, "bar")]

    def _model(self, number: int, story: Story) -> Variant:
        headroom = float(
            (self.result["models"][number].get("memory_left") or {}).get("headroom", 0.0)
        )
        caption = f"{story.name}." if len(self.stories) > 1 else ""
        memory = memory_bars(story.plan, DeviceMemory(story.hbm_bytes, headroom))
        sections: list[Section] = [
            Group(step_time(story.plan, story.steps, story.split.devices), "Step time", caption),
            replace(memory, caption=f"{caption} {memory.caption}".strip()),
            pipeline_timeline(story),
            operators_group(story),
        ]
        return Variant(f"m{number}", story.name, sections)

    def assumed(self) -> list[str]:
        """What the answer holds under, in sentences."""
        result, lines = self.result, list[str]()
        precision = str(result["setting"].get("precision", PLAIN))
        for model in result["models"]:
            name = f"{model['name']}: " if len(result["models"]) > 1 else ""
            rows = [f"{title}: {text}" for title, text in training_rows(model.get("training_run"))]
            texts = [*rows, flops_text(model, precision), idle_words(model)]
            lines += [f"{name}{text}" for text in texts if text]
        links = (result.get("cluster") or {}).get("links")
        lines += [str(links)] if links else []
        lines += dict.fromkeys(note for model in self.job.models for note in model.notes())
        return [f"Times: {basis_words(result)}", f"Job: {job_words(result)}", *lines]


def settings_group(settings: Sequence[tuple[str, str, str]]) -> Group:
    """Every key of a study with its value and where that comes from."""
    table = Table(("Key", "Value", "Where it comes from"), settings, texts=3)
    return Group([table], folded=f"Every setting, and where its value comes from: {len(settings)}")
