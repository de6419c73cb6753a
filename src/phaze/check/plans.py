"""What the price of a plan is made of: bytes of stages, transfers, collectives
(docs/placement.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from .families import Family, families_of
from .job import Block, Job, Shape, Size, boundary_levels, over_replicas
from .network import collective, transfer
from .plan_graph import LayerSeconds, PlanGraph, Tie

Floats = NDArray[np.float64]
Counts = tuple[float | Floats, float | Floats, float | Floats, float | Floats]
"""Dense parameters, those of them that are whole at once, experts, and the most of a layer."""


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Parameters of a stage, those of experts among them, the most dense ones that are held whole
    at once and the most experts of a layer; bytes of buffers, kept and live ones of a mode; weights
    that are not trained, dense ones and the most of them that are whole at once, experts and the
    most of a layer; of one stage or of several."""

    parameters: float | Floats
    experts: float | Floats
    largest: float | Floats
    most_experts: float | Floats
    buffers: float | Floats
    kept: float | Floats
    live: float | Floats
    frozen: float | Floats
    frozen_largest: float | Floats
    frozen_experts: float | Floats
    frozen_most: float | Floats

    def terms(self, job: Job, shape: Shape, flying: float | Floats) -> dict[str, Floats]:
        """Bytes on a device by what they are for; ``flying``: microbatches in flight."""
        held = job.held
        still = self._shared(held.weight, shape.zero == 3, shape, self._frozen)
        return {
            "parameters": self._shared(held.weight, shape.zero >= 3, shape, self._trained) + still,
            "gradients": self._shared(held.gradient, shape.zero >= 2, shape, self._trained)
            + self.buffers,
            "optimizer": self._stepped(held.optimizer, shape),
            "activations": np.asarray(self.kept + self.live),
            "in_flight": np.asarray((flying - 1) * self.kept),
            "reserve": np.asarray(job.stack.reserve),
        }

    @property
    def _trained(self) -> Counts:
        return self.parameters - self.experts, self.largest, self.experts, self.most_experts

    @property
    def _frozen(self) -> Counts:
        return self.frozen, self.frozen_largest, self.frozen_experts, self.frozen_most

    def _shared(self, each: float, shared: bool, shape: Shape, counts: Counts) -> Floats:
        """``each`` byte of a parameter: of all but the largest layer over the ranks that share it
        out, of that in full; of dense ones and of experts."""
        dense, largest, experts, most = counts
        ranks, apart = (shape.sharers, max(1.0, shape.experts_alike)) if shared else (1, 1.0)
        return np.asarray(
            each * ((dense - largest) / ranks + largest + (experts - most) / apart + most)
        )

    def _stepped(self, each: float, shape: Shape) -> Floats:
        """``each`` byte of the optimizer's state of a parameter."""
        ranks, apart = (shape.sharers, max(1.0, shape.experts_alike)) if shape.zero else (1, 1.0)
        return np.asarray(each * ((self.parameters - self.experts) / ranks + self.experts / apart))

    def needed(self, job: Job, shape: Shape, flying: float | Floats) -> Floats:
        """Bytes on a device beside the reserve."""
        terms = self.terms(job, shape, flying)
        return np.asarray(sum(size for name, size in terms.items() if name != "reserve"))

    def size(self, job: Job) -> Size:
        """Bytes of dense parameters and of experts."""
        return np.asarray(job.held.sent * (self.parameters - self.experts)), np.asarray(
            job.held.sent * self.experts
        )


def layer_bytes(graph: PlanGraph, call: int, mode: int) -> tuple[float, float]:
    """What a call keeps for each microbatch, and holds beside that while its backward runs; a full
    recompute keeps what enters."""
    layer, last = graph.layers[graph.calls[call]], len(graph.names) - 1
    every = float(layer.modes[0].kept)
    if mode == 0:
        return every, float(layer.logit_bytes)
    if mode == last:
        kept = sum(size for _, head, size in graph.edges if head == call)
        return kept, max(0.0, every - kept) + layer.logit_bytes
    if not graph.recomputes(call):
        return every, float(layer.logit_bytes)
    own = layer.modes[mode]
    kept = min(float(own.kept), every)
    return kept, (every - kept if mode == 1 else float(own.live)) + layer.logit_bytes


