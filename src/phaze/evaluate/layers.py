"""The layers of a model on a chip, as a placement asks for them: seconds, bytes, and what
recomputing costs.

The seconds are those of :mod:`phaze.evaluate.layer_table`, for one chip, under the schedule rule of
its stack.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import chip_set
from phaze.cost.measured_clock import chip_constants
from phaze.evaluate.layer_table import LayerTable, layer_table
from phaze.evaluate.lowered_layer import lower_layers, rule_of
from phaze.evaluate.lowered_pass import LoweredPass, Times, work_times
from phaze.evaluate.pass_builder import lower_pass
from phaze.graph.ir import Model, OperatorGraph
from phaze.hardware.attention import attention_rates
from phaze.hardware.calibration import Basis, Constants, format_rates
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.formats import PLAIN, Precision
from phaze.hardware.stack import Stack
from phaze.placement.machine import Machine
from phaze.schedule.problem import Schedule, ScheduleProblem
from phaze.schedule.solve import KnownPart, PartMemo, Scheduler, SchedulingLimits
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
        chip, calibration = self.chip, self.chip.calibration
        constants = chip_constants(self.chip, self.basis, "training")
        constants = replace(constants, rates=self._rates)
        warm = constants.matrix_share / chip_constants(self.chip, self.basis, "alone").matrix_share
        generation = chip.generation
        if not chip.lumped_share and self.basis != "ideal":
            warm = self.stack.share_on(*generation)
            constants = replace(constants, software_share=warm)
        if self.basis != "ideal":
            constants = replace(
                constants,
                grouped_share=self.stack.grouped_share_on(*generation),
                expert_start_s=self.stack.expert_start_on(*generation),
            )
        if constants.basis != "calibrated" or calibration is None or self.machine.wide:
            return constants
        kernels = attention_rates(
            calibration.attention,
            self.stack.kernel_on(*generation),
            min(1.0, warm),
            chip.measured.kernels or (),
        )
        return replace(constants, attention=kernels)

    @property
    def _rates(self) -> tuple[tuple[int, float], ...]:
        machine = self.machine
        return format_rates(
            self.chip.calibration, self.chip.formats, self.basis, machine.recipe, machine.wide
        )


@dataclass(frozen=True, slots=True)
class SchedulingEffort:
    """How schedules are found, and how much is spent on one; ``known``: components of those that
    were found before, by what they depend on, where passes are considered several times;
    ``solved``: schedules of the very same passes."""

    limits: SchedulingLimits | None = None
    scheduler: Scheduler = "exact"
    parts: PartMemo | None = field(default=None, compare=False, repr=False)
    solved: SolvedSchedules | None = field(default=None, compare=False, repr=False)


EXACT = SchedulingEffort()


@dataclass(frozen=True, slots=True)
class PassCost:
    """One pass on one chip: seconds of every operator on all cores and of every collective by
    place, the device's as its stack schedules them, and with the host; ``network_apart``: cores may
    work beside a collective."""

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


def pass_cost(
    graph: OperatorGraph, setting: Setting, backward: bool, effort: SchedulingEffort = EXACT
) -> PassCost:
    """What one (fused) pass takes in a setting."""
    chips = chip_set([setting.chip])
    lowered = lower_pass(graph, setting.machine, rule_of(setting.stack), backward)
    if not lowered.works:
        return PassCost(np.zeros(0), np.zeros(0), 0.0, 0.0)
    works = work_times(lowered.works, chips, setting.constants, lowered.rule)
    arguments = effort.parts, False, effort.scheduler, effort.solved
    device = lowered.device_s(lowered.times(works, 0, chips), effort.limits, *arguments)
    pass_s = float(lowered.with_host(device)[0])
    waits_s, apart = np.array(lowered.waits_s), lowered.rule.network_apart
    return PassCost(works.spread_s[:, 0], waits_s, float(device[0]), pass_s, apart)


def _passed(graph: OperatorGraph, setting: Setting, backward: bool) -> tuple[LoweredPass, Times]:
    """A (fused) pass and its times on the chip of a setting."""
    chips = chip_set([setting.chip])
    lowered = lower_pass(graph, setting.machine, rule_of(setting.stack), backward)
    return lowered, lowered.times(
        work_times(lowered.works, chips, setting.constants, lowered.rule), 0, chips
    )


def pass_problem(
    graph: OperatorGraph, setting: Setting, backward: bool
) -> tuple[LoweredPass, ScheduleProblem]:
    """A (fused) pass and its scheduling problem in a setting."""
    lowered, times = _passed(graph, setting, backward)
    return lowered, lowered.problem(times, 0)


def pass_schedule(
    graph: OperatorGraph, setting: Setting, backward: bool, effort: SchedulingEffort = EXACT
) -> tuple[LoweredPass, ScheduleProblem, Schedule]:
    """A (fused) pass, its scheduling problem and its schedule in a setting."""
    lowered, times = _passed(graph, setting, backward)
    schedule = lowered.schedule(times, 0, effort.limits, None, effort.scheduler, effort.solved)
    return lowered, lowered.problem(times, 0), schedule


def model_table(model: Model, setting: Setting, effort: SchedulingEffort = EXACT) -> LayerTable:
    """Every distinct layer of a model on the chip of a setting, under its stack's schedule rule."""
    parts = dict[str, KnownPart]() if effort.parts is None else effort.parts
    return layer_table(
        lower_layers(model, setting.machine),
        chip_set([setting.chip]),
        setting.constants,
        lambda layer_pass, times: layer_pass.device_s(
            times, effort.limits, parts, False, effort.scheduler, effort.solved
        ),
    )
