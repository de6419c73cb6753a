r"""Lower bounds on batch time where the sum of stage times counts, for all chips at once. No bound
uses a plan.

With c_k = f_k + b_k the seconds of a layer of kind k on a chip, n_k of them, and the chip-free
terms of a shape (:mod:`phaze.search.bounds.shape_tables`), every plan of S stages takes at least

    laps max( P + move, V / S ) + sums max(V, the same) + ends + step / HBM bandwidth,         V = Q + moves + waits

where P is no longer than its longest stage and Q no longer than all its stages together, transfers
left out; laps and sums are alpha and beta of its pipeline family:

    cheap   P = max over k of ceil(n_k / S) c_k            one of S stages holds so many layers of
            kind k Q = sum over k of n_k c_k + (fewest layers recomputed) x (least that one
            takes) for all families at once
    cut     P = least greatest stage, Q = least sum, each over all cuts into S stages that fit,
            every stage in its fastest mode that fits: a table over closed sets and numbers for
            every chip, family and depth that may
            still be the best, the most promising first                         (:func:`cut_floors`)
            P has the transfers of the levels that its boundaries cross; Q only counts stages no
            longer than (best - sums V - ends) / laps, as a plan with a longer one beats nothing:
            that shortens the stages, shorter stages have a greater V, and so on in turns

With a recompute choice "full" every repeated layer is recomputed, and c_k holds it. Layer times
are exact, so the bound of a chip is below its batch time only by what P, Q and the ends are not
reached by one and the same cut. Bounds are lowered by 1e-9 for the rounding of sums.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.layer_table import FULL, LayerTable
from phaze.search.bounds.shape_cut_kernels import cut_floors
from phaze.search.bounds.shape_kernels import depth_floors, shape_floors
from phaze.search.bounds.shape_tables import ShapeTables
from phaze.search.deadline import NEVER, Deadline

Floats = NDArray[np.float64]
# Bounds are lowered by this: sums of layer times in another order differ by less.
SLACK = 1e-9
# Chips whose best cuts are computed in one piece, so that a deadline is seen between pieces.
CUTS = 1024


def cheap_floors(
    tables: ShapeTables, times: LayerTable, choice: str, cut_s: Floats | float = np.inf
) -> Floats:
    """What no plan undercuts, by counting, for each chip, or ``cut_s`` (of all chips or of each) if
    that is less; infinite where nothing fits."""
    layer_s, again_s = times.forward_s + times.backward_s, np.zeros(times.forward_s.shape[1])
    repeated = tables.repeated > 0
    if choice == "full":
        layer_s = layer_s + tables.repeated[:, None] * times.again_s[FULL]
    elif choice == "best" and repeated.any():
        again_s = times.again_s[:, repeated].min(axis=(0, 1))
    layer_s = np.ascontiguousarray(layer_s)
    rate, cuts = 1.0 / times.hbm_bytes_per_s, _each(cut_s, again_s)
    floors = shape_floors(tables.shapes, tables.numbers, layer_s, again_s, rate, cuts)
    return np.asarray(floors * (1 - SLACK))


def _each(cut_s: Floats | float, like: Floats) -> Floats:
    """A cut for each chip, read only: kernels are shipped for that."""
    cuts = np.full(like.shape, cut_s, np.float64)
    cuts.setflags(write=False)
    return cuts


def cut_bounds(tables: ShapeTables, times: LayerTable, cut_s: Floats | float) -> Floats:
    """The same by the best cuts of every depth, or ``cut_s`` if that is less."""
    layer_s = np.ascontiguousarray(times.forward_s + times.backward_s)
    mode_s = np.concatenate([np.zeros((1, *layer_s.shape)), times.again_s])
    below = _each(cut_s, layer_s[0]).copy()
    whole_s, rate = tables.numbers @ layer_s, 1.0 / times.hbm_bytes_per_s
    # What no family undercuts at a depth first; then the most promising of them, which leave little
    # of the others.
    near = [
        (depth_floors(shapes, whole_s, rate, below)[depth], index, depth, family, shapes)
        for depth in np.flatnonzero(depth_floors(tables.shapes, whole_s, rate, below) < 1).tolist()
        for index, (family, shapes) in enumerate(tables.families(depth))
    ]
    for nearest, _, depth, family, shapes in sorted(near, key=lambda entry: entry[:3]):
        if nearest >= 1:
            break
        below = cut_floors(
            shapes, tables.stages(family, depth), depth, layer_s, whole_s, mode_s, rate, below
        )
    return np.asarray(below * (1 - SLACK))


def shape_bounds(
    tables: ShapeTables,
    times: LayerTable,
    choice: str,
    cut_s: Floats | float,
    cuts: bool,
    deadline: Deadline = NEVER,
) -> Floats:
    """Bounds on the batch time of a configuration, for each chip; ``cut_s`` of all or of each.

    ``cuts``: also by the best cuts, for what the cheap bound leaves below ``cut_s``.
    """
    deadline.check()
    bounds = cheap_floors(tables, times, choice, cut_s)
    index = np.flatnonzero(bounds < cut_s * (1 - SLACK)) if cuts else np.empty(0, np.int64)
    for some in np.split(index, range(CUTS, len(index), CUTS)) if len(index) else ():
        deadline.check()
        chip_cuts_s = cut_s[some] if isinstance(cut_s, np.ndarray) else cut_s
        bounds[some] = np.maximum(bounds[some], cut_bounds(tables, times.taken(some), chip_cuts_s))
    return bounds
