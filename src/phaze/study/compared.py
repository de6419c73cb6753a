"""Chips side by side under a study: the baseline, chips by name or path, and those that searches
found."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phaze.graph.zoo import ZOO
from phaze.hardware.chip import Chip
from phaze.hardware.library import require_links
from phaze.search.boxes.opening import reopened
from phaze.search.candidates import ChipToCompare, candidates_of, require_basis
from phaze.search.compare import compare, compare_document
from phaze.search.folder import RESULT
from phaze.search.reopened import place_of
from phaze.search.result_file import read_result
from phaze.search.task import SearchJob
from phaze.study.chip_rows import chip_of_row, chip_rows
from phaze.study.load import question_in, question_of, study_of
from phaze.study.places import Origin
from phaze.study.raw import with_settings


def _found_chip(folder: str) -> ChipToCompare:
    """The chip that a search found, on its own links where its space had them as an axis."""
    space = question_in(Path(folder)).job.space
    wanted = read_result(Path(folder))["chip"]
    chips = reopened(space, np.array([wanted["number"]], np.int64))
    place = place_of(chips, wanted["number"], str(Path(folder) / RESULT))
    return ChipToCompare(chips.chip(place, wanted["hbm_bytes"]), space.own_links)


def named_chip(name: str, job: SearchJob, where: str = "--chip") -> Chip:
    """A chip by name or path, whose links do not contradict the cluster."""
    chip = job.space.chip_named(name)
    if job.cluster is not None and not job.space.own_links:
        require_links(chip, name, job.cluster, where)
    return chip


def _experts(job: SearchJob) -> dict[str, tuple[int, int, int]]:
    splits = {task.name: ZOO[task.name].experts for task in job.models if task.name in ZOO}
    return {name: split for name, split in splits.items() if split is not None}


def compared(
    raw: Mapping[str, Any],
    origin: Origin,
    chips: Sequence[str],
    runs: Sequence[str],
    basis: str,
    rows_of: str | None = None,
) -> dict[str, Any]:
    """Throughput of every model of a study on every chip, and its ratio to the study's baseline;
    ``rows_of``: a CSV of chips and plans of others."""
    if basis in ("datasheet", "ideal"):
        raw = with_settings(raw, [f"cost.basis={basis}"])
    job = question_of(study_of(raw, origin.where), reader=origin.reader).job
    common = require_basis(job, basis)
    base = ChipToCompare(job.baseline or job.space.chip_named(job.objective.baseline))
    named = [ChipToCompare(named_chip(name, job)) for name in chips] + [
        _found_chip(folder) for folder in runs
    ]
    # The baseline is there anyway, and a chip that is named twice is one chip.
    others = [chip for place, chip in enumerate(named) if chip not in [base, *named[:place]]]
    listed = [] if rows_of is None else chip_rows(rows_of, [task.name for task in job.models])
    others += [ChipToCompare(chip_of_row(row, job)) for row in listed]
    plans = [None] * (1 + len(others) - len(listed)) + [row.plan for row in listed]
    rows = compare(job, candidates_of(job, [base, *others], common), _experts(job), plans)
    return compare_document(job, rows, base.chip.name, common)
