"""Random layers and jobs under rules cluster, as phaze has them and as the checker reads them."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from phaze.check.job import Job, job_of
from phaze.check.plan_graph import LayerBytes, LayerSeconds, PlanGraph, StatedMode, Tie
from phaze.cost.network_prices import NetworkPrices
from phaze.documents import plain_value
from phaze.hardware.cluster import Cluster, cluster_of, switch_level
from phaze.hardware.library import load_stack
from phaze.hardware.overlap import Beside, Overlap, Reduction, Runs
from phaze.hardware.stack import Stack, StateBytes
from phaze.pipeline.names import PipelineFamily
from phaze.placement.job import TrainingJob
from phaze.placement.layers import PlacedLayer, RecomputeOption, layer_graph
from phaze.placement.machine import Machine
from phaze.placement.problem import PlacementProblem
from phaze.placement.settings import families_of, stack_problem
from phaze.placement.sharing import Sharing
from phaze.values import replace

MODES = ("none", "selective", "some", "full")
FAMILIES: tuple[tuple[PipelineFamily, ...], ...] = (
    ("1f1b", "interleaved"), ("1f1b", "interleaved"), ("1f1b",), ("gpipe",), ("zb-h1",),
    ("1f1b", "zb-h1", "zb-interleaved"),
    ("zb-v", "dualpipe-v"), ("zb-v",), ("dualpipe-v", "1f1b"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One problem, twice."""

    problem: PlacementProblem
    prices: NetworkPrices
    graph: PlanGraph
    job: Job
    times: LayerSeconds
    hbm: tuple[float, float]
    batch: int


def _overlap(rng: np.random.Generator) -> Overlap:
    """Reductions and gathers of any cost, in pieces of any size."""
    slows = [float(rng.choice([0.0, 0.19, 1.0])) for _ in range(3)]
    bucket = float(rng.choice([0.0, 3.0, 1e9]))
    return Overlap(
        transfers=Runs(runs=bool(rng.random() < 0.5)),
        reduction=Reduction(
            runs=True, slows=slows[0], bucket=None if rng.random() < 0.3 else bucket
        ),
        gather=Beside(runs=True, slows=slows[1]),
        fully_sharded=Beside(runs=True, slows=slows[2]),
        step_host=float(rng.choice([0.0, 0.5])),
    )


def _stack(rng: np.random.Generator) -> Stack:
    return replace(
        load_stack("megatron-core"),
        overlap=_overlap(rng),
        zeroes_gradients=bool(rng.random() < 0.5),
        clips_gradients=bool(rng.random() < 0.5),
        scatter_gather=bool(rng.random() < 0.5),
        optimizer_traffic_bytes=float(rng.choice([0.0, 30.0])),
        reserve_bytes=float(rng.choice([0.0, 50.0])),
        state_bytes=float(rng.choice([0.0, 18.0, 20.0, 5.0])),
        gradient_bytes=0.0,
        host_s=float(rng.choice([0.0, 0.01])),
        families=FAMILIES[int(rng.integers(len(FAMILIES)))],
        prefetch=str(rng.choice(["stage", "layer"])),
        gradient_wire_bytes=float(rng.choice([2.0, 4.0])),
        state=StateBytes(gradient=2.0, first_moment=1.0) if rng.random() < 0.2 else None,
    )


