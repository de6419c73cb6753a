"""What a machine's table of operators determined."""

from collections.abc import Mapping
from typing import Any

from phaze.report.sections import Notes, Section, Table


def table_fit_sections(document: Mapping[str, Any]) -> list[Section]:
    """The fitted constants, the attention kernels, and the files that have them."""
    constants = [(one["file"], one["key"], f"{one['value']:.4g}") for one in document["fitted"]]
    kernels = [
        (
            f"{row['kernel']} {row['pass']}, head {row['head']}",
            f"{row['share']:.3g}",
            f"{row['extra_keys']:.4g}",
            f"{row['most']:.3g}",
        )
        for row in document["kernels"]
    ]
    groups = [
        (row["rows_of"], str(row["rows"]), f"{row['median_error']:.1%}")
        for row in document["groups"]
    ]
    sections: list[Section] = []
    if constants:
        sections.append(Table(("file", "constant", "value"), constants, "Fitted", texts=2))
    if kernels:
        sections.append(Table(("", "share", "extra keys", "most"), kernels, "Attention kernels"))
    if groups:
        sections.append(Table(("rows of", "rows", "median error"), groups, "Errors"))
    written = [f"written: {path}" for path in document["files"].values()]
    return [*sections, Notes(written or ["nothing was determined"], verbatim=True)]
