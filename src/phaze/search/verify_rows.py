r"""The list of closed chips, derived anew: nothing that it says of itself is believed but bounds, and these are proved.

    every row is a chip that the space keeps, once; what the space leaves out is counted by its own rules
    memory     nothing fits: worked out for every chip, since what fits depends on its memory and price alone
    failed     the journal has an error of it; evaluated: the journal has its exact evaluation, whose bound is the row's
    bound      its recorded bound is above the cut-off; open: it is not

Which rows are proved anew: all, or a sample of n that always holds the n / 4 of the least recorded bounds and the n / 4
of the least estimates. The estimate of a chip is its score with every operator on all cores, one after the other, on
equal stages: no bound and nothing of a search, and near enough that a chip better than a false answer comes first.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.objective import Rates
from phaze.search.pruned import STEPS
from phaze.search.rank_graph import graph_times
from phaze.search.rates import rates_of
from phaze.search.state import TIE
from phaze.search.task import ModelTask
from phaze.search.verify import Plain, check_bounds, check_evaluated

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
# Chips whose reference bounds are held at a time: some 100 MB.
CHUNK = 1 << 16
# Rows proved together: a false one ends the work after its batch.
BATCH = 64


def fitting_with(plain: Plain, hbm: int) -> Flags:
    """For each chip whether every model fits into that memory, and the chip may have it."""
    job, opened, size = plain.job, plain.opened, plain.job.hbm_bytes[hbm]
    if not all(
        any(plain.fits(task, configuration, size) for configuration in task.configurations) for task in job.models
    ):
        return np.zeros(len(opened), np.bool_)
    return opened.allowed(size)


def fitting(plain: Plain) -> Flags:
    """For each chip whether every model fits with some memory that counts."""
    return np.asarray(np.stack([fitting_with(plain, hbm) for hbm in plain.memories]).any(axis=0))


def _reason(row: PrunedChip, entry: Evaluated | None, cut: float) -> str:
    """The reason that follows from a row's bound and from what the journal has of the chip."""
    if entry is not None and entry.error:
        return "failed"
    if entry is not None:
        return "evaluated" if np.isfinite(entry.lower) else "memory"
    if row.bound is None:
        return "memory"
    near = abs(row.bound - cut) <= TIE * cut and row.reason in ("bound", "open")
    return row.reason if near else "bound" if row.bound > cut else "open"


def check_rows(plain: Plain, closed: Sequence[PrunedChip], evaluated: Sequence[Evaluated], best: float) -> list[str]:
    """What is wrong with the list of closed chips."""
    if [one.chip for one in closed] != list(range(len(plain.opened))):
        return ["the journal does not close every chip of the space once"]
    opened = {one.chip: one for one in evaluated}
    if not opened.keys() <= set(range(len(closed))):
        return ["the journal has evaluated chips that the space does not keep"]
    cut = best * (1 - plain.job.gap if plain.job.gap > 0 else 1 + TIE)
    fits, wrong = fitting(plain), list[str]()
    for row in closed:
        entry = opened.get(row.chip)
        if row.bound is not None and not (type(row.bound) is float and 0 <= row.bound < np.inf):
            wrong.append(f"chip {row.chip} has the bound {row.bound!r}, which is none")
            continue
        reason = _reason(row, entry, cut)
        if row.reason != reason:
            wrong.append(f"chip {row.chip} is said to be excluded by '{row.reason}', and it is by '{reason}'")
        elif reason == "memory" and fits[row.chip]:
            wrong.append(f"chip {row.chip} is said to fit nothing, and every model fits")
        if entry is not None and np.isfinite(entry.lower) and row.bound != entry.lower:
            wrong.append(f"chip {row.chip} has the bound {row.bound!r}, and {entry.lower!r} when it was evaluated")
        if (row.step == "exact") != (reason == "evaluated") or row.step not in STEPS:
            wrong.append(f"chip {row.chip} is said to be excluded in the step '{row.step}'")
    return wrong


