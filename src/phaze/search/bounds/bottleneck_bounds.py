r"""Layer graphs of any shape: what no plan can beat, by its first stage, and the bottleneck table
for what is left.

Every plan has a first stage X, one of the sets that can be cut off at the front. With c = f + b the
seconds of a layer (with recompute "full" c' = 2 f + b in every stage but the last), C the sum over
all layers, and S stages on at most K / d devices a replica, the longest stage takes at least

    tau >= max( c(X), longest layer, (C - c(X)) / (S - 1) )                       stashing
    tau >= max( c'(X), longest layer, (C' - c'(X)) / (S - 1 + rho) )              recomputing

rho being the greatest f / c of a layer: the last stage's layers take no longer than tau, and save a
share rho of it at
the most. A batch then takes at least  tau (ceil(M / d) + S - 1) + 4 (d - 1)/d w(X) / B
                                       (:func:`first_floors`). What
fits of X in memory depends on no chip and is tabled once (:class:`FirstStages`).
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from phaze.cost.network_prices import NetworkPrices
from phaze.placement.batch_end import flat_link_s_per_byte
from phaze.placement.bottleneck_kernels import ReplicaDegrees
from phaze.placement.bottleneck_solver import FEW_STEPS, best_by_table
from phaze.placement.cut_sets import CutSets, cut_sets_of
from phaze.placement.job import TrainingJob
from phaze.placement.prepared_width import Width, in_flight_of, prepared, retimed, room_of
from phaze.placement.problem import ROUNDING, PlacementProblem
from phaze.search.bounds.bottleneck_bound_kernels import first_floors
from phaze.search.bounds.shape_bounds import SLACK
from phaze.search.bounds.table_kernels import ChipFreeTable, table_floors
from phaze.search.deadline import NEVER, Deadline
from phaze.search.rank_graph import RankGraph

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Chips whose tables are filled in one piece, so that a deadline is seen between pieces.
TABLES = 1024


def _counts(model: RankGraph, cut_sets: CutSets) -> Floats:
    """How many layers of each kind every closed set holds, [sets, kinds]."""
    counts = np.zeros((len(cut_sets.size), len(model.layers)))
    for top in range(1, len(cut_sets.size)):
        step = cut_sets.step_start[top]
        counts[top] = counts[cut_sets.step_set[step]]
        counts[top, model.calls[int(cut_sets.step_layer[step])]] += 1
    return counts


@dataclass(frozen=True, slots=True)
class FirstStages:
    """The first stages that a pipeline of a graph may have: layers of each kind, most stages,
    synchronisation."""

    counts: Floats
    most_stages: Integers
    sync_s: Floats
    whole: NDArray[np.bool_]


def first_stages(model: RankGraph, problem: PlacementProblem, training: TrainingJob) -> FirstStages:
    """Those of one graph that fit into memory."""
    cut_sets = cut_sets_of(problem.graphs[0])
    left = _counts(model, cut_sets)
    counts = left[-1] - left[:-1]
    weights = counts @ np.array([layer.parameter_bytes for layer in model.layers])
    stash = counts @ np.array([float(layer.saved_bytes) for layer in model.layers])
    hbm_bytes = problem.hbm_bytes
    room = hbm_bytes * (1 + ROUNDING) - problem.state.total / problem.sent_bytes * weights - stash
    most = np.full(len(counts), min(len(model.calls), training.devices))
    if problem.recompute == "none":
        with np.errstate(divide="ignore", invalid="ignore"):
            behind = np.where(stash > 0, np.floor(room / stash * (1 + 1e-9)), len(model.calls))
        most = np.minimum(most, 1 + np.maximum(behind, 0)).astype(np.int64)
    fits = room >= -1e-9 * hbm_bytes
    sync_s = 4 * weights / training.link_bytes_per_s
    return FirstStages(
        counts[fits], most[fits].astype(np.int64), sync_s[fits], (left[:-1].sum(axis=1) == 0)[fits]
    )


def loosest_floors(
    model: RankGraph, forward_s: Floats, backward_s: Floats, training: TrainingJob
) -> Floats:
    """The loosest floor, for all chips at once: S stages take max(C / S, longest layer), memory and
    links aside."""
    seconds = forward_s + backward_s
    calls = np.array(model.calls)
    total = (np.bincount(calls, minlength=len(seconds))[:, None] * seconds).sum(axis=0)
    longest = seconds[np.unique(calls)].max(axis=0)
    rounds, best = training.microbatches(model.microbatch), np.full(len(total), np.inf)
    for stages, replicas in _most_replicas(model, training):
        best = np.minimum(
            best, np.maximum(total / stages, longest) * (-(-rounds // replicas) + stages - 1)
        )
    return best


def _most_replicas(model: RankGraph, training: TrainingJob) -> list[tuple[int, int]]:
    """For every number of stages the most replicas of a pipeline, where there is room for one."""
    plain = sum(not model.layers[kind].sharded for kind in model.calls)
    rounds, most_replicas = training.microbatches(model.microbatch), []
    for stages in range(1, min(len(model.calls), training.devices) + 1):
        devices = model.width * max(0, stages - plain) + min(stages, plain)
        replicas = min(training.devices // devices, rounds)
        if replicas:
            most_replicas.append((stages, replicas))
    return most_replicas


def first_stage_bounds(
    model: RankGraph,
    times: tuple[Floats, Floats],
    problem: PlacementProblem,
    training: TrainingJob,
    cut_s: float,
) -> Floats:
    """What no plan beats, for each chip, beyond ``cut_s`` by the loosest floor alone; times of both
    passes are [layers, chips]."""
    forward_s, backward_s = times
    bounds = loosest_floors(model, forward_s, backward_s, training)
    index = np.flatnonzero(bounds < cut_s)
    stages = first_stages(model, problem, training)
    replicas = np.zeros(min(len(model.calls), training.devices) + 1, np.int64)
    for number, most in _most_replicas(model, training):
        replicas[number] = most
    rounds = training.microbatches(model.microbatch)
    in_all = np.bincount(model.calls, minlength=len(model.layers)).astype(np.float64)
    finer = first_floors(
        np.ascontiguousarray(forward_s[:, index]), np.ascontiguousarray(backward_s[:, index]),
        stages.counts,
        stages.most_stages, stages.sync_s, stages.whole, replicas, in_all,
        rounds, problem.recompute == "full", cut_s,
    )  # fmt: skip
    bounds[index] = np.maximum(bounds[index], finer)
    return bounds


def _chip_free(problem: PlacementProblem, width: Width) -> ChipFreeTable:
    """What the table of a width depends on beside the seconds of its layers."""
    (family,), count = problem.rules.families, len(width.graph.layers)
    stages = np.arange(1, width.depth + 1)
    replicas = np.minimum(problem.devices // width.fewest_devices(stages), problem.microbatches)
    rounds = -(-problem.microbatches // np.maximum(replicas, 1))
    degrees = ReplicaDegrees(
        width.devices_per_stage,
        problem.devices,
        problem.microbatches,
        float(family.pace_stages),
        -1.0,
    )
    most = max(1, min(problem.devices, problem.microbatches))
    return ChipFreeTable(
        room_of(problem, most, width.graph.width),
        room_of(problem, 1),
        in_flight_of(family, problem.microbatches, None, width.depth),
        np.where(replicas > 0, rounds + family.pace_stages * stages - 1.0, np.inf),
        width.kinds,
        degrees,
        flat_link_s_per_byte(problem.rules.link_bytes_per_s or inf),
        count * (count + 1) // 2,
    )


def _one_by_one(
    problem: PlacementProblem, width: Width, times: tuple[Floats, Floats], cuts_s: Floats
) -> Floats:
    """The least batch times of some chips by the solver of one; times of both passes are [layers,
    chips]."""
    (family,), (forward_s, backward_s), bounds = problem.rules.families, times, cuts_s.copy()
    for chip in range(len(cuts_s)):
        on_chip = retimed(width, forward_s[:, chip], backward_s[:, chip])
        plan = best_by_table(problem, [on_chip], family, float(cuts_s[chip]))
        bounds[chip] = cuts_s[chip] if plan is None else plan.cost_s
    return bounds


def table_bounds(
    model: RankGraph,
    times: tuple[Floats, Floats],
    problem: PlacementProblem,
    floors: Floats,
    cuts_s: Floats,
    deadline: Deadline = NEVER,
) -> Floats:
    """The lesser of a chip's cut and its least batch time, by the bottleneck table, where its floor
    is below that."""
    forward_s, backward_s = times
    bounds, calls = floors.copy(), np.array(model.calls)
    width = prepared(problem, problem.graphs[0], NetworkPrices(problem.cluster))
    index = np.flatnonzero(floors < cuts_s * (1 - SLACK))
    if not width.depth:
        bounds[index] = cuts_s[index]
        return bounds
    large = len(width.cut_sets.size) ** 2 * width.kinds * width.depth / 6 >= FEW_STEPS
    alone = large or problem.has_experts or not np.isfinite(cuts_s[index]).all()
    fixed, untimed = (
        _chip_free(problem, width),
        retimed(width, *(np.zeros(len(calls)) for _ in range(2))),
    )
    for some in np.split(index, range(TABLES, len(index), TABLES)) if len(index) else ():
        deadline.check()
        # As the library was compiled for: chosen columns would lie the other way around in memory.
        seconds = (
            np.ascontiguousarray(forward_s[calls][:, some]),
            np.ascontiguousarray(backward_s[calls][:, some]),
        )
        if alone:
            bounds[some] = _one_by_one(problem, width, seconds, cuts_s[some])
        else:
            bounds[some] = table_floors(
                untimed.cut_sets, untimed.saved, fixed, seconds, cuts_s[some]
            )
    return bounds
