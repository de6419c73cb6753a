"""Hardware by name or by path: bundled files and the user's own (:mod:`phaze.hardware.bundled`)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from phaze import documents
from phaze.documents import Reader
from phaze.errors import InputError, unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.bundled import bundled, keys_of, preset_names, read
from phaze.hardware.chip import CHIP, Chip
from phaze.hardware.chip_record import states_clusters
from phaze.hardware.clocked import at_held_clock, refusal
from phaze.hardware.cluster import Cluster, links_words, same_links
from phaze.hardware.core_chip import CoreChip
from phaze.hardware.overlap import layered
from phaze.hardware.stack import Stack, require_built, with_new_names
from phaze.hardware.technology import load_node, load_technology, node_names
from phaze.values import replace

CORES_FIRST = ("chips", "silicon/chips", "silicon/bases")
"""Where bundled chips lie: those of cores, those of clusters, and the plain ones that spaces
vary."""
CLUSTERS_FIRST = ("silicon/chips", "silicon/bases", "chips")
"""The order in which every command but a search of cores looks for a name."""
Form = Literal["any", "cores", "clusters"]
# A release: the stack's name, then year, month and perhaps a patch.
DATED = re.compile(r"([a-z][a-z0-9-]*)-(\d{2}\.\d{2}(?:\.\d{1,2})?)")


def cluster_chip_names() -> tuple[str, ...]:
    """The bundled chips of clusters."""
    return preset_names("silicon/chips")


def chip_names() -> tuple[str, ...]:
    """The bundled chips of both formats, but for those that only spaces vary."""
    return tuple(sorted({*preset_names("chips"), *cluster_chip_names()}))


def chip_keys(
    text: str, reader: Reader = read_text, folders: Sequence[str] = CLUSTERS_FIRST
) -> tuple[Mapping[str, Any], str]:
    """The keys of a chip's file, of either version, by preset name or path, and where it lies; of a
    name the first that ``folders`` have."""
    folder = next((folder for folder in folders if text in preset_names(folder)), None)
    if folder is None and not is_path(text):
        raise unknown_name("", "chip", text, chip_names())
    return keys_of(folder or "", text, reader)


def changed_keys(keys: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a chip with other values; of a table only those that ``changes`` has, its count
    where a number is given."""
    changed = dict(keys)
    for key, value in changes.items():
        before = changed.get(key)
        inner = {"count": value} if isinstance(value, int) else value
        merged = isinstance(before, Mapping) and isinstance(inner, Mapping)
        changed[key] = {**before, **inner} if merged else value  # type: ignore[dict-item]
    return changed


def stated_chip(keys: Mapping[str, Any], where: str) -> Chip:
    """The chip that a file of either version states, at its rated clock; the process that it names
    is not read."""
    if keys.get("schema") == CHIP.name:
        return documents.check(Chip, keys, where)
    return documents.check(CoreChip, keys, where).chip()


def clustered_chip(keys: Mapping[str, Any], where: str) -> Chip:
    """The same as one of clusters, whatever the version."""
    if keys.get("schema") == CHIP.name:
        return documents.check(Chip, keys, where)
    return documents.check(CoreChip, keys, where).clustered()


def chip_in(keys: Mapping[str, Any], where: str, reader: Reader = read_text) -> Chip:
    """The chip of a file of either version, with the technology that it names and what was measured
    of it; of clusters at the clock that it holds."""
    return with_technology(stated_chip(keys, where), reader)


def with_technology(chip: Chip, reader: Reader = read_text) -> Chip:
    """A chip with the technology that it names, at the clock that it holds."""
    if not states_clusters(chip):
        return (
            chip
            if chip.technology is None
            else replace(chip, process=load_technology(chip.technology, reader))
        )
    chip = with_nodes(chip, reader)
    refused = refusal(chip)
    if refused is not None:
        raise InputError(
            f"{chip.name}: power.sustained", refused, "allow more power or make it smaller"
        )
    return at_held_clock(chip)


def load_chip(text: str, reader: Reader = read_text, form: Form = "any") -> Chip:
    """A chip of either version by preset name or path, with the technology that it names; of cores
    where a preset of that name is bundled as such too, or as clusters, where it is to be priced
    beside such chips."""
    keys, where = chip_keys(text, reader, CORES_FIRST if form == "cores" else CLUSTERS_FIRST)
    if form != "clusters" or keys.get("schema") == CHIP.name:
        return chip_in(keys, where, reader)
    chip = clustered_chip(keys, where)
    name = chip.technology
    if name is None or not (is_path(name) or name in node_names()):
        return chip
    return at_held_clock(replace(chip, process=load_node(name, reader)))


