"""``phaze calibrate TABLE.json``: constants of a chip, a cluster and a stack from a machine's own
table of products, attention kernels and collectives, and their files."""

from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, sheet
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster

if TYPE_CHECKING:
    from phaze.report.progress import Progress
    from phaze.validate.run_fit import Fitted
    from phaze.validate.table_fit import TableFit

KEYS = MappingProxyType(
    {"clock_hz": "clock", "start_up_s": "start_up", "start_s": "start", "latency_s": "latency"}
)
"""Keys of files that are not called as their fields are."""
SUFFIXES = ("_bytes_per_s", "_s")


@dataclass(frozen=True, slots=True)
class _Machine:
    chip: Chip
    cluster: Cluster


def _key(field: str) -> str:
    if field in KEYS:
        return KEYS[field]
    for suffix in SUFFIXES:
        field = field.removesuffix(suffix)
    return field


def _constants(fit: "TableFit", machine: _Machine) -> "list[Fitted]":
    from phaze.validate.run_fit import Fitted

    how = "its table of operators"
    found = [Fitted("chip", _key(name), None, value, how) for name, value in fit.chip.items()]
    found += [Fitted("stack", name, None, value, how) for name, value in fit.stack.items()]
    for index, constants in fit.levels.items():
        level = machine.cluster.levels[index]
        found += [
            Fitted("cluster", f"levels[{index}].{_key(name)}", getattr(level, name), value, how)
            for name, value in constants.items()
        ]
    return found


def calibrate_table(
    table: str, machine: tuple[str | None, str | None, str | None], out: str | None,
    progress: "Progress",
) -> Answer:  # fmt: skip
    """The answer of ``phaze calibrate`` for a table; ``machine`` names chip, cluster and stack."""
    from phaze import documents
    from phaze.hardware.library import chip_keys, load_chip, load_cluster
    from phaze.validate.fitted_files import fitted_texts, write_fitted
    from phaze.validate.row_file import RowFile
    from phaze.validate.table_fit import fit_table

    file, name = documents.load(RowFile, table), str(machine[0])
    chip = load_chip(name)
    network = machine[1] or chip.cluster or "dgx-h100"
    on = _Machine(chip, load_cluster(network, chip=chip))
    progress.step("fitting constants to the table")
    fit = fit_table(file, chip, on.cluster if file.collectives else None)
    constants = _constants(fit, on)
    run = {"chip": name, "cluster": network, "stack": machine[2] or on.cluster.stack}
    texts = fitted_texts(run, on, constants, f"table {Path(table).name}")
    if fit.kernels:
        texts["chip"] = _with_kernels(texts.get("chip"), chip_keys(name)[0], fit)
    files = write_fitted(texts, Path(out or f"{chip.name}-fitted")) if texts else {}
    document: dict[str, Any] = {
        "table": table,
        "fitted": [asdict(constant) for constant in constants],
        "kernels": [dict(row) for row in fit.kernels],
        "groups": [
            {"rows_of": rows_of, "rows": rows, "median_error": error}
            for rows_of, rows, error in fit.groups
        ],
        "files": files,
    }
    return Answer(document, sheet("phaze.report.table_fit_sheet", "table_fit_sections", document))


def _with_kernels(text: str | None, keys: Any, fit: "TableFit") -> str:
    """The chip's file with the kernels that were measured on it."""
    from phaze import documents
    from phaze.hardware.write import toml_text
    from phaze.validate.fitted_files import SUFFIX

    raw = documents.parse(text, "toml", "chip.toml") if text else {**keys}
    if text is None:
        raw["name"] = f"{raw['name']}{SUFFIX}"
    measured = {**dict(raw.get("measured", {})), "kernels": [dict(row) for row in fit.kernels]}
    return toml_text({**raw, "measured": measured})
