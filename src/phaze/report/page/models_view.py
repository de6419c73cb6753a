"""Every model of a search on its chip, and those that it was not searched for: throughput, ratio, regret, plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.report.explanation_file import AloneTable, ExplanationTable
from phaze.report.numbers import ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.page.plan_view import badges
from phaze.report.view_model import Story
from phaze.units import digits, show

HEADS = (
    ("Model", False),
    ("tokens/s a device", True),
    ("vs baseline", True),
    ("MFU", True),
    ("step", True),
    ("Plan", False),
    ("own best chip", False),
    ("regret", True),
    ("energy", True),
    ("power in use", True),
)
# Below it one chip for all costs nothing that could be measured.
NOTHING = 0.001


def whole_plan(model: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a model's table, with what the table says of it."""
    stated = {key: model[key] for key in ("microbatch", "zero", "sequence_parallel", "offloaded_bytes") if key in model}
    return {**model["plan"], **stated}


def regret_words(own: AloneTable | None, chip: str) -> tuple[str, str]:
    """The best chip for a model alone, and what the answer loses to it."""
    if own is None:
        return "-", "-"
    if own.chip == chip:
        return "this one", f"≤ {100 * own.gap:.2g} %" if own.gap > 1e-9 else "0 %"
    return own.chip, f"{100 * own.regret:.1f} %"


def _ratio(throughput_per_s: float | None, base: float | None) -> str:
    return "-" if not throughput_per_s or not base else ratio_text(throughput_per_s / base)


def model_rows(
    result: Mapping[str, Any],
    stories: Sequence[Story],
    comparison: BaselineComparison | None,
    said: ExplanationTable | None,
) -> list[tuple[str, ...]]:
    """Every model beside one baseline; held-out ones last."""
    chip = str(result["chip"]["name"])
    alone = {} if said is None else {one.name: one for one in said.alone}
    regrets = result["objective"].get("regrets") or [None] * len(stories)
    bases = (None,) * len(stories) if comparison is None else comparison.throughputs
    rows: list[tuple[str, ...]] = []
    for model, story, base, regret in zip(result["models"], stories, bases, regrets, strict=True):
        own, lost = regret_words(alone.get(model["name"]), chip)
        rows.append(
            (
                model["name"] + ("" if model["weight"] == 1 else f", weight {model['weight']:g}"),
                digits(model["tokens_per_s_per_device"]),
                _ratio(model["throughput_per_s"], base),
                f"{100 * model['mfu']:.1f} %",
                show(model["batch_s"], "s"),
                ", ".join(badges(whole_plan(model))),
                own,
                lost if regret is None else f"{100 * regret:.1f} %",
                f"{show(model['energy_j'] / story.batch, 'J')} a sequence",
                show(model["power_w"], "W"),
            )
        )
    others = {} if comparison is None or said is None else _held_bases(said, comparison.key)
    for held in [] if said is None else said.held_out:
        own, lost = regret_words(alone.get(held.name), chip)
        name, base = f"{held.name} (held out)", others.get(held.name)
        if held.throughput_per_s is None or held.batch_s is None:
            rows.append((name, "does not fit", *("-",) * 4, own, lost, "-", "-"))
            continue
        rows.append(
            (
                name,
                digits(held.tokens_per_s_per_device or 0.0),
                _ratio(held.throughput_per_s, base),
                f"{100 * (held.mfu or 0.0):.1f} %",
                show(held.batch_s, "s"),
                held.plan or "-",
                own,
                lost,
                f"{show((held.energy_j or 0.0) / held.batch, 'J')} a sequence",
                show(held.power_w or 0.0, "W"),
            )
        )
    return rows


def _held_bases(said: ExplanationTable, chip: str) -> dict[str, float | None]:
    """What every model reaches on a chip that exists."""
    return {model.name: model.throughput_per_s for one in said.beside if one.chip == chip for model in one.models}


def known_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns of which something is known."""
    return [at for at in range(len(HEADS)) if at < 2 or any(row[at] != "-" for row in rows)]


def models_lead(result: Mapping[str, Any], said: ExplanationTable | None) -> str:
    """What one chip for all models costs, in a sentence, where each model's own best is known."""
    if said is None:
        return ""
    found = []
    if said.alone:
        worst = max(said.alone, key=lambda one: one.regret)
        shared = "One chip for all costs nothing" if len(said.alone) > 1 else "It is as good as a chip of its own"
        lost = f"{shared}: no model has a chip of its own in this space that is more than {100 * NOTHING:g} % faster."
        if worst.regret > NOTHING:
            lost = f"{worst.name} loses most: {worst.chip} would train it {100 * worst.regret:.1f} % faster."
        found.append(lost)
    if said.held_out:
        found.append("Held-out models were not part of the search: the same chip, devices and global batch.")
    return " ".join(found)
