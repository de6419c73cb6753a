r"""A quick floor on the batch time of every chip, for the picture of all of them; looser than a search's own bounds.

With C the seconds of all layers of a microbatch, L those of the longest, M microbatches, and S stages in d replicas (no
more than there are devices for), memory and transfers aside,

    batch >= max(C / S, L) (ceil(M / d) + S - 1) + 4 (d - 1) / d w / B        w: parameters of the first layer

as the longest stage takes at least the mean and the longest layer, and the first stage holds at least the first layer.
The floor is the least over all S and d (:func:`floors`). Pairs (S, d) are chip-independent: of d in a narrow range the
largest counts for the rounds and the smallest for synchronisation, and pairs that others undercut in all three numbers

    (ceil(M / d) + S - 1) / S,   ceil(M / d) + S - 1,   4 (d - 1) / d w / B

are left out (:func:`shapes`).
"""

import numpy as np
from numpy.typing import NDArray

from phaze.search.rank_graph import RankGraph
from phaze.search.task import Training

Floats = NDArray[np.float64]
NARROW = 1.03
"""Replica counts within 3 % of each other share a lower bound: it is a picture, not the proof."""


def _ranges(most: int) -> list[tuple[int, int]]:
    """1 .. most in ranges whose ends differ by a few percent."""
    found, low = [], 1
    while low <= most:
        high = min(most, max(low, int(low * NARROW)))
        found.append((low, high))
        low = high + 1
    return found


def _undominated(rows: Floats) -> Floats:
    """The rows that no other row is below or equal to in every column."""
    left, kept = rows[np.lexsort(rows.T[::-1])], []
    while len(left):
        first = left[0]
        kept.append(first)
        left = left[1:][(left[1:] < first).any(axis=1)]
    return np.array(kept)


def shapes(model: RankGraph, training: Training) -> Floats:
    """The pairs of stages and replicas that may be best, as the rows of three numbers of the module's docstring."""
    plain = sum(not model.layers[kind].sharded for kind in model.calls)
    sources = set(range(len(model.calls))) - {head for _, head, _ in model.edges}
    first = min(model.layers[model.calls[at]].parameter_bytes for at in sources)
    total, rows = training.microbatches(model.microbatch), []
    for stages in range(1, min(len(model.calls), training.devices) + 1):
        taken = model.width * max(0, stages - plain) + min(stages, plain)
        for low, high in _ranges(min(training.devices // taken, total)):
            rounds = -(-total // high) + stages - 1
            rows.append((rounds / stages, rounds, 4 * (low - 1) / low * first / training.link_bytes_per_s))
    return _undominated(np.array(rows, dtype=np.float64))


def floors(model: RankGraph, training: Training, seconds: Floats) -> Floats:
    """The floor of every chip; ``seconds`` of both passes are [layers, chips]."""
    calls = np.bincount(model.calls, minlength=len(seconds)).astype(np.float64)
    whole, longest = calls @ seconds, seconds[np.unique(model.calls)].max(axis=0)
    best = np.full(len(whole), np.inf)
    for share, rounds, sync_s in shapes(model, training):
        best = np.minimum(best, np.maximum(share * whole, rounds * longest) + sync_s)
    return best
