"""Chips and plans of others as rows of a CSV, for ``phaze compare --chips``.

A row names a chip (``chip``: a preset or a file) and what is other in it, one column a key of the
chip's file, tables with a dot (``clusters.count``, ``clock``); ``name`` is what to call it.
``model`` with ``tensor`` and ``pipeline`` is a plan to price on it beside the best one: even
stages, as many replicas as there are devices for; ``microbatch`` if it is given, else the best.
Empty cells say nothing.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.document_faults import spell_value
from phaze.documents import require_printable
from phaze.errors import InputError, unknown_name
from phaze.files import read_text
from phaze.hardware.chip import Chip
from phaze.hardware.library import chip_keys
from phaze.hardware.write import toml_text
from phaze.search.compare import GivenPlan
from phaze.search.task import SearchJob

PLAN = ("model", "tensor", "pipeline", "microbatch")
OPTIONAL_TABLES = frozenset(
    {"calibration", "formats", "host", "measured", "power", "published", "silicon"}
)
"""Tables that a chip's file may leave out, and a row then begins."""
NAMED = ("name", "chip", *PLAN)
MOST_ROWS = 1000
"""Each is a chip on which every model is placed."""


@dataclass(frozen=True, slots=True)
class ChipRow:
    """One line: the chip that it names, what is other in it, and a plan if it has one."""

    where: str
    chip: str
    name: str
    changes: Mapping[str, Any]
    plan: GivenPlan | None


def _value(text: str) -> Any:
    """A number where it is one, else the text itself, such as ``1.5 GHz``."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float | bool) else text


def _count(row: Mapping[str, str], key: str, where: str) -> int | None:
    text = row.get(key, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
        raise InputError(
            f"{where}: {key}", f"{spell_value(text)} is not a whole number", "give a number above 0"
        )
    return int(text)


def _plan(row: Mapping[str, str], where: str, models: Sequence[str]) -> GivenPlan | None:
    tensor, pipeline, microbatch = (
        _count(row, key, where) for key in ("tensor", "pipeline", "microbatch")
    )
    model = row.get("model", "")
    if not model and tensor is None and pipeline is None:
        if microbatch is not None:
            raise InputError(f"{where}: microbatch", "there is no plan", "add tensor and pipeline")
        return None
    if tensor is None or pipeline is None:
        missing = "tensor" if tensor is None else "pipeline"
        raise InputError(f"{where}: {missing}", "it is not there", "a plan has tensor and pipeline")
    if model and model not in models:
        raise unknown_name(f"{where}: model", "model of the study", model, models)
    if not model and len(models) > 1:
        raise InputError(f"{where}: model", f"the study has {len(models)}", "say whose plan it is")
    return GivenPlan(model or models[0], tensor, pipeline, microbatch)


def chip_rows(path: str, models: Sequence[str]) -> list[ChipRow]:
    """The rows of a file."""
    text, where = read_text(path)
    require_printable(text, where)
    reader = csv.DictReader(io.StringIO(text))
    try:
        if "chip" not in (reader.fieldnames or ()):
            raise InputError(
                where,
                "the column 'chip' is missing",
                f"begin with {','.join(NAMED)} or some of them",
            )
        lines = list(reader)
    except csv.Error as fault:
        raise InputError(f"{where}: line {reader.line_num}", f"this is not CSV ({fault})") from None
    if not 0 < len(lines) <= MOST_ROWS:
        raise InputError(where, f"{len(lines):,} rows", f"give 1 to {MOST_ROWS:,}")
    return [
        _row(line, f"{where}: line {number}", models) for number, line in enumerate(lines, start=2)
    ]


def _row(line: Mapping[str | None, Any], where: str, models: Sequence[str]) -> ChipRow:
    if None in line:
        raise InputError(where, "it has more cells than the first line", "give each a column")
    row = {str(key).strip(): str(value or "").strip() for key, value in line.items()}
    if not row["chip"]:
        raise InputError(f"{where}: chip", "it is empty", "name a preset or a file")
    changes = {key: _value(value) for key, value in row.items() if key not in NAMED and value}
    name = row.get("name") or row["chip"]
    return ChipRow(where, row["chip"], name, changes, _plan(row, where, models))


def _changed(raw: dict[str, Any], row: ChipRow) -> dict[str, Any]:
    for key, value in row.changes.items():
        *tables, last = key.split(".")
        table = raw
        for name in tables:
            inner = table.get(name, {} if name in OPTIONAL_TABLES else None)
            if not isinstance(inner, dict):
                raise InputError(
                    f"{row.where}: {key}",
                    f"the chip {row.chip} has no table '{name}'",
                    "see phaze schema",
                )
            table[name] = table = dict(inner)
        table[last] = value
    return {**raw, "name": row.name}


def chip_of_row(row: ChipRow, job: SearchJob) -> Chip:
    """The chip of a row, priced as the chips of the study's space are."""
    if not row.changes and row.name == row.chip:
        return job.space.chip_named(row.chip)
    keys, _ = chip_keys(row.chip)
    text = toml_text(_changed(dict(keys), row))

    def reader(path: str) -> tuple[str, str]:
        return (text, row.where) if path == "row.toml" else read_text(path)

    return job.space.chip_named("row.toml", reader)
