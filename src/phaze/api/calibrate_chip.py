"""The constants of a chip from measured operators, written as its file."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, sheet
from phaze.errors import InputError

if TYPE_CHECKING:
    from phaze.cost.fitting import Measured
    from phaze.hardware.chip import Chip
    from phaze.report.progress import Progress

COLUMNS = ("operator", "batch", "m", "n", "k", "elements", "rows", "seconds")


def calibrate_chip(measurements: str, chip: str, out: str | None, progress: "Progress") -> Answer:
    """Constants of a chip from its operators, and its file."""
    from phaze.cost.fitting import fit_chip
    from phaze.files import read_text
    from phaze.hardware.library import chip_in, chip_keys

    text, where = read_text(measurements)
    rows = _rows(text, where)
    keys, place = chip_keys(chip)
    device = chip_in(keys, place)
    progress.step(f"fitting constants to {len(rows):,} measurements")
    cores = device.lumped_share
    fit = fit_chip(rows, device)
    fields_read = fit.calibration.as_read()
    constants = {
        name: value
        for name, value in fields_read.items()
        if value is not None and name not in ("attention", "fp8_gain")
    }
    if fit.clock_hz is not None:
        constants["clock_hz"] = fit.clock_hz
    target = out or f"{device.name}-calibrated.toml"
    table, source = "calibration" if cores else "measured", f"fitted: {len(rows)} rows of {where}"
    _write(keys, device, table, constants, source, target)
    document = {
        "chip": device.name,
        "rows": fit.rows,
        "median_error": {
            "before": fit.before,
            "fitted": fit.fitted,
            "cross_validated": fit.validated,
        },
        "calibration": fields_read | ({} if cores else {"clock_hz": fit.clock_hz}),
        "file": target,
    }

    return Answer(
        document, sheet("phaze.report.chip_fit_sheet", "chip_fit_sections", document, constants)
    )


def _rows(text: str, where: str) -> "list[Measured]":
    from phaze.documents import require_printable

    require_printable(text, where)
    reader = csv.DictReader(io.StringIO(text))
    try:
        missing = sorted(set(COLUMNS) - set(reader.fieldnames or ()))
        if missing:
            raise InputError(
                where, f"the column '{missing[0]}' is missing", f"begin with {','.join(COLUMNS)}"
            )
        return [_row(row, f"{where}: line {number}") for number, row in enumerate(reader, start=2)]
    except csv.Error as fault:
        raise InputError(f"{where}: line {reader.line_num}", f"this is not CSV ({fault})") from None


def _row(row: dict[str, str | None], where: str) -> "Measured":
    from phaze.cost.fitting import measured_product, measured_vector
    from phaze.cost.mapping import product
    from phaze.document_faults import spell_value

    def whole(name: str, least: int) -> int:
        value = (row[name] or "").strip()
        if not (value.isascii() and value.isdigit() and len(value) < 20 and int(value) >= least):
            raise InputError(
                f"{where}: {name}",
                f"{spell_value(value)} is not a whole number",
                f"give at least {least}",
            )
        return int(value)

    try:
        seconds = float(row["seconds"] or "")
    except ValueError:
        seen = spell_value(row["seconds"])
        raise InputError(f"{where}: seconds", f"{seen} is not a number", "give seconds") from None
    if not 1e-15 < seconds < 1e15:
        raise InputError(
            f"{where}: seconds", f"{seconds} is out of range", "it must be greater than 0"
        )
    kind = (row["operator"] or "").strip()
    if kind == "gemm":
        return measured_product(
            product(whole("batch", 1), whole("m", 1), whole("n", 1), whole("k", 1)), seconds
        )
    return measured_vector(
        kind, whole("elements", 1), whole("rows", 0) if (row["rows"] or "").strip() else 0, seconds
    )


def _write(
    keys: Mapping[str, Any],
    device: "Chip",
    name: str,
    constants: Mapping[str, float],
    source: str,
    target: str,
) -> None:
    """The chip's file with the constants in its table ``name`` in place of those it had, each with
    its source."""
    from phaze.files import write_whole
    from phaze.hardware.write import toml_text

    before = {**dict(device.calibration or ()), "clock_hz": device.measured.clock_hz}
    table, sources = dict(keys.get(name, {})), dict(keys.get("sources", {}))
    for field, value in constants.items():
        # The key of a constant is its field's name without the unit.
        key = field.removesuffix("_s").removesuffix("_hz").removesuffix("_bytes")
        table[key] = int(value) if key == "kept_row" else value
        if before.get(field) != value or f"{name}.{key}" not in sources:
            sources[f"{name}.{key}"] = source[:400]
    text = toml_text({**keys, name: table, "sources": sources})
    write_whole(Path(target), text)
