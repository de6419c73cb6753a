"""Measured times of operators and collectives compared with estimates."""

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from phaze.cost.accuracy import AccuracyRow
from phaze.report.numbers import counted, signed_percent
from phaze.report.sections import Notes, Section, Table
from phaze.units import show


def accuracy_sections(rows: Sequence[AccuracyRow]) -> list[Section]:
    """Every row, and the median and greatest error of each group."""
    columns = ("", "measured", "calibrated", "error", "data sheet", "error")
    typical = median(abs(row.error) for row in rows)
    headline = (
        f"Calibrated times are off by {typical:.1%} in the median, over "
        f"{counted(len(rows), 'measurement')}"
    )
    sections: list[Section] = [Notes([], headline)]
    for name, members in groupby(rows, key=lambda row: row.group):
        group = list(members)
        cells = [
            (
                row.label,
                show(row.measured_s, "s"),
                show(row.calibrated_s, "s"),
                signed_percent(row.error),
                show(row.datasheet_s, "s"),
                signed_percent(row.datasheet_error),
            )
            for row in group
        ]
        errors = [abs(row.error) for row in group]
        datasheet = [abs(row.datasheet_error) for row in group]
        note = (
            f"median error {median(errors):.1%}, greatest {max(errors):.1%}; "
            f"from the data sheet {median(datasheet):.1%}, {max(datasheet):.1%}"
        )
        sections.append(Table(columns, cells, name, notes=[note]))
    return sections
