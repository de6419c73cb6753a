"""What each key of a file of chips of clusters does: cases for :mod:`tests.keys.test_every_key`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from phaze.evaluate.layers import Setting
from phaze.hardware.library import load_built_stack, load_chip, load_cluster
from phaze.search.chips import enumerate_space
from phaze.search.spaces import load_space
from tests.keys import answers
from tests.keys.cases import Base, same
from tests.keys.small import preset, written
from tests.search.made_silicon import SMALL


def of_space(space: dict[str, Any], folder: Path) -> list[Any]:
    """The chips of a space of clusters, field by field, and what is left out."""
    opened = enumerate_space(load_space(written(folder, "space.json", space)))
    return [
        [column.tolist() for column in opened.columns()],
        opened.die_mm2.tolist(),
        opened.left_out,
    ]


def space(folder: Path) -> dict[str, Any]:
    """A dozen chips."""
    return SMALL


SPACE = Base(
    space,
    of_space,
    same(
        ("base", "n7-reticle-base"),
        ("axes.clusters", [4]),
        ("axes.arrays", [1]),
        ("axes.rows", [16]),
        ("axes.columns", [32]),
        ("axes.lanes", [256]),
        ("axes.operand_buffer", ["32 KiB"]),
        ("axes.registers", ["512 KiB"]),
        ("axes.global_buffer", ["10 MiB"]),
        ("axes.global_width", [1024]),
        ("axes.hbm_stacks", [2]),
        ("axes.links", ["450 GB/s"]),
    ),
    keys="""
    keep.most_area keep.least_share keep.sustained_power keep.most_w_per_mm2 keep.most_usd
    """,
)


def of_accelerator(chip: dict[str, Any], folder: Path) -> Iterator[Any]:
    """What :func:`tests.keys.answers.of_chip` asks of any chip, and a product that every cluster
    has a part of."""
    yield from answers.of_chip(chip, folder)
    yield answers.told(
        "estimate", "--gemm", "1x8192x8192x8192", "--chip", written(folder, "chip.json", chip)
    )


MEASURED = {
    "rate": "700 TFLOP/s", "shape": [4096, 4096, 4096], "clock": "1.6 GHz", "hbm_share": 0.7,
    "vector_hbm_share": 0.7,
    "start_up": "4 us", "vector_start_up": "3 us", "kept_row": "64 KiB", "attention": "hopper",
    "rate_fp8": "1300 TFLOP/s",
}  # fmt: skip


KERNEL = [
    {
        "kernel": "cudnn", "pass": way, "head": 128, "start": "50 us", "extra_keys": 10,
        "share": 0.1, "most": 0.1, "training": False,
    }
    for way in ("forward", "backward")
]  # fmt: skip
KERNEL_KEYS = [f"measured.kernels.{key}" for key in KERNEL[0]]


def accelerator(folder: Path) -> dict[str, Any]:
    """An H100 of which everything was measured."""
    own = {
        "name": "mine",
        "measured": dict(MEASURED),
        "formats": {"fp8": 2, "mxfp8": 2, "fp4": 4, "fp32": 0.5},
    }
    return preset("silicon/chips", "h100") | own


def unmeasured(folder: Path) -> dict[str, Any]:
    """The same at the clock that it holds."""
    return {key: value for key, value in accelerator(folder).items() if key != "measured"}


CHIP = Base(
    unmeasured,
    of_accelerator,
    same(
        ("technology", "n7"),
        ("clusters.count", 66),
        ("silicon.clusters", [200, 132]),
        ("silicon.global_buffer", [2, 1]),
        ("silicon.hbm", [2, 1]),
    ),
    keys="""
    clock clusters.arrays clusters.rows clusters.columns clusters.lanes clusters.operand_buffer
    clusters.registers clusters.port clusters.broadcast global_buffer.size global_buffer.width
    global_buffer.fan_out global_buffer.kind hbm.stacks hbm.generation hbm.bandwidth hbm.size links.bandwidth
    links.lane silicon.dies silicon.interfaces silicon.die_links power.sustained
    """,
)
MEASURED_CHIP = Base(
    accelerator,
    of_accelerator,
    same(
        ("measured.kept_row", "1 KiB"),
        ("measured.shape", [512, 512, 512]),
        ("measured.attention", "blackwell"),
        ("die", "blackwell"),
    ),
    keys="""
    measured.rate measured.clock measured.hbm_share measured.vector_hbm_share measured.start_up
    measured.vector_start_up measured.rate_fp8 formats.fp8 formats.mxfp8 formats.fp4
    formats.fp32 host.bandwidth
    """,
)
KERNELS_CHIP = Base(
    accelerator,
    of_accelerator,
    tuple((key, "measured/kernels", KERNEL) for key in KERNEL_KEYS),
)
STACKED = Base(
    lambda folder: preset("silicon/chips", "mi300x") | {"name": "mine", "cluster": "dgx-h100"},
    lambda chip, folder: [answers.told("chips", written(folder, "chip.json", chip))["ownership"]],
    same(
        ("silicon.base_dies", 2),
        ("silicon.base_technology", "n5"),
        ("silicon.second_cache", "64 MiB"),
    ),
)
USUAL = Base(accelerator, answers.of_usual_cluster, same(("cluster", "nvl72")))


def of_node(node: dict[str, Any], folder: Path) -> Iterator[Any]:
    """Chips made in the node: one of either maker's interfaces, one fast without a power limit, one
    held by it."""
    written(folder, "node.json", node)
    fast = preset("silicon/chips", "a100-80gb") | {
        "clock": "1.8 GHz",
        "links": {"bandwidth": "300 GB/s"},
    }
    for chip, left_out in (
        (fast, ("measured", "power")),
        (preset("silicon/chips", "mi100"), ("measured",)),
    ):
        made = {key: value for key, value in chip.items() if key not in left_out}
        yield from of_accelerator(made | {"technology": "node.json", "cluster": "selene"}, folder)


def full_node(folder: Path) -> dict[str, Any]:
    return preset("silicon/technologies", "n7")


def scaled_node(folder: Path) -> dict[str, Any]:
    return preset("silicon/technologies", "n5")


def _curve(key: str) -> list[tuple[str, str, Any]]:
    place, curve = key.replace(".", "/"), preset("silicon/technologies", "n7")
    for step in key.split("."):
        curve = curve[step]
    return [
        (
            f"{key}.values",
            f"{place}/values",
            [value * (2 + at) for at, value in enumerate(curve["values"])],
        ),
        (
            f"{key}.sizes",
            f"{place}/sizes",
            [*(1 + at for at in range(len(curve["sizes"]) - 1)), 2**50],
        ),
        (f"{key}.reference.size", f"{place}/reference", {"size": "1 MiB", "area": "77 mm2"}),
        (f"{key}.reference.area", f"{place}/reference", {"size": "1 MiB", "area": "7 mm2"}),
    ]


NODE = Base(
    full_node,
    of_node,
    (
        *_curve("area.sram"),
        *_curve("area.cache"),
        *_curve("energy.buffer"),
        *same(("voltage.most", 1.0)),
    ),
    keys="""
    area.mac_um2 area.support_um2 area.lane_um2 area.control_lane_um2 area.control_cluster_um2
    area.control_array_um2 area.network_um2 area.uncore_mm2 area.ga100.stack_mm2 area.ga100.lane_mm2
    area.ga100.link_mm2_per_gb_per_s area.aldebaran.stack_mm2 area.aldebaran.lane_mm2
    area.aldebaran.link_mm2_per_gb_per_s area.host_lanes energy.mac_pj energy.edge_pj_per_byte energy.lane_pj
    energy.core_bank energy.hbm_pj_per_byte energy.link_pj_per_byte energy.leakage_w_per_mm2 energy.stack_w
    energy.hbm_activity wire_pj_per_byte_mm lane voltage.reference voltage.slope voltage.least
    fab.wafer_usd fab.wafer_diameter_mm fab.defects_per_cm2 fab.energy_kwh_per_cm2 fab.gas_kgco2e_per_cm2
    fab.materials_kgco2e_per_cm2
    """,
)
SCALED_NODE = Base(
    scaled_node,
    of_node,
    same(
        ("base", "n5"),
        ("factors.logic", 0.5),
        ("factors.sram", 0.5),
        ("factors.analog", 0.5),
        ("factors.energy", 0.5),
    ),
)
SILICON: dict[str, list[Base]] = {
    "phaze.space/2": [SPACE],
    "phaze.chip/2": [CHIP, MEASURED_CHIP, KERNELS_CHIP, STACKED, USUAL],
    "phaze.technology/2": [NODE, SCALED_NODE],
}


def of_stack(stack: dict[str, Any], folder: Path) -> list[Any]:
    """What software leaves of the rate of a chip of clusters."""
    found = load_built_stack(written(folder, "stack.json", stack))
    return [Setting(load_chip("h100"), load_cluster("dgx-h100"), found).constants.software_share]


SHARE = Base(
    lambda folder: preset("stacks", "megatron-core"),
    of_stack,
    same(("software_share", {"n5": 0.5})),
)
