"""Compiled: what no plan undercuts where only the pace and the first stage count, by its first
stage, for every chip.

The formulas stand in :mod:`phaze.search.bounds.bottleneck_bounds`.
"""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit
from phaze.placement.bottleneck_kernels import ReplicaDegrees, fastest_degree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from phaze.placement.cut_sets import Floats, Ints

    Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def first_floors(
    forward_s: "Floats",
    backward_s: "Floats",
    counts: "Floats",
    most_stages: "Ints",
    sync_s: "Floats",
    whole: "Flags",
    replicas: "Ints",
    in_all: "Floats",
    microbatches: int,
    again: bool,
    cut_s: float,
) -> "Floats":
    """By chip the lesser of ``cut_s`` and the bound of
    :mod:`phaze.search.bounds.bottleneck_bounds`.

    Seconds are [layers, chips], ``counts`` [first stages, layers]; ``replicas`` by number of
    stages, 0 where there is no room for one.
    """
    kinds, chips = forward_s.shape
    bounds, degrees = np.empty(chips), ReplicaDegrees(1, 1, microbatches, 1.0, -1.0)
    for chip in range(chips):
        longest = share = total = 0.0
        for kind in range(kinds):
            f, b = forward_s[kind, chip], backward_s[kind, chip]
            if in_all[kind] == 0:
                continue
            longest = max(longest, f + b)
            share = max(share, f / (f + b)) if f + b > 0 else share
            total += in_all[kind] * (2 * f + b if again else f + b)
        best = cut_s
        for k in range(counts.shape[0]):
            stash = double = 0.0
            for kind in range(kinds):
                f, b = forward_s[kind, chip], backward_s[kind, chip]
                stash += counts[k, kind] * (f + b)
                double += counts[k, kind] * (2 * f + b)
            if whole[k] and replicas[1] < 1:
                continue
            if whole[k]:
                best, _ = fastest_degree(
                    degrees, replicas[1], (max(stash, longest), 1, sync_s[k]), best
                )
                continue
            stage_s = double if again else stash
            for stages in range(2, min(most_stages[k], replicas.shape[0] - 1) + 1):
                if replicas[stages] < 1:
                    continue
                # The last stage does not recompute, so within one pace its layers are worth up to 1
                # + share of it in ``total``, which counts every forward pass twice; share is the
                # largest F / (F + B) of a layer.
                rest = (total - stage_s) / (stages - 1 + (share if again else 0.0))
                pace_s = max(stage_s, longest, rest)
                best, _ = fastest_degree(
                    degrees, replicas[stages], (pace_s, stages, sync_s[k]), best
                )
        bounds[chip] = best
    return bounds
