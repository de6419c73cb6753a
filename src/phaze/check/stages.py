"""Stages of a pipeline under the rules icml24 (docs/placement.md) on many chips at once.

forward    F = max( sum f, |e|/B + f_k + ... + f_n over edges e that enter at the k-th layer )
backward   R = max( sum b (+ sum f where it recomputes), |e|/B + b_1 + ... + b_k over edges that
           leave there )
batch      max (F + R) (ceil(M/d) + S - 1) + 4 (d - 1)/d w(first stage) / B

Bytes of a stage are those of any plan (:func:`.plans.stage_bytes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .plan_graph import PlanGraph

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stage:
    """What of a stage depends on no chip: how many layers of each kind, edges with what runs behind
    them, bytes."""

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
    """F and R on every chip, from the seconds of layers [kinds, chips]; ``again``: what they
    recompute."""
    counts = np.array(stage.counts, float)
    ahead, behind = counts @ forward, counts @ backward
    if again is not None:
        behind = behind + counts @ again
    for after, size in stage.into:
        ahead = np.maximum(ahead, size / link + np.array(after, float) @ forward)
    for before, size in stage.out:
        behind = np.maximum(behind, size / link + np.array(before, float) @ backward)
    return ahead, behind
