"""Fitted constants as files that ``phaze plan`` takes: chip, cluster and stack, each key with its
``fitted:`` source.

Only files with something fitted are written. A stack of a bundled name becomes one with ``base``
and the changed keys; one of the user's own is written whole. A chip keeps all that it had; a
cluster is as large as the run that grew it.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from phaze.files import folder_for, is_path, write_whole
from phaze.hardware.bundled import read
from phaze.hardware.chip import CHIP, Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import chip_keys, load_stack
from phaze.hardware.stack import TABLES
from phaze.hardware.write import toml_text
from phaze.validate.run_fit import Fitted

LEVEL = re.compile(r"levels\[(\d+)\]\.(\w+)")
SUFFIX = "-fitted"
MOST_NAME = 50
"""Letters of a fitted file's name: what a name may have, less the suffix."""
MOST_SOURCE = 400
"""Letters of a source: what a file takes."""


class FittedOn(Protocol):
    """What constants were fitted on: a run's job, or a machine alone."""

    @property
    def chip(self) -> Chip: ...

    @property
    def cluster(self) -> Cluster: ...


def fitted_texts(
    run: Mapping[str, Any], job: FittedOn, fitted: Sequence[Fitted], source: str
) -> dict[str, str]:
    """The texts of the files, by kind (chip, cluster, stack)."""
    texts = {}
    for kind, table_of in (("chip", _chip), ("cluster", _cluster), ("stack", _stack)):
        of_file = [constant for constant in fitted if constant.file == kind]
        if of_file:
            texts[kind] = toml_text(table_of(run, job, of_file, source))
    return texts


def write_fitted(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The files written into a folder; their paths by kind."""
    folder_for(folder)
    paths = {kind: folder / f"{kind}.toml" for kind in texts}
    for kind, path in paths.items():
        write_whole(path, texts[kind])
    return {kind: str(path) for kind, path in paths.items()}


def _named(name: str) -> str:
    return name.removesuffix(SUFFIX)[:MOST_NAME] + SUFFIX


def _source_text(source: str, constant: Fitted) -> str:
    return f"fitted: {source}, {constant.how}"[:MOST_SOURCE]


def _chip(
    run: Mapping[str, Any], job: FittedOn, constants: Sequence[Fitted], source: str
) -> dict[str, Any]:
    keys, _ = chip_keys(str(run["chip"]))
    table = "measured" if keys["schema"] == CHIP.name else "calibration"
    values = dict(keys.get(table, {}))
    sources = dict(keys.get("sources", {}))
    for constant in constants:
        values[constant.key] = constant.value
        sources[f"{table}.{constant.key}"] = _source_text(source, constant)
    return {**keys, "name": _named(keys["name"]), table: values, "sources": sources}


def _cluster(
    run: Mapping[str, Any], job: FittedOn, constants: Sequence[Fitted], source: str
) -> dict[str, Any]:
    file = read(Cluster, "clusters", str(run["cluster"]))
    raw = file.model_dump(by_alias=True, exclude_none=True)
    sources = dict(raw.get("sources", {}))
    raw["levels"] = [
        {key: value for key, value in level.items() if value != ()} for level in raw["levels"]
    ]
    for constant in constants:
        matched = LEVEL.fullmatch(constant.key)
        assert matched is not None
        raw["levels"][int(matched[1])][matched[2]] = constant.value
        sources[constant.key] = _source_text(source, constant)
    raw["levels"][-1]["size"] = job.cluster.levels[-1].size
    return {**raw, "name": _named(file.name), "devices": job.cluster.devices, "sources": sources}


def _stack(
    run: Mapping[str, Any], job: FittedOn, constants: Sequence[Fitted], source: str
) -> dict[str, Any]:
    name = str(run.get("stack") or job.cluster.stack)
    file = load_stack(name)
    changed: dict[str, Any] = {}
    sources = {}
    for constant in constants:
        if constant.key in TABLES:
            chips = (job.chip.name, _named(job.chip.name))
            known = getattr(file, constant.key)
            changed[constant.key] = {**known, **dict.fromkeys(chips, constant.value)}
            for each in chips:
                sources[f"{constant.key}.{each}"] = _source_text(source, constant)
        else:
            changed[constant.key] = constant.value
            sources[constant.key] = _source_text(source, constant)
    head = {
        "schema": "phaze.stack/1",
        "name": _named(file.name),
        "title": f"{file.title}, fitted"[:MOST_SOURCE],
    }
    if not is_path(name):
        return {**head, "base": name, **changed, "sources": sources}
    raw = file.model_dump(by_alias=True, exclude_none=True)
    return {**raw, **head, "base": None, **changed, "sources": {**file.sources, **sources}}
