"""The inputs of all comparisons, made from what is bundled: the shipped graphs, the paper's
stand-in chip and space.

The sizes are those of the published figures; the times of operators and layers are our own costs on
the stand-in chip.
"""

from dataclasses import dataclass
from typing import Literal

from phaze.cost.mapping import Product, TensorPart, product
from phaze.cost.parts import tensor_parts
from phaze.cost.products import TensorParts
from phaze.evaluate.flow import placed_layers
from phaze.evaluate.flow import placement_problem as problem_of
from phaze.evaluate.layers import Setting, model_table, pass_problem
from phaze.graph.fuse import Fusion, fuse
from phaze.graph.ir import Model
from phaze.graph.zoo import load_family, load_model
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.placement.job import TrainingJob
from phaze.placement.problem import PlacementProblem, RecomputeChoice
from phaze.schedule.problem import ScheduleProblem
from phaze.search.chips import enumerate_space
from phaze.search.spaces import load_space

CHIP = "tpu-v4-paper"
DEVICES = 1024
"""The paper's cluster."""
BATCH = 4096
"""The paper's global batch, in sequences."""
GIB = 2**30
# A GPT as deep as GPT-2 XL with heads that 2 and 4 divide, so that it has three widths.
GPT_48 = (
    ("layers", 48),
    ("hidden", 1600),
    ("heads", 20),
    ("vocabulary", 50304),
    ("sequence", 1024),
)


@dataclass(frozen=True, slots=True)
class PlacementInput:
    """A model to place on 1024 devices of the stand-in chip."""

    model: str
    widths: tuple[int, ...]
    microbatch: int
    recompute: RecomputeChoice
    hbm_bytes: int


@dataclass(frozen=True, slots=True)
class ScheduleInput:
    """One pass of a model's block to schedule on the stand-in chip."""

    model: str
    width: int
    fusion: Fusion
    direction: Literal["forward", "backward"]


PLACEMENTS = (
    PlacementInput("bert-large", (1,), 4, "none", 32 * GIB),
    PlacementInput("gpt-48", (1, 2, 4), 1, "full", 32 * GIB),
    PlacementInput("gpt3-175b", (1, 2, 4, 8), 1, "full", 80 * GIB),
)
SCHEDULES = (
    ScheduleInput("llama2-7b", 1, "full", "forward"),
    ScheduleInput("gpt2-xl", 1, "full", "backward"),
    ScheduleInput("llama2-7b", 1, "full", "backward"),
    ScheduleInput("bert-large", 1, "full", "backward"),
    ScheduleInput("bert-large", 1, "none", "backward"),
)
# m x n x k: products of BERT-large (attention scores of one head, output, first of the MLP) and of
# Llama-2 7B with few rows, which waits for memory.
SHAPES = ((512, 512, 64), (512, 1024, 1024), (512, 4096, 1024), (64, 4096, 4096))
# The same for SCALE-Sim: streams at least as long as the array, and traces of cycles x units that
# fit into memory.
SIMULATED_SHAPES = ((512, 512, 128), (512, 1024, 1024))


def _setting() -> Setting:
    """The stand-in chip as the paper runs it."""
    return Setting(load_chip(CHIP), load_cluster("paper-flat"), load_stack("icml24"), "ideal")


def _model(name: str, width: int, microbatch: int) -> Model:
    if name == "gpt-48":
        return load_family("gpt", dict(GPT_48), tensor=width, microbatch=microbatch)
    return load_model(name, width, microbatch)


def placement_problem(asked: PlacementInput) -> PlacementProblem:
    """The placement problem: layers' times by exact schedules on the stand-in chip."""
    setting = _setting()
    models = [_model(asked.model, width, asked.microbatch) for width in asked.widths]
    placed = [placed_layers(model, model_table(model, setting)) for model in models]
    job = TrainingJob(setting.machine, DEVICES, BATCH, "sgd", recompute=asked.recompute)
    return problem_of(job, asked.microbatch, placed, float(asked.hbm_bytes), None)


def schedule_problem(asked: ScheduleInput) -> ScheduleProblem:
    """The scheduling problem of the model's block, the layer that most calls run, at microbatch
    1."""
    fused = fuse(_model(asked.model, asked.width, 1), asked.fusion)
    calls = [call.layer for call in fused.calls]
    block, backward = fused.layers[max(set(calls), key=calls.count)], asked.direction == "backward"
    return pass_problem(block.backward if backward else block.forward, _setting(), backward)[1]


def core_part(whole_global_buffer: bool) -> TensorPart:
    """One of the stand-in's eight tensor cores with an eighth of HBM; the global buffer, or an
    eighth of that too."""
    chip = load_chip(CHIP)
    core, cores = chip.clusters, chip.clusters.count
    share = 1 if whole_global_buffer else cores
    return TensorPart(
        1,
        core.rows,
        core.columns,
        float(core.operand_bytes),
        core.feed_bytes_per_cycle(chip.clock_hz) * chip.clock_hz,
        chip.clock_hz,
        chip.global_buffer.size_bytes / share,
        chip.global_buffer.bandwidth_bytes_per_s / share,
        chip.hbm.bandwidth_bytes_per_s / cores,
    )


def shape_product(shape: tuple[int, int, int]) -> Product:
    """The product of a shape m x n x k, 16-bit."""
    return product(1, *shape)


def paper_parts() -> TensorParts:
    """The distinct tensor parts of the paper's 29,360 chips, all cores of each."""
    return tensor_parts(enumerate_space(load_space("paper")).arrays(), IDEAL)[0]
