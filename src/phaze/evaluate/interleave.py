r"""Chunks, evaluated: interleaved 1F1B at the best candidates of a plan that is sought.

What is proved of a job leaves interleaving out. Here every choice of width, microbatch and sequence parallelism gets

    its proved plan, and the blocks cut evenly at every depth S that divides them, with every number of copies d for
    which ceil(M / d) is a multiple of S, both orders, every number of chunks that divides the blocks of all stages,
    and for each stage the fastest mode of recompute that fits

and the fastest of these stands for the choice where it beats the proved plan (:func:`with_chunks`). An even cut takes
m max T at the least, T without transfers and recomputing, so trials are taken by that and most are never priced. It is
no proof: uneven stages are tried at one depth only. What no plan at all undercuts, interleaved or not, is
:func:`phaze.placement.cluster_solve.least_seconds`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from phaze.evaluate.fixed import block_calls, even_cuts
from phaze.evaluate.plan import TOLD, Candidate, Request, with_zeros
from phaze.evaluate.prices import LevelPrices
from phaze.graph.ir import Model
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import ModeCut, fits, price
from phaze.placement.cluster_problem import ORDERS, ClusterProblem, Mode
from phaze.placement.cluster_solve import least_seconds
from phaze.placement.problem import Plan


@dataclass(frozen=True, slots=True)
class Trial:
    """A cut to be interleaved: m max T and the sum of the other T, without transfers and recomputing; its stages,
    copies, and the chunks that divide its blocks."""

    least_s: float
    fill_s: float
    cuts: tuple[ModeCut, ...]
    data: int
    chunks: tuple[int, ...]


def chunk_counts(model: Model, cuts: Sequence[ModeCut]) -> tuple[int, ...]:
    """Every number of pieces above 1 that divides the blocks of all stages, where blocks are equal and in a row."""
    blocks = block_calls(model)
    row = blocks == list(range(blocks[0], blocks[-1] + 1)) and len({model.calls[at].layer for at in blocks}) == 1
    inside = set(blocks)
    counts = [sum(layer in inside for layer in cut.layers) for cut in cuts]
    if len(cuts) < 2 or not row:
        return ()
    return tuple(v for v in range(2, min(counts) + 1) if all(count % v == 0 for count in counts))


def _copies(problem: ClusterProblem, tensor: int, stages: int) -> Iterator[int]:
    """Copies whose microbatches are a multiple of the stages; of equally many microbatches the fewest copies."""
    seen, total = set[int](), problem.microbatches
    for data in range(1, min(total, problem.devices // (tensor * stages)) + 1):
        rounds = problem.rounds(data)
        if rounds not in seen and rounds % stages == 0:
            yield data
        seen.add(rounds)


def trials(candidate: Candidate, limit_s: float) -> list[Trial]:
    """What may be faster than ``limit_s``, best bound first."""
    model, problem, found = candidate.model, candidate.problem, list[Trial]()
    graph, _ = problem.graph(model.tensor)
    seconds = {layer.id: layer.forward_s + layer.backward_s for layer in graph.layers}
    blocks = len(block_calls(model))

    def trial(cuts: tuple[ModeCut, ...], data: int, chunks: tuple[int, ...]) -> Trial:
        times = [sum(seconds[id_] for id_ in cut.layers) for cut in cuts]
        return Trial(problem.rounds(data) * max(times), sum(times) - max(times), cuts, data, chunks)

    for stages in range(2, min(blocks, problem.devices // model.tensor) + 1):
        cuts = even_cuts(model, stages, "none") if blocks % stages == 0 else ()
        chunks = chunk_counts(model, cuts) if cuts else ()
        if chunks:
            found += [trial(cuts, data, chunks) for data in _copies(problem, model.tensor, stages)]
    if candidate.plan is not None:
        own = tuple(ModeCut(stage.layers, stage.recompute) for stage in candidate.plan.stages)
        if problem.rounds(candidate.plan.data) % len(own) == 0 and chunk_counts(model, own):
            found.append(trial(own, candidate.plan.data, chunk_counts(model, own)))
    return sorted((one for one in found if one.least_s < limit_s), key=lambda one: one.least_s)


def _fitting(problem: ClusterProblem, shape: Shape, trial: Trial, chunks: int, prices: LevelPrices) -> Plan | None:
    """The trial with every stage in the first mode that fits: the modes are by what they compute again."""
    chosen: list[Mode | None] = [None] * len(trial.cuts)
    for mode in problem.modes:
        cuts = [replace(cut, mode=mode) for cut in trial.cuts]
        plan = price(problem, shape, cuts, prices, chunks, simulated=False)
        if fits(problem, plan) and not any(chosen):
            return plan
        for at, stage in enumerate(plan.stages):
            if chosen[at] is None and problem.fits(stage.memory.total_bytes):
                chosen[at] = mode
        if all(chosen):
            break
    cuts = [replace(cut, mode=mode) for cut, mode in zip(trial.cuts, chosen, strict=True) if mode is not None]
    return price(problem, shape, cuts, prices, chunks, simulated=False) if len(cuts) == len(chosen) else None


def best_interleaved(
    candidate: Candidate, limit_s: float, asked: tuple[int, ...] | None, prices: LevelPrices
) -> Plan | None:
    """The fastest interleaved plan of the trials that beats ``limit_s``, of equals the first; of ``asked`` chunks."""
    problem, best = candidate.problem, None
    for trial in trials(candidate, limit_s):
        if trial.least_s >= limit_s:
            break
        pieces = [chunks for chunks in reversed(trial.chunks) if asked is None or chunks in asked]
        for order, chunks in product(ORDERS if trial.data > 1 else ORDERS[:1], pieces):
            if trial.least_s + trial.fill_s / chunks >= limit_s:
                continue
            shape = Shape(candidate.model.tensor, len(trial.cuts), trial.data, order)
            plan = _fitting(problem, shape, trial, chunks, prices)
            if plan is not None and plan.batch_s < limit_s:
                limit_s, best = plan.batch_s, (shape, plan)
    if best is None:
        return None
    shape, plan = best
    cuts = [ModeCut(stage.layers, stage.recompute) for stage in plan.stages]
    return price(problem, shape, cuts, prices, plan.chunks)


def with_chunks(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, best first, each at its best stage of ZeRO, and with its best interleaved plan where that is
    faster and among the best told."""
    prices = LevelPrices(request.setting.cluster, request.setting.basis)
    ranked = with_zeros(request, found)
    for at, candidate in enumerate(ranked):
        if candidate.plan is None:
            continue
        told_s = sorted(one.rank[0] for one in ranked)[:TOLD][-1]
        better = best_interleaved(candidate, min(candidate.plan.batch_s, told_s), request.chunks, prices)
        if better is not None:
            ranked[at] = replace(candidate, plan=better, proved=candidate.plan)
    ranked.sort(key=lambda one: one.rank)
    best = ranked[0]
    if best.plan is not None and best.plan.chunks > 1:
        floor_s = min(least_seconds(one.problem, prices) for one in ranked)
        ranked[0] = replace(best, plan=replace(best.plan, lower_bound_s=min(floor_s, best.plan.batch_s)))
    return ranked