def with_nodes(chip: Chip, reader: Reader = read_text) -> Chip:
    """A chip of clusters with the processes that it names, at its rated clock."""
    node, base = (
        None if name is None else load_node(name, reader)
        for name in (chip.technology, chip.built.base_technology)
    )
    if node is None:
        return chip
    return replace(chip, technology=node.name, process=node, base_process=base)


def load_cluster(text: str, reader: Reader = read_text, chip: Chip | None = None) -> Cluster:
    """A cluster by preset name or path; where its innermost level is as fast as a chip's links,
    those of ``chip`` or of the chip that it names. A user's own cluster is a limit, a bundled one
    grows."""
    cluster = read(Cluster, "clusters", text, reader)
    if chip is None and cluster.levels[0].bandwidth == "chip" and cluster.chip is not None:
        chip = load_chip(cluster.chip, reader)
    linked = cluster.on_chip(None if chip is None else chip.links.bandwidth_bytes_per_s)
    return replace(linked, limit=is_path(text))


def require_links(chip: Chip, text: str, cluster: Cluster, where: str) -> None:
    """Refuse a user's own chip whose links contradict the cluster; a built-in one is reported
    (cluster_document)."""
    if is_path(text) and not same_links(chip, cluster):
        remedy = 'let them agree, or give a cluster whose innermost level says bandwidth = "chip"'
        raise InputError(f"{where}: {text}: links.bandwidth", links_words(chip, cluster), remedy)


def load_stack(text: str, reader: Reader = read_text) -> Stack:
    """A software stack by preset name or path."""
    raw, where = stack_keys(text, reader)
    return documents.check(Stack, raw, where)


def stack_keys(text: str, reader: Reader = read_text) -> tuple[dict[str, Any], str]:
    """The keys of a stack's file by preset name or path, and where it lies; one with ``base``
    changes single keys of a preset."""
    if is_path(text):
        raw, where = reader(text)
        keys = documents.parse(raw, documents.notation_of(text, raw), where)
    else:
        text = dated_stack(text)
        if text not in preset_names("stacks"):
            raise unknown_name("", "stack", text, preset_names("stacks"))
        keys, where = _preset_stack(text), f"presets/stacks/{text}.toml"
    return _on_base(keys, where), where


def dated_stack(text: str) -> str:
    """The bundled stack of a release: ``NAME-24.11.1`` is the newest ``NAME-YEAR.MONTH`` that is
    not later; ``text`` where it is bundled itself or none is."""
    release = DATED.fullmatch(text)
    if release is None or text in preset_names("stacks"):
        return text
    bundled_releases = [
        match for name in preset_names("stacks") if (match := DATED.fullmatch(name))
    ]
    earlier = [
        match
        for match in bundled_releases
        if match[1] == release[1] and _date(match[2]) <= _date(release[2])
    ]
    return max(earlier, key=lambda match: _date(match[2]))[0] if earlier else text


def stating_stack(name: str) -> str:
    """The bundled stack in whose file the software shares of one stand: itself, or a base."""
    keys = _preset_stack(name)
    return (
        name if "software_share" in keys or "base" not in keys else stating_stack(str(keys["base"]))
    )


def _date(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _preset_stack(name: str) -> dict[str, Any]:
    """The keys of a bundled stack file as they stand there."""
    return dict(bundled(f"presets/stacks/{name}.toml"))


def _on_base(keys: dict[str, Any], where: str) -> dict[str, Any]:
    """The keys of a stack file laid over those of the preset that its ``base`` names; sources
    likewise."""
    keys, base = with_new_names(keys), keys.get("base")
    if base is None:
        return keys
    if base not in preset_names("stacks"):
        raise unknown_name(f"{where}: base", "stack", str(base), preset_names("stacks"))
    below = _on_base(_preset_stack(base), f"presets/stacks/{base}.toml")
    above = keys.get("sources", {})
    sources = {**below.pop("sources", {}), **above} if isinstance(above, dict) else above
    return {**layered(below, keys), "sources": sources}


def load_built_stack(text: str, reader: Reader = read_text) -> Stack:
    """A software stack whose schedule is one that layers are run by."""
    return require_built(load_stack(text, reader), text if is_path(text) else "")