def _seconds(task: ModelTask, arrays: ChipSet) -> Floats:
    """Seconds of a microbatch on one device, all operators on all cores one after the other, over devices used."""
    graph, total = task.graphs[0], np.zeros(len(arrays))
    times = graph_times(graph, arrays, task.training.constants, lambda one, own: own.spread_s.sum(axis=0))
    for kind in graph.calls:
        total += times.forward_s[kind] + times.backward_s[kind]
    return np.asarray(total * task.training.microbatches(graph.microbatch) * graph.width / task.training.devices)


def batch_estimates(plain: Plain) -> list[Floats]:
    """For each model an estimate of its batch on every chip."""
    arrays, count = plain.opened.arrays(), len(plain.opened)
    found = [np.empty(count) for _ in plain.job.models]
    for start in range(0, count, CHUNK):
        index = np.arange(start, min(start + CHUNK, count))
        some = arrays if len(index) == count else arrays.taken(index)
        for own, task in zip(found, plain.job.models, strict=True):
            own[index] = _seconds(task, some)
    return found


def estimates(plain: Plain) -> Floats:
    """An estimate of every chip's score with its best memory."""
    job, devices = plain.job, plain.job.models[0].training.devices
    rates = rates_of(job.objective, plain.opened, list(job.hbm_bytes), devices)
    least = Rates(rates.rate[plain.memories].min(axis=0), rates.weight, rates.delays)
    # Joules count as those of static power: what else a run takes differs far less between chips.
    values = [least.value(seconds, 0.0) for seconds in batch_estimates(plain)]
    return np.asarray(plain.scale.score(np.stack(values)))


def pick(rows: Sequence[PrunedChip], estimate: Floats, count: int | None, seed: int) -> list[PrunedChip]:
    """All rows, or ``count`` of them: those of the least bounds, those of the least estimates, and others at random.

    The least estimates come first, for what is false shows there.
    """
    numbers = np.array([row.chip for row in rows], np.int64)
    order = np.argsort(estimate[numbers], kind="stable").tolist()
    if count is None or len(rows) <= count:
        return [rows[at] for at in order]
    share = max(1, count // 4)
    bounds = np.array([np.inf if row.bound is None else row.bound for row in rows])
    chosen = dict.fromkeys([*order[:share], *np.argsort(bounds, kind="stable")[:share].tolist()])
    others = [at for at in range(len(rows)) if at not in chosen]
    chosen |= dict.fromkeys(random.Random(seed).sample(others, max(0, count - len(chosen))))
    return [rows[at] for at in chosen]


Watch = Callable[[int, int], None]


def _unwatched(done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Proved:
    """What checking found: objections, and how many rows of how many were proved anew."""

    wrong: list[str]
    proved: int
    rows: int


def prove_rows(
    plain: Plain,
    closed: Sequence[PrunedChip],
    evaluated: Sequence[Evaluated],
    best: float,
    sample: tuple[int | None, int],
    provisional: bool = False,
    watch: Watch = _unwatched,
) -> Proved:
    """Bounds of chips that were not opened and scores of those that were, a batch at a time until one is wrong.

    ``sample`` are how many (None: all) and its seed; of the opened ones a twentieth. Memory is known of all. A chip
    that was opened may be better than an answer that says of itself that it is ``provisional``. ``watch`` sees how
    many of how many are done.
    """
    count, seed = sample
    bounds = [one for one in closed if one.reason in ("bound", "open", "failed")]
    opened = [one for one in closed if one.reason == "evaluated"]
    estimate, few = estimates(plain), None if count is None else max(1, count // 20)
    some, exact = pick(bounds, estimate, count, seed), pick(opened, estimate, few, seed)
    entries = {one.chip: one for one in evaluated}
    wrong, proved, total = list[str](), 0, len(bounds) + len(opened)
    for start in range(0, len(some), BATCH):
        rows = some[start : start + BATCH]
        wrong, proved = check_bounds(plain, rows, best), proved + len(rows)
        if wrong:
            return Proved(wrong, proved, total)
        watch(proved, len(some) + len(exact))
    return Proved(check_evaluated(plain, exact, entries, 0.0 if provisional else best), proved + len(exact), total)
