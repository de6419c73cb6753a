"""What if there were other devices, batches, sequences or chips: the job planned anew for each, one change at a time.

Along devices and batch everything else stays. A longer or shorter sequence keeps the tokens of a batch, so that rows
compare like with like. Another chip comes with its own usual cluster and stack. Every row is a whole plan, so its
split changes with it; a row that cannot be planned says why.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from phaze.errors import PhazeError
from phaze.evaluate.answer import planned_document
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Asked, request_of

# Chips that most people could have instead, each with a usual cluster.
CHIPS = ("a100-80gb", "h100", "h200", "b200", "tpu-v5p")
# Factors on what is asked for: the steps that a user tries first.
DEVICES = (0.5, 1.0, 2.0, 4.0)
BATCHES = (0.5, 1.0, 2.0)
SEQUENCES = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Change:
    """One row to be planned: its label, and the job; None where it is the one that was asked."""

    label: str
    asked: Asked | None


def _scaled(values: tuple[float, ...], now: int, made: Callable[[int], Asked | None]) -> list[Change]:
    """Whole multiples and parts of a count."""
    scaled = []
    for factor in values:
        value = int(now * factor)
        if value >= 1 and value == now * factor:
            scaled.append(Change(f"{value:,}", None if factor == 1.0 else made(value)))
    return scaled


def changes(asked: Asked, document: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Change]]]:
    """The groups: title, what varies, and the rows."""
    batch, sequence = int(document["batch"]), int(document["sequence"])
    tokens = batch * sequence
    yield "Devices", "devices", _scaled(DEVICES, asked.devices, lambda value: replace(asked, devices=value))
    yield "Global batch", "sequences", _scaled(BATCHES, batch, lambda value: replace(asked, batch=value))

    def longer(value: int) -> Asked | None:
        sizes = None if asked.sizes is None else {**asked.sizes, "sequence": value}
        length = value if asked.sizes is None else None
        return replace(asked, sequence=length, sizes=sizes, batch=max(1, tokens // value))

    yield "Sequence, as many tokens a step", "positions", _scaled(SEQUENCES, sequence, longer)
    own = [Change(asked.chip, None)]
    own += [Change(name, replace(asked, chip=name, cluster=None, stack=None)) for name in CHIPS if name != asked.chip]
    yield "Chip, on its own usual cluster and stack", "chip", own


def _row(label: str, document: Mapping[str, Any], same: bool) -> dict[str, Any]:
    split = f"TP {document['tensor']} × PP {document['pipeline']} × DP {document['data']}"
    figures = {key: document[key] for key in ("batch_s", "tokens_per_s_per_device", "mfu")}
    return {"label": label, "same": same, "reason": None, **figures, "plan": split}


def _planned(change: Change, asked: Asked) -> dict[str, Any]:
    try:
        request = request_of(asked)
        found = planned(request)
        if found.best.plan is None:
            return {"label": change.label, "same": False, "reason": "nothing fits into memory"}
        return _row(change.label, planned_document(request, found, None), False)
    except PhazeError as fault:
        return {"label": change.label, "same": False, "reason": str(fault).rstrip(".")}


def what_if(asked: Asked, document: Mapping[str, Any], tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Groups of rows, each a plan or the reason why there is none; ``tell`` hears what is planned."""
    groups = []
    for title, axis, rows in changes(replace(asked, budget=None, fresh=False), document):
        made = []
        for change in rows:
            if change.asked is None:
                made.append(_row(change.label, document, True))
            else:
                tell(f"what if: {axis} {change.label}")
                made.append(_planned(change, change.asked))
        groups.append({"title": title, "axis": axis, "rows": made})
    return groups
