"""How many combinations of a space of chips of clusters each rule leaves out, without keeping or clocking any.

The rules are those of :mod:`phaze.hardware.silicon.space`, in their order, each on what those before it leave. A chip
that draws no more than its limit at its rated clock holds that. Any other holds the clock at which it draws the
limit W, so

    it holds half of its clock    if and only if    it draws at most W at half of it
    watts <= most_w_per_mm2 area  if and only if    W <= most_w_per_mm2 area

Where the last is nearer than rounding could move it, the clock is found as it is for every chip.
"""

from collections.abc import Mapping

import numpy as np

from phaze.errors import InputError
from phaze.hardware.area import areas_of, edge_areas
from phaze.hardware.columns import ChipColumns, Flags
from phaze.hardware.power import LEAST_SHARE, clock_power, power_at
from phaze.hardware.silicon.space import NOTHING_LEFT_OUT, ClusterSpace, combinations_numbered, rules_of

AT_ONCE = 1 << 16
"""Combinations processed together: their columns stay in the processor's caches."""
NEAR = 1e-9
"""Sides of a rule that are nearer than this are compared as the rules of a space compare them."""
MOST_COMBINATIONS = 2e9
"""Those of a space of chips of cores: counting takes minutes there."""


def _powered(space: ClusterSpace, chips: ChipColumns) -> Flags:
    """Which chips of a fitting area the rules of power keep."""
    node, ratio = space.node, space.file.keep.most_w_per_mm2
    areas = areas_of(chips, node)
    power, total = clock_power(chips, node, areas), areas.total
    fixed_w = np.maximum(power.product_fixed_w, power.vector_fixed_w)
    top = np.minimum(chips.clock_hz, node.voltage.most_hz)
    top_w, half_w = (power_at(power, node, clock) for clock in (top, LEAST_SHARE * chips.clock_hz))
    full = top_w <= chips.limit_w
    drawn_w = np.where(full, top_w, chips.limit_w)
    slow = np.where(full, top < LEAST_SHARE * chips.clock_hz, half_w > chips.limit_w)
    found = (fixed_w <= chips.limit_w) & ~slow & (drawn_w <= ratio * total)
    near = np.abs(half_w / chips.limit_w - 1) < NEAR
    near |= np.abs(drawn_w / (ratio * total) - 1) < NEAR
    doubt = np.flatnonzero(near & ~full)
    if len(doubt):
        found[doubt] = rules_of(space, chips.taken(doubt))["power"]
    return np.asarray(found)


def left_out_of(space: ClusterSpace) -> Mapping[str, int]:
    """Combinations that each rule leaves out, by the first that does."""
    keep, count, left = space.file.keep, len(space), dict(NOTHING_LEFT_OUT)
    if count > MOST_COMBINATIONS:
        raise InputError("axes", f"there are {count:.3g} combinations", f"give at most {MOST_COMBINATIONS:.0e}")
    for start in range(0, count, AT_ONCE):
        chips = combinations_numbered(space, np.arange(start, min(count, start + AT_ONCE)))
        area = areas_of(chips, space.node).total
        sized = np.flatnonzero((area <= keep.most_area) & (area >= keep.least_share * keep.most_area))
        left["area"] += len(chips) - len(sized)
        chips, area = chips.taken(sized), area[sized]
        edged = np.flatnonzero(np.maximum(area, edge_areas(chips.stacks)) <= keep.most_area)
        left["edge"] += len(chips) - len(edged)
        chips = chips.taken(edged)
        powered = np.flatnonzero(_powered(space, chips))
        left["power"] += len(chips) - len(powered)
        if keep.most_usd is not None and len(powered):
            priced = rules_of(space, chips.taken(powered))["cost"]
            left["cost"] += len(powered) - int(priced.sum())
    return left
