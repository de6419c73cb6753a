"""A process whose HBM or link interfaces take no area, as a file: the other end of "memory and links are priced"."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from phaze.hardware.technology import Curve, InterfaceAreas, Technology

Interface = Literal["hbm", "links"]
MM2_PER_UM2, PJ, GB = 1e-6, 1e-12, 1e9


def without_area(node: Technology, interfaces: Sequence[Interface]) -> Technology:
    """The node with some interfaces of no area. Edge and power of stacks, and power of links, stay."""

    def shrunk(own: InterfaceAreas) -> InterfaceAreas:
        stack = 0.0 if "hbm" in interfaces else own.stack_mm2
        lane, rate = (0.0, 0.0) if "links" in interfaces else (own.lane_mm2, own.link_mm2_per_byte_per_s)
        return InterfaceAreas(stack, lane, rate)

    area = replace(node.area, ga100=shrunk(node.area.ga100), aldebaran=shrunk(node.area.aldebaran))
    return replace(node, area=area)


def _curve(curve: Curve, unit: float = 1.0) -> dict[str, Any]:
    return {"sizes": list(curve.sizes_bytes), "values": [value / unit for value in curve.values]}


def _interfaces(own: InterfaceAreas) -> dict[str, float]:
    rate = own.link_mm2_per_byte_per_s * GB
    return {"stack_mm2": own.stack_mm2, "lane_mm2": own.lane_mm2, "link_mm2_per_gb_per_s": rate}


def technology_of(node: Technology) -> dict[str, Any]:
    """A node in full, as ``phaze.technology/2``. It keeps its name, by which stacks know their share of its rate."""
    area, energy = node.area, node.energy
    names = ("mac", "support", "lane", "control_lane", "control_cluster", "control_array", "network")
    parts = {f"{name}_um2": getattr(area, f"{name}_mm2") / MM2_PER_UM2 for name in names}
    return {
        "schema": "phaze.technology/2",
        "name": node.name,
        "title": node.title,
        "wire_pj_per_byte_mm": energy.wire_j / PJ,
        "lane": area.lane_bytes_per_s,
        "area": {
            **parts,
            "uncore_mm2": area.uncore_mm2,
            "host_lanes": area.host_lanes,
            "sram": _curve(area.core_buffer),
            "cache": _curve(area.cache),
            "ga100": _interfaces(area.ga100),
            "aldebaran": _interfaces(area.aldebaran),
        },
        "energy": {
            "mac_pj": energy.mac_j / PJ,
            "edge_pj_per_byte": energy.edge_j / PJ,
            "lane_pj": energy.lane_j / PJ,
            "buffer": _curve(energy.buffer, PJ),
            "core_bank": energy.core_bank_bytes,
            "hbm_pj_per_byte": energy.hbm_j_per_byte / PJ,
            "link_pj_per_byte": energy.link_j_per_byte / PJ,
            "leakage_w_per_mm2": energy.static_w_per_mm2,
            "stack_w": energy.stack_w,
            "hbm_activity": energy.hbm_activity,
        },
        "voltage": {
            "reference": node.voltage.reference_hz,
            "slope": node.voltage.slope,
            "least": node.voltage.least,
            "most": node.voltage.most,
        },
        "fab": node.fab.model_dump(),
    }
