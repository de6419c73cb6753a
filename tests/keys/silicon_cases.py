"""What each key of a file of chips of clusters does: cases for :mod:`tests.keys.test_every_key`."""

from pathlib import Path
from typing import Any

from phaze.evaluate.layers import Setting
from phaze.hardware.library import load_built_stack, load_cluster
from phaze.hardware.silicon.design import load_cluster_chip
from phaze.search.clustered_chips import ClusterChips
from phaze.search.spaces import load_space, open_space
from tests.keys.cases import Base, same
from tests.keys.small import preset, written
from tests.search.made_silicon import SMALL


def of_space(space: dict[str, Any], folder: Path) -> list[Any]:
    """The chips of a space of clusters, field by field, and what is left out."""
    opened = open_space(load_space(written(folder, "space.json", space)))
    assert isinstance(opened, ClusterChips)
    return [[column.tolist() for column in opened.columns()], opened.found.die_mm2.tolist(), opened.left_out]


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
        ("keep.most_area", "200 mm2"),
        ("keep.least_share", 0.45),
        ("keep.sustained_power", "170 W"),
        ("keep.most_w_per_mm2", 0.9),
        ("keep.most_usd", 600.0),
    ),
)
SILICON: dict[str, list[Base]] = {"phaze.space/2": [SPACE]}


def of_stack(stack: dict[str, Any], folder: Path) -> list[Any]:
    """What software leaves of the rate of a chip of clusters."""
    found = load_built_stack(written(folder, "stack.json", stack))
    return [Setting(load_cluster_chip("h100"), load_cluster("dgx-h100"), found).constants.software_share]


SHARE = Base(lambda folder: preset("stacks", "megatron-core"), of_stack, same(("software_share", {"n5": 0.5})))
