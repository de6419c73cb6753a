"""The formulas of docs/technology.md are those of the code, evaluated on bundled chips of cores."""

import re
from collections.abc import Callable
from math import pi

import pytest

from phaze.hardware.area import most_stacks
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import ownership_of
from phaze.hardware.chip_parts import on_die
from phaze.hardware.clocked import clocked, full_rate_power
from phaze.hardware.library import load_chip
from phaze.hardware.manufacturing import die_yield, dies_per_wafer
from phaze.hardware.ownership import HOURS_PER_YEAR, load_terms
from phaze.hardware.technology import Technology, load_node, load_technology
from tests.formulas.stated import DOCS, evaluate, formulas
from tests.hardware.chips import areas_in

AREA = formulas("technology.md", "Area")
POWER = formulas("technology.md", "Power")
MONEY = formulas("technology.md", "Cost and carbon")
CHIPS = ("a100-80gb", "h100", "tpu-v4", "mi300x")


def _loaded(name: str) -> tuple[Chip, Technology]:
    chip = load_chip(name, form="cores")
    assert chip.technology is not None
    return chip, load_technology(chip.technology)


@pytest.mark.parametrize("name", CHIPS)
def test_areas_are_those_of_the_document(name: str) -> None:
    chip, technology = _loaded(name)
    table, built, core, vector = technology.area, chip.built, chip.clusters, chip.vectors
    names: dict[str, float | Callable[..., float]] = {
        "kc": on_die(1.0, built.clusters), "kg": on_die(1.0, built.global_buffer),
        "kh": on_die(1.0, built.hbm),
        "T": core.count,
        "r": core.rows, "c": core.columns, "mac": table.mac_mm2, "V": vector.count,
        "l": vector.lanes, "lane": table.lane_mm2, "control": table.control_cluster_mm2,
        "u": core.operand_bytes, "v": vector.register_bytes,
        "g": chip.global_buffer.size_bytes,
        "w": chip.global_buffer.bandwidth_bytes_per_s / chip.clock_hz,
        "network": table.network_mm2_per_byte_per_cycle, "H": chip.hbm.bandwidth_bytes_per_s,
        "hbm": table.hbm_mm2_per_byte_per_s, "B": chip.links.bandwidth_bytes_per_s,
        "link": table.link_mm2_per_byte_per_s, "share": table.other_share,
        "core": lambda size: float(table.core_buffer.at(size)),
        "scratchpad": lambda size: float((table.cache if chip.global_buffer.cache else table.scratchpad).at(size)),
    }  # fmt: skip
    areas = areas_in(technology, chip).by_component()
    components = {text: evaluate(AREA[text], names) for text in AREA if text != "other"}
    components["other"] = evaluate(AREA["other"], {**components, "share": table.other_share})
    assert {text.replace(" ", "_"): value for text, value in components.items()} == pytest.approx(
        areas, rel=1e-12
    )


@pytest.mark.parametrize("name", CHIPS)
def test_tdp_is_that_of_the_document(name: str) -> None:
    chip, technology = _loaded(name)
    power, table = full_rate_power(chip), technology.energy
    rate = {"full rate": chip.macs * chip.clock_hz, "energy": table.mac_j}
    assert evaluate(POWER["component"], rate) == pytest.approx(power.tensor_arrays)
    area = areas_in(technology, chip).total
    assert evaluate(
        POWER["static"], {"leakage": table.static_w_per_mm2, "area": area}
    ) == pytest.approx(power.static)
    sides = {"tensor side": power.tensor_arrays + power.tensor_buffers}
    sides |= {"vector side": power.vector_units + power.vector_buffers}
    rest = {
        "global buffer": power.global_buffer,
        "HBM": power.hbm,
        "links": power.links,
        "static": power.static,
    }
    assert evaluate(
        POWER["TDP"], {**sides, **rest, "activity": technology.energy.design_activity or 0.0}
    ) == pytest.approx(power.design_w)
    assert set(POWER) == {"component", "static", "TDP"}


