"""Every chip of a run, or every stage of a plan, as columns: a dict from name to array, for pandas,
polars and files.

``pandas.DataFrame(frame)`` and ``polars.DataFrame(frame)`` take it as it is. Units are in the
names. ``score_bound`` is what the certificate says of a chip, no score of it can be less; ``score``
is its exact score where it was evaluated to the end, else NaN.
"""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.search.chips import SpaceChips
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip

Frame = dict[str, NDArray[Any]]


def chips_frame(
    chips: SpaceChips,
    closed: Sequence[PrunedChip],
    evaluated: Sequence[Evaluated],
    hbm_bytes: int,
    best: int,
) -> Frame:
    """One row for each chip of a space; money is reckoned with ``hbm_bytes`` of HBM."""
    score = np.full(len(chips), np.nan)
    for row in evaluated:
        if np.isfinite(row.score) and not row.error:
            score[row.chip] = row.score
    return {
        "chip": np.arange(len(chips)),
        **chips.frame(),
        "design_power_w": chips.design_w(),
        "making_usd": chips.making_usd(hbm_bytes),
        "closed_by": np.array([row.reason for row in closed]),
        "score_bound": np.array([np.nan if row.bound is None else row.bound for row in closed]),
        "score": score,
        "is_answer": np.arange(len(chips)) == best,
    }


def stages_frame(plan: Mapping[str, Any]) -> Frame:
    """One row for each stage of a plan (``phaze.plan/1``)."""
    stages = plan["stages"]
    frame: Frame = {
        "stage": np.arange(len(stages)),
        "first_layer": np.array([min(stage["layers"]) for stage in stages]),
        "layers": np.array([len(stage["layers"]) for stage in stages]),
        "recompute": np.array([stage["recompute"] for stage in stages]),
    }
    for name in ("devices", "forward_s", "backward_s", "time_s", "memory_bytes"):
        frame[name] = np.array([stage[name] for stage in stages])
    for term in stages[0]["memory"]:
        frame[f"{term}_bytes"] = np.array([stage["memory"][term] for stage in stages])
    return frame


def _cell(value: Any) -> Any:
    return "" if isinstance(value, float) and math.isnan(value) else value


def csv_text(frame: Frame) -> str:
    """Comma-separated, one line of names first; numbers as Python writes them, NaN as nothing."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame)
    columns = [[_cell(value) for value in column.tolist()] for column in frame.values()]
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()
