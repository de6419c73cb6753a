r"""Compiled: what no plan undercuts where the sum of stage times counts, by counting, for every
chip.

The formulas stand in :mod:`phaze.search.bounds.shape_bounds`, the tables in
:mod:`phaze.search.bounds.shape_tables`.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from phaze.compiled import njit

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats, Ints


class Shapes(NamedTuple):
    """The shapes of each depth S, at ``start[S]`` .. ``start[S + 1]``, none of which another one
    dominates.

    ``laps`` is how many times the longest stage counts, ``sums`` how many times all stages
    together: alpha and beta of the family. ``moves_s`` is the least of all transfers of a
    microbatch, ``move_s`` of one, ``waits_s`` what is not hidden of ZeRO's collectives, ``again``
    the fewest layers that are recomputed, ``pattern`` which levels its boundaries cross, of the
    stages' list of that depth. By class of the largest stage [rows, classes]: ``ends_s``
    synchronisation and tied parameters, ``step_bytes`` the optimizer's traffic.
    """

    start: "Ints"
    laps: "Floats"
    sums: "Floats"
    moves_s: "Floats"
    move_s: "Floats"
    waits_s: "Floats"
    again: "Floats"
    pattern: "Ints"
    ends_s: "Floats"
    step_bytes: "Floats"


class Stages(NamedTuple):
    """Every stage of every closed set in a pipeline of one depth: what is left, layers of each
    kind, whether a kind is recomputed, and up to which number it fits in each mode. ``crossed`` is
    the level that the stage of a number, from the end, is entered by [patterns, numbers],
    ``move_s`` the transfer into each closed set [levels, sets], ``least_s`` the least of any level,
    ``end_s`` what chunks add at each end of the pipeline [patterns]. A stage has ``size_bytes`` of
    parameters, and the largest stage of a class at most ``most_bytes``."""

    start: "Ints"
    rest: "Ints"
    counts: "Floats"
    repeated: "Floats"
    highest: "Ints"
    crossed: "Ints"
    move_s: "Floats"
    least_s: "Floats"
    end_s: "Floats"
    size_bytes: "Floats"
    most_bytes: "Floats"


@njit(cache=True, nogil=True)
def ended(
    shapes: Shapes,
    place: tuple[int, int],
    stages: int,
    pace_s: float,
    sum_s: float,
    second_per_byte: float,
) -> float:
    """What a shape and class take whose longest stage, transfers with it, and whose sum without
    them are so long."""
    j, size = place
    whole = sum_s + shapes.moves_s[j] + shapes.waits_s[j]
    longest = max(pace_s, whole / stages)
    end = shapes.ends_s[j, size] + shapes.step_bytes[j, size] * second_per_byte
    return float(shapes.laps[j] * longest + shapes.sums[j] * max(whole, longest) + end)


@njit(cache=True, nogil=True)
def _counted(numbers: "Ints", layer_s: "Floats", stages: int, move: float) -> float:
    """The least longest stage by counting: two stages have one transfer, the others two, or a layer
    less."""
    pace = 0.0
    for kind in range(layer_s.shape[0]):
        # If only the two end stages, with one transfer each, need the ceiling of layers, one
        # transfer counts; else a middle stage needs it (a second transfer) or an end stage one
        # layer more.
        kind_s, most = layer_s[kind], -(-numbers[kind] // stages)
        ends = 2 * most + (stages - 2) * (most - 1) >= numbers[kind]
        pace = max(pace, most * kind_s + move + (0.0 if ends else min(move, kind_s)))
    return pace


@njit(cache=True, nogil=True)
def _last_totals(
    shapes: Shapes, depths: "Ints", again_s: float, second_per_byte: float, cut_s: float
) -> "Floats":
    """For each shape the seconds of all layers from which on it takes ``cut_s`` at the least,
    whatever its stages are; ``again_s`` and ``second_per_byte`` are the least of all chips.

        (laps / S + sums) (total + again + moves + waits) + ends + step >= cut
    """
    totals = np.empty(depths.shape[0])
    for j in range(depths.shape[0]):
        end = shapes.ends_s[j, 0] + shapes.step_bytes[j, 0] * second_per_byte
        passes = shapes.laps[j] / depths[j] + shapes.sums[j]
        totals[j] = (
            (cut_s - end) / passes
            - shapes.again[j] * again_s
            - shapes.moves_s[j]
            - shapes.waits_s[j]
        )
    return totals


@njit(cache=True, nogil=True)
def shape_floors(
    shapes: Shapes,
    numbers: "Ints",
    layer_s: "Floats",
    again_s: "Floats",
    second_per_byte: "Floats",
    cut_s: "Floats",
) -> "Floats":
    """For each chip what no plan of the shapes undercuts, by counting, or its ``cut_s`` if that is
    less; infinite where there is no shape. ``layer_s`` are [kinds, chips], ``numbers`` how many
    layers of each kind there are, ``again_s`` the least that computing one again takes.

    Shapes are bounded in the order of what they leave to the layers under the greatest cut, and
    only as far as a chip's layers take less.
    """
    kinds, chips = layer_s.shape
    rows = shapes.laps.shape[0]
    if rows == 0 or chips == 0:
        return np.full(chips, np.inf)
    depths = np.empty(rows, np.int64)
    for stages in range(shapes.start.shape[0] - 1):
        depths[shapes.start[stages] : shapes.start[stages + 1]] = stages
    last = _last_totals(shapes, depths, again_s.min(), second_per_byte.min(), cut_s.max())
    order = np.argsort(-last)
    bounds, kind_s, recent = cut_s.copy(), np.empty(kinds), order[0]
    for chip in range(chips):
        total, rate, best = 0.0, second_per_byte[chip], cut_s[chip]
        for kind in range(kinds):
            kind_s[kind] = layer_s[kind, chip]
            total += numbers[kind] * kind_s[kind]
        # Chips come in the order of the space, so the shape that was best for the last one gives a
        # tight cut first.
        for turn in range(-1, rows):
            j = recent if turn < 0 else order[turn]
            if last[j] <= total:
                if turn < 0:
                    continue
                break
            whole = total + shapes.again[j] * again_s[chip]
            if ended(shapes, (j, 0), depths[j], 0.0, whole, rate) < best:
                pace = _counted(numbers, kind_s, depths[j], shapes.move_s[j])
                after = ended(shapes, (j, 0), depths[j], pace, whole, rate)
                if after < best:
                    best, recent = after, j
        bounds[chip] = best
    return bounds


@njit(cache=True, nogil=True)
def depth_floors(
    shapes: Shapes, whole_s: "Floats", second_per_byte: "Floats", below: "Floats"
) -> "Floats":
    """For each depth how near a plan of it comes to ``below`` on the chip where it comes nearest,
    if all its stages were alike: 1 or more where none is below."""
    depth, chips = shapes.start.shape[0] - 2, whole_s.shape[0]
    nearest = np.full(depth + 1, np.inf)
    for stages in range(1, depth + 1):
        for j in range(shapes.start[stages], shapes.start[stages + 1]):
            for chip in range(chips):
                total_s = ended(shapes, (j, 0), stages, 0.0, whole_s[chip], second_per_byte[chip])
                nearest[stages] = min(
                    nearest[stages], total_s / below[chip] if below[chip] < np.inf else 0.0
                )
    return nearest
