"""Measured runs priced as if their source had not been there: what bands are made of.

What software leaves of a chip's rate (``software_share`` of a stack) is fitted on runs, so a run
whose own share was is priced with the one that all other sources give
(:meth:`tools.fits.share_fit.Fits.held_back`): of other releases of its family, or of other
families; a share that was ``assumed``, or that single kernels gave, stays. Not held back:
``host_time`` of eager stacks, which one source alone determines (docs/accuracy.md, held back by
model), and what was chosen among few values after seeing runs.

Runs that are left out: :func:`tools.fits.sources.left_out`. Every run speaks for both kinds of
chips: as its chip is, and, were it unmeasured, from the data sheet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from phaze.evaluate.bands import (
    BandKind,
    bits_of,
    chip_kind,
    family_of,
    layout_of,
    share_is_assumed,
    trait_of,
)
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import RunJob, job_of
from phaze.hardware.calibration import Basis
from phaze.hardware.library import stating_stack
from phaze.hardware.provenance import chip_provenance
from phaze.hardware.stack import Saves, Stack
from phaze.validate.rows import MeasuredRun
from phaze.validate.sets import SETS, rows_of
from phaze.values import FrozenTable, replace
from tools.fits.share_fit import Fits
from tools.fits.sources import left_out, share_is_fitted, source_of, usual_generation

BASES: tuple[Basis, ...] = ("calibrated", "datasheet")


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A run and what it says: ``time_ratio`` and ``memory_ratio`` are measured over predicted (of
    the time held back and the one that phaze says the one that is farther off), ``full`` is
    predicted over the memory that the run is known to have fitted; None where it does not speak for
    them."""

    id: str
    source: str
    job: tuple[Any, ...]
    kind: BandKind
    saves: Saves
    time_ratio: float | None
    memory_ratio: float | None
    full: float | None


def held_back_stack(job: RunJob, fits: Fits, source: str, memo: Memo) -> Stack:
    """The job's stack with its software share as the runs of other sources have it, where it was
    fitted on runs."""
    generation, stated = usual_generation(job), stating_stack(job.stack.name)
    if generation is None or job.chip.clusters is None or not share_is_fitted(stated, generation):
        return job.stack
    key = (stated, generation)
    share = memo.take(
        ("held back", key, source), lambda: fits.held_back(key, fits.of_source(source)).share
    )
    return replace(
        job.stack, software_share=FrozenTable({**job.stack.software_share, generation: share})
    )


def _priced(row: MeasuredRun, basis: Basis, fits: Fits, memo: Memo) -> HeldBack:
    job = job_of(dict(row.run), row.where, memo)
    held = held_back_stack(job, fits, source_of(row), memo)
    _, plan = fixed_plan(replace(job, stack=held), basis, memo)
    shipped_s = plan.batch_s if held is job.stack else fixed_plan(job, basis, memo)[1].batch_s
    need = max(stage.memory.total_bytes for stage in plan.stages)
    split = job.plan
    layout = layout_of(
        job.model.sequence, split.tensor, split.pipeline, split.context, split.expert
    )
    kind = BandKind(
        chip_kind(
            chip_provenance(job.chip, basis).basis,
            share_is_assumed(job.stack, job.chip.generation),
        ),
        layout,
        bits_of(job.precision),
        family_of(job.stack.name),
        trait_of(job.model.sequence, job.batch / (split.data * split.microbatch)),
    )
    counted = basis == "calibrated"
    return HeldBack(
        row.id,
        source_of(row),
        row.group,
        kind,
        job.stack.saves,
        None
        if row.seconds is None or left_out(row)
        else max(
            (row.seconds / seconds for seconds in (plan.batch_s, shipped_s)),
            key=lambda ratio: abs(ratio - 1),
        ),
        row.memory_bytes / need if counted and row.memory_bytes is not None else None,
        need / row.fits_bytes if counted and row.fits_bytes is not None else None,
    )


def held_back(row: MeasuredRun, fits: Fits, memo: Memo) -> Iterator[HeldBack]:
    """A run that states its plan, as its chip is and from the data sheet; one that is unmeasured
    anyway speaks once."""
    if row.free:
        return
    first = _priced(row, BASES[0], fits, memo)
    yield first
    if first.kind.chip == "measured" and first.time_ratio is not None:
        yield _priced(row, BASES[1], fits, memo)


def bundled_rows() -> tuple[MeasuredRun, ...]:
    """The rows of all bundled sets."""
    return tuple(row for one in SETS for row in rows_of(one))
