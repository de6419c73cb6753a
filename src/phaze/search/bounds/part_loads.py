r"""What no batch of a graph undercuts on a chip, from what its parts take: before any pass is
considered on the chip.

Chips are made of few parts: the 29,360 of the paper's space of 4,186 tensor and 697 vector parts.
With L and P the seconds of a work's products (or of its vector work) on one core and on all T (or
V) cores, a pass takes at least

    collectives that run alone  +  max( sum over works of min(L / T, P) on its tensor part,
                                        the same sum of vector work on its vector part )

and whatever its mappings and buffers are, with l lanes a vector core, c R x C arrays and clock f
(:func:`peak_floors`),

    collectives that run alone  +  max( MACs / (T c R C f share),  lane operations / (V l f) )

The first is its load with start-ups left out, and each operator counted by one of its sides: a
fused one takes no less than either, on min(T, V) cores no less than on all. Sums are those of
parts; a chip takes two of them. A measured attention kernel counts as nothing, and so does what is
added beside a pass (host, gradient accumulation). So both are lower bounds on the load of
:func:`phaze.schedule.bounds.chip_bounds`, and with it on the times of layers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.table import Column, CostTable
from phaze.evaluate.lowered_pass import LoweredPass
from phaze.search.bounds.shape_bounds import SLACK
from phaze.search.rank_graph import RankGraph
from phaze.search.task import ModelTask, on_all_devices

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def counts_parts(graph: RankGraph) -> bool:
    """Whether the loads of parts say anything of a graph's passes: where these need schedules, and
    no collective runs in pieces beside works."""
    if not all(layer.rule.one_core for layer in graph.layers):
        return False
    units = (
        unit
        for layer in graph.layers
        for lowered in (layer.forward, layer.backward)
        for unit in lowered.units
    )
    return all(
        len(unit.places) == 1 and (unit.core == "none" or not unit.network) for unit in units
    )


def _both(alone: Integers, spread: Integers) -> tuple[Integers, Integers]:
    """A chip of each distinct pair of parts, and which of the pairs every chip has."""
    keys = alone * (int(spread.max(initial=0)) + 1) + spread
    _, first, of = np.unique(keys, return_index=True, return_inverse=True)
    return first, of


class PartLoads:
    """The loads of a graph's passes on the parts of chips."""

    def __init__(self, table: CostTable, chips: ChipSet) -> None:
        self.table, alone, spread = table, table.one_core, table.all_cores
        tensor, self.tensor_of = _both(alone.tensor_part_of, spread.tensor_part_of)
        vector, self.vector_of = _both(alone.vector_part_of, spread.vector_part_of)
        self.tensor_s, self.vector_s = (
            np.zeros((len(table.works), len(first))) for first in (tensor, vector)
        )

        def least(
            alone_s: Floats, spread_s: Floats, parts: tuple[Integers, Integers], cores: Floats
        ) -> Floats:
            return np.minimum(alone_s[parts[0]] / cores, spread_s[parts[1]])

        for row, work in enumerate(table.works):
            if work.attention is not None and alone.constants.attention is not None:
                continue
            if work.core in ("tensor", "both"):
                part_places = alone.tensor_part_of[tensor], spread.tensor_part_of[tensor]
                sides = _sides(alone, spread, row, True)
                self.tensor_s[row] = least(*sides, part_places, chips.tensor_cores[tensor])
            if work.core in ("vector", "both"):
                part_places = alone.vector_part_of[vector], spread.vector_part_of[vector]
                sides = _sides(alone, spread, row, False)
                self.vector_s[row] = least(*sides, part_places, chips.vector_cores[vector])

    def pass_s(self, lowered: LoweredPass, rows: Sequence[int]) -> Floats:
        """What a pass takes at least on every chip; ``rows`` are its works in the table."""
        places, waits_s = list(rows), _waits_s(lowered)
        tensor_s, vector_s = self.tensor_s[places].sum(axis=0), self.vector_s[places].sum(axis=0)
        return np.asarray(waits_s + np.maximum(tensor_s[self.tensor_of], vector_s[self.vector_of]))


def _sides(alone: Column, spread: Column, row: int, tensor: bool) -> tuple[Floats, Floats]:
    if tensor:
        return alone.tensor_parts_s(row), spread.tensor_parts_s(row)
    return alone.vector_parts_s(row), spread.vector_parts_s(row)


def _waits_s(lowered: LoweredPass) -> float:
    """Collectives that run alone."""
    if lowered.rule.network_apart:
        return 0.0
    return sum(
        lowered.waits_s[place]
        for unit in lowered.units
        if unit.core == "none"
        for place in unit.places
    )


def peak_floors(task: ModelTask, graph: RankGraph, chips: ChipSet) -> Floats:
    """Seconds that no batch of a graph undercuts on every chip, by its peak rates."""
    constants = task.constants
    clock_hz = chips.running_hz(constants)
    macs_per_s = (
        chips.tensor_cores * chips.columns.macs * clock_hz * chips.sustained_share(constants)
    )
    lanes_per_s = chips.vector_cores * chips.columns.lanes * clock_hz
    seconds = list[Floats]()
    for layer in graph.layers:
        layer_s = np.zeros(len(chips))
        for lowered in (layer.forward, layer.backward):
            unfused = [
                work
                for work in lowered.works
                if work.attention is None or constants.attention is None
            ]
            rates = constants.rates, constants.grouped_share
            macs = sum(product.packed(*rates).macs for work in unfused for product in work.products)
            steps = sum(
                work.vector.operations * work.vector.elements
                for work in unfused
                if work.vector is not None
            )
            layer_s = (
                layer_s + _waits_s(lowered) + np.maximum(macs / macs_per_s, steps / lanes_per_s)
            )
        seconds.append(layer_s)
    return on_all_devices(task, graph, np.array(seconds)) / task.training.devices * (1 - SLACK)


def part_floors(task: ModelTask, graph: RankGraph, loads: PartLoads) -> Floats:
    """Seconds that no batch of a graph undercuts on every chip; ``loads`` are of the works of all
    its passes."""
    first, seconds = 0, list[Floats]()
    for layer in graph.layers:
        layer_s = np.zeros(len(loads.tensor_of))
        for index, lowered in enumerate(layer.passes):
            if index < 2 and lowered.works:  # forward and backward come first
                layer_s = layer_s + loads.pass_s(
                    lowered, loads.table.rows[first : first + len(lowered.works)]
                )
            first += len(lowered.works)
        seconds.append(layer_s)
    return on_all_devices(task, graph, np.array(seconds)) / task.training.devices * (1 - SLACK)
