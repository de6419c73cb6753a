"""Seconds of the distinct layers of a rank on every chip: one table from the passes of layers to plans and bounds.

    forward     the forward pass
    backward    the backward pass as one schedule, and a N / HBM bandwidth to add the gradients of N parameters to those
                of earlier microbatches, a the stack's bytes a parameter
    weight      of the backward, gradients of weights, where the stack runs the two halves of it at different times: its
                share of both halves, b w / (i + w), w with the adding
    selective   what selective recomputing runs again, at most the forward pass
    full        what full recomputing runs again: the forward pass, or where the stack trims it what backward reads
    more        what modes between them run again, and what is exposed of copies to the host

Where operators run one after another and the host is not seen, weight is w itself. Collectives that a stack runs behind
weight gradients shorten both halves in proportion, though on their own they would be seen.

Each pass is the soft maximum of the device's schedule and the host (:mod:`phaze.evaluate.ruled_pass`). Under rules
serial and companions the device's time is a formula; under others a proved schedule on one chip, a bound on many
(:meth:`phaze.evaluate.ruled_pass.RuledPass.bound`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.layer_passes import RuledLayer
from phaze.evaluate.ruled_pass import RuledPass, Times, WorkTimes, work_times
from phaze.hardware.calibration import Constants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Device seconds of a pass on every chip, of its units' times: by a formula, by schedules, or a bound.
DeviceSeconds = Callable[[RuledPass, Times], Floats]
# Chips whose times are worked out in one piece, to bound memory.
CHUNK = 65_536
# The arrays of a table, all with chips as their last axis.
ARRAYS = (
    "forward_s", "backward_s", "selective_s", "full_s", "more_s", "hbm_bytes_per_s", "dynamic_j", "weight_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LayerTable:
    """Seconds of layers, [layers, chips]; of the modes of recompute between selective and full [modes, layers, chips];
    the HBM bandwidth that vector work reaches by chip; where it counts, least joules of both passes; where a stack
    splits backward passes, gradients of weights."""

    layers: tuple[RuledLayer, ...]
    forward_s: Floats
    backward_s: Floats
    selective_s: Floats
    full_s: Floats
    more_s: Floats
    hbm_bytes_per_s: Floats
    dynamic_j: Floats | None = None
    weight_s: Floats | None = None

    def taken(self, index: Integers) -> "LayerTable":
        """Those of the chips of ``index``."""
        arrays = {name: None if array is None else array[..., index] for name, array in self._arrays()}
        return LayerTable(self.layers, **arrays)  # type: ignore[arg-type]

    def _arrays(self) -> list[tuple[str, Floats | None]]:
        return [(name, getattr(self, name)) for name in ARRAYS]

    def put(self, index: Integers, other: "LayerTable") -> None:
        """Write those of some chips."""
        for name, array in self._arrays():
            new = getattr(other, name)
            if array is not None and new is not None:
                array[..., index] = new

    def forget(self) -> None:
        """Make all of them infinite: of no chip is anything known."""
        for _, array in self._arrays():
            if array is not None:
                array[...] = np.inf

    def put_layer(self, kind: int, index: Integers, passes_s: Sequence[Floats]) -> None:
        """Write a layer on some chips, of the seconds of its passes in their order."""
        layer = self.layers[kind]
        forward, backward, selective = passes_s[:3]
        adding = layer.accumulation_bytes * layer.parameters / self.hbm_bytes_per_s[index]
        full = forward if layer.full is None else np.minimum(forward, passes_s[3])
        self.forward_s[kind, index] = forward
        self.backward_s[kind, index] = backward + adding
        self.selective_s[kind, index] = np.minimum(forward, selective)
        self.full_s[kind, index] = full
        place = 3 + (layer.full is not None)
        for number, mode in enumerate(layer.more):
            again = mode.part * full if mode.rerun is None else np.minimum(forward, passes_s[place])
            self.more_s[number, kind, index] = mode.with_copies(again, forward + backward)
            place += mode.rerun is not None
        if self.weight_s is not None:
            inputs, weights = passes_s[-2], passes_s[-1] + adding
            both = inputs + weights
            share = np.divide(weights, both, out=np.zeros_like(both), where=both > 0)
            self.weight_s[kind, index] = (backward + adding) * share


def empty_table(layers: Sequence[RuledLayer], chips: int, joules: bool = False) -> LayerTable:
    """Room for the seconds of layers on so many chips."""
    shape = (len(layers), chips)
    modes = len(layers[0].more) if layers else 0
    split = bool(layers) and layers[0].halves is not None
    forward_s, backward_s, selective_s, full_s = (np.zeros(shape) for _ in range(4))
    more_s, hbm_bytes_per_s = np.zeros((modes, *shape)), np.zeros(chips)
    dynamic_j = np.zeros(shape) if joules else None
    weight_s = np.zeros(shape) if split else None
    seconds = forward_s, backward_s, selective_s, full_s, more_s
    return LayerTable(tuple(layers), *seconds, hbm_bytes_per_s, dynamic_j, weight_s)


def layer_works(layers: Sequence[RuledLayer], chips: ChipSet, constants: Constants) -> WorkTimes:
    """What the works of some layers of one rule take on every chip, whatever network joins them."""
    works = [work for layer in layers for one in layer.passes for work in one.works]
    if not works:
        nothing = np.zeros((0, len(chips)))
        return WorkTimes(nothing, nothing, nothing)
    return work_times(works, chips, constants, layers[0].rule)


def layer_table(
    layers: Sequence[RuledLayer],
    chips: ChipSet,
    constants: Constants,
    device_s: DeviceSeconds,
    costs: WorkTimes | None = None,
) -> LayerTable:
    """Some layers of one rule on every chip, each distinct work costed once; ``costs`` are those of
    :func:`layer_works` where they are known."""
    table, count = empty_table(layers, len(chips)), len(chips)
    table.hbm_bytes_per_s[:] = chips.hbm_bytes_per_s * constants.vector_hbm_share
    if not any(one.works for layer in layers for one in layer.passes):
        return table
    for start in range(0, count, CHUNK):
        index = np.arange(start, min(start + CHUNK, count))
        some = chips if len(index) == count else chips.taken(index)
        known = costs if costs is None or len(index) == count else costs.taken(index)
        works, first = layer_works(layers, some, constants) if known is None else known, 0
        for kind, layer in enumerate(layers):
            passes_s = []
            for one in layer.passes:
                device = device_s(one, one.times(works, first, some)) if one.works else np.zeros(len(some))
                passes_s.append(one.with_host(device))
                first += len(one.works)
            table.put_layer(kind, index, passes_s)
    return table
