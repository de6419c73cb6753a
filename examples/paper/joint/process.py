"""A process whose HBM or link interfaces take no area, as a file: the other end of "memory and
links are priced"."""

from collections.abc import Sequence
from typing import Any, Literal

from phaze.hardware.technology import Node
from phaze.hardware.technology_tables import InterfaceAreas
from phaze.values import replace

Interface = Literal["hbm", "links"]


def without_area(node: Node, interfaces: Sequence[Interface]) -> Node:
    """The node with some interfaces of no area. Edge and power of stacks, and power of links,
    stay."""

    def shrunk(areas: InterfaceAreas) -> InterfaceAreas:
        stack = 0.0 if "hbm" in interfaces else areas.stack_mm2
        lane, rate = (
            (0.0, 0.0) if "links" in interfaces else (areas.lane_mm2, areas.link_mm2_per_byte_per_s)
        )
        return replace(areas, stack_mm2=stack, lane_mm2=lane, link_mm2_per_byte_per_s=rate)

    area = replace(node.area, ga100=shrunk(node.area.ga100), aldebaran=shrunk(node.area.aldebaran))
    return replace(node, area=area)


def technology_of(node: Node) -> dict[str, Any]:
    """A node in full, as ``phaze.technology/2``. It keeps its name, by which stacks know their
    share of its rate."""
    return node.model_dump(
        by_alias=True, exclude_none=True, exclude={"base", "factors", "notes", "sources"}
    )
