"""A front checked again by the plain path: one chip at a time, the general placement solver, no structures, no arrays.

files     study and copies of its files give problem, graphs and the digest that the front names
designs   ``front.json`` is written anew from the chips, memories and configurations that it names, by scheduling
          and placing, and compared byte for byte; no design beats another, none is above a limit, none fits as well
          into less memory
list      every unit is in it once; its reason and all counts are derived; where one metric comes with a run, some
          design is no worse than what is recorded of each unit that a bound closed, and the gaps follow
proof     of a sample of the units (or all) the bounds anew, of opened ones every configuration exactly: some design
          must be no worse, to the gap, in all metrics. The units that look best beside the designs are in every sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.front.answer import StatedDesign, bounds_of, design_order, front_view, model_table
from phaze.front.measures import Listed, Measures, listed_from
from phaze.front.order import steps, undominated
from phaze.front.reference import PlainFront
from phaze.search.configurations import ConfigurationPlan
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.objective import Rates
from phaze.search.pruned import STEPS
from phaze.search.reference import way_of
from phaze.search.state import TIE
from phaze.search.verify import NEAR, ways_below
from phaze.search.verify_answer import check_text
from phaze.search.verify_rows import BATCH, Proved, batch_estimates, fitting_with, pick

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Claim:
    """A front's file with its list: the text, its document, closed units, what was found of opened ones, the code."""

    text: str
    document: Mapping[str, Any]
    closed: Sequence[PrunedChip]
    evaluated: Sequence[Evaluated]
    code: str


def _design(front: PlainFront, measures: Measures, point: Mapping[str, Any]) -> StatedDesign | str:
    """A design recomputed from the chip, memory and configurations that it names, or what is wrong with it."""
    plain, job = front.plain, front.plain.job
    number, size = point["chip"]["number"], point["chip"]["hbm_bytes"]
    if type(number) is not int or not 0 <= number < front.chips or size not in job.hbm_bytes:
        return "chip: no chip and memory of the study"
    hbm = job.hbm_bytes.index(size)
    if not float(plain.rates(number, hbm).rate) < np.inf:
        return "chip: it is too dear with that memory"
    static_w = float(plain.opened.static_w()[number])
    tables, seconds, joules, leaner = [], [], [], [hbm > 0 and len(front.memories) == 1]
    for own, said in zip(front.configurations(number), point["models"], strict=True):
        configuration = way_of(own.task, said)
        if configuration is None:
            return f"models[{own.task.name}]: the study knows no such microbatch, width, recompute and ZeRO"
        plan = own.plan(configuration, size)
        if plan is None:
            return f"models[{own.task.name}]: the plan does not fit"
        less = own.plan(configuration, job.hbm_bytes[hbm - 1]) if hbm else None
        leaner.append(less is not None and _alike(less, plan))
        seconds.append(plan.plan.batch_s)
        joules.append(plan.dynamic_j)
        tables.append(model_table(own.task, configuration, plan, static_w))
    if all(leaner):
        return f"chip.hbm_bytes: {job.hbm_bytes[hbm - 1]} are enough"
    values, single = measures.values(number, hbm, seconds, joules), front.values(number, hbm, seconds, joules)
    if not all(isclose(a, b, rel_tol=NEAR) for a, b in zip(values.tolist(), single.tolist(), strict=True)):
        return f"metrics: {values.tolist()}, but {single.tolist()} by the formulas for one chip"
    return (
        StatedDesign(number, hbm, tables, values)
        if front.inside(number, hbm, values)
        else "metrics: not within the limits"
    )


def _alike(less: ConfigurationPlan, than: ConfigurationPlan) -> bool:
    seconds, joules = (less.plan.batch_s, than.plan.batch_s), (less.dynamic_j, than.dynamic_j)
    return all(abs(own - other) <= other * TIE / 2 for own, other in (seconds, joules))


