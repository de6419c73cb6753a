"""Every chip of a run, or every stage of a plan, as columns: a dict from name to array, for pandas, polars and files.

``pandas.DataFrame(frame)`` and ``polars.DataFrame(frame)`` take it as it is. Units are in the names. ``score_bound`` is
what the certificate says of a chip, no score of it can be less; ``score`` is its exact score where it was opened to the
end, else NaN.
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
    opened: SpaceChips, closed: Sequence[PrunedChip], evaluated: Sequence[Evaluated], hbm_bytes: int, best: int
) -> Frame:
    """One row for each chip of a space; money is reckoned with ``hbm_bytes`` of HBM."""
    score = np.full(len(opened), np.nan)
    for one in evaluated:
        if np.isfinite(one.score) and not one.error:
            score[one.chip] = one.score
    return {
        "chip": np.arange(len(opened)),
        **opened.frame(),
        "design_power_w": opened.design_w(),
        "making_usd": opened.making_usd(hbm_bytes),
        "closed_by": np.array([one.reason for one in closed]),
        "score_bound": np.array([np.nan if one.bound is None else one.bound for one in closed]),
        "score": score,
        "is_answer": np.arange(len(opened)) == best,
    }


def stages_frame(plan: Mapping[str, Any]) -> Frame:
    """One row for each stage of a plan (``phaze.plan/1``)."""
    stages = plan["stages"]
    found: Frame = {
        "stage": np.arange(len(stages)),
        "first_layer": np.array([min(stage["layers"]) for stage in stages]),
        "layers": np.array([len(stage["layers"]) for stage in stages]),
        "recompute": np.array([stage["recompute"] for stage in stages]),
    }
    for name in ("devices", "forward_s", "backward_s", "time_s", "memory_bytes"):
        found[name] = np.array([stage[name] for stage in stages])
    for term in stages[0]["memory"]:
        found[f"{term}_bytes"] = np.array([stage["memory"][term] for stage in stages])
    return found


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
