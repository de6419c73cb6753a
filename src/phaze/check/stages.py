"""Stages of a pipeline under the rules icml24 (docs/placement.md) on many chips at once, and the job of a model.

forward    F = max( sum f, |e|/B + f_k + ... + f_n over edges e that enter at the k-th layer )
backward   R = max( sum b (+ sum f where it recomputes), |e|/B + b_1 + ... + b_k over edges that leave there )
batch      max (F + R) (ceil(M/d) + S - 1) + 4 (d - 1)/d w(first stage) / B

Bytes of a stage are those of any plan (:func:`.plans.stage_bytes`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .formats import Held, held_of
from .job import Job
from .network import Level, Network
from .plan_graph import PlanGraph
from .reading import cover, number, positive, require, whole
from .stack import KNOWN, TRAINING, Stack

Floats = NDArray[np.float64]
SENT_BYTES = 2.0
"""Bytes of a parameter on the wire under rules icml24: docs/search.md."""


def published_job(table: Mapping[str, Any]) -> Job:
    """The job of a model, where its rules are those of icml24."""
    machine = table["machine"]
    stack, cluster = machine["stack"], machine["cluster"]
    for table_, known in ((stack, KNOWN), (table, TRAINING)):
        more = sorted(set(table_) - known)
        cover(not more, f"the key {more[0] if more else ''}, which this checker does not know")
    fixed = {
        "schedule": "icml24", "stages": "icml24", "pipeline": "icml24", "synchronisation": "first", "host_s": 0.0,
        "softmax_matrices": 1,
        "hides_tensor_collectives": False, "hidden_synchronisation": 0.0, "optimizer_traffic_bytes": 0.0,
        "accumulation_inside": 2.0, "accumulation_apart": 0.0, "piecewise_collectives": False, "saves": "trace",
        "logit_bytes": None, "gradient_buffer_bytes": 0.0, "state": None,
    }  # fmt: skip
    for key, value in fixed.items():
        cover(stack[key] == value, f"stack.{key} = {stack[key]!r}")
    cover(list(table["zeros"]) == [0], "stages of ZeRO")
    cover(len(cluster["levels"]) == 1 and cluster["levels"][0]["kind"] == "switch", "a network of several levels")
    cover(machine["basis"] == "ideal", f"the basis {machine['basis']}")
    cover(machine["precision"] == table["precision"] == "bf16", f"products in {machine['precision']}")
    devices, held = whole(table["devices"], "devices", 1), held_of("bf16", str(table["optimizer"]), stack)
    require(devices <= whole(cluster["devices"], "cluster.devices", 1), "devices: the cluster has fewer")
    return flat_job(
        devices,
        whole(table["batch"], "batch", 1),
        positive(cluster["levels"][0]["bandwidth_bytes_per_s"], "bandwidth"),
        held.weight + held.gradient + held.optimizer,
        number(stack["reserve_bytes"], "reserve_bytes"),
        number(table["headroom"], "headroom", 0, 0.999999),
    )


def flat_job(
    devices: int, batch: int, link: float, state_bytes: float, reserve_bytes: float = 0.0, headroom: float = 0.0
) -> Job:
    """A job under the published rules as values of the one price: all devices on one link."""
    stack = Stack(reserve=reserve_bytes, arriving=True, link=link, first_end=True, unsplit=True, last_recomputes=False)
    level = Level(devices, link, 0.0, 1.0, 0.0, inf, 0.0, 0.0, 0.0, 0.0, 0.0)
    held = Held(state_bytes, 0.0, 0.0, 0.0, SENT_BYTES, 1.0, 1.0)
    return Job(devices, batch, stack, Network((level,)), held, headroom, None)


@dataclass(frozen=True, slots=True)
class Stage:
    """What of a stage depends on no chip: how many layers of each kind, edges with what runs behind them, bytes."""

    counts: tuple[int, ...]
    into: tuple[tuple[tuple[int, ...], float], ...]
    out: tuple[tuple[tuple[int, ...], float], ...]
    parameters: float
    entering_bytes: float
    split: bool


def stage_of(graph: PlanGraph, members: Sequence[int]) -> Stage:
    """The stage of some calls, which run in the order of their numbers."""
    inside, kinds = set(members), len(graph.layers)
    place = {call: at for at, call in enumerate(members)}
    tally = np.zeros((len(members) + 1, kinds), np.int64)
    for at, call in enumerate(members):
        tally[at + 1] = tally[at]
        tally[at + 1, graph.calls[call]] += 1
    into, out, entering = dict[tuple[int, ...], float](), dict[tuple[int, ...], float](), 0.0
    for tail, head, size in graph.edges:
        if head in inside and tail not in inside:
            behind = tuple((tally[-1] - tally[place[head]]).tolist())
            into[behind] = max(into.get(behind, 0.0), size)
            entering += size
        elif tail in inside and head not in inside:
            ahead = tuple(tally[place[tail] + 1].tolist())
            out[ahead] = max(out.get(ahead, 0.0), size)
    own = [graph.layers[graph.calls[call]] for call in members]
    return Stage(
        tuple(tally[-1].tolist()), tuple(sorted(into.items())), tuple(sorted(out.items())),
        sum(layer.parameters for layer in own), entering,
        any(layer.sharded for layer in own),
    )  # fmt: skip


def stage_passes(
    stage: Stage, forward: Floats, backward: Floats, again: Floats | None, link: float
) -> tuple[Floats, Floats]:
    """F and R on every chip, from the seconds of layers [kinds, chips]; ``again``: what they recompute."""
    counts = np.array(stage.counts, float)
    ahead, behind = counts @ forward, counts @ backward
    if again is not None:
        behind = behind + counts @ again
    for after, size in stage.into:
        ahead = np.maximum(ahead, size / link + np.array(after, float) @ forward)
    for before, size in stage.out:
        behind = np.maximum(behind, size / link + np.array(before, float) @ backward)
    return ahead, behind
