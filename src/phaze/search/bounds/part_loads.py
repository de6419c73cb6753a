r"""What no batch of a graph undercuts on a chip, from what its parts take: before any pass is
looked at on the chip.

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
        for one in (layer.forward, layer.backward)
        for unit in one.units
    )
    return all(
        len(unit.places) == 1 and (unit.core == "none" or not unit.network) for unit in units
    )


def _both(one: Integers, spread: Integers) -> tuple[Integers, Integers]:
    """A chip of each distinct pair of parts, and which of the pairs every chip has."""
    keys = one * (int(spread.max(initial=0)) + 1) + spread
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
            one: Floats, every: Floats, parts: tuple[Integers, Integers], cores: Floats
        ) -> Floats:
            return np.minimum(one[parts[0]] / cores, every[parts[1]])

        for row, work in enumerate(table.works):
            if work.attention is not None and alone.constants.attention is not None:
                continue
            if work.core in ("tensor", "both"):
                own = alone.tensor_part_of[tensor], spread.tensor_part_of[tensor]
                sides = _sides(alone, spread, row, True)
                self.tensor_s[row] = least(*sides, own, chips.tensor_cores[tensor])
            if work.core in ("vector", "both"):
                own = alone.vector_part_of[vector], spread.vector_part_of[vector]
                sides = _sides(alone, spread, row, False)
                self.vector_s[row] = least(*sides, own, chips.vector_cores[vector])

    def pass_s(self, one: LoweredPass, rows: Sequence[int]) -> Floats:
        """What a pass takes at least on every chip; ``rows`` are its works in the table."""
        own, waits_s = list(rows), _waits_s(one)
        tensor_s, vector_s = self.tensor_s[own].sum(axis=0), self.vector_s[own].sum(axis=0)
        return np.asarray(waits_s + np.maximum(tensor_s[self.tensor_of], vector_s[self.vector_of]))


def _sides(alone: Column, spread: Column, row: int, tensor: bool) -> tuple[Floats, Floats]:
    if tensor:
        return alone.tensor_parts_s(row), spread.tensor_parts_s(row)
    return alone.vector_parts_s(row), spread.vector_parts_s(row)


def _waits_s(one: LoweredPass) -> float:
    """Collectives that run alone."""
    if one.rule.network_apart:
        return 0.0
    return sum(
        one.waits_s[place] for unit in one.units if unit.core == "none" for place in unit.places
    )


def peak_floors(task: ModelTask, graph: RankGraph, chips: ChipSet) -> Floats:
    """Seconds that no batch of a graph undercuts on every chip, by its peak rates."""
    constants = task.training.constants
    clock_hz = chips.running_hz(constants)
    macs_per_s = (
        chips.tensor_cores * chips.columns.macs * clock_hz * chips.sustained_share(constants)
    )
    lanes_per_s = chips.vector_cores * chips.columns.lanes * clock_hz
    seconds = list[Floats]()
    for layer in graph.layers:
        found = np.zeros(len(chips))
        for one in (layer.forward, layer.backward):
            own = [
                work for work in one.works if work.attention is None or constants.attention is None
            ]
            rates = constants.rates, constants.grouped_share
            macs = sum(product.packed(*rates).macs for work in own for product in work.products)
            steps = sum(
                work.vector.operations * work.vector.elements
                for work in own
                if work.vector is not None
            )
            found = found + _waits_s(one) + np.maximum(macs / macs_per_s, steps / lanes_per_s)
        seconds.append(found)
    return on_all_devices(task, graph, np.array(seconds)) / task.training.devices * (1 - SLACK)


def part_floors(task: ModelTask, graph: RankGraph, loads: PartLoads) -> Floats:
    """Seconds that no batch of a graph undercuts on every chip; ``loads`` are of the works of all
    its passes."""
    first, seconds = 0, list[Floats]()
    for layer in graph.layers:
        found = np.zeros(len(loads.tensor_of))
        for at, one in enumerate(layer.passes):
            if at < 2 and one.works:  # forward and backward come first
                found = found + loads.pass_s(one, loads.table.rows[first : first + len(one.works)])
            first += len(one.works)
        seconds.append(found)
    return on_all_devices(task, graph, np.array(seconds)) / task.training.devices * (1 - SLACK)
