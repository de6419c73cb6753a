"""Files to start from, each commented and each good as it is: ``phaze new``.

A goal is a process node and the most area and power of a chip. A new chip has as many cores of one
kind as the goal allows: the largest n whose area and TDP, by the node's own technology,
are within it (:func:`chip_text`). Of nodes that have a model of clusters it is a chip of clusters,
whose power limit sets its clock: the largest n whose die is within the area and holds at least half
of its clock at the power.
"""

import json
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from phaze import documents
from phaze.errors import InfeasibleError, InputError
from phaze.graph.tensor_plan import is_place
from phaze.graph.zoo import entry_of
from phaze.hardware.area import RETICLE_MM, most_stacks
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.clocked import die_mm2
from phaze.hardware.library import chip_in, chip_keys, load_chip, stated_chip
from phaze.hardware.technology import node_names
from phaze.search.cluster_space import SPARES, ClusterSpace
from phaze.study.starter_texts import (
    CHIP,
    CLUSTER,
    CLUSTERED_CHIP,
    CLUSTERED_SPACE,
    MODEL,
    SPACE,
    STACK,
    STUDY,
)

MOST_CORES = 4096
"""The most of the spaces that are bundled."""
USUAL_MODEL = "llama2-7b"
"""The model of a study where none is named."""
UNLIMITED_W = 1e6
"""More than any chip draws."""


@dataclass(frozen=True, slots=True)
class StarterNode:
    """A process node: the bundled chip that others start from, its cluster and rules, and the space
    to search."""

    base: str
    cluster: str
    rules: str
    global_buffer: str
    small_buffer: str = "16 MiB"
    links: tuple[str, ...] = ()


NODES: Mapping[str, StarterNode] = MappingProxyType(
    {
        "n3": StarterNode(
            "n3-reticle-base",
            "nvl72",
            "cluster",
            "100 MiB",
            "50 MiB",
            ("450 GB/s", "900 GB/s", "1800 GB/s"),
        ),
        "n5": StarterNode(
            "h100", "dgx-h100", "cluster", "50 MiB", "25 MiB", ("225 GB/s", "450 GB/s", "900 GB/s")
        ),
        "n7": StarterNode(
            "a100-80gb",
            "selene",
            "cluster",
            "40 MiB",
            "20 MiB",
            ("150 GB/s", "300 GB/s", "600 GB/s"),
        ),
        "paper-22nm": StarterNode("tpu-v4-paper", "paper-flat", "icml24", "32 MiB"),
    }
)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is started: its name, the node, the most area and power of a chip, and the models it is
    for."""

    name: str
    node: str = "n5"
    area_mm2: float = 800.0
    power_w: float = 700.0
    models: tuple[str, ...] = (USUAL_MODEL,)

    @property
    def of_node(self) -> StarterNode:
        """The node of that name."""
        return NODES[self.node]

    def values(self) -> dict[str, object]:
        """What the texts have places for."""
        base = load_chip(self.of_node.base, form="cores")
        return {
            "name": self.name,
            "node": self.node,
            "area": f"{self.area_mm2:g}",
            "power": f"{self.power_w:g}",
            "models": json.dumps(list(self.models), ensure_ascii=False),
            "base": self.of_node.base,
            "cluster": self.of_node.cluster,
            "rules": self.of_node.rules,
            "global_buffer": self.of_node.global_buffer,
            "hbm": f"{base.hbm.size_bytes // 2**30} GiB",
            "hbm_bandwidth": f"{base.hbm.bandwidth_bytes_per_s / 1e9:g} GB/s",
            "links": base.links.count,
            "link_bandwidth": f"{base.links.bandwidth_bytes_per_s / 1e9:.9g} GB/s",
        }


def _chip(goal: Goal, cores: int, file: str) -> tuple[str, Chip]:
    """A chip with so many cores or clusters, as text and as a value; an InputError where its limit
    holds no clock."""
    if goal.node not in node_names():
        text = CHIP.format(**goal.values(), cores=cores, file=file)
        return text, chip_in(tomllib.loads(text), "a new chip")
    base = stated_chip(*chip_keys(goal.of_node.base))
    # With edge for one stack too few there is one: the die is then larger than the goal, and
    # nothing fits.
    stacks = max(1, min(base.hbm.stacks, most_stacks(goal.area_mm2)))
    text = CLUSTERED_CHIP.format(
        **goal.values(),
        cores=cores,
        built=cores + -(-cores // SPARES),
        stacks=stacks,
        generation=base.hbm.generation,
        clock=f"{base.clock_hz / 1e9:g} GHz",
        file=file,
    )
    return text, chip_in(tomllib.loads(text), "a new chip")


def _takes(chip: Chip) -> tuple[float, float]:
    """mm2 and W of a chip, its die with the edge that its stacks need."""
    figures = estimates_of(chip)
    assert figures is not None, "a new chip names a technology"
    return max(figures.area_mm2, die_mm2(chip) or 0.0), figures.design_w


def chip_text(goal: Goal, file: str) -> str:
    """A chip with as many cores as area and power allow."""

    def fits(cores: int) -> bool:
        try:
            area_mm2, power_w = _takes(_chip(goal, cores, file)[1])
        except InputError:  # Its limit holds no half of its clock.
            return False
        return area_mm2 <= goal.area_mm2 and power_w <= goal.power_w

    if not fits(1):
        # Without a limit of its own: what one core or cluster takes.
        least_mm2, least_w = _takes(_chip(replace(goal, power_w=UNLIMITED_W), 1, file)[1])
        seen = f"{goal.area_mm2:g} mm2 and {goal.power_w:g} W hold no chip at {goal.node}"
        raise InfeasibleError(
            (
                f"{seen}; one core with its memory and links takes {least_mm2:.0f} mm2 and "
                f"{least_w:.0f} W."
            ),
            {"needed_mm2": least_mm2, "needed_w": least_w},
        )
    least, most = 1, MOST_CORES
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return _chip(goal, least, file)[0]


def in_a_line(file: str) -> str:
    """A file's name as a command line takes it."""
    return shlex.quote(f"./{file}" if file.startswith("-") else file)


