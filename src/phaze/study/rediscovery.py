"""Would a search have built the chips that exist? The best chip within a real one's area and power,
beside it.

For a real chip and a model, both under the same model of silicon and of training:

    space    clusters, arrays, lanes, buffers as in the bundled space of its node, finer in
             clusters; its own stacks of HBM, links, width of the global buffer and clock; at most
             its area as modelled and its published power
    ratio    best throughput in that space, certified to 0.1 %, over that of the real chip with its
             best plan

Searched chips have spare clusters (a twelfth), one read reaches 16 clusters and arrays of a cluster
share operands; real ones are as published. A ratio far above 1 says that the model lets something
through that cannot be built.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.clocked import at_held_clock, refusal
from phaze.hardware.converted import without_measurements
from phaze.hardware.library import load_chip
from phaze.hardware.shipped import shipped_beside
from phaze.search.answer import best_of
from phaze.search.baseline import scale_for
from phaze.search.cluster_space import ClusterSpace
from phaze.search.reference import value_on
from phaze.search.run import search
from phaze.search.space import Space
from phaze.search.spaces import load_space
from phaze.search.task import SearchJob, tasks_for
from phaze.study.load import job_of, study_of
from phaze.values import replace

CHIPS = ("a100-80gb", "h100", "tpu-v4")
MODELS = ("llama3-8b", "llama3-70b", "gpt3-175b")
STACKS = (("tpu-v4", "maxtext"), ("a100-80gb", "megatron-core"), ("h100", "megatron-core"))
# With threes, fives and sevens: powers of two hide a quarter of the gain (131,072 units fit a die,
# 262,144 do not).
CLUSTERS = (
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    14,
    16,
    18,
    20,
    24,
    28,
    32,
    40,
    48,
    64,
    80,
    96,
    108,
    128,
)
# Clusters that one read of the global buffer may feed: up to a row of the largest dies.
FAN_OUT = 16
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Rediscovered:
    """One real chip and one model; densities in TFLOP/s a mm2, ``densest_shipped`` of the same
    process."""

    chip: str
    model: str
    ratio: float
    winner: str
    tflops_per_mm2: float
    densest_shipped: float
    clusters: int
    accepted_at_tdp: bool
    gap: float
    chips: int


def space_within(chip: Chip) -> Space:
    """The space of chips with a real one's area, power, memory and links."""
    node, figures = chip.process, estimates_of(chip)
    if node is None or figures is None or chip.sustained_w is None:
        raise AssertionError(f"{chip.name} has no power limit")
    space = load_space(f"{node.name}-reticle").keeping(
        most_area=figures.area_mm2, sustained_power=chip.sustained_w
    )
    if not isinstance(space, ClusterSpace):
        raise AssertionError(f"{space.name} is a space of clusters")
    axes = replace(
        space.axes,
        clusters=list(CLUSTERS),
        global_buffer=sorted({*space.axes.global_buffer, 32 * MIB, chip.global_buffer.size_bytes}),
        global_width=[chip.global_bytes_per_cycle],
        hbm_stacks=[chip.hbm.stacks],
        links=[chip.links.bandwidth_bytes_per_s],
    )
    varied = replace(
        chip,
        clusters=replace(chip.clusters, broadcast=True),
        global_buffer=replace(chip.global_buffer, fan_out=FAN_OUT),
    )
    return replace(
        space, name=f"within-{chip.name}", axes=axes, base=at_held_clock(varied), technology=node
    )


def _job(chip: Chip, model: str, space: Space) -> SearchJob:
    """Training as all rows have it: sequence parallel, ZeRO 1, one sequence a microbatch and
    device."""
    devices = 256 if model == "llama3-8b" else 1024
    study = {
        "schema": "phaze.study/1",
        "name": f"{chip.name}-{model}",
        "rules": "cluster",
        "models": [model],
        "space": f"{_process(chip)}-reticle",
        "training": {
            "devices": devices,
            "batch": devices,
            "cluster": chip.cluster,
            "stack": dict(STACKS).get(chip.name, "megatron-core"),
            "zero": 1,
            "microbatches": [1],
            "sequence_parallel": True,
        },
        "search": {"gap": 1e-3},
    }
    job = job_of(study_of(study, "rediscovery"))
    return replace(job, space=space, hbm_bytes=space.memories or (), baseline=chip)


def _process(chip: Chip) -> str:
    return "" if chip.process is None else chip.process.name


def rediscovered(name: str, model: str) -> Rediscovered:
    """One row: a certified search within the chip's budget."""
    chip = without_measurements(load_chip(name))
    space = space_within(chip)
    job = _job(chip, model, space)
    state = search(job, scale_for(job))
    best = best_of(state)
    if best is None:
        raise AssertionError(f"nothing within {name} trains {model}")
    (task,) = tasks_for(job, chip)
    winner = state.chips.chip(best.chip, job.hbm_bytes[best.hbm])
    figures = estimates_of(winner)
    if figures is None:
        raise AssertionError("a searched chip has a node")
    return Rediscovered(
        chip=name,
        model=model,
        ratio=value_on(task, chip, job.objective) / best.score,
        winner=winner.name,
        tflops_per_mm2=winner.peak_flops / figures.area_mm2 / 1e12,
        densest_shipped=max(
            product.flops_per_mm2 for product in shipped_beside(figures.process).near
        )
        / 1e12,
        clusters=winner.clusters.count,
        accepted_at_tdp=refusal(chip) is None,
        gap=state.standing().gap,
        chips=len(state.chips),
    )


def rows_to_search() -> list[tuple[str, str]]:
    """Every real chip with every model."""
    return [(chip, model) for chip in CHIPS for model in MODELS]


def rediscovery_document(rows: Sequence[Rediscovered]) -> dict[str, Any]:
    """The rows as plain values."""
    return {"rows": [asdict(row) for row in rows]}
