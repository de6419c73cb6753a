"""Measured runs as lines of a CSV file: a model, where it ran, how it was split, and what was
measured.

One line is one run. ``phaze validate ROWS.csv`` and the bundled runs are read by the same code.
Columns (docs/formats.md has them in full), in any order, unknown ones refused:

    what            model (gpt, llama, moe or a named one); hidden, layers, heads, vocabulary,
                    sequence, ... of a family
    where           chip, cluster, stack, devices          cluster and stack: the usual ones of chip
                    and cluster
    how             batch, tensor, context, expert, expert_tensor, shard, pipeline, data,
                    microbatch, chunks, recompute, sequence_parallel, zero, attention, precision,
                    optimizer
    measured        seconds of one iteration, memory_gib of the fullest device: one of them or both
    beside          id, source; fits_gib: memory of a device that the run is known to have fitted

An empty microbatch, chunks or recompute is not stated: it is free, and
:mod:`phaze.validate.predict` takes the best.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import StringIO
from types import MappingProxyType
from typing import Any

from phaze.document_faults import spell_value
from phaze.documents import require_printable
from phaze.errors import InputError, unknown_name
from phaze.graph.family import FAMILIES
from phaze.hardware.library import load_chip

GIB = 2**30
EXPERT_SIZES = ("experts", "active", "expert_mlp", "shared_mlp", "dense_layers")
SIZES = (
    "hidden",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "mlp",
    *EXPERT_SIZES,
    "vocabulary",
    "sequence",
)
SWITCHES = ("tied", "gated")
# Sizes and degrees that may be 0.
FROM_ZERO = ("zero", "shared_mlp", "dense_layers")
WHERE = ("chip", "cluster", "stack", "attention", "precision", "optimizer")
COUNTS = ("devices", "batch")
SHARED = ("context", "expert", "expert_tensor", "shard")
DEGREES = ("tensor", *SHARED, "pipeline", "data", "microbatch", "chunks", "zero")
MEASURED = ("seconds", "memory_gib")
COLUMNS = (
    *("id", "model", *SIZES, *SWITCHES, *WHERE, *COUNTS, *DEGREES),
    *("recompute", "sequence_parallel", *MEASURED, "fits_gib", "source"),
)
NEEDED = ("model", "chip", "devices", "batch", "tensor", "pipeline", "data")
FREE = ("microbatch", "chunks", "recompute")
USUAL_VOCABULARY = 51200
"""Of a gpt that does not say: GPT-2's 50257 padded to what Megatron-LM's runs use."""
# What a measured second or GiB may be: beyond these an error relative to it is no number.
LEAST, MOST = 1e-15, 1e15
WORDS: Mapping[str, bool] = MappingProxyType(
    {"yes": True, "true": True, "no": False, "false": False}
)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One line: a ``phaze.run/1`` document without the keys of its plan that are ``free``, and what
    was measured."""

    id: str
    where: str
    run: Mapping[str, Any]
    free: tuple[str, ...]
    seconds: float | None
    memory_bytes: float | None
    source: str
    fits_bytes: float | None = None
    allow_code: bool = False

    @property
    def group(self) -> tuple[Any, ...]:
        """Runs of the same model, devices and batch on the same machine are alternatives of each
        other."""
        rest = {key: value for key, value in self.run.items() if key not in ("schema", "plan")}
        return tuple(sorted((key, str(value)) for key, value in rest.items()))


def _whole(text: str, where: str, least: int) -> int:
    if not (text.isascii() and text.lstrip("+-").isdigit() and len(text) < 20):
        raise InputError(
            where, f"{spell_value(text)} is not a whole number", f"give at least {least}"
        )
    if int(text) < least:
        raise InputError(where, f"{text} is out of range", f"it must be at least {least}")
    return int(text)


