"""Every model of a search on its chip, and those that it was not searched for: throughput, ratio,
regret, plan."""

from collections.abc import Mapping
from typing import Any

from phaze.report.explanation_file import AloneTable, ExplanationTable, HeldOutTable
from phaze.report.numbers import ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.plan_cards import badges
from phaze.report.sections import Table
from phaze.units import digits, show

TEXTS = ("Model", "Plan", "own best chip")
NUMBERS = ("tokens/s a device", "vs baseline", "MFU", "step", "regret", "energy", "power in use")
# Below it one chip for all costs nothing that could be measured.
NOTHING = 0.001


def whole_plan(model: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a model's table, with what the table says of it."""
    stated = {
        key: model[key]
        for key in ("microbatch", "zero", "sequence_parallel", "offloaded_bytes")
        if key in model
    }
    return {**model["plan"], **stated}


def regret_words(alone: AloneTable | None, chip: str) -> tuple[str, str]:
    """The best chip for a model alone, and what the answer loses to it."""
    if alone is None:
        return "-", "-"
    if alone.chip == chip:
        return "this one", f"≤ {100 * alone.gap:.2g} %" if alone.gap > 1e-9 else "0 %"
    return alone.chip, f"{100 * alone.regret:.1f} %"


def _ratio(throughput_per_s: float | None, base: float | None) -> str:
    return "-" if not throughput_per_s or not base else ratio_text(throughput_per_s / base)


def _searched(
    model: Mapping[str, Any],
    base: float | None,
    regret: float | None,
    alone: tuple[str, str],
) -> tuple[str, ...]:
    """A model that the chip was searched for."""
    chip, lost = alone
    return (
        model["name"] + ("" if model["weight"] == 1 else f", weight {model['weight']:g}"),
        ", ".join(badges(whole_plan(model))),
        chip,
        digits(model["tokens_per_s_per_device"]),
        _ratio(model["throughput_per_s"], base),
        f"{100 * model['mfu']:.1f} %",
        show(model["batch_s"], "s"),
        lost if regret is None else f"{100 * regret:.1f} %",
        f"{show(model['energy_j'] / model['batch'], 'J')} a sequence",
        show(model["power_w"], "W"),
    )


def _held_out(model: HeldOutTable, base: float | None, alone: tuple[str, str]) -> tuple[str, ...]:
    """A model that the chip was not searched for."""
    chip, lost = alone
    name = f"{model.name} (held out)"
    if model.throughput_per_s is None or model.batch_s is None:
        return (name, "does not fit", chip, *("-",) * 4, lost, "-", "-")
    return (
        name,
        model.plan or "-",
        chip,
        digits(model.tokens_per_s_per_device or 0.0),
        _ratio(model.throughput_per_s, base),
        f"{100 * (model.mfu or 0.0):.1f} %",
        show(model.batch_s, "s"),
        lost,
        f"{show((model.energy_j or 0.0) / model.batch, 'J')} a sequence",
        show(model.power_w or 0.0, "W"),
    )


def _rows(
    result: Mapping[str, Any],
    comparison: BaselineComparison | None,
    explanation: ExplanationTable | None,
) -> list[tuple[str, ...]]:
    """Every model beside one baseline; held-out ones last."""
    chip = str(result["chip"]["name"])
    alone = {} if explanation is None else {model.name: model for model in explanation.alone}
    regrets = result["objective"].get("regrets") or [None] * len(result["models"])
    bases = (None,) * len(result["models"]) if comparison is None else comparison.throughputs
    rows = []
    for model, base, regret in zip(result["models"], bases, regrets, strict=True):
        rows.append(_searched(model, base, regret, regret_words(alone.get(model["name"]), chip)))
    if explanation is not None:
        others = {} if comparison is None else _rates_on(explanation, comparison.key)
        for held_out in explanation.held_out:
            words = regret_words(alone.get(held_out.name), chip)
            rows.append(_held_out(held_out, others.get(held_out.name), words))
    return rows


def _rates_on(explanation: ExplanationTable, chip: str) -> dict[str, float | None]:
    """What every model reaches on a chip that exists."""
    chips = [existing for existing in explanation.beside if existing.chip == chip]
    return {model.name: model.throughput_per_s for existing in chips for model in existing.models}


def models_table(
    result: Mapping[str, Any],
    comparison: BaselineComparison | None,
    explanation: ExplanationTable | None,
) -> Table:
    """Every model beside one baseline, without columns of which nothing is known."""
    rows = _rows(result, comparison, explanation)
    names = [
        *TEXTS,
        *(f"vs {comparison.name}" if comparison and it == "vs baseline" else it for it in NUMBERS),
    ]
    stated = [number for number in range(len(names)) if any(row[number] != "-" for row in rows)]
    cells = [[row[number] for number in stated] for row in rows]
    texts = sum(number < len(TEXTS) for number in stated)
    title = "Models" if len(rows) > 1 else "The model"
    return Table(
        [names[number] for number in stated], cells, title, _lead(explanation), texts=texts
    )


def _lead(explanation: ExplanationTable | None) -> str:
    """What one chip for all models costs, in a sentence, where each model's own best is known."""
    if explanation is None:
        return ""
    sentences = []
    if explanation.alone:
        worst = max(explanation.alone, key=lambda model: model.regret)
        several = len(explanation.alone) > 1
        shared = (
            "One chip for all costs nothing" if several else "It is as good as a chip of its own"
        )
        lost = (
            f"{shared}: no model has a chip of its own in this space that is more than "
            f"{100 * NOTHING:g} % faster."
        )
        if worst.regret > NOTHING:
            lost = (
                f"{worst.name} loses most: {worst.chip} would train it "
                f"{100 * worst.regret:.1f} % faster."
            )
        sentences.append(lost)
    if explanation.held_out:
        sentences.append(
            "Held-out models were not part of the search: the same chip, devices and global batch."
        )
    return " ".join(sentences)
