"""The runs that a folder holds: searches, fronts, sweeps and plans, finished or under way.

A run is told by its files, a plan by its schema. Nothing is followed that is a link. A run has a
key, a hash of its place in the folder, so that an address names no path and nothing outside of the
folder can be asked for.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any

from phaze.documents import read_answer
from phaze.errors import PhazeError
from phaze.report.numbers import gap_text
from phaze.search.progress_file import PROGRESS
from phaze.units import digits

KINDS = (("search", "result.json"), ("front", "front.json"), ("sweep", "sweep.json"))
JOURNAL = "journal.sqlite"
UNFINISHED = (PROGRESS, JOURNAL)
DEEPEST = 5
"""Folders below the given one: points of a sweep lie two below it."""
MOST_RUNS = 2000
"""Runs that one page lists."""
# A plan's document with all its alternatives has some 100 kB.
MOST_PLAN_BYTES = 4 << 20
# A search that kept nothing for so long was stopped.
SILENT_S = 20.0


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run: its key, place, kind, whether it is finished, running, stopped or damaged, and figures
    to list."""

    key: str
    path: Path
    name: str
    kind: str
    status: str
    changed_s: float
    what: str
    figures: Mapping[str, str]


def key_of(name: str) -> str:
    """The key of a run at a place in the folder."""
    return sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def read_document(path: Path) -> dict[str, Any]:
    """A JSON document, refused in a sentence."""
    return read_answer(str(path))[0]


def _folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Every folder below the root that is no link, with the regular files in it."""
    for place, folders, names in os.walk(root, followlinks=False):
        here = Path(place)
        depth = len(here.relative_to(root).parts)
        folders[:] = (
            sorted(name for name in folders if not name.startswith(".")) if depth < DEEPEST else []
        )
        yield (
            here,
            sorted(
                name for name in names if (here / name).is_file() and not (here / name).is_symlink()
            ),
        )


def entries(root: Path) -> list[RunEntry]:
    """The runs of a folder, newest first."""
    runs: list[RunEntry] = []
    for here, names in _folders(root):
        kind = next(((kind, name) for kind, name in KINDS if name in names), None)
        place = str(here.relative_to(root))
        if kind is not None:
            runs.append(_entry(here, place, kind[0], here / kind[1], "finished"))
        elif any(name in names for name in UNFINISHED):
            runs.append(_unfinished(here, place, names))
        else:
            runs += _plans(here, place, names)
        if len(runs) >= MOST_RUNS:
            break
    return sorted(runs, key=lambda entry: (-entry.changed_s, entry.name))


def _unfinished(here: Path, place: str, names: list[str]) -> RunEntry:
    """A search without a result: under way if its course or its journal changed lately. While it
    bounds the space for the first time it has no course yet."""
    files = [here / name for name in names if name == PROGRESS or name.startswith(JOURNAL)]
    changed = max(path.stat().st_mtime for path in files)
    status = "running" if time() - changed < SILENT_S else "stopped"
    return RunEntry(key_of(place), here, place, "search", status, changed, "", {})


def _plans(here: Path, place: str, names: list[str]) -> Iterator[RunEntry]:
    for name in names:
        path = here / name
        if name.endswith(".json") and path.stat().st_size <= MOST_PLAN_BYTES:
            with path.open("rb") as file:
                plan = b'"phaze.plan/1"' in file.read(200)
            if plan:
                shown = name if place == "." else f"{place}/{name}"
                yield _entry(path, shown, "plan", path, "finished")


def _entry(place: Path, name: str, kind: str, document: Path, status: str) -> RunEntry:
    changed = document.stat().st_mtime
    try:
        what, figures = _summary(kind, read_document(document))
    except (PhazeError, KeyError, TypeError, ValueError, IndexError, AttributeError):
        status, what, figures = "damaged", "its document cannot be read", {}
    return RunEntry(key_of(name), place, name, kind, status, changed, what, figures)


def _search(result: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    chip, models = result["chip"], result["models"]
    what = f"{result['name']}: {', '.join(str(model['name']) for model in models)}"
    return what, {
        "throughput": f"{digits(float(models[0]['throughput_per_s']))} sequences/s",
        "area": f"{float(chip['area_mm2']):.0f} mm²",
        "TDP": f"{float(chip['design_power_w']):.0f} W",
        "gap": gap_text(float(result["certificate"]["gap"])),
    }


def _front(front: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    what = f"{front['name']}: {', '.join(map(str, front['of']))}"
    return what, {
        "designs": f"{len(front['points']):,}",
        "gap": gap_text(float(front["certificate"]["gap"])),
    }


def _sweep(sweep: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    return f"{sweep['name']}: along {sweep['over']}", {"points": f"{len(sweep['points']):,}"}


def _plan(plan: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    job = plan["job"]
    model = job.get("model") or job.get("family") or job.get("graph")
    return f"{model} on {int(job['devices']):,} {job['chip']}", {
        "throughput": f"{digits(float(plan['tokens_per_s_per_device']))} tokens/s a device",
        "MFU": f"{100 * float(plan['mfu']):.1f} %",
    }


def _summary(kind: str, document: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """A run in one line, and figures of it."""
    if kind == "search":
        return _search(document)
    if kind == "front":
        return _front(document)
    return _sweep(document) if kind == "sweep" else _plan(document)
