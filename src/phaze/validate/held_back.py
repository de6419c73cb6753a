"""Measured runs priced as if their source had not been there: what bands are made of.

A source is a laboratory's repository or paper, the first word of a row's ``source``. What software leaves of a chip's
rate (``software_share`` of a stack) is fitted on runs, so a run whose own share was is priced with

    median over other families of stacks of the median of their shares that were fitted on the same generation of
    chips, or, where there are none, on any generation; shares with the same source as its own are not others

instead (:func:`held_back_stack`); a share that says that it was ``assumed``, or that no run was used, stays. Not held
back: ``host_time`` of eager stacks, which one source alone determines (docs/accuracy.md, cross-validated), and what was
chosen among few values after seeing runs.

Left out, with a reason (:func:`left_out`): runs that leave choices open, and the times of runs over a network that
broke down. Every run speaks for both kinds of chips: as its chip is, and, were it unmeasured, from the data sheet.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from phaze.evaluate.bands import Kind, bits_of, chip_kind, family_of, layout_of
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import RunJob, job_of
from phaze.hardware.calibration import Basis
from phaze.hardware.library import preset_names, read_stack
from phaze.hardware.stack import Saves, Stack
from phaze.hardware.trust import chip_trust
from phaze.validate.rows import MeasuredRun
from phaze.validate.sets import SETS, rows_of

BASES: tuple[Basis, ...] = ("calibrated", "datasheet")
# nanotron's sweep ran pipelines, and more than 8 nodes, over a network that broke down (docs/accuracy.md).
BROKEN, BROKEN_DEVICES = "github.com/vinjn/nanotron-ultrascale-playbook", 64
FITTED = re.compile(r"fitted|derived: as fitted", re.IGNORECASE)
NO_RUN = "no run was used"
Shares = Mapping[tuple[str, str], tuple[float, str]]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A run and what it says: ``time_ratio`` and ``memory_ratio`` are measured over predicted, None where it does not
    speak for them."""

    id: str
    source: str
    job: tuple[Any, ...]
    kind: Kind
    saves: Saves
    time_ratio: float | None
    memory_ratio: float | None
    called_too_large: bool | None


def source_of(row: MeasuredRun) -> str:
    """The laboratory's repository or paper."""
    return re.split(r"[@ :]", row.source, maxsplit=1)[0] or row.id


def left_out(row: MeasuredRun) -> str:
    """Why the time of a run speaks for no band; empty if it does."""
    if row.free:
        return "it leaves choices open"
    plan = row.run["plan"]
    if source_of(row) == BROKEN and (plan["pipeline"] > 1 or row.run["devices"] > BROKEN_DEVICES):
        return "its network broke down"
    return "" if row.seconds is not None else "no time was measured"


def fitted_shares() -> Shares:
    """Software shares of the bundled stacks that were fitted on runs, with their sources, by stack and generation."""
    found = {}
    for name in preset_names("stacks"):
        file = read_stack(name)
        for generation, share in file.software_share.items():
            said = file.sources.get(f"software_share.{generation}", "")
            if FITTED.match(said) and NO_RUN not in said:
                found[name, generation] = share, said
    return found


def _generation(job: RunJob) -> str | None:
    """The name by which the stack's share on the job's chip is known."""
    known = dict(job.stack.software_share)
    return next((name for name in (job.chip.name, job.chip.technology, "any") if name in known), None)


def held_back_stack(job: RunJob, shares: Shares) -> Stack:
    """The job's stack with its software share as others' runs have it, where it was fitted on runs."""
    generation = _generation(job)
    if generation is None or job.chip.clusters is None or (job.stack.name, generation) not in shares:
        return job.stack
    own, (_, said) = family_of(job.stack.name), shares[job.stack.name, generation]
    near: dict[str, list[float]] = {}
    far: dict[str, list[float]] = {}
    for (name, known), (share, source) in shares.items():
        if family_of(name) != own and source != said:
            far.setdefault(family_of(name), []).append(share)
            if known == generation:
                near.setdefault(family_of(name), []).append(share)
    usual = [median(each) for each in (near or far).values()]
    if not usual:
        return job.stack
    changed = {**dict(job.stack.software_share), generation: median(usual)}
    return replace(job.stack, software_share=tuple(sorted(changed.items())))


def _priced(row: MeasuredRun, basis: Basis, shares: Shares, memo: Memo) -> HeldBack:
    job = job_of(dict(row.run), row.where, memo)
    _, plan = fixed_plan(replace(job, stack=held_back_stack(job, shares)), basis, memo)
    need = max(stage.memory.total_bytes for stage in plan.stages)
    split = job.plan
    layout = layout_of(job.model.sequence, split.tensor, split.pipeline, split.context, split.expert)
    kind = Kind(chip_kind(chip_trust(job.chip, basis).basis), layout, bits_of(job.precision), family_of(job.stack.name))
    counted = basis == "calibrated"
    return HeldBack(
        row.id,
        source_of(row),
        row.group,
        kind,
        job.stack.saves,
        row.seconds / plan.batch_s if row.seconds is not None and not left_out(row) else None,
        row.memory_bytes / need if counted and row.memory_bytes is not None else None,
        need > row.fits_bytes if counted and row.fits_bytes is not None else None,
    )


def held_back(row: MeasuredRun, shares: Shares, memo: Memo) -> Iterator[HeldBack]:
    """A run that states its plan, as its chip is and from the data sheet; one that is unmeasured anyway speaks once."""
    if row.free:
        return
    first = _priced(row, BASES[0], shares, memo)
    yield first
    if first.kind.chip == "measured" and first.time_ratio is not None:
        yield _priced(row, BASES[1], shares, memo)


def bundled_rows() -> tuple[MeasuredRun, ...]:
    """The rows of all bundled sets."""
    return tuple(row for one in SETS for row in rows_of(one))
