"""Fitted constants as files that ``phaze plan`` takes: chip, cluster and stack, each key with its
``fitted:`` source.

Only files with something fitted are written. A stack of a bundled name becomes one with ``base``
and the changed keys; one of the user's own is written whole. A chip keeps all that it had; a
cluster is as large as the run that grew it.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phaze.evaluate.run_file import RunJob
from phaze.files import folder_for, is_path, write_whole
from phaze.hardware.bundled import read
from phaze.hardware.chip import CHIP
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import chip_keys, load_stack
from phaze.hardware.write import toml_text
from phaze.validate.run_fit import Fitted

LEVEL = re.compile(r"levels\[(\d+)\]\.(\w+)")
SUFFIX = "-fitted"
MOST_NAME = 50
"""Letters of a fitted file's name: what a name may have, less the suffix."""
MOST_SOURCE = 400
"""Letters of a source: what a file takes."""


def fitted_texts(
    run: Mapping[str, Any], job: RunJob, fitted: Sequence[Fitted], source: str
) -> dict[str, str]:
    """The texts of the files, by kind (chip, cluster, stack)."""
    found = {}
    for kind, made in (("chip", _chip), ("cluster", _cluster), ("stack", _stack)):
        own = [one for one in fitted if one.file == kind]
        if own:
            found[kind] = toml_text(made(run, job, own, source))
    return found


def write_fitted(texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The files written into a folder; their paths by kind."""
    folder_for(folder)
    paths = {kind: folder / f"{kind}.toml" for kind in texts}
    for kind, path in paths.items():
        write_whole(path, texts[kind])
    return {kind: str(path) for kind, path in paths.items()}


def _named(name: str) -> str:
    return name.removesuffix(SUFFIX)[:MOST_NAME] + SUFFIX


def _said(source: str, one: Fitted) -> str:
    return f"fitted: {source}, {one.how}"[:MOST_SOURCE]


def _chip(
    run: Mapping[str, Any], job: RunJob, own: Sequence[Fitted], source: str
) -> dict[str, Any]:
    keys, _ = chip_keys(str(run["chip"]))
    table = "measured" if keys["schema"] == CHIP.name else "calibration"
    values = dict(keys.get(table, {}))
    sources = dict(keys.get("sources", {}))
    for one in own:
        values[one.key] = one.value
        sources[f"{table}.{one.key}"] = _said(source, one)
    return {**keys, "name": _named(keys["name"]), table: values, "sources": sources}


def _cluster(
    run: Mapping[str, Any], job: RunJob, own: Sequence[Fitted], source: str
) -> dict[str, Any]:
    file = read(Cluster, "clusters", str(run["cluster"]))
    raw = file.model_dump(by_alias=True, exclude_none=True)
    sources = dict(raw.get("sources", {}))
    raw["levels"] = [
        {key: value for key, value in level.items() if value != ()} for level in raw["levels"]
    ]
    for one in own:
        matched = LEVEL.fullmatch(one.key)
        assert matched is not None
        raw["levels"][int(matched[1])][matched[2]] = one.value
        sources[one.key] = _said(source, one)
    raw["levels"][-1]["size"] = job.cluster.levels[-1].size
    return {**raw, "name": _named(file.name), "devices": job.cluster.devices, "sources": sources}


def _stack(
    run: Mapping[str, Any], job: RunJob, own: Sequence[Fitted], source: str
) -> dict[str, Any]:
    name = str(run.get("stack") or job.cluster.stack)
    file = load_stack(name)
    changed: dict[str, Any] = {}
    sources = {}
    for one in own:
        if one.key == "software_share":
            changed[one.key] = {
                **file.software_share,
                job.chip.name: one.value,
                _named(job.chip.name): one.value,
            }
            sources[f"software_share.{job.chip.name}"] = sources[
                f"software_share.{_named(job.chip.name)}"
            ] = _said(source, one)
        else:
            changed[one.key] = one.value
            sources[one.key] = _said(source, one)
    head = {
        "schema": "phaze.stack/1",
        "name": _named(file.name),
        "title": f"{file.title}, fitted on a run"[:MOST_SOURCE],
    }
    if not is_path(name):
        return {**head, "base": name, **changed, "sources": sources}
    raw = file.model_dump(by_alias=True, exclude_none=True)
    return {**raw, **head, "base": None, **changed, "sources": {**file.sources, **sources}}