def _activations(
    graph: PlanGraph, job: Job, calls: Sequence[int], mode: int
) -> tuple[float, float]:
    """What a stage keeps for each microbatch, and holds beside that."""
    own = [graph.layers[graph.calls[call]] for call in calls]
    rows = [layer_bytes(graph, call, mode) for call in calls]
    if not job.stack.arriving:
        return sum(kept for kept, _ in rows), max(live for _, live in rows)
    inside = set(calls)
    kept = sum(kept for kept, _ in rows)
    if mode == len(graph.names) - 1:
        kept = sum(
            size for tail, head, size in graph.edges if head in inside and tail not in inside
        )
    every = sum(float(layer.modes[0].kept) for layer in own)
    return kept, every - kept + max(layer.logit_bytes for layer in own)


def _held_twice(ties: Sequence[Tie], inside: set[int]) -> float:
    """Elements that several calls of a stage share, as often as they are counted too many."""
    return sum(tie.elements * max(0, len(inside & set(tie.calls)) - 1) for tie in ties)


def _gradient_buffers(graph: PlanGraph, kinds: set[int]) -> float:
    """Bytes of the gradient buffers of some layers, those of one kind once."""
    buffers = dict[tuple[str, int], float]()
    for kind in kinds:
        layer = graph.layers[kind]
        name = ("layer", kind) if layer.buffer_kind is None else ("kind", layer.buffer_kind)
        buffers[name] = layer.buffer_bytes
    return sum(buffers.values())


def stage_bytes(graph: PlanGraph, job: Job, calls: Sequence[int], mode: int) -> StageBytes:
    """The bytes of a stage, its calls in the order in which they run."""
    inside, kinds = set(calls), [graph.calls[call] for call in calls]
    layers = [graph.layers[kind] for kind in kinds]
    dense = [layer.parameters - layer.experts for layer in layers]
    experts = [layer.experts for layer in layers]
    still = [layer.frozen - layer.frozen_experts for layer in layers]
    still_experts = [layer.frozen_experts for layer in layers]
    # Gathers that run a layer ahead hold two layers at once; of experts they do not.
    paired = job.stack.paired and not any(
        layer.experts or layer.frozen_experts for layer in graph.layers
    )
    largest = max(dense)
    if paired:
        largest = max(first + then for first, then in zip(dense, [*dense[1:], 0], strict=True))
    frozen = sum(still) - _held_twice(graph.still, inside)
    kept, live = _activations(graph, job, calls, mode)
    return StageBytes(
        parameters=sum(dense) + sum(experts) - _held_twice(graph.ties, inside),
        experts=sum(experts),
        largest=largest,
        most_experts=max(experts),
        buffers=_gradient_buffers(graph, set(kinds)),
        kept=kept,
        live=live,
        frozen=frozen,
        frozen_largest=min(frozen, max(still) * (2 if paired else 1)),
        frozen_experts=sum(still_experts),
        frozen_most=max(still_experts),
    )


def crossing_bytes(graph: PlanGraph, owner: Mapping[int, int], boundary: int) -> float:
    """Bytes of all edges from before a boundary to behind it."""
    return sum(size for tail, head, size in graph.edges if owner[tail] <= boundary < owner[head])


def around_bytes(graph: PlanGraph) -> float:
    """The most bytes between two blocks in the order of calls."""
    blocks = [at for at, own in enumerate(graph.block) if own and graph.equal]
    first, last = (blocks[0], blocks[-1]) if blocks else (0, len(graph.calls) - 1)
    cuts = [
        sum(s for tail, head, s in graph.edges if tail <= at < head)
        for at in range(first, max(last, 1))
    ]
    return max(cuts, default=0.0)


def sent_seconds(graph: PlanGraph, job: Job, level: int, sizes: Floats) -> Floats:
    """Seconds of messages of a microbatch across a level, cut over the tensor group where a stack
    does so."""
    lanes = graph.tensor if job.stack.scatters else 1
    return transfer(job.network, level, sizes / lanes)


def around_seconds(graph: PlanGraph, job: Job, family: Family, level: int, size: float) -> float:
    """Seconds of a microbatch's transfers of such a size from the last stage to the first, a pass:
    once between two chunks."""
    if family.chunks == 1 or family.folded:
        return 0.0
    once = float(sent_seconds(graph, job, level, np.array([size]))[0])
    return (family.chunks - 1) * once


