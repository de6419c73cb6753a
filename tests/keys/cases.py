"""For every key of the hardware's formats: a document, another value, and who must notice or refuse
it.

A case is (key, where it stands in the document, another value).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.keys import answers
from tests.keys.answers import Answer
from tests.keys.small import preset

Case = tuple[str, str, Any]


@dataclass(frozen=True)
class Base:
    """A document, what is asked of it, and the changes that must be noticed: ``cases``, and of
    ``keys`` (names, apart by blanks) some other value of their type."""

    document: Callable[[Path], dict[str, Any]]
    answer: Answer
    cases: tuple[Case, ...] = ()
    keys: str = ""


def same(*pairs: tuple[str, Any]) -> tuple[Case, ...]:
    """Cases whose key is also where it stands."""
    return tuple((key, key.replace(".", "/"), value) for key, value in pairs)


# -- hardware
# --------------------------------------------------------------------------------------------------------

MEASURED = {
    "matrix_share": 0.8, "training_matrix_share": 0.6, "hbm_share": 0.7, "vector_hbm_share": 0.7,
    "start_up": "4 us",
    "vector_start_up": "3 us", "block_cycles": 20, "kept_row": "64 KiB", "attention": "hopper",
    "matrix_share_fp8": 0.75,
}  # fmt: skip


def chip(folder: Path) -> dict[str, Any]:
    own = {
        "name": "mine",
        "calibration": dict(MEASURED),
        "formats": {"fp8": 2, "mxfp8": 2, "fp4": 4, "fp32": 0.5},
    }
    return preset("chips", "h100") | own


CHIP = Base(
    chip,
    answers.of_chip,
    same(
        ("hbm.kind", "cache"),
        ("calibration.kept_row", "1 KiB"),
        ("technology", "n7"),
        ("silicon.cores", [200, 100]),
        ("silicon.global_buffer", [200, 100]),
        ("silicon.hbm", [200, 100]),
        ("calibration.attention", "blackwell"),
    ),
    keys="""
    clock tensor_cores.count tensor_cores.rows tensor_cores.columns tensor_cores.buffer.size
    tensor_cores.buffer.bandwidth vector_cores.count vector_cores.lanes vector_cores.buffer.size
    vector_cores.buffer.bandwidth global_buffer.size global_buffer.bandwidth global_buffer.kind hbm.size
    hbm.bandwidth links.bandwidth silicon.dies calibration.matrix_share
    calibration.training_matrix_share calibration.hbm_share calibration.vector_hbm_share calibration.start_up
    calibration.vector_start_up calibration.block_cycles calibration.matrix_share_fp8
    formats.fp8 formats.mxfp8 formats.fp4 formats.fp32 host.bandwidth
    """,
)
USUAL = Base(chip, answers.of_usual_cluster, same(("cluster", "nvl72")))


def cluster(folder: Path) -> dict[str, Any]:
    levels = [
        {"name": "node", "kind": "switch", "size": 8, "bandwidth": "450 GB/s", "latency": "3 us",
        "share": 0.7,
         "start": "20 us", "local": "600 GB/s", "small_start": "9 us", "small_share": 0.1,
         "small_step": "1 us", "piece": "2 us", "in_switch_share": 0.4},
        {"name": "fabric", "kind": "switch", "size": 8, "bandwidth": "50 GB/s", "latency": "9 us"},
    ]  # fmt: skip
    head = {
        "schema": "phaze.cluster/1",
        "name": "mine",
        "title": "mine",
        "devices": 64,
        "stack": "megatron-core",
    }
    return head | {"chip": "h100", "levels": levels}


def of_the_chip(folder: Path) -> dict[str, Any]:
    found = cluster(folder)
    found["levels"][0]["bandwidth"] = "chip"
    return found


def torus(folder: Path) -> dict[str, Any]:
    level = {
        "name": "torus",
        "kind": "torus",
        "size": 64,
        "bandwidth": "270 GB/s",
        "latency": "1 us",
        "shape": [8, 8],
    }
    return cluster(folder) | {"levels": [level]}


CLUSTER = Base(
    cluster,
    answers.of_cluster,
    (
        ("devices", "devices", 128),
        ("stack", "stack", "megatron-2021"),
        ("levels.kind", "levels/0/kind", "ring"),
        ("levels.size", "levels/0/size", 4),
        ("levels.bandwidth", "levels/0/bandwidth", "100 GB/s"),
        ("levels.bandwidth", "levels/1/bandwidth", "5 GB/s"),
        ("levels.latency", "levels/1/latency", "90 us"),
        ("levels.share", "levels/0/share", 0.2),
        ("levels.start", "levels/0/start", "90 us"),
        ("levels.local", "levels/0/local", "100 GB/s"),
        ("levels.small_start", "levels/0/small_start", "90 us"),
        ("levels.small_share", "levels/0/small_share", 0.01),
        ("levels.small_step", "levels/0/small_step", "90 us"),
        ("levels.piece", "levels/0/piece", "90 us"),
        ("levels.in_switch_share", "levels/0/in_switch_share", 0.9),
        ("library", "library", "nccl"),
    ),
)
TORUS = Base(torus, answers.of_cluster, (("levels.shape", "levels/0/shape", [4, 16]),))
CHIP_LINKS = Base(of_the_chip, answers.of_cluster, (("chip", "chip", "gaudi3"),))


SENT = ("reduction", "gather", "fully_sharded")
BESIDE = {"runs": False, "slows": 0.9}


def stack(folder: Path) -> dict[str, Any]:
    beside = {"runs": True, "slows": 0.19}
    overlap = {kind: dict(beside) for kind in SENT}
    overlap["reduction"]["bucket"] = 0.0
    own = {"name": "mine", "state_bytes": 20.0, "overlap": overlap}
    return preset("stacks", "megatron-2021") | own


STACK = Base(
    stack,
    answers.of_stack,
    same(
        *((f"overlap.{kind}.{key}", value) for kind in SENT for key, value in BESIDE.items()),
        ("overlap.reduction.bucket", 1e9),
        ("overlap.step_host", "1 s"),
        ("overlap.tensor.runs", True),
        ("zeroes_gradients", True),
        ("gradients", "bf16"),
        ("clips_gradients", True),
    ),
    keys="""
    fusion host_time hides_tensor_collectives scatter_gather optimizer_traffic_bytes
    state_bytes reserve schedule precision optimizer trims_recompute balances_stages
    gradient_bytes synchronisation accumulation_inside accumulation_apart stages pipeline saves logit_bytes
    selective gradient_buffer_bytes softmax_matrices
    """,
)


def short_stack(folder: Path) -> dict[str, Any]:
    return {"schema": "phaze.stack/1", "name": "mine", "title": "mine", "base": "megatron-2021"}


def modular_stack(folder: Path) -> dict[str, Any]:
    return preset("stacks", "megatron-core") | {"name": "mine"}


MODULAR_STACK = Base(modular_stack, answers.of_modules, same(("recompute_modules", ["layernorm"])))
SOUGHT_STACK = Base(stack, answers.of_sought, same(("interleaves", False), ("families", ["1f1b"])))
SHORT_STACK = Base(short_stack, answers.of_stack, same(("base", "megatron-core")))


def kernel_stack(folder: Path) -> dict[str, Any]:
    return short_stack(folder) | {"attention": {"kernel": "fa2"}}


KERNELS = tuple(
    ("attention.kernel", "attention", value)
    for value in (
        {"kernel": "cudnn"},
        {"kernel": "eager"},
        {"kernel": {"n5": "fa1", "any": "fa2"}},
        "fused",
    )
)
KERNEL_STACK = Base(kernel_stack, answers.of_kernel, KERNELS)


def low_stack(folder: Path) -> dict[str, Any]:
    return kernel_stack(folder) | {
        "recipes": ["fp8-delayed"],
        "precision": "fp8",
        "scatter_gather": False,
    }


STATE = {"weight": 2, "main_weight": 4, "gradient": 4, "first_moment": 4, "second_moment": 4}


def shared_stack(folder: Path) -> dict[str, Any]:
    return preset("stacks", "megatron-2021") | {
        "name": "mine",
        "state": dict(STATE),
        "overlap": {"host_link": {"runs": True, "slows": 0.5}},
    }


SHARED_STACK = Base(
    shared_stack,
    answers.of_shared_state,
    same(
        ("overlap.host_link.runs", False),
        ("overlap.host_link.slows", 1.0),
        *((f"state.{part}", 1) for part in STATE),
    ),
    keys="gradient_wire_bytes prefetch",
)
LOW_STACK = Base(
    low_stack,
    answers.of_kernel,
    same(
        ("recipes", ["fp8-tensorwise"]),
        ("recipes", []),
        ("low_precision_weights", True),
        ("overlap.transfers.runs", True),
    ),
)


CAST_STACK = Base(
    lambda folder: low_stack(folder) | {"recipes": ["fp8-tensorwise"], "fusion": "elementwise"},
    answers.of_kernel,
    same(("casts_apart", True)),
)


def experts_stack(folder: Path) -> dict[str, Any]:
    return kernel_stack(folder) | {
        "overlap": {"exchange": {"offered": True, "runs": True, "slows": 0.19}}
    }


EXPERTS_STACK = Base(
    experts_stack,
    answers.of_experts,
    same(
        ("grouped_share", {"any": 0.5}),
        ("expert_start", {"any": "5 us"}),
        ("overlap.exchange.offered", False),
        ("overlap.exchange.runs", False),
        ("overlap.exchange.slows", 0.9),
        ("overlap.dispatcher", "node-once"),
    ),
)

SHARED_EXPERTS_STACK = Base(
    kernel_stack, answers.of_experts, same(("overlap.shared_experts", True))
)


def technology(folder: Path) -> dict[str, Any]:
    return preset("technologies", "n5")


def _curve(key: str) -> tuple[Case, ...]:
    place, curve = key.replace(".", "/"), preset("technologies", "n5")
    for step in key.split("."):
        curve = curve[step]
    found: list[Case] = [
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
    return tuple(found)


TECHNOLOGY = Base(
    technology,
    answers.of_technology,
    (
        *_curve("area.core_buffer"),
        *_curve("area.scratchpad"),
        *_curve("area.cache"),
        *_curve("energy.buffer"),
    ),
    keys="""
    area.mac_um2 area.lane_um2 area.vector_control_um2 area.network_mm2_per_byte_per_cycle
    area.hbm_mm2_per_gb_per_s area.link_mm2_per_gb_per_s area.other_share energy.mac_pj energy.lane_pj
    energy.core_bank energy.hbm_pj_per_byte energy.link_pj_per_byte energy.static_w_per_mm2
    energy.design_activity fab.wafer_usd fab.wafer_diameter_mm fab.defects_per_cm2 fab.energy_kwh_per_cm2
    fab.gas_kgco2e_per_cm2 fab.materials_kgco2e_per_cm2
    """,
)


def terms(folder: Path) -> dict[str, Any]:
    return preset("ownership", "default")


OWNERSHIP = Base(
    terms,
    answers.of_terms,
    same(("device_usd_per_hour", {"h100": 9.0})),
    keys="""
    yield_clustering package_usd lifetime_years utilisation power_usage_effectiveness electricity_usd_per_kwh
    grid_kgco2e_per_kwh fab_grid_kgco2e_per_kwh hbm_kgco2e_per_gb package_kgco2e
    """,
)
# The technology of a chip of clusters prices HBM by the stack; the terms' price is that of a chip
# of cores.
CORE_OWNERSHIP = Base(terms, answers.of_core_terms, same(("hbm_usd_per_gb", 99.0)))

# -- spaces
# ----------------------------------------------------------------------------------------------------------

RANGES: dict[str, tuple[Any, Any, Any]] = {
    "tensor_cores": (2, 8, 4), "rows": (32, 128, 96), "columns": (32, 128, 64),
    "vector_cores": (2, 8, 2),
    "lanes": (16, 64, 16), "global_buffer": ("2 MiB", "32 MiB", "6 MiB"),
    "tensor_buffer": ("8 KiB", "64 KiB", "8 KiB"),
    "vector_buffer": ("8 KiB", "64 KiB", "8 KiB"),
    "global_bandwidth": ("1 TB/s", "4 TB/s", "1 TB/s"),
    "hbm_bandwidth": ("1 TB/s", "4 TB/s", "1 TB/s"), "links": ("1 GB/s", "4 GB/s", "1 GB/s"),
    "clock": ("0.5 GHz", "2 GHz", "0.5 GHz"),
}  # fmt: skip


def space(folder: Path) -> dict[str, Any]:
    axes = {"tensor_cores": [4], "rows": [64], "columns": [64], "vector_cores": [4], "lanes": [32]}
    return {
        "schema": "phaze.space/1", "name": "mine", "title": "mine", "base": "tpu-v4-paper",
        "axes": axes | {"global_buffer": ["2 MiB"]},
        "core_buffers": {"least": "1 KiB", "bytes_per_unit": 16},
        "keep": {"area_of": "tpu-v4-paper"},
    }  # fmt: skip


def ranged(axis: str, by: str) -> Callable[[Path], dict[str, Any]]:
    def document(folder: Path) -> dict[str, Any]:
        found, (low, high, step) = space(folder), RANGES[axis]
        found["axes"][axis] = {"from": low, "to": high} | (
            {"times": 2} if by == "times" else {"step": step}
        )
        return found

    return document


def axes() -> list[Base]:
    """Every axis as a range by factor and by step."""
    found = []
    for axis, (low, high, step) in RANGES.items():
        at = f"axes/{axis}"
        cases: tuple[Case, ...] = (
            (f"axes.{axis}.from", f"{at}/from", high),
            (f"axes.{axis}.to", f"{at}/to", low),
            (f"axes.{axis}.times", f"{at}/times", 4),
        )
        found.append(Base(ranged(axis, "times"), answers.of_space, cases))
        smaller = RANGES[axis][0] if axis not in ("rows",) else 32
        found.append(
            Base(
                ranged(axis, "step"),
                answers.of_space,
                ((f"axes.{axis}.step", f"{at}/step", smaller),),
            )
            if step != smaller
            else Base(
                ranged(axis, "step"), answers.of_space, ((f"axes.{axis}.step", f"{at}/step", high),)
            )
        )
    return found


def many(folder: Path) -> dict[str, Any]:
    found = space(folder)
    found["axes"] |= {"tensor_cores": [1, 4, 64], "vector_cores": [1, 4], "rows": [8, 64]}
    found["keep"] |= {"least_share": 0.05, "most_power": "900 W", "most_usd": 50000}
    return found


def by_area(folder: Path) -> dict[str, Any]:
    found = many(folder)
    del found["keep"]["area_of"]
    found["keep"]["most_area"] = "300 mm2"
    return found


SPACE = Base(
    many,
    answers.of_space,
    same(("keep.most_usd", 100), ("base", "a100-80gb"), ("keep.area_of", "tpu-v2")),
    keys="""
    core_buffers.least core_buffers.bytes_per_unit keep.least_share keep.smaller_with_one_core keep.most_power
    """,
)
AREA = Base(by_area, answers.of_space, same(("keep.most_area", "30 mm2")))


HARDWARE: dict[str, list[Base]] = {
    "phaze.chip/1": [CHIP, USUAL],
    "phaze.cluster/1": [CLUSTER, TORUS, CHIP_LINKS],
    "phaze.stack/1": [
        STACK,
        SOUGHT_STACK,
        SHORT_STACK,
        MODULAR_STACK,
        KERNEL_STACK,
        LOW_STACK,
        CAST_STACK,
        SHARED_STACK,
        EXPERTS_STACK,
        SHARED_EXPERTS_STACK,
    ],
    "phaze.technology/1": [TECHNOLOGY],
    "phaze.ownership/1": [OWNERSHIP, CORE_OWNERSHIP],
    "phaze.space/1": [SPACE, AREA, *axes()],
}
