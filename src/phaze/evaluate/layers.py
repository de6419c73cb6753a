"""The layers of a model on a chip, as a placement asks for them: seconds, bytes, and what recomputing costs.

The formulas are those of :mod:`phaze.evaluate.serial`, for one chip.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays, chip_arrays
from phaze.cost.table import cost_works
from phaze.evaluate.serial import Machine, layer_seconds, serial_layer, serial_pass
from phaze.graph.ir import Layer, Model, OperatorGraph
from phaze.hardware.calibration import Basis, Constants, constants_of
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.stack import Stack

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """Where layers run: everything that their times depend on."""

    chip: Chip
    cluster: Cluster
    stack: Stack
    basis: Basis = "calibrated"

    @property
    def machine(self) -> Machine:
        return Machine(self.cluster, self.stack, self.basis)

    @property
    def constants(self) -> Constants:
        return constants_of(self.chip.calibration, self.basis, "training")

    @property
    def hbm_bytes_per_s(self) -> float:
        """HBM bandwidth that vector work reaches."""
        return self.chip.hbm.bandwidth_bytes_per_s * self.constants.vector_hbm_share


@dataclass(frozen=True, slots=True)
class LayerCost:
    """One distinct layer: seconds of its passes and of what recomputing runs again, and its sizes on one device."""

    name: str
    forward_s: float
    backward_s: float
    selective_s: float
    full_s: float
    parameters: int
    saved_bytes: int
    selective_bytes: int
    kept_bytes: int
    sharded: bool


def collective_seconds(graph: OperatorGraph, setting: Setting) -> Floats:
    """Seconds of every operator that is a collective, before anything hides it; 0 of all others."""
    return serial_pass(graph, setting.machine).waits_s


def hidden_seconds(
    graph: OperatorGraph, setting: Setting, times: Floats, waits: Floats, hides: bool
) -> dict[int, float]:
    """By the place of a collective, how much of it products run beside; ``times`` and ``waits`` of all operators."""
    found = serial_pass(graph, setting.machine, hides).hidden_s(times[:, None], waits)
    return {at: float(hidden[0]) for at, hidden in found.items()}


def pass_seconds(graph: OperatorGraph, setting: Setting, chips: ChipArrays, hides: bool = False) -> float:
    """Seconds of one pass."""
    if not graph.operators:
        return 0.0
    one = serial_pass(graph, setting.machine, hides)
    return float(one.on(cost_works(one.works, chips, setting.constants).times_s())[0])


def layer_cost(layer: Layer, setting: Setting, chips: ChipArrays) -> LayerCost:
    """What one layer takes in a setting."""
    serial = serial_layer(layer, setting.machine)
    times = [cost_works(one.works, chips, setting.constants).times_s() for one in serial.passes]
    found = layer_seconds(serial, times, np.array([setting.hbm_bytes_per_s]))
    return LayerCost(
        layer.name,
        float(found.forward_s[0]),
        float(found.backward_s[0]),
        float(found.selective_s[0]),
        full_s=float(found.full_s[0]),
        parameters=serial.parameters,
        saved_bytes=serial.saved_bytes,
        selective_bytes=serial.selective_bytes,
        kept_bytes=serial.kept_bytes,
        sharded=layer.sharded,
    )


def layer_costs(model: Model, setting: Setting) -> tuple[LayerCost, ...]:
    """Every distinct layer of a model."""
    chips = chip_arrays([setting.chip])
    return tuple(layer_cost(layer, setting, chips) for layer in model.layers)