def regenerated_designs(
    front: PlainFront, measures: Measures, points: Sequence[Mapping[str, Any]]
) -> tuple[list[StatedDesign], list[str]]:
    """All designs recomputed, in their order, and what is wrong with them."""
    designs, wrong = [], []
    for at, point in enumerate(points):
        design = _design(front, measures, point)
        if isinstance(design, str):
            wrong.append(f"points[{at}].{design}")
        else:
            designs.append(design)
    if wrong or not designs:
        return designs, wrong or ["points: there is none"]
    weighed = len(front.asked.of)
    values = np.stack([one.values for one in designs], axis=1)[:weighed]
    numbers = [measures.unit(one.chip, one.hbm) for one in designs]
    kept = set(undominated(values, np.arange(len(designs))).tolist())
    wrong += [f"points[{at}] is beaten by another" for at in range(len(designs)) if at not in kept]
    if design_order(front.asked, numbers, values) != list(range(len(designs))):
        wrong.append("points: not in the order of their metrics")
    return designs, wrong


def _reason(row: PrunedChip, entry: Evaluated | None, inside: bool, covered: bool | None) -> str:
    """The reason that follows for a unit; ``covered`` None: what bounds its configurations is not in the list."""
    if entry is not None and entry.error:
        return "failed"
    if row.bound is None:
        return "memory"
    if entry is not None:
        return "evaluated"
    if not inside:
        return "within"
    if covered is None or row.reason == "open":
        return row.reason if row.reason in ("within", "bound", "open") else "bound"
    return "bound" if covered else "open"


def _covered(listed: Listed) -> NDArray[np.bool_]:
    """Which units some design is no worse than, to the gap, by what is recorded of them."""
    run, weighed = listed.run_metrics, listed.weighed
    lower, points = listed.lower[:weighed, 0, :], steps(listed.points[:weighed])
    raised = steps(np.where(run[:, None], lower / (1 - listed.gap) if listed.gap < 1 else np.inf, lower))
    covered = np.zeros(lower.shape[1], np.bool_)
    for at in range(points.shape[1]):
        covered |= (points[:, at][:, None] <= raised).all(axis=0)
    return covered


def check_units(front: PlainFront, measures: Measures, listed: Listed | None, claim: Claim) -> list[str]:
    """What is wrong with the list of closed units."""
    chips, closed = front.chips, claim.closed
    if [one.chip for one in closed] != list(range(chips * len(front.memories))):
        return ["the journal does not close every unit once"]
    entries = {one.chip: one for one in claim.evaluated}
    if not entries.keys() <= set(range(len(closed))):
        return ["the journal has evaluated units that there are none of"]
    fits = np.concatenate([fitting_with(front.plain, hbm) for hbm in front.memories])
    inside = measures.allowed() if listed is None else listed.inside[0]
    covered, wrong = None if listed is None else _covered(listed), list[str]()
    for row in closed:
        entry = entries.get(row.chip)
        if row.bound is not None and not (type(row.bound) is float and 0 < row.bound < np.inf):
            wrong.append(f"unit {row.chip} has the bound {row.bound!r}, which is none")
            continue
        reason = _reason(row, entry, bool(inside[row.chip]), None if covered is None else bool(covered[row.chip]))
        if row.reason != reason:
            wrong.append(f"unit {row.chip} is said to be excluded by '{row.reason}', and it is by '{reason}'")
        elif reason == "memory" and fits[row.chip]:
            wrong.append(f"unit {row.chip} is said to fit nothing, and every model fits")
        if listed is not None and entry is not None and np.isfinite(entry.lower) and row.bound != entry.lower:
            wrong.append(f"unit {row.chip} has the bound {row.bound!r}, and {entry.lower!r} when it was evaluated")
        if (row.step == "exact") != (reason == "evaluated") or row.step not in STEPS:
            wrong.append(f"unit {row.chip} is said to be excluded in the step '{row.step}'")
    return wrong


