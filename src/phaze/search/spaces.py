"""Spaces by name or path, bundled ones among them, with the chips and the technology that they name."""

from importlib.resources import files

from phaze import documents
from phaze.documents import Reader
from phaze.errors import InputError, unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.clocked import at_held_clock
from phaze.hardware.converted import as_clusters, without_measurements
from phaze.hardware.library import chip_keys, load_chip, stated_chip
from phaze.hardware.technology import load_node
from phaze.search.space import Space
from phaze.search.space_file import CLUSTERS, ClusterSpaceFile, SpaceFile
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
    document = documents.parse(raw, notation, where)
    if document.get("schema") == CLUSTERS:
        return space_of(documents.check(ClusterSpaceFile, document, where), reader)
    return space_of(documents.check(SpaceFile, document, where), reader)


def space_of(file: SpaceFile | ClusterSpaceFile, reader: Reader = read_text) -> Space:
    """The space of a checked file, the chips and the technology that it names read."""
    return _of_clusters(file, reader) if isinstance(file, ClusterSpaceFile) else _of_cores(file, reader)


def _of_cores(file: SpaceFile, reader: Reader) -> Space:
    base = load_chip(file.base, reader, form="cores")
    area_chip = None if file.keep.area_of is None else load_chip(file.keep.area_of, reader, form="cores")
    for key, chip in (("base", base), ("keep.area_of", area_chip)):
        if chip is not None and chip.of_clusters:
            seen = f"'{chip.name}' is a chip of clusters, whose spaces are phaze.space/2"
            raise InputError(f"{file.name}: {key}", seen, "name a chip of cores (phaze.chip/1)")
    if base.process is None:
        raise _unnamed(file)
    return Space(file, base, base.process, area_chip)


def _of_clusters(file: ClusterSpaceFile, reader: Reader) -> Space:
    # What was measured of a base is not of the chips that vary it.
    base = without_measurements(as_clusters(stated_chip(*chip_keys(file.base, reader))))
    if base.technology is None:
        raise _unnamed(file)
    if base.built.dies > 1 or base.built.base_dies:
        seen = f"the chip '{file.base}' has {base.built.dies + base.built.base_dies} dies"
        raise InputError(f"{file.name}: base", seen, "choose one of a single die: so are the chips of a space")
    if base.hbm.generation is None:
        raise InputError(f"{file.name}: base", f"the chip '{file.base}' has no HBM", "choose one that does")
    node = load_node(base.technology, reader)
    return Space(file, at_held_clock(replace(base, technology=node.name, process=node)), node)


def _unnamed(file: SpaceFile | ClusterSpaceFile) -> InputError:
    return InputError(f"{file.name}: base", f"the chip '{file.base}' names no technology", "choose one that does")