def _positive(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not LEAST < value < MOST:
        raise InputError(where, f"{spell_value(text)} is out of range", "give a number above 0")
    return value


def _word(text: str, where: str) -> bool:
    if text.lower() not in WORDS:
        raise InputError(where, f"{spell_value(text)} is neither yes nor no")
    return WORDS[text.lower()]


def _usual_cluster(chip: str, where: str) -> str | None:
    try:
        return load_chip(chip).cluster
    except InputError as fault:
        raise InputError(
            f"{where}: {fault.where}" if fault.where else where, fault.problem, fault.remedy
        ) from None


def _run(cells: Mapping[str, str], where: str) -> dict[str, Any]:
    """The ``phaze.run/1`` document of a line."""
    sizes_and_degrees = [key for key in (*SIZES, *COUNTS, *DEGREES) if key in cells]
    whole = {
        key: _whole(cells[key], f"{where}: {key}", int(key not in FROM_ZERO))
        for key in sizes_and_degrees
    }
    run: dict[str, Any] = {
        "schema": "phaze.run/1",
        "devices": whole["devices"],
        "batch": whole["batch"],
    }
    run |= {key: cells[key] for key in WHERE if key in cells}
    if "cluster" not in cells:
        usual = _usual_cluster(cells["chip"], f"{where}: chip")
        if usual is None:
            raise InputError(
                f"{where}: cluster",
                f"the chip '{cells['chip']}' names no default cluster",
                "give one",
            )
        run["cluster"] = usual
    sizes: dict[str, Any] = {key: whole[key] for key in SIZES if key in whole}
    name = cells["model"]
    if name in FAMILIES:
        if name == "gpt":
            sizes.setdefault("vocabulary", USUAL_VOCABULARY)
        sizes |= {key: _word(cells[key], f"{where}: {key}") for key in SWITCHES if key in cells}
        run[name] = sizes
    else:
        others = [key for key in sizes if key != "sequence"]
        if others:
            raise InputError(
                f"{where}: {others[0]}", f"the sizes of '{name}' are known", "leave the cell empty"
            )
        run |= {"model": name} | sizes
    plan: dict[str, Any] = {key: whole[key] for key in DEGREES if key in whole}
    if "recompute" in cells:
        plan["recompute"] = cells["recompute"]
    if "sequence_parallel" in cells:
        plan["sequence_parallel"] = _word(cells["sequence_parallel"], f"{where}: sequence_parallel")
    if plan["pipeline"] == 1:
        plan.setdefault("chunks", 1)
    return run | {"plan": plan}


def _row(cells: Mapping[str, str], where: str, number: int) -> MeasuredRun:
    for key in NEEDED:
        if key not in cells:
            raise InputError(
                f"{where}: {key}", "it is missing", f"every line has {', '.join(NEEDED)}"
            )
    seconds, memory = (
        _positive(cells[key], f"{where}: {key}") if key in cells else None for key in MEASURED
    )
    if seconds is None and memory is None:
        raise InputError(where, "nothing was measured", "give seconds, memory_gib or both")
    run, fitted = _run(cells, where), "fits_gib" in cells
    return MeasuredRun(
        cells.get("id", f"line {number}"),
        where,
        run,
        tuple(key for key in FREE if key not in run["plan"]),
        seconds,
        None if memory is None else memory * GIB,
        cells.get("source", ""),
        _positive(cells["fits_gib"], f"{where}: fits_gib") * GIB if fitted else None,
    )


def read_rows(text: str, where: str, allow_code: bool = False) -> tuple[MeasuredRun, ...]:
    """The runs of a CSV file with a header; ``where`` names it in faults. Code that rows name as
    models runs only if ``allow_code``."""
    require_printable(text, where)
    lines = csv.reader(StringIO(text), strict=True)
    try:
        header = [cell.strip() for cell in next(lines, [])]
        for column in header:
            if column not in COLUMNS:
                raise unknown_name(where, "column", column, COLUMNS)
        if len(set(header)) < len(header) or not header:
            raise InputError(
                where,
                "the first line must name columns, each once",
                f"columns: {', '.join(COLUMNS)}",
            )
        rows = []
        for line in lines:
            place = f"{where}: line {lines.line_num}"
            if not any(cell.strip() for cell in line):
                continue
            if len(line) != len(header):
                raise InputError(place, f"it has {len(line)} cells and the header {len(header)}")
            pairs = zip(header, (cell.strip() for cell in line), strict=True)
            cells = {key: cell for key, cell in pairs if cell}
            rows.append(replace(_row(cells, place, lines.line_num), allow_code=allow_code))
    except csv.Error as fault:
        raise InputError(f"{where}: line {lines.line_num}", str(fault)) from None
    if not rows:
        raise InputError(where, "there is no run", "give one line for each")
    return tuple(rows)
