r"""Rules ``cluster``: what a split of a model over a real machine costs, as closed formulas, and its values.

Notation as in :mod:`phaze.placement.problem`. All stages of a plan have the same width t, so S stages in d copies take
t S d <= K devices, numbered 0 .. K - 1 with the innermost level filled first. Tensor groups are innermost; then come
either the stages of a copy (order ``pipeline``: stage i of copy r begins at device (r S + i) t) or the copies of a
stage (order ``data``: at (i d + r) t). A copy runs m = ceil(M / d) microbatches.

Boundary i, between stages i and i + 1, carries the bytes c of all edges that lead from before it to behind it (a tensor
that skips stages is handed on), on the innermost level l whose groups hold both tensor groups in every copy:

    transfer  x_i = latency_l + c / (t if the stack scatters and gathers, else 1) / B_l, 0 if c = 0       (Prices)

A stage X of number s (from the end) may save all its activations, only those that are not cheap to compute again, or
only the inputs of its layers: modes none, selective, full. Layer l then keeps k_l = A_l, its ``selective_bytes``, or
the bytes of all edges that enter it, and computes again g_l = 0, its ``selective_s``, or its ``full_s`` (f_l if it has
none; 0 for what a framework never computes again, as embedding and logits). With N(X) parameters,
counted once where layers of one stage share them, and bytes of weight, gradient and optimizer a parameter:

    forward   F(X) = max( f(X) + (1 - h) v, v ) + x at its entry                                           (beside)
    backward  R(X) = max( b(X) + g(X) + (1 - h) u, u ) + x at its exit
    time      T(X) = F(X) + R(X)
    memory    N (weight/d3 + gradient/d2 + optimizer/d1) + n (weight (1 - 1/d3) + gradient (1 - 1/d2))        (State)
              + reserve + q k(X) + max over l of (A_l - k_l)  <= H
              q = min(m, s) microbatches in flight under 1F1B, m under GPipe
    end       E(X) = (1 - h) sync_d(w(X)) + N traffic / d1 / HBM bandwidth

ZeRO z shares state out over the copies: d1, d2, d3 are d where z is at least 1, 2, 3, else 1. Under ZeRO 2 and 3 the
n parameters of the largest layer are there in full while it runs. h is the share of collectives that the stack hides,
as far as there is work to hide them behind. With reduce_d an all-reduce over the copies of a stage and gather_d a
gather, which costs as much as a reduce-scatter,

    z = 0, 1   v = 0                     u = 0                           sync = reduce_d(w(X))
    z = 2      v = 0                     u = sum over l of gather_d(w_l)   sync = gather_d(w(X))
    z = 3      v = sum of gather_d(w_l)  u = 2 v                           sync = 0

as gradients are scattered after every microbatch (z >= 2), and weights gathered for each pass (z = 3). Layers that
share parameters but lie in different stages reduce their gradients too, in the open: Y, the sum of an all-reduce for
each such group over the outermost level that the pipeline crosses. Then

    1F1B    batch time = (m - 1) max_i T(X_i) + sum_i T(X_i) + max_i E(X_i) + Y                          (batch_seconds)
    GPipe   batch time = (m - 1) (max_i F(X_i) + max_i R(X_i)) + sum_i T(X_i) + max_i E(X_i) + Y

Under interleaved 1F1B every stage is cut into v pieces of equal time, its *chunks*, and a microbatch passes the first
piece of every stage, then the second, and so on. Each piece is handed on, also from the last stage to the first, with
the most bytes of any boundary over the outermost level that the pipeline crosses (transfer x_S; v = 1: 0):

    transfers   v x_i between stages, (v - 1) x_S at the entry of the first stage and the exit of the last
    in flight   q = min(m, (2 (s - 1) + (v - 1) S + 1) / v)                                                 (in_flight)
    batch time = m max_i T(X_i) + (sum_i T(X_i) - max_i T(X_i)) / v + max_i E(X_i) + Y

That is never less than m max_i T + max_i E, the floor of every schedule here, and needs no less memory than v = 1. It
is exact for equal stages and m a multiple of S. Solvers prove v = 1 only; v > 1 is evaluated at plans that are given.

GPipe's is exact: all forwards pass the stages as items pass a line, then all backwards. 1F1B's is exact when all stages
take equal time; its events end by T(X_1) + (m + S - 2) max T at the latest (docs/placement.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from phaze.cost.memory import State
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.hardware.stack import Stack
from phaze.placement.one.problem import Extra
from phaze.placement.problem import ROUNDING, LayerGraph, require_same_layers

__all__ = ["MODES", "ORDERS", "ZEROS", "Choice", "ClusterProblem", "Extra", "Mode", "Order", "Schedule"]

Order = Literal["pipeline", "data"]
Schedule = Literal["1f1b", "gpipe"]
Mode = Literal["none", "selective", "full"]
Choice = Literal["none", "selective", "full", "best"]
ORDERS: tuple[Order, ...] = ("pipeline", "data")
MODES: tuple[Mode, ...] = ("none", "selective", "full")
ZEROS = (0, 1, 2, 3)
# As for the link of rules icml24: slower levels make times without end.
SLOWEST_LEVEL_BYTES_PER_S = 1e-6


@dataclass(frozen=True, slots=True)
class ClusterProblem:
    """A placement problem under rules ``cluster``; ``extras`` follow the layers of each graph.

    ``sent_bytes`` of a parameter are those of a weight or gradient on the wire, so a layer has ``parameter_bytes`` /
    ``sent_bytes`` parameters. Without ``hbm_bytes_per_s`` the optimizer's step takes no time.
    """

    devices: int
    hbm_bytes: float
    microbatches: int
    recompute: Choice
    schedule: Schedule
    zero: int
    state: State
    sent_bytes: float
    hbm_bytes_per_s: float | None
    cluster: Cluster
    stack: Stack
    graphs: tuple[LayerGraph, ...]
    extras: tuple[tuple[Extra, ...], ...]

    def __post_init__(self) -> None:
        for name in ("devices", "microbatches", "hbm_bytes"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise InputError(name, f"{value!r} is out of range", "it must be greater than 0")
        if self.devices > self.cluster.devices:
            raise InputError(
                "devices", f"the cluster has {self.cluster.devices} and {self.devices} are asked for", "ask for fewer"
            )
        for level in self.cluster.levels:
            if level.bandwidth_bytes_per_s < SLOWEST_LEVEL_BYTES_PER_S:
                raise InputError(
                    f"cluster: {level.name}.bandwidth",
                    f"{level.bandwidth_bytes_per_s!r} bytes a second are out of range",
                    f"it must be at least {SLOWEST_LEVEL_BYTES_PER_S:g}",
                )
        if self.zero not in ZEROS:
            raise InputError("zero", f"{self.zero} is out of range", "use 0, 1, 2 or 3")
        require_same_layers(self.graphs)
        for graph, extras in zip(self.graphs, self.extras, strict=True):
            _require_extras(graph, extras)

    def graph(self, width: int) -> tuple[LayerGraph, tuple[Extra, ...]]:
        """The layers at ``width``."""
        for graph, extras in zip(self.graphs, self.extras, strict=True):
            if graph.width == width:
                return graph, extras
        raise InputError("tensor", f"width {width} is missing", f"given are {[g.width for g in self.graphs]}")

    def rounds(self, data: int) -> int:
        """Microbatches of one copy, m."""
        return -(-self.microbatches // data)

    def in_flight(self, rounds: int, number: int, stages: int = 1, chunks: int = 1) -> float:
        """Microbatches that the stage of that number holds at once, q; parts of them where stages have chunks."""
        if self.schedule == "gpipe":
            return rounds
        if chunks == 1:
            return min(rounds, number)
        return min(float(rounds), (2 * (number - 1) + (chunks - 1) * stages + 1) / chunks)

    def all_ahead(self, chunks: int) -> bool:
        """Whether all forwards of a plan with so many chunks run before its backwards."""
        return self.schedule == "gpipe" and chunks == 1

    def held(self, data: int) -> State:
        """Bytes that a device holds for a parameter of its stage when there are so many copies."""
        d1, d2, d3 = (data if self.zero >= stage else 1 for stage in (1, 2, 3))
        return State(self.state.weight / d3, self.state.gradient / d2, self.state.optimizer / d1)

    def working(self, data: int) -> State:
        """Bytes that it holds beyond that for a parameter of the largest layer, while that layer runs."""
        held = self.held(data)
        return State(self.state.weight - held.weight, self.state.gradient - held.gradient, 0.0)

    @property
    def gathers(self) -> tuple[int, int]:
        """How many gathers or scatters of a layer's parameters a microbatch takes, forward and backward."""
        return {2: (0, 1), 3: (1, 2)}.get(self.zero, (0, 0))

    def fits(self, need_bytes: float) -> bool:
        """Whether a device has that much memory."""
        return need_bytes <= self.hbm_bytes * (1 + ROUNDING)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that a stage may choose from, fastest first."""
        return MODES if self.recompute == "best" else (self.recompute,)


def _require_extras(graph: LayerGraph, extras: Sequence[Extra]) -> None:
    tied: dict[str, float] = {}
    for layer, extra in zip(graph.layers, extras, strict=True):
        where = f"widths.{graph.width}: layer {layer.id}"
        if extra.selective_bytes is not None and not 0 <= extra.selective_bytes <= layer.activation_bytes:
            raise InputError(
                where, f"selective_bytes {extra.selective_bytes!r} is out of range", "keep no more than all"
            )
        if not 0 <= extra.selective_s <= layer.forward_s:
            raise InputError(where, f"selective_s {extra.selective_s!r} is out of range", "it is a part of forward_s")
        if extra.full_s is not None and not 0 <= extra.full_s <= layer.forward_s:
            raise InputError(where, f"full_s {extra.full_s!r} is out of range", "it is a part of forward_s")
        if extra.tied is not None:
            if not 0 <= extra.tied_bytes <= layer.parameter_bytes:
                raise InputError(where, f"tied_bytes {extra.tied_bytes!r} is out of range", "they are parameters of it")
            if tied.setdefault(extra.tied, extra.tied_bytes) != extra.tied_bytes:
                raise InputError(where, f"'{extra.tied}' has other tied_bytes elsewhere", "give the same everywhere")


def beside(work_s: float, collectives_s: float, hidden: float) -> float:
    """Work and collectives side by side, of which at most the share ``hidden`` is not seen: max(w + (1 - h) c, c)."""
    return max(work_s + (1 - hidden) * collectives_s, collectives_s)


def pace_seconds(stages_s: Sequence[tuple[float, float]], schedule: Schedule) -> float:
    """What one more microbatch takes: max T under 1F1B, max F + max R under GPipe; stages as (forward, backward)."""
    if schedule == "gpipe":
        return max(forward_s for forward_s, _ in stages_s) + max(backward_s for _, backward_s in stages_s)
    return max(sum(stage_s) for stage_s in stages_s)


def batch_seconds(
    stages_s: Sequence[tuple[float, float]], rounds: int, schedule: Schedule, end_s: float, chunks: int = 1
) -> float:
    """(m - 1) pace + sum T + max E + Y, the last two together in ``end_s``; with chunks m pace + (sum T - pace) / v."""
    pace_s, whole_s = pace_seconds(stages_s, schedule), sum(map(sum, stages_s))
    if chunks > 1:
        return rounds * pace_s + (whole_s - pace_s) / chunks + end_s
    return (rounds - 1) * pace_s + whole_s + end_s
