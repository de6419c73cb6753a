"""The problems of both old rule sets as problems of the one solver, and small random problems that mix rules."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from phaze.cost.memory import State
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, Level
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.cluster_problem import ClusterProblem
from phaze.placement.one.layout import Shape
from phaze.placement.one.pipeline import Cut, fits, price
from phaze.placement.one.problem import Extra, Plan, Problem
from phaze.placement.one.rules import GPIPE, ICML24, ONE_F_ONE_B, Family, Rules, icml24_rules, interleaved
from phaze.placement.problem import Problem as FlatProblem
from tests.placement.cluster_cases import random_cluster_problem
from tests.placement.placement_cases import cuts_of_graph


def flat(problem: FlatProblem) -> Problem:
    """A problem of rules ``icml24``."""
    most = max(problem.devices, len(problem.graphs[0].layers) * problem.graphs[-1].width)
    level = Level("all", "switch", most, problem.link_bytes_per_s, 0.0)
    return Problem(
        rules=icml24_rules(problem.link_bytes_per_s),
        devices=problem.devices,
        hbm_bytes=problem.hbm_bytes,
        microbatches=problem.microbatches,
        recompute=problem.recompute,
        state=State(1.0, 1.0, 1.0 if problem.optimizer == "adam" else 0.0),
        cluster=Cluster("flat", "one level", most, (level,)),
        graphs=problem.graphs,
        extras=tuple((Extra(),) * len(graph.layers) for graph in problem.graphs),
        sent_bytes=1.0,
        sgd_state=State(1.0, 1.0, 0.0) if problem.optimizer == "adam" else None,
    )


def levelled(problem: ClusterProblem, families: tuple[Family, ...] | None = None) -> Problem:
    """A problem of rules ``cluster``."""
    family = GPIPE if problem.schedule == "gpipe" else ONE_F_ONE_B
    stack = problem.stack
    return Problem(
        rules=Rules("cluster", families or (family,), hidden=stack.hidden_synchronisation),
        devices=problem.devices,
        hbm_bytes=problem.hbm_bytes,
        microbatches=problem.microbatches,
        recompute=problem.recompute,
        state=problem.state,
        cluster=problem.cluster,
        graphs=problem.graphs,
        extras=tuple(
            tuple(Extra(e.selective_bytes, e.selective_s, e.full_s, e.tied, e.tied_bytes) for e in row)
            for row in problem.extras
        ),
        zero=problem.zero,
        sent_bytes=problem.sent_bytes,
        hbm_bytes_per_s=problem.hbm_bytes_per_s,
        optimizer_traffic_bytes=stack.optimizer_traffic_bytes,
        reserve_bytes=stack.reserve_bytes,
        scatter_gather=stack.scatter_gather,
    )


def with_blocks(problem: Problem, seed: int) -> Problem:
    """The problem with some layers marked as blocks, the same at every width."""
    rng = random.Random(seed)
    ids = {layer.id for layer in problem.graphs[0].layers if rng.random() < 0.8}
    extras = tuple(
        tuple(replace(extra, block=layer.id in ids) for layer, extra in zip(graph.layers, row, strict=True))
        for graph, row in zip(problem.graphs, problem.extras, strict=True)
    )
    return replace(problem, extras=extras)


def mixed(seed: int, chain: bool, most_layers: int = 4) -> Problem:
    """A small problem with rules that no setting has: any family, stage rule, end, unsplit stages, headroom."""
    rng = random.Random(seed + 7)
    problem = levelled(random_cluster_problem(seed, chain, most_layers))
    chunked = (ONE_F_ONE_B, interleaved(2), interleaved(3))
    families = rng.choice([(ONE_F_ONE_B,), (GPIPE,), (ICML24,), chunked, chunked, (interleaved(2),), (*chunked, GPIPE)])
    unsplit = rng.random() < 0.5
    link = rng.choice([None, 0.5, 3.0])
    one_level = Cluster("one", "one level", 12, (Level("all", "switch", 12, 3.0, 0.1),))
    rules = replace(
        problem.rules,
        families=families,
        stage="icml24" if link is not None and rng.random() < 0.7 else "layers",
        end=rng.choice(["slowest", "first"]),
        unsplit_stages=unsplit,
        last_stage_recomputes=rng.random() < 0.6,
        link_bytes_per_s=link,
        piece_start_s=rng.choice([0.0, 0.2]),
        reduction=rng.choice(["share", "layers"]),
    )
    sharded = {layer.id: rng.random() < 0.5 for layer in problem.graphs[0].layers}
    graphs = tuple(
        replace(graph, layers=tuple(replace(layer, sharded=sharded[layer.id]) for layer in graph.layers))
        for graph in problem.graphs
    )
    problem = replace(
        problem,
        rules=rules,
        graphs=graphs,
        cluster=one_level if unsplit else problem.cluster,
        headroom=rng.choice([0.0, 0.1]),
        microbatches=rng.choice([1, 2, 3, 4, 6, 7]),
    )
    return with_blocks(problem, seed)


def _families(problem: Problem, blocks: list[int], rounds: int) -> Iterator[Family]:
    """The families that a cut with so many blocks a stage allows, by their definition."""
    for family in problem.rules.families:
        whole = all(count > 0 and count % family.chunks == 0 for count in blocks) and rounds % len(blocks) == 0
        if family.chunks == 1 or whole:
            yield family


def every_plan(problem: Problem) -> Iterator[Plan]:
    """Every plan there is, fitting or not, priced."""
    prices = RingPrices(problem.cluster)
    for graph, extras in zip(problem.graphs, problem.extras, strict=True):
        block = {layer.id: extra.block for layer, extra in zip(graph.layers, extras, strict=True)}
        for stages in cuts_of_graph(graph, frozenset(range(len(graph.layers)))):
            choices = [problem.modes(last=i == len(stages) - 1) for i in range(len(stages))]
            counts = [sum(block[id_] for id_ in layers) for layers in stages]
            for modes, data in product(product(*choices), range(1, problem.microbatches + 1)):
                cuts = [Cut(layers, mode) for layers, mode in zip(stages, modes, strict=True)]
                for family, order in product(_families(problem, counts, problem.rounds(data)), problem.rules.orders):
                    shape = Shape(graph.width, len(stages), data, order, family.chunks, family.name)
                    try:
                        yield price(problem, shape, cuts, prices, simulated=False)
                    except InputError:
                        break


def brute_force(problem: Problem) -> float | None:
    """The least batch time over every plan that fits."""
    return min((plan.batch_s for plan in every_plan(problem) if fits(problem, plan)), default=None)
