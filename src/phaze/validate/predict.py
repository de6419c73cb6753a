"""What phaze says of a measured run: seconds of an iteration and bytes on the fullest device.

A stated plan is priced as it stands (:func:`phaze.evaluate.fixed.fixed_plan`). What a row leaves
open is chosen as a person who wanted the fastest run would: of all

    microbatch   powers of two that divide the sequences of a copy, up to 16
    chunks       1, and with stages also those that divide the layers of a stage, where the
                 microbatches of a copy divide by the stages
    recompute    none, selective, full

the fastest that fits into memory, the smallest if none does (:func:`free_choices`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import job_of
from phaze.hardware.calibration import Basis
from phaze.placement.pipeline import fits
from phaze.placement.rules import MODES
from phaze.validate.rows import MeasuredRun

MICROBATCHES = (1, 2, 4, 8, 16)
"""Those of published runs, where a row does not state its own."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Ours beside what was measured; ``chosen`` are the free choices that were taken."""

    row: MeasuredRun
    chosen: Mapping[str, Any]
    seconds: float
    memory_bytes: float
    fits: bool

    @property
    def error(self) -> float | None:
        """Of seconds."""
        return None if self.row.seconds is None else self.seconds / self.row.seconds - 1

    @property
    def memory_error(self) -> float | None:
        return (
            None if self.row.memory_bytes is None else self.memory_bytes / self.row.memory_bytes - 1
        )


def _layers_of(run: Mapping[str, Any]) -> int:
    sizes = run.get("gpt") or run.get("llama") or run.get("moe") or {}
    return int(sizes.get("layers", 0))


def free_choices(row: MeasuredRun) -> Iterator[dict[str, Any]]:
    """Every plan that the row may have run, as it is stated or with what it leaves open filled
    in."""
    plan = dict(row.run["plan"])
    share = max(1, row.run["batch"] // plan["data"])
    sizes = (
        [size for size in MICROBATCHES if share % size == 0]
        if "microbatch" in row.free
        else [plan["microbatch"]]
    )
    modes = MODES if "recompute" in row.free else (plan["recompute"],)
    a_stage = _layers_of(row.run) // plan["pipeline"]
    for size, mode in product(sizes, modes):
        even = share // size % plan["pipeline"] == 0
        many = [n for n in range(1, a_stage + 1) if a_stage % n == 0 and even] or [1]
        for chunks in many if "chunks" in row.free else [plan["chunks"]]:
            yield plan | {"microbatch": size, "recompute": mode, "chunks": chunks}


def _priced(row: MeasuredRun, plan: Mapping[str, Any], basis: Basis, memo: Memo) -> Prediction:
    job = job_of({**row.run, "plan": dict(plan)}, row.where, memo, row.allow_code)
    problem, plan_priced = fixed_plan(job, basis, memo)
    need = max(stage.memory.total_bytes for stage in plan_priced.stages)
    chosen = {key: plan[key] for key in row.free}
    return Prediction(row, chosen, plan_priced.batch_s, need, fits(problem, plan_priced))


def predict(row: MeasuredRun, basis: Basis, memo: Memo) -> Prediction:
    """The run of a row, its free choices taken well."""
    predictions = [_priced(row, plan, basis, memo) for plan in free_choices(row)]
    fitting = [prediction for prediction in predictions if prediction.fits]
    return (
        min(fitting, key=lambda prediction: prediction.seconds)
        if fitting
        else min(predictions, key=lambda prediction: prediction.memory_bytes)
    )
