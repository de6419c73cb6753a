r"""Why joint search pays where it does: what a tenth more of each rate buys on the joint chip of a
cell.

    gain(rate) = score / score with a tenth more of it - 1,       both exact, with the best placement

A block on one device knows the rates of products and of HBM alone. Where the levels of the network
gain something, a search that does not see the placement has nothing to weigh them by.
"""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from examples.paper.cases import job_of, searched
from examples.paper.joint.cells import Cell, joint_question
from examples.paper.joint.values import Value
from examples.paper.robust import more_software
from examples.paper.sheets import markdown
from phaze.explain.question import gain, score_on
from phaze.hardware.converted import changed_chip
from phaze.search.baseline import scale_for
from phaze.search.changed_network import levels_of, with_bandwidths

MORE = 1.1
RATES = ("products", "HBM", "links of the chip", "scale-out")


@dataclass(frozen=True, slots=True)
class Reason:
    """What a tenth more of every rate buys in a cell."""

    cell: Cell
    gains: tuple[float, ...]


def reason(out: Path, cell: Cell) -> Reason:
    """The gains of one cell whose joint search is done."""
    question = joint_question(out, cell)
    chip, job = searched(*question, workers=1).chip, job_of(question)
    scale = scale_for(job)
    levels = [level.bandwidth_bytes_per_s for level in levels_of(job, chip)]
    linked = changed_chip(chip, link_bytes_per_s=levels[0] * MORE)
    faster = changed_chip(chip, hbm_bytes_per_s=chip.hbm.bandwidth_bytes_per_s * MORE)
    asked = (
        (more_software(job, MORE), chip),
        (job, faster),
        (with_bandwidths(job, [levels[0] * MORE, *levels[1:]]), linked),
        (with_bandwidths(job, [levels[0], *(rate * MORE for rate in levels[1:])]), chip),
    )
    now = score_on(job, scale, chip)
    return Reason(cell, tuple(gain(now, score_on(other, scale, own)) for other, own in asked))


def reasons(out: Path, cells: Sequence[Cell]) -> list[Reason]:
    """Those of today's hardware: in the paper's space links are no part of a chip."""
    priced = [cell for cell in cells if not cell.free]
    with ProcessPoolExecutor(os.cpu_count() or 1, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(reason, [out] * len(priced), priced))


def reason_table(found: Sequence[Reason], done: Sequence[Value]) -> str:
    """Every cell with its value, greatest first."""
    values = {one.cell: one.value for one in done}
    rows = [
        [one.cell.group, one.cell.label, "does not fit" if value is None else f"{value:.3f}",
         *(f"{own:+.2%}" for own in one.gains)]
        for one in found
        for value in (values[one.cell],)
    ]  # fmt: skip
    rows.sort(
        key=lambda row: (-float(row[2]) if row[2][0] == "1" else float("-inf"), row[0], row[1])
    )
    return markdown(("group", "cell", "value", *(f"10 % more of {name}" for name in RATES)), rows)
