"""Seconds of the distinct layers of a rank on every chip: one table from the passes of layers to
plans and bounds.

    forward     the forward pass
    backward    the backward pass as one schedule, and a N / HBM bandwidth to add the gradients of N
                parameters to those of earlier microbatches, a the stack's bytes a parameter
    weight      of the backward, gradients of weights, where the stack runs the two halves of it at
                different times: its share of both halves, b w / (i + w), w with the adding
    again       what a mode of recompute runs again: selective, at most the forward pass; those
                between, with what is exposed of copies to the host; full, the forward pass or where
                the stack trims it what backward reads
    beside      what both passes take longer with no other microbatch behind whose work exchanges of
                experts run

Where operators run one after another and the host is not seen, weight is w itself. Collectives that
a stack runs behind weight gradients shorten both halves in proportion, though on their own they
would be seen.

Each pass is the soft maximum of the device's schedule and the host
(:mod:`phaze.evaluate.lowered_pass`). Under rules serial and companions the device's time is a
formula; under others a proved schedule on one chip, a bound on many
(:meth:`phaze.evaluate.lowered_pass.LoweredPass.bound`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.lowered_layer import LoweredLayer
from phaze.evaluate.lowered_pass import LoweredPass, Times, WorkTimes, work_times
from phaze.hardware.calibration import Constants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Device seconds of a pass on every chip, of its units' times: by a formula, by schedules, or a
# bound.
DeviceSeconds = Callable[[LoweredPass, Times], Floats]
# Chips whose times are computed in one piece, to bound memory.
CHUNK = 65_536
# The arrays of a table, all with chips as their last axis.
ARRAYS = (
    "forward_s", "backward_s", "again_s", "hbm_bytes_per_s", "dynamic_j", "weight_s",
    "beside_s",
)  # fmt: skip
# The places of these modes of recompute in ``again_s``, as in the layers' ``modes``; all others
# stand between.
SELECTIVE, FULL = 0, -1
# The passes of a layer that come first, forward and backward.
BOTH = 2


@dataclass(frozen=True, slots=True)
class LayerTable:
    """Seconds of layers, [layers, chips], and of what modes of recompute run again, [modes, layers,
    chips]; the HBM bandwidth that vector work reaches by chip; where it counts, least joules of
    both passes; where a stack splits backward passes, gradients of weights; where exchanges of experts run behind
    another microbatch, what both passes take longer without one. The bytes of a layer
    are the same on every chip and stand in ``layers``."""

    layers: tuple[LoweredLayer, ...]
    forward_s: Floats
    backward_s: Floats
    again_s: Floats
    hbm_bytes_per_s: Floats
    dynamic_j: Floats | None = None
    weight_s: Floats | None = None
    beside_s: Floats | None = None

    def taken(self, index: Integers) -> "LayerTable":
        """Those of the chips of ``index``."""
        arrays = {
            name: None if array is None else array[..., index] for name, array in self._arrays()
        }
        return LayerTable(self.layers, **arrays)  # type: ignore[arg-type]

    def column(self, chip: int) -> "LayerTable":
        """The layers on one chip."""
        return self.taken(np.array([chip]))

    def with_modes(self, places: Sequence[int]) -> "LayerTable":
        """With some of the modes between selective and full alone, by their places."""
        chosen = [SELECTIVE, *places, FULL]
        layers = tuple(
            replace(layer, modes=tuple(layer.modes[place] for place in chosen))
            for layer in self.layers
        )
        return replace(self, layers=layers, again_s=self.again_s[chosen])

    def rows(self) -> list["LayerTable"]:
        """Each layer as a table of its own."""
        row_slices = [np.s_[kind : kind + 1] for kind in range(len(self.layers))]
        return [
            LayerTable(
                self.layers[row],
                self.forward_s[row],
                self.backward_s[row],
                self.again_s[:, row],
                self.hbm_bytes_per_s,
                None if self.dynamic_j is None else self.dynamic_j[row],
                None if self.weight_s is None else self.weight_s[row],
                None if self.beside_s is None else self.beside_s[row],
            )
            for row in row_slices
        ]

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
        forward, backward, selective_s, *reruns_s = passes_s
        _, *between, full = layer.modes
        left = iter(reruns_s)
        adding = layer.accumulation_bytes * layer.parameters / self.hbm_bytes_per_s[index]
        full_s = forward if full.rerun is None else np.minimum(forward, next(left))
        self.forward_s[kind, index] = forward
        self.backward_s[kind, index] = backward + adding
        self.again_s[SELECTIVE, kind, index] = np.minimum(forward, selective_s)
        self.again_s[FULL, kind, index] = full_s
        for number, mode in enumerate(between, 1):
            again = mode.part * full_s if mode.rerun is None else np.minimum(forward, next(left))
            self.again_s[number, kind, index] = mode.with_copies(again, forward + backward)
        if self.weight_s is not None:
            inputs, weights = passes_s[-2], passes_s[-1] + adding
            both = inputs + weights
            share = np.divide(weights, both, out=np.zeros_like(both), where=both > 0)
            self.weight_s[kind, index] = (backward + adding) * share


def empty_table(layers: Sequence[LoweredLayer], chips: int, joules: bool = False) -> LayerTable:
    """Room for the seconds of layers on so many chips."""
    shape = (len(layers), chips)
    modes = len(layers[0].modes) if layers else 2
    split = bool(layers) and layers[0].halves is not None
    return LayerTable(
        tuple(layers),
        forward_s=np.zeros(shape),
        backward_s=np.zeros(shape),
        again_s=np.zeros((modes, *shape)),
        hbm_bytes_per_s=np.zeros(chips),
        dynamic_j=np.zeros(shape) if joules else None,
        weight_s=np.zeros(shape) if split else None,
        beside_s=np.zeros(shape) if any(map(_runs_beside, layers)) else None,
    )


def _runs_beside(layer: LoweredLayer) -> bool:
    return layer.forward.alone is not None or layer.backward.alone is not None


def stacked(tables: Sequence[LayerTable]) -> LayerTable:
    """The layers of several tables on the same chips, with the same modes, one after another."""
    first = tables[0]
    return LayerTable(
        tuple(layer for table in tables for layer in table.layers),
        np.concatenate([table.forward_s for table in tables]),
        np.concatenate([table.backward_s for table in tables]),
        np.concatenate([table.again_s for table in tables], axis=1),
        first.hbm_bytes_per_s,
        weight_s=None
        if first.weight_s is None
        else np.concatenate([table.weight_s for table in tables]),
        beside_s=_joined(tables),
    )


def _joined(tables: Sequence[LayerTable]) -> Floats | None:
    if all(table.beside_s is None for table in tables):
        return None
    return np.concatenate(
        [
            np.zeros_like(table.forward_s) if table.beside_s is None else table.beside_s
            for table in tables
        ]
    )


def layer_works(layers: Sequence[LoweredLayer], chips: ChipSet, constants: Constants) -> WorkTimes:
    """What the works of some layers of one rule take on every chip, whatever network joins them."""
    works = [work for layer in layers for layer_pass in layer.passes for work in layer_pass.works]
    if not works:
        nothing = np.zeros((0, len(chips)))
        return WorkTimes(nothing, nothing, nothing)
    return work_times(works, chips, constants, layers[0].rule)


def layer_table(
    layers: Sequence[LoweredLayer],
    chips: ChipSet,
    constants: Constants,
    device_s: DeviceSeconds,
    costs: WorkTimes | None = None,
) -> LayerTable:
    """Some layers of one rule on every chip, each distinct work costed once; ``costs`` are those of
    :func:`layer_works` where they are known."""
    table, count = empty_table(layers, len(chips)), len(chips)
    table.hbm_bytes_per_s[:] = chips.hbm_bytes_per_s * constants.vector_hbm_share
    if not any(layer_pass.works for layer in layers for layer_pass in layer.passes):
        return table
    for start in range(0, count, CHUNK):
        index = np.arange(start, min(start + CHUNK, count))
        some = chips if len(index) == count else chips.taken(index)
        shared = costs if costs is None or len(index) == count else costs.taken(index)
        works, first = layer_works(layers, some, constants) if shared is None else shared, 0
        for kind, layer in enumerate(layers):
            passes_s = []
            for layer_pass in layer.passes:
                times = layer_pass.times(works, first, some)
                device = device_s(layer_pass, times) if layer_pass.works else np.zeros(len(some))
                passes_s.append(layer_pass.with_host(device))
                first += len(layer_pass.works)
                if table.beside_s is not None and layer_pass.alone and len(passes_s) <= BOTH:
                    waited = layer_pass.with_host(device_s(layer_pass.alone, times))
                    table.beside_s[kind, index] += waited - passes_s[-1]
            table.put_layer(kind, index, passes_s)
    return table