def space_text(goal: Goal, name: str, file: str) -> str:
    """A space of a goal's chips, of clusters where the node has such a model."""
    values = goal.values() | {"name": name, "file": file}
    if goal.node not in node_names():
        return SPACE.format(**values)
    reticle_mm2 = RETICLE_MM[0] * RETICLE_MM[1]
    if goal.area_mm2 > reticle_mm2:
        seen = f"{goal.area_mm2:g} mm2 are more than a reticle"
        raise InputError(
            "--area", seen, f"give at most {reticle_mm2:g} mm2: a chip of this space has one die"
        )
    most = max(1, min(6, most_stacks(goal.area_mm2)))
    stacks = [count for count in (2, 4, 5, 6) if count <= most] or [most]
    text = CLUSTERED_SPACE.format(
        **values,
        small_buffer=goal.of_node.small_buffer,
        stacks_axis=json.dumps(stacks[-3:]),
        links_axis=json.dumps(list(goal.of_node.links)),
    )
    documents.check(ClusterSpace, tomllib.loads(text), "a new space")
    return text


def texts_of(kind: str, goal: Goal, file: str) -> dict[str, str]:
    """The files of a kind by their names: ``file``, and of a study also its space."""
    called = in_a_line(file)
    if kind == "chip":
        return {file: chip_text(goal, called)}
    if kind == "study":
        for model in goal.models:
            if not is_place(model):
                entry_of(model)
        twice = next((model for model in goal.models if goal.models.count(model) > 1), None)
        if twice is not None:
            raise InputError("--model", f"'{twice}' is named twice", "name each model once")
        space = f"{file.removesuffix('.toml')}-space.toml"
        beside = json.dumps(space.rsplit("/", 1)[-1], ensure_ascii=False)
        memory = f'hbm = ["{goal.values()["hbm"]}"]                      # memory sizes to try'
        if goal.node in node_names():
            memory = "# The memory of a chip is that of its HBM stacks, an axis of the space."
        study = STUDY.format(**goal.values(), file=called, space=beside, memory=memory)
        return {file: study, space: space_text(goal, f"{goal.name}-space", in_a_line(space))}
    if kind == "space":
        return {file: space_text(goal, goal.name, called)}
    text = {"cluster": CLUSTER, "stack": STACK, "model": MODEL}[kind]
    return {file: text.format(**goal.values(), file=called)}
