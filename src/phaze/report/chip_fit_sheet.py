"""What measurements determined of a chip."""

from collections.abc import Mapping
from typing import Any

from phaze.report.sections import Figures, Notes, Section


def chip_fit_sections(document: Mapping[str, Any], constants: Mapping[str, float]) -> list[Section]:
    """The fitted constants, how far estimates were off before and are now, and the file that has
    them."""
    error = document["median_error"]
    rows = [(name, f"{value:.4g}") for name, value in constants.items()]
    note = (
        f"median error {error['before']:.1%} before, {error['fitted']:.1%} after; "
        f"{error['cross_validated']:.1%} on rows that were held back"
    )
    return [
        Figures(rows, document["chip"], f"{document['rows']} rows", [note]),
        Notes([f"written: {document['file']}"], verbatim=True),
    ]
