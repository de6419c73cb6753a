"""Every plan of a small problem, one after another: the oracle that knows nothing of how a solver
searches."""

from collections.abc import Iterator
from itertools import product

from phaze.cost.network_prices import NetworkPrices
from phaze.pipeline.families import SPLIT_FAMILIES
from phaze.pipeline.family import Family
from phaze.placement.layers import LayerGraph
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.structure import StageCut


def _closed(graph: LayerGraph, left: frozenset[int]) -> bool:
    return all(edge.head in left for edge in graph.edges if edge.tail in left)


def _cuts(graph: LayerGraph, left: frozenset[int]) -> Iterator[list[tuple[int, ...]]]:
    """Every way to cut what is left into stages."""
    if not left:
        yield []
        return
    members = sorted(left)
    for code in range(1, 1 << len(members)):
        stage = frozenset(m for bit, m in enumerate(members) if code >> bit & 1)
        if _closed(graph, left - stage):
            for rest in _cuts(graph, left - stage):
                yield [tuple(graph.layers[i].id for i in sorted(stage)), *rest]


def _families(problem: PlacementProblem, blocks: list[int], rounds: int) -> Iterator[Family]:
    """The families that a cut with so many blocks a stage allows, by their definition."""
    for family in problem.rules.families:
        even = all(count > 0 and count % family.chunks == 0 for count in blocks)
        least = {"zb-h1": 1, "zb-interleaved": 1, "zb-v": 2, "dualpipe-v": 2}.get(
            family.name, 0
        ) * len(blocks)
        folded = family.name in ("zb-v", "dualpipe-v")
        if family.most_stages and len(blocks) > family.most_stages:
            continue
        if rounds >= least and (
            family.chunks == 1 or (even and (folded or rounds % len(blocks) == 0))
        ):
            yield family


def _devices(problem: PlacementProblem, graph: LayerGraph, layers: tuple[int, ...]) -> int:
    split = any(layer.sharded for layer in graph.layers if layer.id in layers)
    return graph.width if split or not problem.rules.unsplit_stages else 1


def every_plan(problem: PlacementProblem, simulated: bool = False) -> Iterator[Plan]:
    """Every plan there is, fitting or not, priced."""
    for plan, _ in every_family_plan(problem, simulated):
        yield plan


def every_family_plan(
    problem: PlacementProblem, simulated: bool = False
) -> Iterator[tuple[Plan, str]]:
    """The same with the name of each plan's family."""
    prices = NetworkPrices(problem.cluster)
    for graph in problem.graphs:
        block = {layer.id: layer.block for layer in graph.layers}
        for stages in _cuts(graph, frozenset(range(len(graph.layers)))):
            choices = [problem.modes(last=i == len(stages) - 1) for i in range(len(stages))]
            counts = [sum(block[id_] for id_ in layers) for layers in stages]
            taken = sum(_devices(problem, graph, layers) for layers in stages)
            replicas = range(1, min(problem.microbatches, problem.devices // taken) + 1)
            for modes, data in product(product(*choices), replicas):
                cuts = [StageCut(layers, mode) for layers, mode in zip(stages, modes, strict=True)]
                for family, order in product(
                    _families(problem, counts, problem.rounds(data)), problem.rules.orders
                ):
                    if family.name in SPLIT_FAMILIES and set(modes) != {"none"}:
                        continue
                    shape = Shape(graph.width, len(stages), data, order, family.chunks, family.name)
                    if not problem.sharing.allows(shape):
                        continue
                    yield price(problem, shape, cuts, prices, simulated), family.name


def brute_force(problem: PlacementProblem) -> float:
    """The least batch time over every plan that fits; infinite if none does."""
    return min(
        (plan.batch_s for plan in every_plan(problem) if fits(problem, plan)), default=float("inf")
    )
