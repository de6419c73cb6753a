r"""What a split of a model over the devices of a cluster costs, as closed formulas, and the values
that state it.

A model is a graph of layers for each tensor width t. Layer l takes f_l seconds forward and b_l
backward, holds w_l bytes of parameters and A_l bytes of activations a microbatch; edge e carries
|e| bytes. There are K devices of H bytes and a batch of M microbatches. *Stages* X_1 .. X_S in
pipeline order are a partition of the layers in which no edge goes backwards; stage i has the number
s = S - i + 1, from the end. Its layers run one after another in topological order, ties by id: x_1
.. x_n. A pipeline runs in d *replicas* of m = ceil(M / d) microbatches each. A stage takes t
devices, or 1 if the rules let it be *unsplit* and none of its layers is sharded; replicas take K
devices at the most.

Devices are numbered with the innermost level of the cluster filled first. Tensor groups are
innermost; then come the stages of a replica (order ``pipeline``) or the replicas of a stage (order
``data``).

**Recompute.** In modes none, selective and full layer l keeps k_l = A_l, its ``selective_bytes``,
or the bytes of its entering edges, and recomputes for g_l = 0, its ``selective_s``, or its
``full_s`` (f_l if it has none) seconds; in a mode of its ``more`` what that says. All layers of a
stage are in one mode. A stage keeps k(X) = sum of k_l and holds L(X) = max over l of max(0, A_l -
k_l) + e_l beside it, e_l being the ``live_bytes`` of a layer in any mode (logits), or what a mode
of ``more`` says instead of the difference; under stage rule ``icml24`` mode full keeps the bytes
that enter the *stage*, and L = A(X) - k(X) + max e_l.

**Stage seconds.** With v and u the collectives of ZeRO of a pass and h the share of them that is
overlapped,

    layers    F = max( f(X) + (1 - h) v, v ) + x at its entry
              (overlapped) R = max( b(X) + g(X) + (1 - h) u, u ) + x at its exit
    icml24    F = max( f(X),        max over edges entering at x_k of |e| / B + f_k + ... + f_n )
              R = max( b(X) + g(X), max over edges leaving  at x_k of |e| / B + b_1 + ... + b_k )

x is the transfer of the bytes c of all edges that lead from before a boundary to behind it (a
tensor that skips stages is sent downstream stage by stage), latency + c / (t if ``scatter_gather``,
else 1) / B, across the innermost level whose groups hold both tensor groups in every replica. With
v chunks a boundary is crossed v times, and v - 1 times from the last stage to the first, with the
most bytes between two blocks across the outermost level that the pipeline crosses; each chunk but
one adds ``piece_start_s`` to F and to R. Where chunks overlap transfers the pace counts less than F
+ R (:mod:`phaze.placement.stage_pace`).

**Memory.** With N(X) trained parameters (others: :mod:`phaze.placement.frozen`), those shared by
layers of one stage counted once, n those of the largest layer, and bytes of weight, gradient and
optimizer a parameter,

    N (weight/d3 + gradient/d2 + optimizer/d1) + n (weight (1 - 1/d3) + gradient (1 - 1/d2))
      + reserve + B(X) + q k(X) + L(X)  <=  H (1 - headroom)         q microbatches in flight
                                        (rules.Family.in_flight)

B(X) are the ``buffer_bytes`` of the distinct kinds of layers in X, each once (one weight gradient
of every shape). ZeRO z shares state out over replicas: d1, d2, d3 are d where z is at least 1, 2,
3, else 1. With c ranks that share a sequence, all that is over replicas is over c d ranks. Experts
sharded over ranks (:mod:`phaze.placement.sharing`) have e in place of d: of N_e parameters, N -
N_e being dense, N_e (weight/e3 + gradient/e2 + optimizer/e1) is held, n stands for the most dense
parameters of a layer and n_e for its most experts, n_e (weight (1 - 1/e3) + ...), and every
collective is one of either kind, gather_d(w_l - w_le) + gather_e(w_le): E(X) = (1 - h)(reduce_d(w -
w_e) + reduce_e(w_e)) + ((N - N_e) / d1 + N_e / e1) traffic / HBM bandwidth.

    z = 0    v = 0                      u = 0                               sync = reduce_d(g w(X))
    z = 1    v = 0                      u = 0                               sync = (reduce_d(g w) +
             reduce_d(h w)) / 2
    z = 2    v = 0                      u = sum over l of gather_d(g w_l)   sync = gather_d(h w(X))
    z = 3    v = sum of gather_d(h w_l)   u = v + sum of gather_d(g w_l)    sync = 0

with g and h what gradients and gathered weights send, over bytes of parameters. Where gathers run a
layer ahead (``prefetch``) F and R are sums over layers of what stands above for a stage, and n is
the most of two in a row. Where n of d ranks shard state (``shard``) d is n, and sync has a
reduction over d / n groups of g w(X) / n beside it.

**End.** E(X) = (1 - h) sync + N traffic / d1 / HBM bandwidth; with a flat link 4 (d - 1)/d w(X) /
B. Where gradients are reduced layer by layer behind the last backward pass (z = 0, 1), of sync is
exposed instead

    min( reduce_d(w(X)),  r + (L - 1) max(0, r - b) )      r = reduce_d(w_l), L = max(1, w(X) / w_l)
                          (end)

in layers l of one size, w_l the bytes and b = b_l the backward pass of a block (of layers on
average if there is none). E is that of the slowest or of the first stage. Tied layers in several
stages add Y, an all-reduce for each group over the outermost level that the pipeline crosses. The
batch time is that of the family (:mod:`phaze.placement.rules`).
"""

