"""Problems for the placement tests: the published ones, and small random ones of each setting and
of mixed rules."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phaze.cost.memory import ParameterState
from phaze.hardware.cluster import Cluster, cluster_of, switch_level
from phaze.pipeline.families import (
    DUALPIPE_V,
    GPIPE,
    ICML24,
    ONE_F_ONE_B,
    ONE_STAGE,
    ZB_H1,
    ZB_V,
    interleaved,
    zb_interleaved,
)
from phaze.placement.layers import PlacedLayer, RecomputeOption, layer_graph
from phaze.placement.problem import PlacementProblem
from phaze.placement.profile import problem_of
from phaze.placement.rules import Rules
from phaze.placement.settings import icml24_problem
from phaze.placement.sharing import Sharing

PUBLISHED = Path(__file__).parent / "published.json"


@dataclass(frozen=True)
class Published:
    """A problem with the published solver's optimum (None: it found nothing feasible) and the
    seconds it took."""

    name: str
    profile: dict[str, Any]
    batch_s: float | None
    published_cpp_s: float

    @property
    def problem(self) -> PlacementProblem:
        return problem_of(self.profile, self.name)


def _unfolded(first_id: int, folded: dict[str, Any]) -> dict[str, Any]:
    names = ("forward_s", "backward_s", "parameter_bytes", "activation_bytes", "sharded")
    rows = [row for count, *row in folded["layers"] for _ in range(count)]
    layers = [
        {"id": first_id + i, **dict(zip(names, row, strict=True))} for i, row in enumerate(rows)
    ]
    sizes = [size for count, size in folded["edges"] for _ in range(count)]
    edges = [
        {"from": first_id + i, "to": first_id + i + 1, "bytes": size}
        for i, size in enumerate(sizes)
    ]
    return {"layers": layers, "edges": edges}


def published() -> list[Published]:
    """All published problems."""
    cases = []
    for case in json.loads(PUBLISHED.read_text(encoding="utf-8"))["cases"]:
        keys = (
            "devices",
            "hbm_bytes",
            "link_bytes_per_s",
            "microbatches",
            "optimizer",
            "recompute",
        )
        profile = {
            "schema": "phaze.profile/1",
            "rules": "icml24",
            **{key: case[key] for key in keys},
        }
        profile["widths"] = {
            width: _unfolded(case["first_id"], rows) for width, rows in case["widths"].items()
        }
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


def random_icml24_problem(seed: int, chain: bool, most_layers: int = 6) -> PlacementProblem:
    """A small problem: skip edges or branches, odd numbers of devices and microbatches, memory that
    may be short."""
    rng = random.Random(seed)
    n = rng.randint(1, most_layers)
    names = rng.sample(range(-3, 20), n)
    if chain:
        names.sort()
    edges = [(names[i], names[j], size) for i, j, size in random_edges(rng, n, chain)]
    whole = rng.random() < 0.5
    rows = [
        (rng.randint(1, 9), rng.randint(1, 9), rng.randint(0, 9), rng.randint(0, 9))
        for _ in range(n)
    ]
    split = [rng.random() < 0.6 for _ in range(n)]
    graphs = []
    for width in sorted(rng.sample([1, 2, 3, 4], rng.randint(1, 2))):
        share = [width if width > 1 and s else 1 for s in split]
        layers = []
        for id_, row, k in zip(names, rows, share, strict=True):
            f, b, w, a = (v / k if whole else v / k * rng.uniform(0.9, 1.1) for v in row)
            layers.append(PlacedLayer(id_, f, b, w, a, k > 1))
        graphs.append(layer_graph(width, layers, edges))
    return icml24_problem(
        graphs,
        devices=rng.randint(1, 8),
        hbm_bytes=float(rng.choice([15, 30, 60, 120, 1000])),
        link_bytes_per_s=rng.choice([0.5, 1.0, 3.0, 100.0]),
        microbatches=rng.randint(1, 12),
        optimizer=rng.choice(["sgd", "adam"]),
        recompute=rng.choice(["none", "full", "best"]),
    )


def _random_cluster(rng: random.Random) -> Cluster:
    """Two or three levels, each slower and farther than the one inside it."""
    sizes = rng.choice([(2, 6), (4, 3), (3, 4), (2, 2, 3), (12,)])
    levels = tuple(
        switch_level(f"l{i}", size, 8.0 / 3**i, rng.choice([0.0, 0.1 * i]))
        for i, size in enumerate(sizes)
    )
    return cluster_of("random", "random", levels)


def with_layers(
    problem: PlacementProblem, change: Callable[[PlacedLayer, int], PlacedLayer]
) -> PlacementProblem:
    """The problem with every layer, at its width, changed."""
    graphs = (
        replace(graph, layers=tuple(change(layer, graph.width) for layer in graph.layers))
        for graph in problem.graphs
    )
    return replace(problem, graphs=tuple(graphs))


def _varied(
    rng: random.Random, layer: PlacedLayer, tied: str | None, tied_bytes: float
) -> PlacedLayer:
    selective = rng.random() < 0.6
    return replace(
        layer,
        selective_bytes=layer.activation_bytes * rng.uniform(0, 0.8) if selective else None,
        selective_s=layer.forward_s * rng.uniform(0, 0.5) if selective else 0.0,
        full_s=layer.forward_s * rng.uniform(0, 1) if rng.random() < 0.5 else None,
        tied=tied,
        tied_bytes=tied_bytes,
        live_bytes=rng.choice([0.0, layer.activation_bytes * rng.uniform(0, 0.5)]),
        buffer_bytes=(0.0, 0.7, 1.3)[kind := rng.randrange(3)],
        kind=kind if kind or rng.random() < 0.5 else -1,
    )


def with_modes(problem: PlacementProblem, seed: int) -> PlacementProblem:
    """Some problems with one or two modes of recompute between selective and full; bytes, live
    bytes and seconds are drawn apart, as of parts that are dropped or of every second block."""
    rng = random.Random(seed)
    names = rng.choice([(), (), ("norms",), ("norms", "mlp+norms")])
    if not names or problem.rules.plain_layers:
        return problem

    def with_options(layer: PlacedLayer, _: int) -> PlacedLayer:
        shares = sorted((rng.random() for _ in names), reverse=True)
        options = (
            RecomputeOption(
                name, a * share, a * rng.uniform(1 - share, 1), rng.uniform(0, 1) * layer.forward_s
            )
            for name, share, a in zip(
                names, shares, (layer.activation_bytes,) * len(names), strict=True
            )
        )
        return replace(layer, more=tuple(options))

    problem = with_layers(problem, with_options)
    modes = (*problem.rules.modes[:-1], *names, problem.rules.modes[-1])
    recompute = rng.choice([*names, "best"]) if problem.recompute != "best" else "best"
    return replace(problem, recompute=recompute, rules=replace(problem.rules, modes=modes))


def random_cluster_problem(seed: int, chain: bool, most_layers: int = 5) -> PlacementProblem:
    """A small problem on a network of levels: 1F1B or GPipe, ZeRO, tied layers, modes of
    recompute."""
    return with_modes(_random_cluster_problem(seed, chain, most_layers), seed)


def _end_rules(rng: random.Random) -> dict[str, Any]:
    """What a second of each communication costs the work beside it, and of the end of a batch what
    does not depend on a stage."""
    costs = (rng.choice([0.0, 0.19, 0.5, 1.0]) for _ in range(3))
    return {
        **dict(zip(("reduction_cost", "gather_cost", "sharded_cost"), costs, strict=True)),
        "bucket": rng.choice([None, 0.0, 1.0, 4.0]),
        "norm": rng.random() < 0.3,
        "host_s": rng.choice([0.0, 0.0, 0.7]),
    }


def _random_cluster_problem(seed: int, chain: bool, most_layers: int) -> PlacementProblem:
    rng = random.Random(seed)
    n = rng.randint(1, most_layers)
    edges = random_edges(rng, n, chain)
    rows = [
        (rng.randint(1, 9), rng.randint(1, 9), rng.randint(2, 9), rng.randint(0, 9))
        for _ in range(n)
    ]
    ties = rng.sample(range(n), 2) if n > 1 and rng.random() < 0.5 else []
    if n > 3 and rng.random() < 0.2:
        ties = rng.sample(range(n), 3)
    graphs = []
    for width in sorted(rng.sample([1, 2, 3], rng.randint(1, 2))):
        noise = rng.uniform(0.8, 1.2)
        layers = [
            PlacedLayer(i, f / width * noise, b / width * noise, w / width, a / width, width > 1)
            for i, (f, b, w, a) in enumerate(rows)
        ]
        graph = layer_graph(width, layers, edges)
        varied = (
            _varied(
                rng,
                layer,
                "word" if layer.id in ties else None,
                2.0 / width if layer.id in ties else 0.0,
            )
            for layer in graph.layers
        )
        graphs.append(replace(graph, layers=tuple(varied)))
    return PlacementProblem(
        rules=Rules(
            "cluster",
            rng.choice([(ONE_F_ONE_B,), (ONE_F_ONE_B,), (GPIPE,)]),
            **_end_rules(random.Random(3 * seed + rng.choice([0, 1, 2]))),
        ),
        devices=rng.randint(1, 8),
        hbm_bytes=float(rng.choice([40, 80, 160, 320, 2000])),
        microbatches=rng.randint(1, 9),
        recompute=rng.choice(["none", "selective", "full", "best", "best"]),
        state=ParameterState(2.0, rng.choice([2.0, 4.0]), rng.choice([0.0, 12.0])),
        cluster=_random_cluster(rng),
        graphs=tuple(graphs),
        zero=rng.choice([0, 1, 2, 3]),
        hbm_bytes_per_s=rng.choice([None, 20.0]),
        optimizer_traffic_bytes=rng.choice([0.0, 30.0]),
        zeroed_bytes=4.0 * (seed % 2),
        reserve_bytes=rng.choice([0.0, 5.0]),
        scatter_gather=rng.random() < 0.5,
    )


def _with_blocks(problem: PlacementProblem, seed: int) -> PlacementProblem:
    """The problem with some layers marked as blocks, the same at every width."""
    rng = random.Random(seed)
    ids = {layer.id for layer in problem.graphs[0].layers if rng.random() < 0.8}
    return with_layers(problem, lambda layer, _: replace(layer, block=layer.id in ids))


def mixed_problem(seed: int, chain: bool, most_layers: int = 4) -> PlacementProblem:
    """A small problem with rules that no setting has: any family, stage rule, end, unsplit stages,
    headroom."""
    rng = random.Random(seed + 7)
    problem = random_cluster_problem(seed, chain, most_layers)
    chunked = (ONE_F_ONE_B, interleaved(2), interleaved(3))
    families = rng.choice(
        [
            (ONE_F_ONE_B,),
            (GPIPE,),
            (ICML24,),
            chunked,
            chunked,
            (interleaved(2),),
            (*chunked, GPIPE),
        ]
    )
    unsplit = rng.random() < 0.5
    link = rng.choice([None, 0.5, 3.0])
    one_level = cluster_of("one", "one level", (switch_level("all", 12, 3.0, 0.1),))
    rules = replace(
        problem.rules,
        families=families,
        stage="icml24" if link is not None and rng.random() < 0.7 else "layers",
        end=rng.choice(["slowest", "first"]),
        unsplit_stages=unsplit,
        last_stage_recomputes=rng.random() < 0.6,
        link_bytes_per_s=link,
        piece_start_s=rng.choice([0.0, 0.2]),
        bucket=rng.choice([None, 2.0]),
        overlapped_transfers=rng.random() < 0.4,
    )
    sharded = {layer.id: rng.random() < 0.5 for layer in problem.graphs[0].layers}
    graphs = tuple(
        replace(
            graph, layers=tuple(replace(layer, sharded=sharded[layer.id]) for layer in graph.layers)
        )
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
    return _with_blocks(problem, seed)


SPLITS = (ZB_H1, zb_interleaved(2), zb_interleaved(3), ZB_V, DUALPIPE_V)


def split_problem(seed: int, chain: bool, most_layers: int = 4) -> PlacementProblem:
    """A small problem of mixed rules whose families split the backward pass, with long and short
    weight gradients."""
    rng = random.Random(seed + 13)
    problem = mixed_problem(seed, chain, most_layers)
    shares = [rng.choice([0.0, 0.3, 0.5, rng.uniform(0, 1), 1.0]) for _ in problem.graphs[0].layers]
    graphs = tuple(
        replace(
            graph,
            layers=tuple(
                replace(la, weight_s=shares[la.id] * la.backward_s) for la in graph.layers
            ),
        )
        for graph in problem.graphs
    )
    some = tuple(rng.sample(SPLITS, rng.randint(1, len(SPLITS))))
    also = rng.choice([(), (ONE_STAGE,), (ONE_F_ONE_B,), (ONE_F_ONE_B, interleaved(2))])
    families = rng.choice([(*also, *some), (*also, *some), (*also, ZB_H1), (*also, ZB_V)])
    return replace(
        problem,
        rules=replace(problem.rules, families=families),
        graphs=graphs,
        microbatches=rng.choice([2, 3, 4, 6, 8]),
        recompute=rng.choice(["none", "best", "best", "full"]),
        hbm_bytes=float(rng.choice([80, 160, 320, 2000])),
    )


def sharing_problem(seed: int, chain: bool, most_layers: int = 4) -> PlacementProblem:
    """A small problem in which ranks share sequences and experts."""
    rng = random.Random(seed + 11)
    problem = random_cluster_problem(seed, chain, most_layers)
    sharing = Sharing(rng.choice([1, 1, 2]), rng.choice([1, 2, 2, 4]), rng.choice([1, 1, 2]))
    graphs = tuple(
        replace(
            graph,
            width=sharing.context * graph.width,
            layers=tuple(
                replace(
                    layer,
                    expert_bytes=rng.choice([0.0, 0.4, 1.0])
                    * (layer.parameter_bytes - 2.0 / graph.width),
                )
                for layer in graph.layers
            ),
        )
        for graph in problem.graphs
    )
    families = rng.choice([(ONE_F_ONE_B,), (GPIPE,), (ONE_F_ONE_B, interleaved(2))])
    rules = replace(problem.rules, families=families, bucket=rng.choice([None, 2.0]))
    changed = replace(
        problem,
        rules=rules,
        graphs=graphs,
        sharing=sharing,
        devices=rng.randint(2, 12),
        hbm_bytes=400.0,
    )
    return _with_blocks(replace(changed, hbm_bytes=rng.choice([60.0, 120.0, 400.0, 4000.0])), seed)


def exchanging_problem(seed: int, chain: bool, most_layers: int = 4) -> PlacementProblem:
    """One of these whose experts are exchanged behind another microbatch, also in chunks and in a
    single stage."""
    rng = random.Random(seed + 17)
    problem = sharing_problem(seed, chain, most_layers)
    families = ((ONE_F_ONE_B,), (ONE_F_ONE_B, interleaved(2)), (interleaved(2), GPIPE))
    rules = replace(
        problem.rules,
        families=rng.choice(families),
        exchange_beside=True,
        overlapped_transfers=rng.random() < 0.5,
    )
    problem = replace(
        problem,
        rules=rules,
        microbatches=rng.choice([1, 2, 4, 6]),
        recompute="best" if problem.recompute == "full" else problem.recompute,
        sharing=replace(problem.sharing, expert=rng.choice([2, 2, 4])),
    )
    taken = [rng.choice([0.0, 1.0, rng.uniform(0, 6)]) for _ in problem.graphs[0].layers]
    return with_layers(problem, lambda layer, _: replace(layer, beside_s=taken[layer.id]))


def hybrid_problem(seed: int, chain: bool, most_layers: int = 4) -> PlacementProblem:
    """A small problem in which some of the ranks share out state, gathers run a layer ahead, and
    what is sent of weights and gradients is of any width."""
    rng = random.Random(seed + 13)
    problem = random_cluster_problem(seed, chain, most_layers)
    sharing = Sharing(context=rng.choice([1, 1, 2]), shard=rng.choice([0, 2, 2, 3, 4]))
    graphs = tuple(replace(graph, width=sharing.context * graph.width) for graph in problem.graphs)
    rules = replace(
        problem.rules,
        families=rng.choice([(ONE_F_ONE_B,), (GPIPE,), (ONE_F_ONE_B, interleaved(2))]),
        bucket=rng.choice([None, 0.0]),
        gradient_wire=rng.choice([1.0, 2.0]),
        weight_wire=rng.choice([0.5, 0.7, 1.0]),
        prefetch=rng.choice(["stage", "layer"]),
    )
    changed = replace(
        problem, rules=rules, graphs=graphs, sharing=sharing, zero=rng.choice([0, 1, 2, 3, 3])
    )
    changed = replace(
        changed, devices=rng.randint(2, 12), hbm_bytes=rng.choice([60.0, 120.0, 400.0, 4000.0])
    )
    return _with_blocks(changed, seed)


def shared_experts() -> PlacementProblem:
    """A chain of blocks with experts on two levels: ranks that share sequences, experts shared out
    over replicas."""
    rows = [PlacedLayer(i, 1.0, 2.0, 8.0, 2.0, True, 6.0) for i in range(4)]
    graph = layer_graph(2, rows, [(i, i + 1, 0.5) for i in range(3)])
    levels = (switch_level("node", 4, 8.0, 0.01), switch_level("net", 4, 2.0, 0.02))
    return PlacementProblem(
        rules=Rules("cluster", (ONE_F_ONE_B,)),
        devices=16,
        hbm_bytes=160.0,
        microbatches=8,
        recompute="none",
        state=ParameterState(2.0, 4.0, 12.0),
        cluster=cluster_of("two", "two levels", levels),
        graphs=(graph,),
        zero=1,
        hbm_bytes_per_s=20.0,
        optimizer_traffic_bytes=30.0,
        sharing=Sharing(context=2, expert=4),
    )


def interleaving_problem(seed: int, start_s: float = 0.05) -> PlacementProblem:
    """A chain of equal blocks of which two fit on a device, and few microbatches: chunks pay."""
    block = PlacedLayer(
        0,
        1.0 + seed % 5 / 10,
        2.0,
        4.0,
        1.0 + seed % 3,
        False,
        selective_bytes=0.5,
        selective_s=0.3,
        block=True,
    )
    rows = [replace(block, id=i) for i in range(4)]
    graph = layer_graph(1, rows, [(i, i + 1, 0.5) for i in range(3)])
    levels = (switch_level("node", 2, 8.0, 0.01), switch_level("net", 2, 2.0, 0.02))
    return PlacementProblem(
        rules=Rules("cluster", (ONE_F_ONE_B, interleaved(2)), piece_start_s=start_s),
        devices=2 + 2 * (seed % 2),
        hbm_bytes=90.0 + 10 * (seed % 3),
        microbatches=2 + 2 * (seed % 2),
        recompute="best",
        state=ParameterState(2.0, 4.0, 12.0),
        cluster=cluster_of("two", "two levels", levels),
        graphs=(graph,),
        zero=seed % 3,
    )


def unequal_chain(layers: int, devices: int, widths: tuple[int, ...]) -> PlacementProblem:
    """A long chain of layers that all differ, the outer two at each end not sharded."""
    rng = random.Random(0)
    rows = [
        (rng.uniform(1e-3, 3e-3), rng.uniform(1e6, 1e8), rng.uniform(1e6, 1e8))
        for _ in range(layers)
    ]
    graphs = []
    for width in widths:
        split = [width > 1 and 2 <= i < layers - 2 for i in range(layers)]
        share = [width if s else 1 for s in split]
        placed = [
            PlacedLayer(
                i,
                row[0] / share[i],
                2 * row[0] / share[i],
                row[1] / share[i],
                row[2] / share[i],
                split[i],
            )
            for i, row in enumerate(rows)
        ]
        graphs.append(layer_graph(width, placed, [(i, i + 1, 1e6) for i in range(layers - 1)]))
    return icml24_problem(
        graphs,
        devices=devices,
        hbm_bytes=80e9,
        microbatches=4 * devices,
        link_bytes_per_s=4e9,
        optimizer="sgd",
        recompute="best",
    )
