"""What phaze counts of a run's step on one rank, by class of kernel: beside
:mod:`phaze.validate.measured_step`.

    seconds of a class = m / p x sum over calls of (forward + backward + what is recomputed) of its
    operators
    operators          = m / p x all of them, each of which the host launches

with m microbatches of a replica and p stages: the mean stage. A product with its epilogue is a
GEMM. Adding gradients to those of earlier microbatches counts as vector work; the optimizer is left
out of both.
"""

from dataclasses import dataclass

from phaze.cost.chip_set import chip_set
from phaze.cost.work import Work
from phaze.evaluate.flow import block_calls
from phaze.evaluate.layers import Setting
from phaze.evaluate.lowered_layer import LoweredLayer, lower_layers
from phaze.evaluate.lowered_pass import LoweredPass, work_times
from phaze.evaluate.run_file import RunJob
from phaze.hardware.calibration import Basis, Constants
from phaze.hardware.stack import Stack
from phaze.validate.kernel_names import KernelClass
from phaze.values import FrozenTable, replace

COUNTED: tuple[KernelClass, ...] = ("gemm", "attention", "vector")


@dataclass(frozen=True, slots=True)
class StepWorks:
    """The passes of a run's step, each with how often one rank runs it, on no constants yet."""

    passes: tuple[tuple[LoweredPass, float], ...]
    added_bytes: float
    setting: Setting

    @property
    def operators(self) -> float:
        """Operators that the host launches in a step."""
        return sum(
            often * sum(work.core != "none" for work in layer_pass.works)
            for layer_pass, often in self.passes
        )

    def constants(self, share: float | None = None, vector_share: float | None = None) -> Constants:
        """The run's constants, or with another software share or share of HBM for vector work."""
        setting = (
            self.setting
            if share is None
            else replace(self.setting, stack=with_share(self.setting, share))
        )
        constants = setting.constants
        return (
            constants if vector_share is None else replace(constants, vector_hbm_share=vector_share)
        )

    def seconds(self, constants: Constants) -> dict[KernelClass, float]:
        """Seconds of a step by class."""
        chips = chip_set([self.setting.chip])
        by_class: dict[KernelClass, float] = dict.fromkeys(COUNTED, 0.0)
        for layer_pass, often in self.passes:
            if not layer_pass.works:
                continue
            times = work_times(layer_pass.works, chips, constants, layer_pass.rule).spread_s[:, 0]
            for work, seconds in zip(layer_pass.works, times.tolist(), strict=True):
                what = class_of_work(work)
                if what is not None:
                    by_class[what] += often * seconds
        rate = self.setting.chip.hbm.bandwidth_bytes_per_s * constants.vector_hbm_share
        by_class["vector"] += self.added_bytes / rate
        return by_class


def class_of_work(work: Work) -> KernelClass | None:
    """The class of an operator; None for a collective or nothing."""
    if work.attention is not None:
        return "attention"
    if work.products:
        return "gemm"
    return None if work.vector is None else "vector"


def with_share(setting: Setting, share: float) -> Stack:
    """The stack with another software share on the setting's chip."""
    shares = FrozenTable({**setting.stack.software_share, setting.chip.name: share})
    return replace(setting.stack, software_share=shares)


def _again(layer: LoweredLayer, mode: str) -> LoweredPass | None:
    selective, *_, full = layer.modes
    if mode == "full":
        return full.rerun or layer.forward
    return selective.rerun if mode == "selective" else None


def step_works(job: RunJob, basis: Basis = "calibrated") -> StepWorks:
    """The works of a run's step on the mean rank."""
    setting = Setting(job.chip, job.cluster, job.stack, basis, precision=job.precision)
    plan, model = job.plan, job.model
    rounds = -(-job.batch // (plan.data * plan.microbatch)) / plan.pipeline
    blocks = [model.calls[index].layer for index in block_calls(model)]
    passes: list[tuple[LoweredPass, float]] = []
    added = 0.0
    for kind, layer in enumerate(lower_layers(model, setting.machine)):
        often = rounds * model.count(kind)
        passes += [(layer.forward, often), (layer.backward, often)]
        again = _again(layer, plan.recompute)
        if again is not None and blocks.count(kind):
            passes.append((again, rounds * blocks.count(kind)))
        added += often * layer.accumulation_bytes * layer.parameters
    return StepWorks(tuple(passes), added, setting)
