"""What if there were other devices, batches, sequences or chips: the job planned again for each,
one change at a time.

Along devices and batch everything else stays. A longer or shorter sequence keeps the tokens of a
batch, so that rows compare like with like. Another chip comes with its own usual cluster and stack.
Every row is a whole plan, so its split changes with it; a row that cannot be planned says why.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, PhazeError, unknown_name
from phaze.evaluate.answer import planned_document
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Job, request_of
from phaze.graph.supply.supply import supply_of
from phaze.hardware.library import load_chip
from phaze.units import parse_length

# Chips that most people could have instead, each with a usual cluster.
CHIPS = ("a100-80gb", "h100", "h200", "b200", "tpu-v5p")
# Factors on what is job for: the steps that a user tries first.
DEVICES = (0.5, 1.0, 2.0, 4.0)
BATCHES = (0.5, 1.0, 2.0)
SEQUENCES = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Change:
    """One row to be planned: its label, and the job; None where it is the one that was job."""

    label: str
    job: Job | None


Group = tuple[str, str, list[Change]]
TITLES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "devices": ("Devices", "devices"),
        "batch": ("Global batch", "sequences"),
        "sequence": ("Sequence, as many tokens a step", "positions"),
        "chip": ("Chip, on its default cluster and stack", "chip"),
    }
)
"""What may vary: the title of its rows, and what a row's label counts."""


@dataclass(frozen=True, slots=True)
class PlanAxis:
    """Values of one axis to plan at."""

    axis: str
    values: tuple[str, ...]


def _scaled(
    values: tuple[float, ...], now: int, change_of: Callable[[int], Job | None]
) -> list[Change]:
    """Whole multiples and parts of a count."""
    scaled = []
    for factor in values:
        value = int(now * factor)
        if value >= 1 and value == now * factor:
            scaled.append(Change(f"{value:,}", None if factor == 1.0 else change_of(value)))
    return scaled


def _longer(job: Job, document: Mapping[str, Any], length: int) -> Job:
    """The job at another sequence, with as many tokens a step."""
    tokens = int(document["batch"]) * int(document["sequence"])
    sizes = None if job.sizes is None else {**job.sizes, "sequence": length}
    sequence = length if job.sizes is None else None
    return replace(job, sequence=sequence, sizes=sizes, batch=max(1, tokens // length))


def _has_positions(job: Job, length: float) -> bool:
    """Whether a model has as many positions, without extending them, and lets its sequence be
    chosen."""
    if job.sizes is not None:
        return True
    facts = (job.supply or supply_of(job.model)).facts
    return length == facts.sequence or (
        not facts.fixed and (facts.longest is None or length <= facts.longest)
    )


def _on_chip(job: Job, chip: str) -> Job:
    return replace(job, chip=chip, cluster=None, stack=None)


def changes(job: Job, document: Mapping[str, Any]) -> Iterator[Group]:
    """The usual groups: title, what varies, and the rows."""
    batch, sequence = int(document["batch"]), int(document["sequence"])
    yield (
        *TITLES["devices"],
        _scaled(DEVICES, job.devices, lambda value: replace(job, devices=value)),
    )
    yield *TITLES["batch"], _scaled(BATCHES, batch, lambda value: replace(job, batch=value))
    lengths = tuple(factor for factor in SEQUENCES if _has_positions(job, sequence * factor))
    yield (
        *TITLES["sequence"],
        _scaled(lengths, sequence, lambda value: _longer(job, document, value)),
    )
    chips = [Change(job.chip, None)]
    chips += [Change(name, _on_chip(job, name)) for name in CHIPS if name != job.chip]
    yield *TITLES["chip"], chips


def over_of(text: str) -> PlanAxis:
    """``devices=64..1024`` (the ends and every doubling between them), ``devices=64,96,128``,
    ``chip=h100,b200``."""
    axis, _, values_text = text.partition("=")
    if axis not in TITLES:
        raise unknown_name("--over", "axis of a plan", axis, TITLES)
    parts = [part.strip() for part in values_text.split(",")]
    if axis == "chip":
        if not all(parts):
            raise InputError("--over", f"'{text}' names no chip", "give chip=h100,b200")
        for chip in parts:
            load_chip(chip)
        return PlanAxis(axis, tuple(parts))
    low, dots, high = values_text.partition("..")
    try:
        numbers = [parse_length(part) for part in ((low, high) if dots else parts)]
    except ValueError as fault:
        raise InputError("--over", f"'{text}' cannot be used", str(fault)) from None
    if dots:
        first, last = numbers
        if not 0 < first <= last:
            raise InputError("--over", f"'{text}' goes from more to less", f"give {axis}=low..high")
        numbers = [
            first << step for step in range((last // first).bit_length()) if first << step < last
        ] + [last]
    if min(numbers) < 1:
        raise InputError("--over", f"'{text}' has a value below 1", "give whole numbers from 1 on")
    return PlanAxis(axis, tuple(map(str, numbers)))


def changes_along(over: PlanAxis, job: Job, document: Mapping[str, Any]) -> Group:
    """One group: the job at every value of an axis, in the order given."""
    now = {
        "devices": job.devices,
        "batch": int(document["batch"]),
        "sequence": int(document["sequence"]),
    }
    rows = []
    for value in over.values:
        if over.axis == "chip":
            rows.append(Change(value, None if value == job.chip else _on_chip(job, value)))
            continue
        number = int(value)
        changed = (
            replace(job, devices=number) if over.axis == "devices" else replace(job, batch=number)
        )
        changed = _longer(job, document, number) if over.axis == "sequence" else changed
        rows.append(Change(f"{number:,}", None if number == now[over.axis] else changed))
    return *TITLES[over.axis], rows


def _row(label: str, document: Mapping[str, Any], same: bool) -> dict[str, Any]:
    split = f"TP {document['tensor']} × PP {document['pipeline']} × DP {document['data']}"
    figures = {key: document[key] for key in ("batch_s", "tokens_per_s_per_device", "mfu")}
    return {"label": label, "same": same, "reason": None, **figures, "plan": split}


def _planned(change: Change, job: Job) -> dict[str, Any]:
    try:
        request = request_of(job)
        planned_choice = planned(request)
        if planned_choice.best.plan is None:
            return {"label": change.label, "same": False, "reason": "nothing fits into memory"}
        return _row(change.label, planned_document(request, planned_choice, None), False)
    except PhazeError as fault:
        return {"label": change.label, "same": False, "reason": str(fault).rstrip(".")}


def what_if(
    job: Job,
    document: Mapping[str, Any],
    tell: Callable[[str], None],
    over: Sequence[PlanAxis] = (),
) -> list[dict[str, Any]]:
    """Groups of rows, each a plan or the reason why there is none; ``tell`` hears what is planned.
    Along ``over``, or where that is empty the usual changes."""
    groups, plain = [], replace(job, budget=None, fresh=False)
    wanted = [changes_along(plan_axis, plain, document) for plan_axis in over] or changes(
        plain, document
    )
    for title, axis, rows in wanted:
        documents = []
        for change in rows:
            if change.job is None:
                documents.append(_row(change.label, document, True))
            else:
                tell(f"what if: {axis} {change.label}")
                documents.append(_planned(change, change.job))
        groups.append({"title": title, "axis": axis, "rows": documents})
    return groups
