"""Problems for the placement tests: the published ones, and small random ones; every plan of a small one."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.placement.pipeline import Cut, fits, price
from phaze.placement.problem import Layer, LayerGraph, Plan, Problem, Recompute, layer_graph
from phaze.placement.profile import problem_of

PUBLISHED = Path(__file__).parent / "published.json"


@dataclass(frozen=True)
class Published:
    """A problem with the published solver's optimum (None: it found nothing feasible) and the seconds it took."""

    name: str
    profile: dict[str, Any]
    batch_s: float | None
    published_cpp_s: float

    @property
    def problem(self) -> Problem:
        return problem_of(self.profile, self.name)


def _unfolded(first_id: int, folded: dict[str, Any]) -> dict[str, Any]:
    names = ("forward_s", "backward_s", "parameter_bytes", "activation_bytes", "sharded")
    rows = [row for count, *row in folded["layers"] for _ in range(count)]
    layers = [{"id": first_id + i, **dict(zip(names, row, strict=True))} for i, row in enumerate(rows)]
    sizes = [size for count, size in folded["edges"] for _ in range(count)]
    edges = [{"from": first_id + i, "to": first_id + i + 1, "bytes": size} for i, size in enumerate(sizes)]
    return {"layers": layers, "edges": edges}


def published() -> list[Published]:
    """All published problems."""
    cases = []
    for case in json.loads(PUBLISHED.read_text(encoding="utf-8"))["cases"]:
        keys = ("devices", "hbm_bytes", "link_bytes_per_s", "microbatches", "optimizer", "recompute")
        profile = {"schema": "phaze.profile/1", "rules": "icml24", **{key: case[key] for key in keys}}
        profile["widths"] = {width: _unfolded(case["first_id"], rows) for width, rows in case["widths"].items()}
        cases.append(Published(case["name"], profile, case["batch_s"], case["published_cpp_s"]))
    return cases


def random_edges(rng: random.Random, n: int, chain: bool) -> list[tuple[int, int, float]]:
    """Edges of a chain with a few that skip, or of a graph that branches."""

    def size() -> float:
        return rng.choice([0.0, rng.uniform(0, 4), float(rng.randint(1, 5))])

    edges = [(i, i + 1, size()) for i in range(n - 1)] if chain else []
    for tail in range(n):
        for head in range(tail + 1, n):
            if rng.random() < (0.15 if chain else 0.4):
                edges.append((tail, head, size()))
    return edges


def random_problem(seed: int, chain: bool, most_layers: int = 6) -> Problem:
    """A small problem: skip edges or branches, odd numbers of devices and microbatches, memory that may be short."""
    rng = random.Random(seed)
    n = rng.randint(1, most_layers)
    names = rng.sample(range(-3, 20), n)
    if chain:
        names.sort()
    edges = [(names[i], names[j], size) for i, j, size in random_edges(rng, n, chain)]
    whole = rng.random() < 0.5
    rows = [(rng.randint(1, 9), rng.randint(1, 9), rng.randint(0, 9), rng.randint(0, 9)) for _ in range(n)]
    split = [rng.random() < 0.6 for _ in range(n)]
    graphs = []
    for width in sorted(rng.sample([1, 2, 3, 4], rng.randint(1, 2))):
        share = [width if width > 1 and s else 1 for s in split]
        layers = []
        for id_, row, k in zip(names, rows, share, strict=True):
            f, b, w, a = (v / k if whole else v / k * rng.uniform(0.9, 1.1) for v in row)
            layers.append(Layer(id_, f, b, w, a, k > 1))
        graphs.append(layer_graph(width, layers, edges))
    return Problem(
        devices=rng.randint(1, 8),
        hbm_bytes=float(rng.choice([15, 30, 60, 120, 1000])),
        link_bytes_per_s=rng.choice([0.5, 1.0, 3.0, 100.0]),
        microbatches=rng.randint(1, 12),
        optimizer=rng.choice(["sgd", "adam"]),
        recompute=rng.choice(["none", "full", "best"]),
        graphs=tuple(graphs),
    )


def _closed(graph: LayerGraph, left: frozenset[int]) -> bool:
    return all(edge.head in left for edge in graph.edges if edge.tail in left)


def cuts_of_graph(graph: LayerGraph, left: frozenset[int]) -> Iterator[list[tuple[int, ...]]]:
    """Every way to cut what is left into stages."""
    if not left:
        yield []
        return
    members = sorted(left)
    for code in range(1, 1 << len(members)):
        stage = frozenset(m for bit, m in enumerate(members) if code >> bit & 1)
        if _closed(graph, left - stage):
            for rest in cuts_of_graph(graph, left - stage):
                yield [tuple(graph.layers[i].id for i in sorted(stage)), *rest]


def _choices(recompute: Recompute, stages: int) -> Iterator[tuple[bool, ...]]:
    if recompute == "none":
        yield (False,) * stages
    elif recompute == "full":
        yield (*(True,) * (stages - 1), False)
    else:
        for code in range(1 << (stages - 1)):
            yield (*(bool(code >> i & 1) for i in range(stages - 1)), False)


def every_plan(problem: Problem) -> Iterator[Plan]:
    """Every plan there is, fitting or not, priced."""
    for graph in problem.graphs:
        for stages in cuts_of_graph(graph, frozenset(range(len(graph.layers)))):
            for choice in _choices(problem.recompute, len(stages)):
                cuts = [Cut(layers, again) for layers, again in zip(stages, choice, strict=True)]
                for data in range(1, min(problem.devices, problem.microbatches) + 1):
                    try:
                        yield price(problem, graph.width, data, cuts)
                    except InputError:
                        break


def brute_force(problem: Problem) -> float | None:
    """The least batch time over every plan that fits."""
    return min((plan.batch_s for plan in every_plan(problem) if fits(problem, plan)), default=None)


def unequal_chain(layers: int, devices: int, widths: tuple[int, ...]) -> Problem:
    """A long chain of layers that all differ, the outer two at each end not sharded."""
    rng = random.Random(0)
    rows = [(rng.uniform(1e-3, 3e-3), rng.uniform(1e6, 1e8), rng.uniform(1e6, 1e8)) for _ in range(layers)]
    graphs = []
    for width in widths:
        split = [width > 1 and 2 <= i < layers - 2 for i in range(layers)]
        share = [width if s else 1 for s in split]
        placed = [
            Layer(i, row[0] / share[i], 2 * row[0] / share[i], row[1] / share[i], row[2] / share[i], split[i])
            for i, row in enumerate(rows)
        ]
        graphs.append(layer_graph(width, placed, [(i, i + 1, 1e6) for i in range(layers - 1)]))
    return Problem(devices, 80e9, 4e9, 4 * devices, "sgd", "best", tuple(graphs))
