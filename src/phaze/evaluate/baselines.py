"""Splits that people choose, to stand beside the best one: the experts' of a named model, and a
rule of thumb.

The *experts' split* keeps its pipeline depth and tensor width and takes as many replicas as there
are devices and microbatches for. The *rule of thumb* takes the widest tensor group within the
innermost level of the network and the fewest stages, doubled until they fit. Both cut the blocks
evenly, recompute alike in all stages, do not interleave, and are the fastest order and mode of
recompute that fit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.fixed import even_cuts
from phaze.evaluate.flow import block_calls
from phaze.graph.ir import Model
from phaze.hardware.cluster import Cluster
from phaze.pipeline.families import ONE_F_ONE_B
from phaze.placement.layers import PlacedLayer
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, fits_at, price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import Mode
from phaze.placement.structure import StageCut

# Sums of the same seconds in another order differ by less.
ROUNDING = 1e-9
# Pipeline depth, replicas on 1,024 devices, tensor width.
Split = tuple[int, int, int]


def _again_s(layer: PlacedLayer, mode: Mode) -> float:
    """What a layer runs again in a mode."""
    if mode == "full":
        return layer.forward_s if layer.full_s is None else layer.full_s
    if mode == "selective":
        return layer.selective_s if layer.selective_bytes is not None else 0.0
    return sum(option.again_s for option in layer.more if option.name == mode)


def cuts_bound_s(problem: PlacementProblem, shape: Shape, cuts: Sequence[StageCut]) -> float:
    """What no plan of these stages undercuts: m times the passes of its slowest one."""
    layers = {layer.id: layer for layer in problem.graph(shape.tensor).layers}
    slowest_s = max(
        sum(
            la.forward_s + la.backward_s + _again_s(la, cut.mode)
            for la in (layers[id_] for id_ in cut.layers)
        )
        for cut in cuts
    )
    return problem.rounds(shape.data) * slowest_s * (1 - ROUNDING)


def simple_problem(problem: PlacementProblem) -> PlacementProblem:
    """The problem under 1F1B, which is what people run, whatever families are allowed, or under
    GPipe alone."""
    simple = [f for f in problem.rules.families if f.chunks == 1 and not (f.split or f.most_stages)]
    families = tuple(f for f in simple if not f.separate_passes) or tuple(simple) or (ONE_F_ONE_B,)
    return replace(problem, rules=replace(problem.rules, families=families))


def _even_stages(problem: PlacementProblem, model: Model, stages: int) -> Iterator[list[StageCut]]:
    """So many stages cut evenly, all in one mode of recompute but where the last has none."""
    for mode in problem.modes():
        *first, last = even_cuts(model, stages, mode)
        if mode not in problem.modes(last=True):
            last = StageCut(last.layers, problem.modes(last=True)[0])
        yield [*first, last]


def fits_evenly(problem: PlacementProblem, model: Model, stages: int) -> bool:
    """Whether a plan of so many stages cut evenly fits in some mode of recompute."""
    replicas = min(problem.devices // (stages * model.tensor), problem.microbatches)
    if replicas < 1 or stages > len(block_calls(model)):
        return False
    problem, shape = simple_problem(problem), Shape(model.tensor, stages, replicas)
    # The ends are the fullest, so a mode that does not fit is found out early.
    order = dict.fromkeys([0, stages - 1, *range(stages)])
    return any(
        fits_at(problem, shape, cuts, order) for cuts in _even_stages(problem, model, stages)
    )


def even_plan(
    problem: PlacementProblem,
    model: Model,
    stages: int,
    prices: NetworkPrices,
    below_s: float = inf,
) -> Plan | None:
    """The fastest plan of so many stages cut evenly, all in one mode of recompute, that fits; None
    if none does, or none that takes less than ``below_s``."""
    width, priced = model.tensor, list[tuple[Plan, Shape, list[StageCut]]]()
    replicas = min(problem.devices // (stages * width), problem.microbatches)
    if replicas < 1 or stages > len(block_calls(model)):
        return None
    problem = simple_problem(problem)
    for cuts in _even_stages(problem, model, stages):
        shape = Shape(width, stages, replicas)
        if cuts_bound_s(problem, shape, cuts) >= min(
            [below_s, *(entry[0].batch_s for entry in priced)]
        ):
            continue
        # The first stage holds the most microbatches in flight, the last one the head of the model.
        if not fits_at(problem, shape, cuts, {0, stages - 1}):
            continue
        # An order changes no memory, and where there is one stage or replica nothing at all.
        for order in problem.rules.orders[: None if min(stages, replicas) > 1 else 1]:
            shape = Shape(width, stages, replicas, order)
            plan = price(problem, shape, cuts, prices, simulated=False)
            if not fits(problem, plan):
                break
            priced.append((plan, shape, cuts))
        if cuts[0].mode == "none" and priced:  # all others take longer
            break
    if not priced:
        return None
    _, shape, cuts = min(priced, key=lambda entry: entry[0].batch_s)
    return price(problem, shape, cuts, prices)


def experts_plan(
    problem: PlacementProblem,
    model: Model,
    split: Split,
    prices: NetworkPrices,
    below_s: float = inf,
) -> Plan | None:
    """The experts' split of a traced rank; None if it has another width or nothing fits and takes
    less than ``below_s``."""
    pipeline, _, tensor = split
    return even_plan(problem, model, pipeline, prices, below_s) if model.tensor == tensor else None


def rule_of_thumb(
    problem: PlacementProblem, model: Model, prices: NetworkPrices, below_s: float = inf
) -> Plan | None:
    """The rule of thumb at the width of a traced rank (:func:`usual_width`); None if no depth fits,
    or the first that does takes ``below_s`` or more."""
    for power in range((problem.devices // model.tensor).bit_length()):
        plan = even_plan(problem, model, 2**power, prices, below_s)
        if plan is not None or (below_s < inf and fits_evenly(problem, model, 2**power)):
            return plan
    return None


def usual_width(widths: Iterable[int], cluster: Cluster) -> int | None:
    """The widest tensor group within the innermost level; None if all are wider."""
    return max((width for width in widths if width <= cluster.levels[0].size), default=None)