@pytest.mark.parametrize("name", CHIPS)
def test_money_and_carbon_are_those_of_the_document(name: str) -> None:
    chip, technology = _loaded(name)
    terms, fab, dies = load_terms(), technology.fab, chip.built.dies
    area = areas_in(technology, chip).total / dies
    cost = ownership_of(chip, terms)
    assert cost is not None
    names: dict[str, float] = {
        "pi": pi, "R": fab.wafer_diameter_mm / 2, "A": area, "D": fab.defects_per_cm2 / 100,
        "dies": dies,
        "alpha": terms.yield_clustering, "wafer": fab.wafer_usd,
        "HBM GB": chip.hbm.size_bytes / 1e9,
        "price": terms.hbm_usd_per_gb, "package": terms.package_usd,
        "utilisation": terms.utilisation,
        "power": full_rate_power(chip).design_w / 1e3, "PUE": terms.power_usage_effectiveness,
        "hours": terms.lifetime_years * HOURS_PER_YEAR,
        "price of a kWh": terms.electricity_usd_per_kwh,
        "fab grid": terms.fab_grid_kgco2e_per_kwh, "energy": fab.energy_kwh_per_cm2 / 100,
        "gases": fab.gas_kgco2e_per_cm2 / 100, "materials": fab.materials_kgco2e_per_cm2 / 100,
        "HBM carbon": terms.hbm_kgco2e_per_gb, "package carbon": terms.package_kgco2e,
        "grid": terms.grid_kgco2e_per_kwh,
    }  # fmt: skip
    names |= {name: evaluate(MONEY[name], names) for name in ("N", "Y")}
    assert names["N"] == dies_per_wafer(area, fab.wafer_diameter_mm) == cost.making.dies_per_wafer
    assert names["Y"] == pytest.approx(
        die_yield(area, fab.defects_per_cm2, terms.yield_clustering), rel=1e-12
    )
    names["electricity"] = evaluate(MONEY["electricity, kWh"], names)
    assert {
        text: evaluate(MONEY[text], names) for text in MONEY if text not in ("N", "Y")
    } == pytest.approx(
        {
            "manufacturing, USD": cost.making.usd,
            "electricity, kWh": cost.energy_kwh,
            "operation, USD": cost.energy_usd,
            "manufacturing, kgCO2e": cost.making.kgco2e,
            "operation, kgCO2e": cost.operational_kgco2e,
        },
        rel=1e-12,
    )


def _in_text(pattern: str) -> str:
    """A formula that stands in a sentence of docs/silicon.md."""
    match = re.search(pattern, (DOCS / "silicon.md").read_text())
    assert match, pattern
    return match[1]


def test_voltage_and_die_edge_are_those_of_the_document() -> None:
    voltage = load_node("n5").voltage
    text = _in_text(r"V\(f\) = (max\(.*?\)\)), at most 1.25")
    for clock_hz in (5e8, 1.2e9, 1.7e9, 2.1e9):
        assert evaluate(text, {"f": clock_hz, "reference": voltage.reference_hz}) == pytest.approx(
            voltage.at(clock_hz)
        )
    assert voltage.most == 1.25
    edge = _in_text(r"Stacks need die edge: (.*?) of them")
    for area in (100.0, 400.0, 610.0, 800.0, 858.0, 2000.0):
        assert evaluate(edge, {"area": area}) == most_stacks(area)


def test_the_clock_held_is_the_greatest_within_the_limit() -> None:
    held = clocked(load_chip("h100"))
    assert held is not None
    watts = _in_text(r"(fixed \+ joule f V\(f\)\^2) within the limit")
    node = load_node("n5")
    for f, within in ((held.held_hz * (1 - 1e-9), True), (held.held_hz * (1 + 1e-9), False)):
        names: dict[str, float | Callable[..., float]] = {
            "f": f,
            "V": lambda clock: float(node.voltage.at(clock)),
        }
        power = held.power
        drawn = [
            evaluate(watts, names | {"fixed": fixed, "joule": joule})
            for fixed, joule in (
                (power.product_fixed_w, power.product_j),
                (power.vector_fixed_w, power.vector_j),
            )
        ]
        assert (max(drawn) <= 700.0) is within