from dataclasses import dataclass, replace
from math import isfinite

from phaze.cost.memory import ParameterState
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.pipeline.family import Family
from phaze.placement.layers import LayerGraph, require_same_layers, require_weights
from phaze.placement.rules import Mode, Rules
from phaze.placement.sharing import REPLICAS, Sharing

# The name of a mode for every stage, or best.
RecomputeChoice = str
# Sums of the same bytes in another order differ in the last bits; a need that exceeds the memory by
# no more than that fits.
ROUNDING = 1e-12
# Modes that run the exchanges of experts again, or of every second block.
AGAIN = frozenset({"full", "moe", "alternate"})
# Slower levels make times without end.
SLOWEST_BYTES_PER_S = 1e-6


@dataclass(frozen=True, slots=True)
class Piece:
    """What reductions and gathers are cut into: bytes of parameters of a block, those of experts
    among them, and its passes; the same bytes of the layer that starts a model, whose gradients are
    the last and whose weights the first."""

    parameter_bytes: float
    expert_bytes: float
    forward_s: float
    backward_s: float
    last_bytes: float
    last_expert_bytes: float


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """A placement problem; ``graphs`` by ascending width.

    A layer has ``parameter_bytes`` / ``sent_bytes`` parameters. Without ``hbm_bytes_per_s`` the
    optimizer's step takes no time; ``optimizer_traffic_bytes`` are the HBM bytes that it moves for
    a parameter, ``zeroed_bytes`` those of its gradient that are set to zero before a step.
    ``sgd_state`` is held with SGD where that would be another optimizer: a lever of a
    shortage.
    """

    rules: Rules
    devices: int
    hbm_bytes: float
    microbatches: int
    recompute: RecomputeChoice
    state: ParameterState
    cluster: Cluster
    graphs: tuple[LayerGraph, ...]
    zero: int = 0
    sent_bytes: float = 2.0
    hbm_bytes_per_s: float | None = None
    optimizer_traffic_bytes: float = 0.0
    zeroed_bytes: float = 0.0
    reserve_bytes: float = 0.0
    scatter_gather: bool = False
    headroom: float = 0.0
    sgd_state: ParameterState | None = None
    sharing: Sharing = REPLICAS

    def __post_init__(self) -> None:
        for name in ("devices", "microbatches", "hbm_bytes"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise InputError(name, f"{value!r} is out of range", "it must be greater than 0")
        if self.devices > self.cluster.devices:
            raise InputError(
                "devices",
                f"the cluster has {self.cluster.devices} and {self.devices} are requested",
                "request fewer",
            )
        if self.zero not in self.rules.zeros:
            allowed = ", ".join(map(str, self.rules.zeros))
            raise InputError("zero", f"{self.zero} is out of range", f"use {allowed}")
        if not 0 <= self.headroom < 1:
            raise InputError(
                "headroom", f"{self.headroom!r} is out of range", "use 0 or a part of the memory"
            )
        if self.sharing != REPLICAS and self.rules.unsplit_stages:
            raise InputError(
                "context, expert",
                "ranks share sequences or experts and stages may be unsplit",
                "use another stack",
            )
        for level in self.cluster.levels:
            if level.bandwidth_bytes_per_s < SLOWEST_BYTES_PER_S:
                raise InputError(
                    f"cluster: {level.name}.bandwidth",
                    f"{level.bandwidth_bytes_per_s!r} bytes a second are out of range",
                    f"it must be at least {SLOWEST_BYTES_PER_S:g}",
                )
        require_same_layers(self.graphs)
        for family in self.rules.families:
            require_weights(self.graphs if family.split else (), family.name)
        if self.rules.unsplit_stages and len(self.cluster.levels) > 1:
            raise InputError(
                "cluster", "stages of unequal width lie on one level only", "give one level"
            )

    def graph(self, width: int) -> LayerGraph:
        """The layers at ``width``."""
        for graph in self.graphs:
            if graph.width == width:
                return graph
        raise InputError(
            "tensor", f"width {width} is missing", f"given are {[g.width for g in self.graphs]}"
        )

    def piece(self, width: int) -> Piece:
        """The layers in which a reduction is counted: a block, or the mean of all layers."""
        graph = self.graph(width)
        block = next((layer for layer in graph.layers if layer.block), None)
        counted = graph.layers if block is None else (block,)
        last = max(
            (graph.layers[place] for place in graph.starts), key=lambda la: la.parameter_bytes
        )
        forward_s, backward_s, parameters, experts = (
            sum(getattr(layer, name) for layer in counted) / len(counted)
            for name in ("forward_s", "backward_s", "parameter_bytes", "expert_bytes")
        )
        return Piece(
            parameters, experts, forward_s, backward_s, last.parameter_bytes, last.expert_bytes
        )

    def at_zero(self, zero: int) -> "PlacementProblem":
        """The problem at a stage of ZeRO."""
        return self if zero == self.zero else replace(self, zero=zero)

    def rounds(self, data: int) -> int:
        """Microbatches of one replica, m."""
        return -(-self.microbatches // data)

    @property
    def has_experts(self) -> bool:
        """Whether some parameters are experts that ranks shard."""
        if self.sharing.group == 1:
            return False
        return any(
            layer.expert_bytes or layer.frozen.expert_bytes
            for graph in self.graphs
            for layer in graph.layers
        )

    def held_experts(self, width: int, data: int) -> ParameterState:
        """Bytes that a device holds for a parameter of an expert."""
        shared = self.sharing.experts_share(width, data)
        e1, e2, e3 = (shared if self.zero >= stage else 1.0 for stage in (1, 2, 3))
        return ParameterState(
            self.state.weight / e3, self.state.gradient / e2, self.state.optimizer / e1
        )

    def resident(self, data: int) -> ParameterState:
        """Bytes that a device holds for a dense parameter of its stage when there are so many
        replicas."""
        shared = self.sharing.sharers(data)
        d1, d2, d3 = (shared if self.zero >= stage else 1 for stage in (1, 2, 3))
        return ParameterState(
            self.state.weight / d3, self.state.gradient / d2, self.state.optimizer / d1
        )

    def working(self, data: int) -> ParameterState:
        """Bytes that it holds beyond that for a parameter of the largest layer (or pair), while
        that layer runs."""
        return self._beyond(self.resident(data))

    def working_experts(self, width: int, data: int) -> ParameterState:
        """The same for a parameter of the experts of the layer that has most."""
        return self._beyond(self.held_experts(width, data))

    def _beyond(self, resident: ParameterState) -> ParameterState:
        return ParameterState(
            self.state.weight - resident.weight, self.state.gradient - resident.gradient, 0.0
        )

    @property
    def runs_exchanges_beside(self) -> bool:
        """Whether exchanges of experts run behind another microbatch."""
        return self.rules.exchange_beside and self.sharing.expert > 1

    @property
    def gathers_pairs(self) -> bool:
        """Whether two layers in a row are held whole at once; beside experts that ranks shard
        one is counted."""
        return self.rules.prefetch == "layer" and not self.has_experts

    @property
    def available_bytes(self) -> float:
        """Bytes that a stage may fill."""
        return self.hbm_bytes * (1 - self.headroom)

    def fits(self, need_bytes: float) -> bool:
        """Whether a device has that much memory."""
        return need_bytes <= self.available_bytes * (1 + ROUNDING)

    def modes(self, last: bool = False, family: Family | None = None) -> tuple[Mode, ...]:
        """The modes that a stage may choose from, fastest first; a family of split backward passes
        has none but one."""
        if last and not self.rules.last_stage_recomputes:
            return ("none",)
        modes = self.rules.modes if self.recompute == "best" else (self.recompute,)
        if self.runs_exchanges_beside:
            modes = tuple(mode for mode in modes if AGAIN.isdisjoint(mode.split("+")))
        return (
            tuple(mode for mode in modes if mode == "none")
            if family is not None and family.split
            else modes
        )

    @property
    def mode_names(self) -> tuple[Mode, ...]:
        """All modes by number, as the layers have them: none, selective, those between, full."""
        return "none", "selective", *self.graphs[0].option_names, "full"

    def family(self, name: str | None, chunks: int) -> Family:
        """The family of a plan: that of its name, or the first with so many chunks."""
        for family in self.rules.families:
            if family.chunks == chunks and name in (None, family.name):
                return family
        names = sorted({family.name for family in self.rules.families})
        named = "" if name is None else f" of {name}"
        raise InputError(
            "chunks",
            f"{chunks}{named} under {', '.join(names)}",
            "use a family of the problem's rules",
        )
