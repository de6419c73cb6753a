"""Hardware by name or by path: the bundled files under ``presets/``, and the user's own.

What looks like a path (it ends in .toml or .json, holds a slash, or is ``-``) is read from there; all else is
the name of a preset, with the nearest right one in the error.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from phaze import documents
from phaze.documents import Reader
from phaze.errors import InputError, unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster, links_words, same_links
from phaze.hardware.files import ChipFile, ClusterFile
from phaze.hardware.stack import Stack, require_built
from phaze.hardware.stack_file import StackFile

if TYPE_CHECKING:
    from phaze.hardware.silicon.files import AcceleratorFile

M = TypeVar("M", bound=documents.Document)


# A release: the stack's name, then year, month and perhaps a patch.
DATED = re.compile(r"([a-z][a-z0-9-]*)-(\d{2}\.\d{2}(?:\.\d{1,2})?)")


@cache
def preset_names(kind: str) -> tuple[str, ...]:
    """The names of the presets of a kind (chips, clusters, stacks, technologies), sorted."""
    folder = files("phaze.hardware") / "presets" / kind
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def read(model: type[M], kind: str, text: str, reader: Reader = read_text) -> M:
    """The file of ``kind`` that ``text`` names or leads to, checked."""
    if is_path(text):
        raw, where = reader(text)
        found = documents.parse(raw, documents.notation_of(text, raw), where)
        return documents.check(model, found, where)
    if text not in preset_names(kind):
        raise unknown_name("", kind.removesuffix("s"), text, preset_names(kind))
    where = f"presets/{kind}/{text}.toml"
    return documents.check(model, bundled(where), where)


@cache
def bundled(where: str) -> Mapping[str, Any]:
    """The keys of a bundled file of this room; a process reads it once."""
    source = files("phaze.hardware") / where
    return documents.parse(source.read_text(encoding="utf-8"), "toml", where)


def load_chip(text: str, reader: Reader = read_text) -> Chip:
    """A chip of either version by preset name or path, with the technology that it names."""
    return _chip(text, reader, False)


def load_core_chip(text: str, reader: Reader = read_text) -> Chip:
    """A chip by preset name or path, as one of cores where a preset of that name is bundled as such too."""
    return _chip(text, reader, True)


def _chip(text: str, reader: Reader, cores_first: bool) -> Chip:
    # The format of chips of clusters is built on this module.
    from phaze.hardware.silicon.files import CORES_FIRST, USUAL, read_chip

    return chip_of_file(read_chip(text, reader, CORES_FIRST if cores_first else USUAL), reader)


def chip_of_file(file: "ChipFile | AcceleratorFile", reader: Reader = read_text) -> Chip:
    """The chip of a checked file of either version, with the technology that it names."""
    # The formats of technologies and of chips of clusters are built on this module.
    from phaze.hardware.silicon.design import chip_in
    from phaze.hardware.technology_files import load_technology

    if not isinstance(file, ChipFile):
        return chip_in(file, reader)
    chip = file.value()
    return chip if chip.technology is None else replace(chip, process=load_technology(chip.technology, reader))


def load_cluster(text: str, reader: Reader = read_text, chip: Chip | None = None) -> Cluster:
    """A cluster by preset name or path; where its innermost level is as fast as a chip's links, those of ``chip`` or
    of the chip that it names. A user's own cluster is a limit, a bundled one grows."""
    file = read(ClusterFile, "clusters", text, reader)
    if chip is None and file.levels[0].bandwidth == "chip" and file.chip is not None:
        chip = load_chip(file.chip, reader)
    return replace(file.value(None if chip is None else chip.links), limit=is_path(text))


def require_links(chip: Chip, text: str, cluster: Cluster, where: str) -> None:
    """Refuse a user's own chip whose links contradict the cluster; a built-in one is reported (cluster_document)."""
    if is_path(text) and not same_links(chip, cluster):
        remedy = 'let them agree, or give a cluster whose innermost level says bandwidth = "chip"'
        raise InputError(f"{where}: {text}: links.bandwidth", links_words(chip, cluster), remedy)


def load_stack(text: str, reader: Reader = read_text) -> Stack:
    """A software stack by preset name or path."""
    return read_stack(text, reader).value()


def read_stack(text: str, reader: Reader = read_text) -> StackFile:
    """A stack's file by preset name or path; one with ``base`` changes single keys of a preset."""
    if not is_path(text):
        text = dated_stack(text)
        if text not in preset_names("stacks"):
            raise unknown_name("", "stack", text, preset_names("stacks"))
        where = f"presets/stacks/{text}.toml"
        return documents.check(StackFile, _on_base(_preset_stack(text), where), where)
    raw, where = reader(text)
    own = documents.parse(raw, documents.notation_of(text, raw), where)
    return documents.check(StackFile, _on_base(own, where), where)


def dated_stack(text: str) -> str:
    """The bundled stack of a release: ``NAME-24.11.1`` is the newest ``NAME-YEAR.MONTH`` that is not later; ``text``
    where it is bundled itself or none is."""
    asked = DATED.fullmatch(text)
    if asked is None or text in preset_names("stacks"):
        return text
    known = [found for name in preset_names("stacks") if (found := DATED.fullmatch(name)) and found[1] == asked[1]]
    before = [found for found in known if _date(found[2]) <= _date(asked[2])]
    return max(before, key=lambda found: _date(found[2]))[0] if before else text


def stating_stack(name: str) -> str:
    """The bundled stack in whose file the software shares of one stand: itself, or a base."""
    own = _preset_stack(name)
    return name if "software_share" in own or "base" not in own else stating_stack(str(own["base"]))


def _date(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _preset_stack(name: str) -> dict[str, Any]:
    """The keys of a bundled stack file as they stand there."""
    return dict(bundled(f"presets/stacks/{name}.toml"))


def _on_base(own: dict[str, Any], where: str) -> dict[str, Any]:
    """The keys of a stack file laid over those of the preset that its ``base`` names; sources likewise."""
    base = own.get("base")
    if base is None:
        return own
    if base not in preset_names("stacks"):
        raise unknown_name(f"{where}: base", "stack", str(base), preset_names("stacks"))
    below = _on_base(_preset_stack(base), f"presets/stacks/{base}.toml")
    above = own.get("sources", {})
    sources = {**below.pop("sources", {}), **above} if isinstance(above, dict) else above
    return {**below, **own, "sources": sources}


def load_built_stack(text: str, reader: Reader = read_text) -> Stack:
    """A software stack whose schedule is one that layers are run by."""
    return require_built(load_stack(text, reader), text if is_path(text) else "")
