"""The answer beside each chip that it can be compared with: one of them is chosen, and the whole
page follows.

this chip against S     its ratio to S (:mod:`phaze.report.page.baseline_comparison`)
chip R against S        ratio to S / ratio to R, for every other chip R
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from phaze.report.drawings import Bar, Bars, FloorPlan
from phaze.report.explanation_file import ExplanationTable
from phaze.report.numbers import ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison, comparison_from
from phaze.report.sections import Card, Lead, Notes, Section, Variant, Variants
from phaze.report.step_time import Step
from phaze.units import digits

CHOOSER = "baseline"


def explained_comparisons(
    result: Mapping[str, Any], explanation: ExplanationTable | None, besides: str
) -> list[BaselineComparison]:
    """The chips that phaze explain --compare priced, all but one; only those that have every model
    of the answer."""
    comparisons = []
    for chip in [] if explanation is None else explanation.beside:
        models = {model.name: model for model in chip.models}
        stated = [models.get(model["name"]) for model in result["models"]]
        if chip.chip == besides or None in stated:
            continue
        priced = [model for model in stated if model is not None]
        steps = [[Step(step.name, step.seconds, "") for step in model.steps] for model in priced]
        rates = [model.throughput_per_s for model in priced]
        comparisons.append(
            comparison_from(result, chip.chip, chip.title, rates, steps, chip.band, chip.die_mm2)
        )
    return comparisons


def by_baseline(
    comparisons: Sequence[BaselineComparison],
    sections: Callable[[BaselineComparison], Sequence[Section]],
    control: Literal["", "list"] = "",
) -> Variants:
    """What is said beside each baseline, the study's own first."""
    variants = [Variant(chip.key, f"vs {chip.name}", sections(chip)) for chip in comparisons]
    return Variants(CHOOSER, variants, control)


def _by_model(result: Mapping[str, Any], comparison: BaselineComparison) -> list[Section]:
    """Every model on the chip and on its one baseline."""
    sections: list[Section] = []
    several = len(result["models"]) > 1
    for model, base, ratio in zip(
        result["models"], comparison.throughputs, comparison.ratios, strict=True
    ):
        ours = float(model["throughput_per_s"])
        theirs = "does not fit" if base is None else f"{digits(base)} sequences/s"
        remark = "" if ratio is None else ratio_text(ratio)
        rows = [
            Bar("this chip", ours, f"{digits(ours)} sequences/s", remark, marked=True),
            Bar(comparison.name, base or 0.0, theirs),
        ]
        sections.append(Bars(rows, model["name"] if several else "", look="below"))
    return sections


def _by_chip(comparison: BaselineComparison, comparisons: Sequence[BaselineComparison]) -> Bars:
    """All chips against one of them, slowest first; the answer with its band."""
    mean = comparison.mean or 1.0
    bars = [Bar("this chip", mean, ratio_text(mean), band=comparison.ends, marked=True)]
    for chip in comparisons:
        if chip.mean:
            ratio = mean / chip.mean
            bars.append(
                Bar(chip.name, ratio, ratio_text(ratio), "baseline" if chip is comparison else "")
            )
    return Bars(sorted(bars, key=lambda bar: bar.length), look="thin")


def _versus(
    result: Mapping[str, Any],
    comparison: BaselineComparison,
    comparisons: Sequence[BaselineComparison],
) -> list[Section]:
    """The ratio to the baseline, with its band."""
    if comparison.mean is None:
        lead = Lead("no ratio", f"a model does not fit on {comparison.name}")
    else:
        several = (
            f", geometric mean of {len(result['models'])} models"
            if len(result["models"]) > 1
            else ""
        )
        lead = Lead(ratio_text(comparison.mean), f"{comparison.title}{several}")
    note, ends = (
        "Every peak reached on both: a comparison of designs, no forecast.",
        comparison.ends,
    )
    if ends is not None:
        note = (
            f"Between {ends[0]:.2f} and {ends[1]:.2f} × were the errors of both (± "
            f"{100 * comparison.band:.0f} % each) "
            "independent; they share their constants, so most of it is common. Same "
            "software, placement searched for "
            "each."
        )
    bars: list[Section] = _by_model(result, comparison)
    if len(comparisons) > 1 and comparison.mean:
        bars = [_by_chip(comparison, comparisons)]
    return [lead, *bars, Notes([note], look="small")]


def versus_card(result: Mapping[str, Any], comparisons: Sequence[BaselineComparison]) -> Card:
    """The answer beside the baseline that is chosen."""
    body = by_baseline(
        comparisons, lambda comparison: _versus(result, comparison, comparisons), "list"
    )
    return Card("Better than what?", [body])


def chip_card(plan: FloorPlan, area_mm2: float, comparisons: Sequence[BaselineComparison]) -> Card:
    """The chip to scale, and what its outlines are."""
    dashed = [f"Dashed: {line.name}." for line in plan.outlines if not line.variant]
    solid = {line.variant: f"Solid outline: {line.name}." for line in plan.outlines if line.variant}

    def outlined(comparison: BaselineComparison) -> list[Section]:
        name = f"{comparison.name} {comparison.die_mm2 or 0.0:.0f} mm²"
        missing = f"{name}: too unlike in area to be drawn." if comparison.die_mm2 else ""
        return [Notes([" ".join([*dashed, solid.get(comparison.key, missing)])], look="small")]

    note = by_baseline(comparisons, outlined) if comparisons else Notes(dashed, look="small")
    return Card("The chip, to scale", [plan, note], f"{area_mm2:.0f} mm²", "soft")