def _cluster(rng: np.random.Generator) -> Cluster:
    inner, outer = int(rng.choice([2, 4])), int(rng.choice([4, 8]))
    slow = switch_level(
        "fabric", outer, float(rng.choice([40.0, 400.0])), float(rng.choice([0.0, 0.02]))
    )
    if rng.random() < 0.3:
        return cluster_of("one", "", (slow,))
    fast = switch_level("node", inner, 900.0, float(rng.choice([0.0, 0.01])))
    if rng.random() < 0.4:
        sites = switch_level(
            "sites", 2, float(rng.choice([0.05, 20.0])), float(rng.choice([0.0, 50.0]))
        )
        near = replace(slow, size=outer // 2)
        return cluster_of("three", "", (fast, near, sites))
    return cluster_of("two", "", (fast, slow))


def _layers(
    rng: np.random.Generator, chain: bool
) -> tuple[list[PlacedLayer], list[int], list[bool]]:
    blocks, before, after = (
        int(rng.integers(1, 7)),
        int(rng.random() < 0.8),
        int(rng.integers(0, 2)),
    )
    kinds = [*[0] * before, *[1] * blocks, *[2] * after]
    if not chain:
        kinds = [int(rng.integers(0, 3)) for _ in kinds]
    block = [kind == 1 for kind in kinds]
    if not any(block):
        kinds, block = [1, *kinds], [True, *block]
    at = [i for i, own in enumerate(block) if own]
    equal = at == list(range(at[0], at[-1] + 1))
    layers, made = list[PlacedLayer](), dict[int, PlacedLayer]()
    tied = {0, len(kinds) - 1} if rng.random() < 0.3 and len(kinds) > 1 else set[int]()
    for i, kind in enumerate(kinds):
        if kind not in made:
            made[kind] = _layer(rng, kind == 1, kind)
        layer = replace(made[kind], id=i, block=equal and kind == 1)
        layers.append(replace(layer, tied="w", tied_bytes=2.0) if i in tied else layer)
    return layers, kinds, block


def _layer(rng: np.random.Generator, again: bool, kind: int) -> PlacedLayer:
    forward, saved = float(rng.integers(1, 30)), float(rng.integers(20, 80))
    backward, count = float(rng.integers(1, 50)), 4.0 * float(rng.integers(1, 20))
    experts = count * float(rng.choice([0.0, 0.5])) if again else 0.0
    layer = PlacedLayer(
        0, forward, backward, count, saved, False, experts, backward * float(rng.uniform(0, 0.8))
    )
    live, buffer = float(rng.choice([0, 30])), float(rng.choice([0, 12]))
    layer = replace(layer, live_bytes=live, buffer_bytes=buffer, kind=kind)
    if not again:
        rest = (RecomputeOption("some", saved, 0.0, 0.0),)
        return replace(layer, selective_bytes=saved, full_s=0.0, more=rest)
    some, less = float(rng.integers(5, 20)), float(rng.integers(5, 20))
    kept = RecomputeOption(
        "some", some, float(rng.choice([0.0, saved - some])), forward * float(rng.uniform(0, 1))
    )
    selective_s = forward * float(rng.uniform(0, 1))
    return replace(
        layer, selective_bytes=less, selective_s=selective_s, full_s=forward, more=(kept,)
    )


def _run_layer(layer: PlacedLayer) -> LayerBytes:
    saved = int(layer.activation_bytes)
    more = layer.more[0]
    modes = (
        StatedMode(saved),
        StatedMode(int(layer.selective_bytes or 0)),
        StatedMode(int(more.bytes), int(more.live_bytes)),
        StatedMode(0),
    )
    return LayerBytes(
        modes,
        int(layer.parameter_bytes / 2),
        int(layer.live_bytes),
        layer.buffer_bytes,
        int(layer.expert_bytes / 2),
    )


def _mixed(rng: np.random.Generator, stack: Stack) -> Stack:
    """A stack with any of the published rules among its own."""
    return replace(
        stack,
        stages=str(rng.choice(["layers", "icml24", "icml24"])),
        pipeline=str(rng.choice(["1f1b", "icml24"])),
        synchronisation=str(rng.choice(["pieces", "first"])),
    )


def _published(graph: PlanGraph, times: LayerSeconds, sharded: list[bool]) -> Any:
    """The layers as stages hold them in which edges arrive: whole passes run again or nothing, in
    every layer, and nothing is told apart or shared."""
    layers = tuple(
        replace(
            layer,
            modes=(layer.modes[0], layer.modes[-1]),
            logit_bytes=0,
            buffer_bytes=0.0,
            sharded=whole,
        )
        for layer, whole in zip(graph.layers, sharded, strict=True)
    )
    again = np.stack([np.zeros_like(times.forward), times.forward])
    names = ("none", "full")
    plain = replace(graph, layers=layers, names=names, ties=(), every_mode=True)
    return plain, replace(times, again=again)


def case_of(rng: np.random.Generator, chain: bool, mixed: bool = False) -> Case:
    """One random problem; ``chain``: equal blocks in a row, ``mixed``: published rules go with
    others."""
    layers, kinds, block = _layers(rng, chain)
    stack, cluster = _stack(rng), _cluster(rng)
    tensor, context = int(rng.choice([1, 2, 4])), int(rng.choice([1, 1, 1, 2]))
    width, expert = tensor * context, int(rng.choice([1, 1, 2]))
    if mixed:
        stack = _mixed(rng, stack)
    arriving = stack.stages == "icml24"
    order = sorted(set(kinds))
    split = [bool(arriving and rng.random() < 0.6) for _ in order]
    if arriving:
        cluster, context, expert = cluster_of("one", "", cluster.levels[-1:]), 1, 1
        width = tensor
        layers = [
            replace(layer, sharded=split[order.index(kind)])
            for layer, kind in zip(layers, kinds, strict=True)
        ]
    shard = int(rng.choice([0, 0, 0, 2, 3, 4])) if expert == 1 and not mixed else 0
    edges = [
        (a, a + 1, float(rng.integers(1, 40)) if not chain else 16.0)
        for a in range(len(layers) - 1)
    ]
    if not chain and len(layers) > 2:
        edges.append((0, len(layers) - 1, 8.0))
    devices, batch = (
        int(rng.integers(min(width, cluster.devices), cluster.devices + 1)),
        int(rng.integers(1, 20)),
    )
    hbm, rate = float(rng.choice([400, 900, 2000, 1e6])), float(rng.choice([50.0, 500.0]))
    placed = layer_graph(width, layers, edges)
    zero, headroom = int(rng.integers(0, 4)), float(rng.choice([0.0, 0.06]))
    modes = ("none", "full") if arriving else MODES
    recompute = str(rng.choice(["best", "best", *modes]))
    if sum(layer.block for layer in layers) < 2:
        stack = replace(stack, families=("1f1b", *stack.families))
    families = families_of([placed], stack.families)
    job = TrainingJob(
        Machine(cluster, stack),
        devices,
        batch,
        "adam",
        (zero,),
        recompute,
        None,
        headroom,
        (shard,),
    )
    problem = stack_problem(
        job, [placed], families, batch, (hbm, rate), Sharing(context, expert, shard=shard)
    )
    training: dict[str, Any] = {
        "devices": devices, "batch": batch, "optimizer": "adam", "precision": "bf16",
        "zeros": [zero], "chunks": None,
        "headroom": headroom, "constants": {}, "shards": [shard],
        "machine": {"cluster": plain_value(cluster), "stack": plain_value(stack), "basis": "ideal",
        "residency": True,
                    "precision": "bf16", "host_bytes_per_s": None},
    }  # fmt: skip
    plain = json.loads(json.dumps(training))
    first = {kind: kinds.index(kind) for kind in order}
    own = tuple(_run_layer(layers[first[kind]]) for kind in order)
    if expert == 1:
        own = tuple(replace(layer, experts=0) for layer in own)
    again = np.zeros((len(MODES), len(order), 1))
    for at, kind in enumerate(order):
        layer = layers[first[kind]]
        again[1:, at, 0] = layer.selective_s, layer.more[0].again_s, layer.full_s or 0.0
    seconds = [
        np.array([[getattr(layers[first[kind]], name)] for kind in order])
        for name in ("forward_s", "backward_s")
    ]
    ties = [i for i, layer in enumerate(layers) if layer.tied]
    graph = PlanGraph(
        tensor, 1, MODES, own, tuple(order.index(kind) for kind in kinds), tuple(block),
        any(layer.block for layer in layers), tuple(edges), (Tie(tuple(ties), 1),) if ties else (),
        context, expert,
    )  # fmt: skip
    weight = np.array([[layers[first[kind]].weight_s or 0.0] for kind in order])
    times = LayerSeconds(seconds[0], seconds[1], again, weight, True)
    if arriving:
        graph, times = _published(graph, times, split)
    return Case(
        problem, NetworkPrices(cluster, "ideal"), graph, job_of(plain), times, (hbm, rate), batch
    )
