r"""The structures of a chain of equal blocks: which splits into stages fit into memory, on any chip.

A chain is an optional prologue, n equal blocks and an optional epilogue. A plan of S >= 2 stages gives the first stage
the prologue and a blocks, the last one z blocks and the epilogue, and each stage between them at least one block.
What fits depends on no chip, so it is tabled once (:class:`ChainLayout`), with s a stage's number counted from the end:

    first_ok[S, a]    state w + A + (S - 1) Z <= H for the first stage              last_ok[z]   the same at s = 1
    cap(s)            most blocks of a stage at number s                               (falls with s)
    middle[S, R]      least m with  sum over s = 2..S-1 of min(m, cap(s)) >= R: the longest middle stage when R blocks
                      are left for it and its neighbours; -1 where R < S - 2 or they do not fit

Z is A when stashing and the entering bytes when recomputing; "best" counts the smaller one, and no time for running the
forward pass again: a bound. Edges of unlike size count as the smallest: a bound too. Otherwise the least batch time
over these structures is that of the general solver, exactly (:func:`phaze.search.bounds.chain_kernels.least_batches`).
"""

from dataclasses import dataclass

import numpy as np

from phaze.cost.memory import stack_state
from phaze.evaluate.flow import SENT_BYTES
from phaze.evaluate.layer_times import RuledLayer
from phaze.placement.problem import ROUNDING, RecomputeChoice
from phaze.search.bounds.chain_kernels import ChainLayout, middle_table
from phaze.search.rank_graph import RankGraph
from phaze.search.task import Training


@dataclass(frozen=True, slots=True)
class Chain:
    """A model as prologue, blocks, epilogue: the distinct layer of each (None: there is none) and the block count."""

    prologue: int | None
    block: int
    epilogue: int | None
    blocks: int

    @property
    def kinds(self) -> tuple[int | None, int, int | None]:
        return self.prologue, self.block, self.epilogue


def chain_of(model: RankGraph) -> Chain | None:
    """The model as a chain of equal blocks, or None where it is none: other layers, or edges that skip one."""
    calls = model.calls
    joined = {(tail, head) for tail, head, _ in model.edges}
    if joined != {(i, i + 1) for i in range(len(calls) - 1)} or len(joined) != len(model.edges):
        return None
    for start in (0, 1):
        for end in (len(calls), len(calls) - 1):
            inner = calls[start:end]
            if inner and len(set(inner)) == 1:
                return Chain(calls[0] if start else None, inner[0], calls[-1] if end < len(calls) else None, len(inner))
    return None


def _held(layer: RuledLayer | None, factor: float) -> tuple[float, float, float]:
    """State and activations, activations, parameters of a layer."""
    if layer is None:
        return 0.0, 0.0, 0.0
    return factor * layer.parameter_bytes + layer.saved_bytes, float(layer.saved_bytes), layer.parameter_bytes


def layout_of(
    model: RankGraph, chain: Chain, recompute: RecomputeChoice, hbm_bytes: float, training: Training
) -> ChainLayout:
    """The tables of one width, microbatch, recompute choice and memory."""
    stack = training.machine.stack
    state = stack_state(training.precision, training.optimizer, stack)
    n, factor = chain.blocks, state.total / SENT_BYTES
    layers = [None if kind is None else model.layers[kind] for kind in chain.kinds]
    (held0, kept0, w0), (held1, kept1, w1), (held2, _, w2) = (_held(layer, factor) for layer in layers)
    edge_bytes = min((size for _, _, size in model.edges), default=0.0)
    room = hbm_bytes * (1 - training.headroom) * (1 + ROUNDING) - stack.reserve_bytes
    most = min(len(model.calls), training.devices)
    blocks, numbers = np.arange(n + 1), np.arange(most + 1)
    first_kept = np.where(recompute == "none", kept0 + blocks * kept1, 0.0)
    middle_kept = blocks * kept1
    if recompute == "full":
        middle_kept = np.full(n + 1, edge_bytes)
    elif recompute == "best":
        middle_kept = np.minimum(middle_kept, edge_bytes)
    behind = np.maximum(numbers - 1, 0)[:, None]
    first_ok = held0 + blocks * held1 + behind * first_kept <= room
    cap = (held1 * blocks + behind * middle_kept <= room).sum(axis=1) - 1
    plain = [layer is not None and not layer.sharded and model.width > 1 for layer in layers]
    split = model.width if any(layer is not None and layer.sharded for layer in layers) else 1
    return ChainLayout(
        first_ok=first_ok,
        last_ok=held2 + blocks * held1 <= room,
        whole_ok=bool(held0 + n * held1 + held2 <= room),
        middle=middle_table(cap.astype(np.int64), n, most),
        sync_s=np.asarray(4 * (w0 + blocks * w1) / training.link_bytes_per_s, np.float64),
        last_sync_s=4 * w2 / training.link_bytes_per_s,
        edge_s=edge_bytes / training.link_bytes_per_s,
        width=split,
        plain_first=plain[0] and split > 1,
        plain_last=plain[2] and split > 1,
        least_first=0 if chain.prologue is not None else 1,
        least_last=0 if chain.epilogue is not None else 1,
        again=recompute == "full",
        devices=training.devices,
        microbatches=training.microbatches(model.microbatch),
    )
