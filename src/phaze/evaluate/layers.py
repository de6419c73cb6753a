"""The layers of a model on a chip, as a placement asks for them: seconds, bytes, and what recomputing costs.

The seconds are those of :mod:`phaze.evaluate.layer_table`, for one chip, under the schedule rule of its stack.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import chip_set
from phaze.cost.measured_clock import chip_constants
from phaze.evaluate.layer_passes import RuledLayer, rule_of, ruled_layers
from phaze.evaluate.layer_table import LayerTable, layer_table
from phaze.evaluate.pass_builder import ruled_pass
from phaze.evaluate.ruled_pass import RuledPass, Times, work_times
from phaze.graph.ir import Model, OperatorGraph
from phaze.hardware.attention import attention_rates
from phaze.hardware.calibration import Basis, Constants, format_rates
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.formats import PLAIN, Precision
from phaze.hardware.stack import Stack
from phaze.placement.machine import Machine
from phaze.schedule.problem import Schedule, ScheduleProblem
from phaze.schedule.solve import Known, KnownPart, Limits, Scheduler
from phaze.schedule.solved import SolvedSchedules

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Setting:
    """Where layers run: everything that their times depend on."""

    chip: Chip
    cluster: Cluster
    stack: Stack
    basis: Basis = "calibrated"
    residency: bool = True
    precision: Precision = PLAIN

    @property
    def machine(self) -> Machine:
        host = self.chip.host_bytes_per_s
        return Machine(self.cluster, self.stack, self.basis, self.residency, self.precision, host)

    @property
    def constants(self) -> Constants:
        chip, said = self.chip, self.chip.calibration
        found = chip_constants(self.chip, self.basis, "training")
        found = replace(found, rates=self._rates)
        warm = found.matrix_share / chip_constants(self.chip, self.basis, "alone").matrix_share
        generation = (chip.software_of,) if chip.software_of else (chip.name, chip.technology)
        if chip.of_clusters and self.basis != "ideal":
            warm = self.stack.share_on(*generation)
            found = replace(found, software_share=warm)
        if self.basis != "ideal":
            found = replace(found, grouped_share=self.stack.grouped_share_on(*generation))
        if found.basis != "calibrated" or said is None or self.machine.wide:
            return found
        kernels = attention_rates(said.attention, self.stack.attention_kernel, min(1.0, warm))
        return replace(found, attention=kernels)

    @property
    def _rates(self) -> tuple[tuple[int, float], ...]:
        machine = self.machine
        return format_rates(self.chip.calibration, self.chip.formats, self.basis, machine.recipe, machine.wide)

    @property
    def hbm_bytes_per_s(self) -> float:
        """HBM bandwidth that vector work reaches."""
        return self.chip.hbm.bandwidth_bytes_per_s * self.constants.vector_hbm_share


@dataclass(frozen=True, slots=True)
class SchedulingEffort:
    """How schedules are found, and how much is spent on one; ``known``: components of those that were found before, by
    what they depend on, where passes are looked at several times; ``solved``: schedules of the very same passes."""

    limits: Limits | None = None
    scheduler: Scheduler = "exact"
    known: Known | None = field(default=None, compare=False, repr=False)
    solved: SolvedSchedules | None = field(default=None, compare=False, repr=False)


EXACT = SchedulingEffort()


@dataclass(frozen=True, slots=True)
class ModeCost:
    """A layer in a mode of recompute between selective and full: seconds that run again, bytes kept, and bytes beside
    them while its backward runs, logits left out."""

    name: str
    again_s: float
    saved_bytes: int
    live_bytes: int


def mode_costs(layer: RuledLayer, seconds: Sequence[float]) -> tuple[ModeCost, ...]:
    """The modes of a layer between selective and full, with their seconds."""
    return tuple(
        ModeCost(mode.name, again_s, mode.saved_bytes, mode.live_bytes - layer.logit_bytes)
        for mode, again_s in zip(layer.more, seconds, strict=True)
    )


@dataclass(frozen=True, slots=True)
class LayerCost:
    """One distinct layer: seconds of its passes and of what recomputing runs again, and its sizes on one device.

    Of ``backward_s`` gradients of weights take ``weight_s``, where the stack runs them apart from those of the input.
    ``parameters`` are trained; ``frozen`` are not: all of them, and those of experts among them.
    """

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
    logit_bytes: int = 0
    buffer_bytes: float = 0.0
    more: tuple[ModeCost, ...] = ()
    expert_parameters: int = 0
    weight_s: float | None = None
    frozen: tuple[int, int] = (0, 0)

    @property
    def input_s(self) -> float | None:
        """Of ``backward_s``, all that is no gradient of weights."""
        return None if self.weight_s is None else self.backward_s - self.weight_s


@dataclass(frozen=True, slots=True)
class PassCost:
    """One pass on one chip: seconds of every operator on all cores and of every collective by place, the device's as
    its stack schedules them, and with the host; ``network_apart``: cores may work beside a collective."""

    times_s: Floats
    waits_s: Floats
    device_s: float
    pass_s: float
    network_apart: bool = True

    @property
    def open_s(self) -> float:
        """What of its collectives is exposed."""
        if not self.network_apart:
            return float(self.waits_s.sum())
        return min(float(self.waits_s.sum()), max(0.0, self.device_s - float(self.times_s.sum())))


def pass_cost(graph: OperatorGraph, setting: Setting, backward: bool, effort: SchedulingEffort = EXACT) -> PassCost:
    """What one (fused) pass takes in a setting."""
    chips = chip_set([setting.chip])
    one = ruled_pass(graph, setting.machine, rule_of(setting.stack), backward)
    if not one.works:
        return PassCost(np.zeros(0), np.zeros(0), 0.0, 0.0)
    works = work_times(one.works, chips, setting.constants, one.rule)
    known = effort.known, False, effort.scheduler, effort.solved
    device = one.device_s(one.times(works, 0, chips), effort.limits, *known)
    pass_s = float(one.with_host(device)[0])
    waits_s, apart = np.array(one.waits_s), one.rule.network_apart
    return PassCost(works.spread_s[:, 0], waits_s, float(device[0]), pass_s, apart)


def _passed(graph: OperatorGraph, setting: Setting, backward: bool) -> tuple[RuledPass, Times]:
    """A (fused) pass and its times on the chip of a setting."""
    chips = chip_set([setting.chip])
    one = ruled_pass(graph, setting.machine, rule_of(setting.stack), backward)
    return one, one.times(work_times(one.works, chips, setting.constants, one.rule), 0, chips)


def pass_problem(graph: OperatorGraph, setting: Setting, backward: bool) -> tuple[RuledPass, ScheduleProblem]:
    """A (fused) pass and its scheduling problem in a setting."""
    one, times = _passed(graph, setting, backward)
    return one, one.problem(times, 0)


def pass_schedule(
    graph: OperatorGraph, setting: Setting, backward: bool, effort: SchedulingEffort = EXACT
) -> tuple[RuledPass, ScheduleProblem, Schedule]:
    """A (fused) pass, its scheduling problem and its schedule in a setting."""
    one, times = _passed(graph, setting, backward)
    schedule = one.schedule(times, 0, effort.limits, None, effort.scheduler, effort.solved)
    return one, one.problem(times, 0), schedule


def column_costs(table: LayerTable, chip: int = 0) -> tuple[LayerCost, ...]:
    """The layers of a table on one of its chips."""
    return tuple(
        LayerCost(
            layer.name,
            float(table.forward_s[kind, chip]),
            float(table.backward_s[kind, chip]),
            float(table.selective_s[kind, chip]),
            float(table.full_s[kind, chip]),
            *layer.sizes,
            mode_costs(layer, table.more_s[:, kind, chip].tolist()),
            layer.expert_parameters,
            weight_s=None if table.weight_s is None else float(table.weight_s[kind, chip]),
            frozen=layer.frozen,
        )
        for kind, layer in enumerate(table.layers)
    )


def layer_costs(model: Model, setting: Setting, effort: SchedulingEffort = EXACT) -> tuple[LayerCost, ...]:
    """Every distinct layer of a model, under its stack's schedule rule."""
    chips, known = chip_set([setting.chip]), dict[str, KnownPart]() if effort.known is None else effort.known
    layers = ruled_layers(model, setting.machine)
    table = layer_table(
        layers,
        chips,
        setting.constants,
        lambda one, times: one.device_s(times, effort.limits, known, False, effort.scheduler, effort.solved),
    )
    return column_costs(table)
