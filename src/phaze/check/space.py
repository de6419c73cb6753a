"""The chips of a space, from its axes and rules alone (docs/formats.md, phaze.space/1; docs/technology.md).

A combination of the axes, the last axis running fastest, is a chip if its area is within the budget and either at
least a share of it or, where the space says so, with a single core of one kind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .limits import curve, design_watts, making_usd
from .reading import cover, listed, number, only, positive, require
from .silicon import AXES as CLUSTER_AXES
from .silicon import Clusters, clusters_of

Floats = NDArray[np.float64]
AXES = (
    "tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer", "tensor_buffer", "vector_buffer",
    "global_bandwidth", "hbm_bandwidth", "links", "clock",
)  # fmt: skip
WHOLE = AXES[:8]
MOST_COMBINATIONS = 50_000_000
"""Columns of more take more memory than a small machine has."""
CHUNK = 1 << 20
"""Combinations built at a time: tens of MB."""
NEAR = 1e-12
"""Areas at the limit differ in the last bits."""


@dataclass(frozen=True, slots=True)
class Chips:
    """One array for each field of a chip, all of one length; bandwidths in bytes a second."""

    tensor_cores: Floats
    rows: Floats
    columns: Floats
    vector_cores: Floats
    lanes: Floats
    global_buffer: Floats
    tensor_buffer: Floats
    vector_buffer: Floats
    global_bandwidth: Floats
    hbm_bandwidth: Floats
    links: Floats
    clock: Floats
    area: Floats

    def __len__(self) -> int:
        return len(self.area)

    def taken(self, index: NDArray[Any]) -> "Chips":
        """The chips of ``index``."""
        return Chips(*(getattr(self, f.name)[index] for f in fields(self)))

    def words(self, at: int) -> str:
        """One of them in words."""
        t, r, c, v, lanes, g = (int(getattr(self, name)[at]) for name in AXES[:6])
        return f"{t} tensor cores of {r} x {c}, {v} vector cores of {lanes} lanes, {g / 2**20:g} MiB"


def areas(chips: Chips, process: Mapping[str, Any], base: Mapping[str, Any]) -> Floats:
    """mm2 of every chip: arrays, lanes, buffers, network, interfaces and a share for all else."""
    table, built, where = process["area"], base["silicon"], "area"
    cores, shared, hbm = (number(built[k], k) for k in ("cores_built", "global_buffer_built", "hbm_built"))

    def rate(name: str) -> float:
        return number(table[name], f"{where}.{name}")

    units = cores * chips.tensor_cores * (chips.rows * chips.columns * rate("mac_mm2"))
    lanes = cores * chips.vector_cores * (chips.lanes * rate("lane_mm2") + rate("vector_control_mm2"))
    own = [cores * chips.tensor_cores * curve(table["core_buffer"], chips.tensor_buffer, where)]
    own.append(cores * chips.vector_cores * curve(table["core_buffer"], chips.vector_buffer, where))
    kind = "cache" if base["global_buffer"]["cache"] else "scratchpad"
    memory = curve(table[kind], chips.global_buffer * shared, where)
    network = chips.global_bandwidth / chips.clock * rate("network_mm2_per_byte_per_cycle")
    faces = hbm * chips.hbm_bandwidth * rate("hbm_mm2_per_byte_per_s") + chips.links * rate("link_mm2_per_byte_per_s")
    return np.asarray((units + lanes + own[0] + own[1] + memory + network + faces) * (1 + rate("other_share")))


def chip_of(base: Mapping[str, Any]) -> Chips:
    """A chip given field by field, without its area."""
    tensor, vector = base["tensor_core"], base["vector_core"]
    values = {
        "tensor_cores": base["tensor_cores"], "rows": tensor["rows"], "columns": tensor["columns"],
        "vector_cores": base["vector_cores"], "lanes": vector["lanes"],
        "global_buffer": base["global_buffer"]["size_bytes"], "tensor_buffer": tensor["buffer"]["size_bytes"],
        "vector_buffer": vector["buffer"]["size_bytes"],
        "global_bandwidth": base["global_buffer"]["bandwidth_bytes_per_s"],
        "hbm_bandwidth": base["hbm"]["bandwidth_bytes_per_s"], "links": base["links"]["bandwidth_bytes_per_s"],
        "clock": base["clock_hz"],
    }  # fmt: skip
    own = {name: np.array([positive(value, f"chip.{name}")]) for name, value in values.items() if name != "links"}
    return Chips(**own, links=np.array([number(values["links"], "chip.links")]), area=np.zeros(1))


AnyChips = Chips | Clusters


@dataclass(frozen=True, slots=True)
class Space:
    """The chips of a space, how many combinations its axes have, and for each chip the place of the largest memory that
    it may have; -1: none."""

    chips: AnyChips
    combinations: int
    memory: NDArray[np.int64]


def axes_of(space: Mapping[str, Any]) -> dict[str, Floats]:
    """The values of every axis, in the fixed order of axes."""
    given, found = dict(space["axes"]), dict[str, Floats]()
    for name in AXES:
        if name in given:
            values = [positive(value, f"axes.{name}") for value in listed(given.pop(name), f"axes.{name}")]
            exact = name not in WHOLE or all(value == int(value) for value in values)
            require(bool(values) and exact, f"axes.{name}: a value is not whole")
            found[name] = np.array(values)
    require(not given, f"axes: {', '.join(given)} is not an axis")
    tied = dict(space["tied"])
    fine = all((name, to) in {("vector_cores", "tensor_cores"), ("lanes", "columns")} for name, to in tied.items())
    require(fine and not set(tied) & set(found), "tied: not one of the two ties that there are")
    require(set(AXES[:6]) <= set(found) | set(tied), "axes: one of the six that every space has is missing")
    return found


def _combined(space: Mapping[str, Any], axes: Mapping[str, Floats], start: int, end: int) -> Chips:
    places = np.unravel_index(np.arange(start, end), [len(values) for values in axes.values()])
    at = {name: values[place] for (name, values), place in zip(axes.items(), places, strict=True)}
    return chips_at(space, at, end - start)


def chips_at(space: Mapping[str, Any], at: dict[str, Floats], count: int) -> Chips:
    """Chips by the values of their axes, what is tied or follows from a rule put in; without their areas."""
    for name, to in space["tied"].items():
        at[name] = at[to]
    for name, units in (("tensor_buffer", at["rows"] * at["columns"]), ("vector_buffer", at["lanes"])):
        if name not in at:
            rule = space["core_buffers"]
            least, each = positive(rule["least"], "core_buffers"), positive(rule["bytes_per_unit"], "core_buffers")
            at[name] = np.floor(np.maximum(least, each * units))
    base = chip_of(space["base"])
    for name in AXES[8:]:
        at.setdefault(name, np.full(count, getattr(base, name)[0]))
    return Chips(**at, area=np.zeros(count))


def budget_of(space: Mapping[str, Any]) -> float:
    """mm2 that a chip may have."""
    if space["area_chip"] is None:
        return positive(space["keep"]["most_area"], "keep.most_area")
    cover(space["area_chip"].get("clusters") is None, "a budget of a chip of clusters")
    return float(areas(chip_of(space["area_chip"]), space["base"]["process"], space["area_chip"])[0])


def space_of(space: Mapping[str, Any], terms: Mapping[str, Any], memories: Sequence[int]) -> Space:
    """All chips of the space that a problem states, with its terms of ownership and its memories, ascending."""
    require(all(a < b for a, b in pairwise(memories)), "hbm_bytes: memories do not ascend")
    cover("axes" in space, "a space without axes")
    if space["base"].get("clusters") is not None:
        return Space(*clusters_of(space, terms, memories))
    limits, axes, pieces = limits_of(space, terms), axes_of(space), []
    cover("links" not in axes, "links as an axis")
    combinations = prod(len(values) for values in axes.values())
    cover(combinations <= MOST_COMBINATIONS, f"spaces of more than {MOST_COMBINATIONS:,} combinations")
    for start in range(0, combinations, CHUNK):
        pieces.append(limits.kept(_combined(space, axes, start, min(start + CHUNK, combinations))))
    chips = Chips(*(np.concatenate([getattr(piece, f.name) for piece in pieces]) for f in fields(Chips)))
    require(len(chips) > 0, "the space has no chip")
    return Space(chips, combinations, limits.memory(chips, memories))


@dataclass(frozen=True, slots=True)
class Limits:
    """The rules of a space: mm2, watts and dollars that a chip may have, infinite where there is no such rule, and the
    share of the mm2 that it must have."""

    space: Mapping[str, Any]
    terms: Mapping[str, Any]
    budget: float
    least: float
    watts: float
    usd: float

    def area(self, chips: Chips) -> Floats:
        return areas(chips, self.space["base"]["process"], self.space["base"])

    def power(self, chips: Chips) -> Floats:
        """Watts of chips that have their areas; 0 where nobody asks."""
        return np.zeros(len(chips)) if self.watts == np.inf else design_watts(chips, self.space["base"]["process"])

    def price(self, area: Floats, hbm_bytes: float) -> Floats:
        """Dollars of chips of so many mm2; 0 where nobody asks."""
        return (
            np.zeros(len(area)) if self.usd == np.inf else making_usd(area, self.space["base"], self.terms, hbm_bytes)
        )

    def kept(self, chips: Chips) -> Chips:
        """Those of some combinations that the rules keep, with their areas."""
        chips = replace(chips, area=self.area(chips))
        enough = chips.area >= self.least * self.budget
        if self.space["keep"]["smaller_with_one_core"]:
            enough |= (chips.tensor_cores == 1) | (chips.vector_cores == 1)
        chips = chips.taken(enough & (chips.area <= self.budget * (1 + NEAR)))
        chips = chips.taken(self.power(chips) <= self.watts * (1 + NEAR))
        return chips.taken(self.price(chips.area, 0.0) <= self.usd * (1 + NEAR))

    def memory(self, chips: Chips, memories: Sequence[int]) -> NDArray[np.int64]:
        """The place of the largest memory that each may have, -1: none."""
        most = np.full(len(chips), -1)
        for at, size in enumerate(memories):
            most[self.price(chips.area, float(size)) <= self.usd * (1 + NEAR)] = at
        return most


def limits_of(space: Mapping[str, Any], terms: Mapping[str, Any]) -> Limits:
    """The rules that a space of chips of cores states."""
    keep = space["keep"]
    watts = np.inf if keep["most_power"] is None else positive(keep["most_power"], "keep.most_power")
    usd = np.inf if keep["most_usd"] is None else positive(keep["most_usd"], "keep.most_usd")
    least = number(keep["least_share"], "keep.least_share", 0, 1)
    return Limits(space, terms, budget_of(space), least, watts, usd)


def chip_named(space: Mapping[str, Any], terms: Mapping[str, Any], memories: Sequence[int], said: Any) -> Space:
    """The one chip that an answer names, of a space that is too large to look at every chip."""
    require(all(a < b for a, b in pairwise(memories)), "hbm_bytes: memories do not ascend")
    named, axes = only(said, "answer.chip", AXES), axes_of(space)
    there = all(positive(named[name], f"answer.chip.{name}") in values for name, values in axes.items())
    require(there, "answer.chip: the space has no such chip")
    chip = chips_at(space, {name: np.array([float(named[name])]) for name in axes}, 1)
    limits = limits_of(space, terms)
    chip = limits.kept(chip)
    same = len(chip) == 1 and all(float(getattr(chip, name)[0]) == named[name] for name in AXES)
    require(same, "answer.chip: the space has no such chip")
    combinations = prod(len(values) for values in axes.values())
    return Space(chip, combinations, limits.memory(chip, memories))


def chip_at(space: Space, said: Any) -> NDArray[np.int64]:
    """The place of the chip that an answer names by the values of its axes."""
    named = only(said, "answer.chip", CLUSTER_AXES if isinstance(space.chips, Clusters) else AXES)
    same = np.ones(len(space.chips), bool)
    for name, value in named.items():
        same &= getattr(space.chips, name) == value
    require(bool(same.any()), "answer.chip: the space has no such chip")
    return np.flatnonzero(same)[:1]
