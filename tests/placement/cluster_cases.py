"""Small random problems under rules ``cluster``, and every plan of one."""

import random
from collections.abc import Iterator
from itertools import product

from phaze.cost.memory import State
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, Level
from phaze.hardware.stack import Stack
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import ModeCut, fits, price
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.cluster_problem import ORDERS, ClusterProblem, Extra
from phaze.placement.problem import Layer, Plan, layer_graph
from tests.placement.placement_cases import cuts_of_graph, random_edges


def random_cluster(rng: random.Random) -> Cluster:
    """Two or three levels, each slower and farther than the one inside it."""
    sizes = rng.choice([(2, 6), (4, 3), (3, 4), (2, 2, 3), (12,)])
    levels = tuple(
        Level(f"l{i}", "switch", size, 8.0 / 3**i, rng.choice([0.0, 0.1 * i])) for i, size in enumerate(sizes)
    )
    return Cluster("random", "random", 12, levels)


def random_stack(rng: random.Random) -> Stack:
    return Stack(
        name="random",
        title="random",
        fusion="none",
        host_s=0.0,
        hides_tensor_collectives=False,
        hidden_synchronisation=rng.choice([0.0, 0.5, 1.0]),
        scatter_gather=rng.random() < 0.5,
        optimizer_traffic_bytes=rng.choice([0.0, 30.0]),
        state_bytes=16.0,
        reserve_bytes=rng.choice([0.0, 5.0]),
    )


def _extra(rng: random.Random, layer: Layer, tied: str | None, tied_bytes: float) -> Extra:
    selective = rng.random() < 0.6
    return Extra(
        selective_bytes=layer.activation_bytes * rng.uniform(0, 0.8) if selective else None,
        selective_s=layer.forward_s * rng.uniform(0, 0.5) if selective else 0.0,
        full_s=layer.forward_s * rng.uniform(0, 1) if rng.random() < 0.5 else None,
        tied=tied,
        tied_bytes=tied_bytes,
    )


def random_cluster_problem(seed: int, chain: bool, most_layers: int = 5) -> ClusterProblem:
    rng = random.Random(seed)
    n = rng.randint(1, most_layers)
    edges = random_edges(rng, n, chain)
    rows = [(rng.randint(1, 9), rng.randint(1, 9), rng.randint(2, 9), rng.randint(0, 9)) for _ in range(n)]
    ties = rng.sample(range(n), 2) if n > 1 and rng.random() < 0.5 else []
    if n > 3 and rng.random() < 0.2:
        ties = rng.sample(range(n), 3)
    graphs, extras = [], []
    for width in sorted(rng.sample([1, 2, 3], rng.randint(1, 2))):
        noise = rng.uniform(0.8, 1.2)
        layers = [
            Layer(i, f / width * noise, b / width * noise, w / width, a / width, width > 1)
            for i, (f, b, w, a) in enumerate(rows)
        ]
        graph = layer_graph(width, layers, edges)
        graphs.append(graph)
        extras.append(
            tuple(
                _extra(rng, layer, "word" if layer.id in ties else None, 2.0 / width if layer.id in ties else 0.0)
                for layer in graph.layers
            )
        )
    return ClusterProblem(
        devices=rng.randint(1, 8),
        hbm_bytes=float(rng.choice([40, 80, 160, 320, 2000])),
        microbatches=rng.randint(1, 9),
        recompute=rng.choice(["none", "selective", "full", "best", "best"]),
        schedule=rng.choice(["1f1b", "1f1b", "gpipe"]),
        zero=rng.choice([0, 1, 2, 3]),
        state=State(2.0, rng.choice([2.0, 4.0]), rng.choice([0.0, 12.0])),
        sent_bytes=2.0,
        hbm_bytes_per_s=rng.choice([None, 20.0]),
        cluster=random_cluster(rng),
        stack=random_stack(rng),
        graphs=tuple(graphs),
        extras=tuple(extras),
    )


def every_cluster_plan(problem: ClusterProblem) -> Iterator[Plan]:
    """Every plan there is, fitting or not, priced."""
    prices = RingPrices(problem.cluster)
    for graph in problem.graphs:
        for stages in cuts_of_graph(graph, frozenset(range(len(graph.layers)))):
            for data, order in product(range(1, problem.devices // (graph.width * len(stages)) + 1), ORDERS):
                for modes in product(problem.modes, repeat=len(stages)):
                    cuts = [ModeCut(layers, mode) for layers, mode in zip(stages, modes, strict=True)]
                    try:
                        yield price(problem, Shape(graph.width, len(stages), data, order), cuts, prices)
                    except InputError:
                        break


def cluster_brute_force(problem: ClusterProblem) -> float | None:
    """The least batch time over every plan that fits."""
    return min((plan.batch_s for plan in every_cluster_plan(problem) if fits(problem, plan)), default=None)
