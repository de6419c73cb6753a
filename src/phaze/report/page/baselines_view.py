"""The answer beside each chip that it can be compared with: one of them is chosen, and the whole page follows.

this chip against S     its ratio to S (:mod:`phaze.report.page.baseline_comparison`)
chip R against S        ratio to S / ratio to R, for every other chip R
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from phaze.report.explanation_file import ExplanationTable
from phaze.report.numbers import ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison, comparison_from
from phaze.report.page.die import DieView, Outline
from phaze.report.page.models_view import HEADS, known_columns, model_rows
from phaze.report.page.search_view import BarRow, title_of
from phaze.report.page.stacked_view import StackedTimes, stacked_times
from phaze.report.view_model import Story
from phaze.report.waterfall import Step
from phaze.units import digits


@dataclass(frozen=True, slots=True)
class Versus:
    """Throughput beside the baseline."""

    headline: str
    against: str
    pill: str
    note: str
    rows: tuple[BarRow, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """All that a page says beside one baseline; without one of them only the chip's own figures. ``outline`` is its die
    on the scale of the picture, ``too_large`` says that it does not fit in there."""

    key: str
    name: str
    title: str
    versus: Versus | None
    outline: Outline | None
    too_large: str
    heads: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    stacked: StackedTimes | None


def explained_comparisons(
    result: Mapping[str, Any], said: ExplanationTable | None, besides: str
) -> list[BaselineComparison]:
    """The chips that phaze explain --compare priced, all but one; only those that have every model of the answer."""
    found = []
    for one in [] if said is None else said.beside:
        models = {model.name: model for model in one.models}
        own = [models.get(model["name"]) for model in result["models"]]
        if one.chip == besides or None in own:
            continue
        there = [model for model in own if model is not None]
        steps = [[Step(step.name, step.seconds, "") for step in model.steps] for model in there]
        rates = [model.throughput_per_s for model in there]
        found.append(comparison_from(result, one.chip, one.title, rates, steps, one.band, one.die_mm2))
    return found


def _by_model(result: Mapping[str, Any], comparison: BaselineComparison) -> list[BarRow]:
    """Every model on the chip and on its one baseline."""
    rows = []
    for model, base, ratio in zip(result["models"], comparison.throughputs, comparison.ratios, strict=True):
        most = max(float(model["throughput_per_s"]), base or 0.0)
        unit, name = "sequences/s", f"{model['name']}, " if len(result["models"]) > 1 else ""
        ours = f"{digits(model['throughput_per_s'])} {unit}"
        theirs = "does not fit" if base is None else f"{digits(base)} {unit}"
        said = "" if ratio is None else ratio_text(ratio)
        rows.append(BarRow(f"{name}this chip", float(model["throughput_per_s"]) / most, ours, said, True))
        rows.append(BarRow(f"{name}{comparison.name}", (base or 0.0) / most, theirs, "", False))
    return rows


def _by_chip(comparison: BaselineComparison, comparisons: Sequence[BaselineComparison]) -> list[BarRow]:
    """All chips against one of them, slowest first; the answer with its band."""
    mean, ends = comparison.mean or 1.0, comparison.ends
    found = [(one.name, mean / one.mean, False) for one in comparisons if one.mean]
    found.append(("this chip", mean, True))
    most = max([value for _, value, _ in found] + ([ends[1]] if ends else []))
    return [
        BarRow(
            name,
            value / most,
            ratio_text(value),
            "baseline" if name == comparison.name else "",
            on,
            (ends[0] / most, ends[1] / most) if on and ends else None,
        )
        for name, value, on in sorted(found, key=lambda one: one[1])
    ]


def versus_of(
    result: Mapping[str, Any], comparison: BaselineComparison, comparisons: Sequence[BaselineComparison]
) -> Versus:
    """The ratio to the baseline, with its band."""
    rows = (
        _by_chip(comparison, comparisons) if len(comparisons) > 1 and comparison.mean else _by_model(result, comparison)
    )
    if comparison.mean is None:
        headline, against = "no ratio", f"a model does not fit on {comparison.name}"
    else:
        several = f", geometric mean of {len(result['models'])} models" if len(result["models"]) > 1 else ""
        headline, against = ratio_text(comparison.mean), f"{comparison.title}{several}"
    ends = comparison.ends
    if ends is None:
        note = "Every peak reached on both: a comparison of designs, no forecast."
    else:
        note = (
            f"Between {ends[0]:.2f} and {ends[1]:.2f} × were the errors of both independent; they share their "
            "constants, so most of it is common. Same software, placement searched for each."
        )
    pill = f"± {comparison.band:.0%} each".replace("%", " %") if comparison.band else "ideal peaks"
    return Versus(headline, against, pill, note, tuple(rows))


def _models(
    result: Mapping[str, Any],
    stories: Sequence[Story],
    comparison: BaselineComparison | None,
    said: ExplanationTable | None,
) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    """The table of models, without columns of which nothing is known."""
    rows = model_rows(result, stories, comparison, said)
    kept = known_columns(rows)
    heads = [
        (f"vs {comparison.name}" if comparison and name == "vs baseline" else name, number) for name, number in HEADS
    ]
    return [heads[at] for at in kept], [[row[at] for at in kept] for row in rows]


def baselines_of(
    result: Mapping[str, Any],
    stories: Sequence[Story],
    comparisons: Sequence[BaselineComparison],
    die: DieView,
    said: ExplanationTable | None = None,
) -> list[Baseline]:
    """What the page says beside each baseline, the study's own first; one without a baseline where there is none."""
    if not comparisons:
        return [
            Baseline("none", "", title_of(result, None), None, None, "", *_models(result, stories, None, said), None)
        ]
    total, found = float(result["chip"]["area_mm2"]), []
    for comparison in comparisons:
        side = None if comparison.die_mm2 is None else die.side * sqrt(comparison.die_mm2 / total)
        words = "" if comparison.die_mm2 is None else f"{comparison.name} {comparison.die_mm2:.0f} mm²"
        fits = side is not None and side <= 100.0 + 1e-6
        found.append(
            Baseline(
                comparison.key,
                comparison.name,
                title_of(result, comparison),
                versus_of(result, comparison, comparisons),
                Outline(words, side, True) if side is not None and fits else None,
                "" if side is None or fits else f"{words}: larger than this picture.",
                *_models(result, stories, comparison, said),
                stacked_times(stories, comparison),
            )
        )
    return found