def _promise(front: PlainFront, measures: Measures, designs: Sequence[StatedDesign]) -> Floats:
    """By unit how near the designs come to it by estimates alone, the least first: over designs that are no worse in
    what is known the least, over metrics of a run the most, of its estimate over the design's."""
    asked, chips, memories = front.asked, front.chips, list(front.memories)
    seconds, runs = batch_estimates(front.plain), []
    for rates, scale in zip(measures.rates, measures.scales, strict=True):
        some = Rates(rates.rate[memories], rates.weight, rates.delays)
        values = np.stack([some.value(np.broadcast_to(own, (len(memories), chips)), 0.0) for own in seconds])
        runs.append(scale.score(values).ravel())
    known = [measures.known[metric.name] for metric in asked.of if metric.kind is None]
    promise = np.full(len(memories) * chips, np.inf)
    for design in designs:
        unit = measures.unit(design.chip, design.hbm)
        with np.errstate(invalid="ignore", divide="ignore"):
            worst = np.max([own[unit] / own for own in runs], axis=0)
        better = (
            np.all([own[unit] <= own * (1 + TIE) for own in known], axis=0) if known else np.ones(len(promise), bool)
        )
        promise = np.where(better, np.fmin(promise, worst), promise)
    return np.asarray(-promise)


def _prove_bounds(front: PlainFront, rows: Sequence[PrunedChip]) -> list[str]:
    """What is wrong with the bounds of units that were not opened."""
    plain, job, wrong = front.plain, front.plain.job, []
    below = ways_below(plain, [row.chip % front.chips for row in rows])
    first = front.asked.measured.index(front.asked.runs[0])
    for row, own in zip(rows, below, strict=True):
        chip, hbm = row.chip % front.chips, front.memories[row.chip // front.chips]
        every = front.exact(chip, hbm) if own is None else front.least(chip, hbm, own(job.hbm_bytes[hbm]))
        for values in every:
            free = row.reason not in ("open", "failed") and front.inside(chip, hbm, values)
            if free and not front.covered(values, job.gap):
                wrong.append(f"unit {row.chip} may have {values.tolist()}, which no design of the front covers")
                break
        least = min((float(values[first]) for values in every), default=np.inf)
        if row.bound is not None and row.bound > least * (1 + NEAR):
            wrong.append(f"unit {row.chip} is said to have a bound of {row.bound!r}, and it is {least!r}")
    return wrong


def _prove_opened(front: PlainFront, rows: Sequence[PrunedChip]) -> list[str]:
    """What is wrong with opened units: a configuration on one that no design of the front covers."""
    wrong = []
    for row in rows:
        chip, hbm = row.chip % front.chips, front.memories[row.chip // front.chips]
        for values in front.exact(chip, hbm):
            if front.inside(chip, hbm, values) and not front.covered(values, front.plain.job.gap):
                wrong.append(f"unit {row.chip} has {values.tolist()}, which no design of the front covers")
                break
    return wrong


def verified(front: PlainFront, measures: Measures, claim: Claim, sample: tuple[int | None, int]) -> Proved:
    """Everything that is wrong with a front; ``sample`` are how many units are proved anew (None: all) and its seed."""
    designs, wrong = regenerated_designs(front, measures, claim.document["points"])
    if wrong:
        return Proved(wrong, 0, 0)
    points = np.stack([one.values for one in designs], axis=1)
    front = replace(front, points=points[: len(front.asked.of)])
    listed = listed_from(measures, bounds_of(claim.closed), points) if len(front.asked.runs) == 1 else None
    if listed is not None and listed.lower.shape[2] != len(claim.closed):
        return Proved(["the journal does not close every unit once"], 0, 0)
    if wrong := check_units(front, measures, listed, claim):
        return Proved(wrong, 0, 0)
    true = front_view(measures, front.plain.opened, designs, listed, (claim.closed, claim.evaluated, claim.code))
    if wrong := check_text(claim.text, claim.document, true, "front.json"):
        return Proved(wrong, 0, 0)
    count, seed = sample
    loose = [one for one in claim.closed if one.reason in ("bound", "within", "open", "failed")]
    opened = [one for one in claim.closed if one.reason == "evaluated"]
    promise, few = _promise(front, measures, designs), None if count is None else max(1, count // 20)
    some, exact, total = pick(loose, promise, count, seed), pick(opened, promise, few, seed), len(loose) + len(opened)
    for start in range(0, len(some), BATCH):
        if wrong := _prove_bounds(front, some[start : start + BATCH]):
            return Proved(wrong, start + BATCH, total)
    return Proved(_prove_opened(front, exact), len(some) + len(exact), total)
