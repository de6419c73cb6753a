"""Spaces by name or path, bundled ones among them, with the chips and the technology that they
name."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from phaze import documents
from phaze.documents import Reader
from phaze.errors import InputError, unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.chip_record import states_clusters
from phaze.hardware.clocked import at_held_clock
from phaze.hardware.converted import without_measurements
from phaze.hardware.library import chip_keys, clustered_chip, load_chip
from phaze.hardware.technology import load_node
from phaze.search.cluster_space import CLUSTER_SPACE, ClusterSpace
from phaze.search.core_space import CoreSpace
from phaze.search.space import Space
from phaze.values import replace

FOLDERS = (("phaze.search", "presets/spaces"), ("phaze.hardware", "presets/silicon/spaces"))
"""Where spaces are bundled: those of chips of cores, and of clusters."""


def _bundled() -> dict[str, tuple[str, str]]:
    """Every bundled space and where it lies."""
    return {
        entry.name.removesuffix(".toml"): (room, folder)
        for room, folder in FOLDERS
        for entry in (files(room) / folder).iterdir()
    }


def space_names() -> tuple[str, ...]:
    """The spaces that are bundled."""
    return tuple(sorted(_bundled()))


def load_space(text: str, reader: Reader = read_text) -> Space:
    """A space by preset name or path."""
    if is_path(text):
        raw, where = reader(text)
        notation = documents.notation_of(text, raw)
    elif text not in (bundled := _bundled()):
        raise unknown_name("", "space", text, sorted(bundled))
    else:
        room, folder = bundled[text]
        raw, notation = (files(room) / folder / f"{text}.toml").read_text(encoding="utf-8"), "toml"
        where = f"{folder}/{text}.toml"
    return space_in(documents.parse(raw, notation, where), where, reader)


def space_in(keys: Mapping[str, Any], where: str, reader: Reader = read_text) -> Space:
    """The space of a file of either version, the chips and the technology that it names read."""
    if keys.get("schema") == CLUSTER_SPACE.name:
        return _with_node(documents.check(ClusterSpace, keys, where), reader)
    return _with_technology(documents.check(CoreSpace, keys, where), reader)


def _with_technology(space: CoreSpace, reader: Reader) -> Space:
    base = load_chip(space.base_name, reader, "cores")
    area_of = space.keep.area_of
    area_chip = None if area_of is None else load_chip(area_of, reader, "cores")
    for key, chip in (("base", base), ("keep.area_of", area_chip)):
        if chip is not None and states_clusters(chip):
            seen = f"'{chip.name}' is a chip of clusters, whose spaces are phaze.space/2"
            raise InputError(f"{space.name}: {key}", seen, "name a chip of cores (phaze.chip/1)")
    if base.process is None:
        raise _unnamed(space)
    return replace(space, base=base, technology=base.process, area_chip=area_chip)


def _with_node(space: ClusterSpace, reader: Reader) -> Space:
    # What was measured of a base is not of the chips that vary it.
    base = without_measurements(clustered_chip(*chip_keys(space.base_name, reader)))
    if base.technology is None:
        raise _unnamed(space)
    if base.built.dies > 1 or base.built.base_dies:
        seen = f"the chip '{space.base_name}' has {base.built.dies + base.built.base_dies} dies"
        raise InputError(
            f"{space.name}: base", seen, "choose one of a single die: so are the chips of a space"
        )
    if base.hbm.generation is None:
        raise InputError(
            f"{space.name}: base",
            f"the chip '{space.base_name}' has no HBM",
            "choose one that does",
        )
    node = load_node(base.technology, reader)
    return replace(
        space,
        base=at_held_clock(replace(base, technology=node.name, process=node)),
        technology=node,
    )


def _unnamed(space: Space) -> InputError:
    return InputError(
        f"{space.name}: base",
        f"the chip '{space.base_name}' names no technology",
        "choose one that does",
    )
