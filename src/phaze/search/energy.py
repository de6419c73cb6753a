r"""The energy of a plan under rules ``icml24``: joules of a batch by component, and what no plan can undercut.

Operator i of a pass takes J_i joules beyond static power, spread or on one core as its schedule runs it, by component
(:mod:`phaze.cost.energy`). With j the joules a byte of a link, a plan of stages X on a(X) devices each, d copies and M
microbatches takes

    layers     M  sum over X of a(X) ( sum of J over both passes of its layers, the forward one again if X recomputes )
    transfers  M  sum over edges between stages of 2 |e| a(stage it enters) j              there, and its gradient back
    synchronisation   4 (d - 1) sum over X of a(X) w(X) j                                  every stage, all copies
    static     K s T                                                                       all K devices, all the time

Every device of a stage runs its layers, so a layer that is not split is repeated on the a(X) devices. The least over
both ways of every operator, without the second forward pass, transfers and synchronisation, is what no plan of the
graph undercuts (:func:`dynamic_floors`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from phaze.cost.energy import Energies, energies
from phaze.cost.parts import ChipArrays
from phaze.cost.table import CostTable
from phaze.evaluate.flow import Prepared, Training
from phaze.evaluate.passes import Pass
from phaze.hardware.technology import EnergyTable
from phaze.placement.problem import Plan
from phaze.schedule.problem import Schedule

Floats = NDArray[np.float64]
COMPONENTS = tuple(f.name for f in fields(Energies) if f.name != "static")
LINKS = COMPONENTS.index("links")


@dataclass(frozen=True, slots=True)
class Electricity:
    """What energies depend on beside the chip: the technology's table and the job's link."""

    table: EnergyTable
    link_bytes_per_s: float


def spread_of(schedule: Schedule) -> bytes:
    """Which operators of a pass its schedule spreads, a byte each."""
    return bytes(slot.spread for slot in schedule.slots)


def _by_component(
    table: CostTable, row: int, spread: bool, chips: ChipArrays, electricity: Electricity
) -> tuple[Floats, ...]:
    column = table.one_core
    if spread:
        column = table.paired if table.works[row].core == "both" else table.all_cores
    found = energies(column, row, chips, electricity.table, np.zeros(len(chips)))
    return tuple(getattr(found, name) for name in COMPONENTS)


def _sent_j(one: Pass, at: int, electricity: Electricity) -> float:
    """What a collective's bytes take on the links."""
    return one.network_s[at] * electricity.link_bytes_per_s * electricity.table.link_j_per_byte


def pass_floors(one: Pass, table: CostTable, first: int, chips: ChipArrays, electricity: Electricity) -> Floats:
    """The least joules of a pass on every chip, each operator in its thriftier way."""
    total: Floats = np.zeros(len(chips))
    known: dict[int, Floats] = {}
    for at in range(len(one.works)):
        row = table.rows[first + at]
        if one.cores[at] == "none":
            total = total + _sent_j(one, at, electricity)
            continue
        if row not in known:
            one_core, spread = (np.stack(_by_component(table, row, way, chips, electricity)) for way in (False, True))
            known[row] = np.minimum(one_core.sum(axis=0), spread.sum(axis=0))
        total = total + known[row]
    return total


def pass_joules(
    one: Pass, table: CostTable, first: int, chip: ChipArrays, electricity: Electricity, spread: bytes
) -> Floats:
    """Joules of a pass on one chip by component, as its schedule runs it."""
    total: Floats = np.zeros(len(COMPONENTS))
    for at in range(len(one.works)):
        if one.cores[at] == "none":
            total[LINKS] += _sent_j(one, at, electricity)
        else:
            row = table.rows[first + at]
            total += np.array([values[0] for values in _by_component(table, row, bool(spread[at]), chip, electricity)])
    return total


@dataclass(frozen=True, slots=True)
class LayerJoules:
    """Joules of one layer by pass and component, on one device."""

    forward_j: Floats
    backward_j: Floats


def layer_joules(
    model: Prepared, table: CostTable, chip: ChipArrays, electricity: Electricity, spreads: Sequence[bytes]
) -> tuple[LayerJoules, ...]:
    """The joules of all distinct layers of a graph on one chip; ``spreads`` in the order of its passes."""
    found, first = [], 0
    for one, spread in zip(model.passes, spreads, strict=True):
        found.append(pass_joules(one, table, first, chip, electricity, spread))
        first += len(one.works)
    return tuple(LayerJoules(*pair) for pair in zip(found[::2], found[1::2], strict=True))


def plan_joules(
    model: Prepared, plan: Plan, layers: Sequence[LayerJoules], electricity: Electricity, training: Training
) -> Floats:
    """Joules of a batch by component, static power left out."""
    total: Floats = np.zeros(len(COMPONENTS))
    stage_of, sent_bytes = {}, 0.0
    rounds = training.microbatches(model.microbatch)
    for at, stage in enumerate(plan.stages):
        for place in stage.layers:
            own = layers[model.calls[place]]
            forward = 2 * own.forward_j if stage.recompute == "full" else own.forward_j
            total = total + rounds * stage.devices * (forward + own.backward_j)
            sent_bytes += 4 * (plan.data - 1) * stage.devices * model.layers[model.calls[place]].parameter_bytes
            stage_of[place] = at
    for tail, head, size in model.edges:
        if stage_of[tail] != stage_of[head]:
            sent_bytes += 2 * rounds * size * plan.stages[stage_of[head]].devices
    total[LINKS] += sent_bytes * electricity.table.link_j_per_byte
    return total


def dynamic_floors(model: Prepared, layers_j: Floats, training: Training) -> Floats:
    """What no plan of a graph undercuts, from the least joules of its layers [layers, chips], for every chip."""
    rounds, total = training.microbatches(model.microbatch), np.zeros(layers_j.shape[1])
    for kind, layer in enumerate(model.layers):
        devices = model.width if layer.sharded else 1
        total = total + rounds * devices * model.calls.count(kind) * layers_j[kind]
    return total