def moves(graph: PlanGraph, job: Job, shape: Shape, owner: Mapping[int, int]) -> list[float]:
    """Seconds of a microbatch's transfers at every boundary, a pass; first and last the way
    around."""
    if job.stack.arriving:
        return [0.0] * (shape.stages + 1)
    levels, inner = boundary_levels(job.network, shape), []
    for boundary, level in enumerate(levels):
        size = np.array([crossing_bytes(graph, owner, boundary)])
        inner.append(shape.family.chunks * float(sent_seconds(graph, job, level, size)[0]))
    around = around_seconds(graph, job, shape.family, max([0, *levels]), around_bytes(graph))
    return [around, *inner, around]


def sent_behind(
    job: Job, shape: Shape, rounds: float, work: float | Floats, sent: float | Floats
) -> tuple[Floats, Floats]:
    """A pass that waits for its transfers and for its chunks to start, and what of that other
    chunks hide: of work and transfers the shorter, as often as there are other chunks."""
    shown = shape.family.shown(job.stack.overlapped, rounds, shape.stages)
    waited = work + (sent + (shape.family.chunks - 1) * job.stack.chunk_start)
    return np.asarray(waited), np.asarray((1 - shown) * np.minimum(work, sent))


def reduced_layers(graph: PlanGraph, job: Job) -> list[int]:
    """The layers in which a reduction is counted: a block, or the mean of all."""
    if graph.equal and not job.stack.all_recompute:
        return [graph.calls[graph.block.index(True)]]
    return list(graph.calls)


def reduced_block(graph: PlanGraph, job: Job, seconds: LayerSeconds | None = None) -> Block:
    """Such a layer on one chip; without seconds what no chip and no chunks undercut: behind passes
    without end, in pieces of a block."""
    kinds, sent = reduced_layers(graph, job), job.held.sent
    parameters, experts = (
        sent * sum(getattr(graph.layers[kind], name) for kind in kinds) / len(kinds)
        for name in ("parameters", "experts")
    )
    entered = {head for _, head, _ in graph.edges}
    starts = [kind for call, kind in enumerate(graph.calls) if call not in entered]
    first = max((graph.layers[kind] for kind in starts), key=lambda layer: layer.parameters)
    total = sent * sum(graph.layers[kind].parameters for kind in graph.calls)
    ahead = behind = inf
    # The longer a pass, the more it hides: a bound of one hides no less than all.
    if seconds is not None and seconds.exact:
        ahead = sum(float(seconds.forward[kind, 0]) for kind in kinds) / len(kinds)
        behind = sum(float(seconds.backward[kind, 0]) for kind in kinds) / len(kinds)
    return Block(
        parameters, experts, ahead, behind, sent * first.parameters, sent * first.experts,
        0.0 if seconds is None else total,
    )  # fmt: skip


def gathered(graph: PlanGraph, job: Job, shape: Shape) -> tuple[Floats, Floats]:
    """Seconds of ZeRO's collectives of each distinct layer's parameters for a microbatch, forward
    and backward."""
    nothing = np.zeros(len(graph.layers))
    if shape.zero < 2:
        return nothing, nothing
    sent, layers = job.held.sent, graph.layers
    dense = sent * np.array([float(layer.parameters - layer.experts) for layer in layers])
    experts = sent * np.array([float(layer.experts) for layer in layers])
    scattered = over_replicas(job, shape, "all_gather", (dense, experts), job.held.wire)
    if shape.zero == 2:
        return nothing, scattered
    still = sent * np.array([float(layer.frozen - layer.frozen_experts) for layer in layers])
    still_experts = sent * np.array([float(layer.frozen_experts) for layer in layers])
    weights = over_replicas(
        job, shape, "all_gather", (dense + still, experts + still_experts), graph.low
    )
    return weights, weights + scattered


def tied_seconds(graph: PlanGraph, job: Job, shape: Shape, owner: Mapping[int, int]) -> float:
    """All-reduces of parameters that calls of several stages share."""
    outer, total = max([0, *boundary_levels(job.network, shape)]), 0.0
    for tie in graph.ties:
        if len({owner[call] for call in tie.calls}) > 1:
            members = tuple(
                len(tie.calls) if at == outer else 1 for at in range(len(job.network.levels))
            )
            size = np.array([job.held.wire * job.held.sent * tie.elements])
            total += float(collective(job.network, "all_reduce", members, size)[0])
    return total


def allowed_families(graph: PlanGraph, job: Job) -> list[Family]:
    """Families that plans may have."""
    in_chunks = graph.equal and not job.stack.all_recompute
    return families_of(job.stack.families, sum(graph.block) if in_chunks else 0, job.chunks)
