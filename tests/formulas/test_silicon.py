"""Area, power and manufacturing cost of docs/silicon.md are those of the code, on bundled and
random chips."""

from collections.abc import Callable
from math import pi
from random import Random

import pytest

from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import GENERATIONS, on_die
from phaze.hardware.clocked import clocked
from phaze.hardware.library import load_chip
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.hardware.technology import Technology
from phaze.values import replace
from tests.formulas.stated import evaluate, formulas
from tests.hardware.chips import areas_in

AREA = formulas("silicon.md", "Area")
POWER = formulas("silicon.md", "Power and clock")
COST = formulas("silicon.md", "Manufacturing cost")
YIELD = formulas("technology.md", "Cost and carbon")
Names = dict[str, float | Callable[..., float]]
MIB = 2**20


def _chip(seed: int) -> tuple[Chip, Technology]:
    """A bundled chip of one die, and beyond the first two one with its sizes drawn at random."""
    random = Random(seed)
    chip = load_chip(("h100", "a100-80gb", "tpu-v4")[seed % 3])
    node = chip.process
    assert node is not None
    if seed < 3:
        return chip, node
    clusters = replace(
        chip.clusters,
        count=random.choice((2, 12, 60)),
        arrays=random.choice((1, 4, 8)),
        rows=random.choice((16, 128)),
        columns=random.choice((32, 256)),
        broadcast=random.random() < 0.5,
    )
    vectors = replace(
        chip.vectors, count=clusters.count, register_bytes=random.choice((2**18, 4 * MIB, 20 * MIB))
    )
    built = replace(chip.built, clusters=(clusters.count + 1, clusters.count))
    built = replace(built, interfaces="aldebaran") if random.random() < 0.5 else built
    return replace(chip, clusters=clusters, vectors=vectors, built=built), node


def _sizes(chip: Chip, node: Technology) -> Names:
    """The letters of the page."""
    clusters, areas = chip.clusters, areas_in(node, chip)
    return {
        "N": clusters.count, "Nb": chip.built.clusters[0], "c": clusters.arrays, "R": clusters.rows,
        "C": clusters.columns, "l": chip.vectors.lanes, "U": clusters.operand_bytes,
        "A": chip.vectors.register_bytes,
        "p": clusters.port_bytes_per_cycle, "w": chip.global_bytes_per_cycle,
        "F": chip.global_buffer.fan_out,
        "G": on_die(float(chip.global_buffer.size_bytes), chip.built.global_buffer),
        "B": chip.links.bandwidth_bytes_per_s, "area": areas.total,
        "H": chip.hbm.bandwidth_bytes_per_s, "stacks": chip.hbm.stacks, "MiB": MIB,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(9))
def test_areas_are_those_of_the_document(seed: int) -> None:
    chip, node = _chip(seed)
    table, built = node.area, chip.built
    interfaces = table.ga100 if built.interfaces == "ga100" else table.aldebaran
    shared = table.cache if chip.global_buffer.cache else table.core_buffer
    names = _sizes(chip, node) | {
        "mac": table.mac_mm2, "support": table.support_mm2, "lane": table.lane_mm2,
        "control of a lane": table.control_lane_mm2,
        "control of a cluster": table.control_cluster_mm2,
        "control of an array": table.control_array_mm2,
        "sites": round(on_die(float(chip.hbm.stacks), built.hbm)),
        "stack": interfaces.stack_mm2,
        "lane rate": chip.links.lane_bytes_per_s or node.lane_bytes_per_s,
        "host lanes": table.host_lanes,
        "serdes": interfaces.lane_mm2, "area of a byte/s": interfaces.link_mm2_per_byte_per_s,
        "uncore": table.uncore_mm2, "wire area": table.network_mm2,
        "sram": lambda size: float(table.core_buffer.at(size)),
    }  # fmt: skip
    parts = areas_in(node, chip)
    for name, stated in AREA.items():
        shared_name: Names = (
            {"sram": lambda size: float(shared.at(size))} if name == "global_buffer" else {}
        )
        names[name] = evaluate(stated, names | shared_name)
    own = parts.by_part()
    assert {name: names[name] for name in own} == pytest.approx(own, rel=1e-12)
    assert names["total"] == pytest.approx(parts.total, rel=1e-12)
    assert set(AREA) == {*own, "registers", "rest", "total"} - {"uncore"}


@pytest.mark.parametrize("seed", range(9))
def test_joules_and_watts_are_those_of_the_document(seed: int) -> None:
    chip, node = _chip(seed)
    energy, clusters, areas = node.energy, chip.clusters, areas_in(node, chip)
    shared = chip.global_buffer.size_bytes

    def buffer(size: float) -> float:
        """Of the global buffer as it stands, of a cluster's own buffers by the bank."""
        return float(
            energy.buffer.at(size) if size == shared else energy.core_buffer_j_per_byte(size)
        )

    names = _sizes(chip, node) | {
        "mac": energy.mac_j, "edge_j": energy.edge_j, "wire": node.wire_j, "lane": energy.lane_j,
        "buffer": buffer,
        "cluster area": areas.clusters / chip.built.clusters[0], "leakage": energy.static_w_per_mm2,
        "stack_w": energy.stack_w, "link_j": energy.link_j_per_byte, "hbm_j": energy.hbm_j_per_byte,
        "activity": energy.hbm_activity, "G": shared,
    }  # fmt: skip
    if clusters.broadcast:
        divisors = [d for d in range(1, clusters.arrays + 1) if clusters.arrays % d == 0]
        names["edge"] = min(evaluate(POWER["edge (2)"], names | {"d": d}) for d in divisors)
    else:
        names["edge"] = evaluate(POWER["edge"], names)
    for name in (
        "tile",
        "delivered",
        "reads",
        "product_j",
        "vector_j",
        "idle_w",
        "product_fixed",
        "vector_fixed",
    ):
        names[name] = evaluate(POWER[name], names)
    held = clocked(chip)
    assert held is not None
    power = held.power
    stated = [
        names[name] for name in ("product_j", "vector_j", "idle_w", "product_fixed", "vector_fixed")
    ]
    own = [
        power.product_j,
        power.vector_j,
        power.idle_w,
        power.product_fixed_w,
        power.vector_fixed_w,
    ]
    assert stated == pytest.approx(own, rel=1e-12)
    assert set(POWER) == {
        "edge", "edge (2)", "tile", "delivered", "reads", "product_j", "vector_j", "idle_w",
        "product_fixed",
        "vector_fixed",
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_manufacturing_cost_is_that_of_the_document(seed: int) -> None:
    chip, node = _chip(seed)
    terms, fab, areas = load_terms(), node.fab, areas_in(node, chip)
    assert chip.built.dies == 1 and chip.hbm.generation
    names: dict[str, float] = {
        "pi": pi, "R": fab.wafer_diameter_mm / 2, "A": areas.total, "D": fab.defects_per_cm2 / 100,
        "alpha": terms.yield_clustering, "wafer": fab.wafer_usd, "dies": 1,
        "stacks": chip.hbm.stacks,
        "price of a stack": GENERATIONS[chip.hbm.generation].usd, "package": terms.package_usd,
        "B": chip.links.bandwidth_bytes_per_s / 1e9,
    }  # fmt: skip
    names |= {name: evaluate(YIELD[name], names) for name in ("N", "Y")}
    for name in ("die", "network share", "manufacturing"):
        names[name] = evaluate(COST[name], names)
    cost = manufacturing_of(chip, terms)
    assert cost is not None and names["manufacturing"] == pytest.approx(cost.usd, rel=1e-12)
    assert set(COST) == {"die", "network share", "manufacturing"}
