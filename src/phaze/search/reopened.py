"""The chips of a run that has ended, and what its journal has of each, by place; rows that name a
chip, a memory or a configuration that its question does not have are refused."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from phaze.errors import InputError
from phaze.search.boxes.opening import is_boxed, reopened
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip, read_closed, read_evaluated
from phaze.search.pruned import REASONS
from phaze.search.space import Space
from phaze.search.task import SearchJob

REMEDY = "move the folder away and start again"


def rows_in(journal: Path, space: Space) -> tuple[SpaceChips, list[PrunedChip], list[Evaluated]]:
    """Of a space that is searched in boxes the chips are those that its journal lists; of others
    all of them."""
    closed, evaluated = read_closed(journal), read_evaluated(journal)
    chips = reopened(space, np.array([row.chip for row in closed], np.int64))
    if not is_boxed(space):
        return chips, closed, evaluated
    if len(chips) != len(closed):
        raise InputError(str(journal), "it lists chips that are none of its space", REMEDY)
    places = [chips.index_of(row.chip) for row in evaluated]
    renumbered = [
        replace(row, chip=place)
        for row, place in zip(evaluated, places, strict=True)
        if place is not None
    ]
    return chips, [row._replace(chip=place) for place, row in enumerate(closed)], renumbered


def place_of(chips: SpaceChips, number: int, where: str) -> int:
    """The place of the chip that a document calls by a number."""
    place = chips.index_of(number)
    if place is None:
        raise InputError(
            where,
            f"its chip {number:,} is none of the {chips.total:,} of its space",
            "search again",
        )
    return place


def _fits(row: Evaluated, job: SearchJob, several: bool) -> bool:
    """Whether memory and configurations of a row are some of the job's; ``several``: any number of
    configurations, numbered through all its models."""
    if not 0 <= row.hbm < len(job.hbm_bytes):
        return False
    models = job.models
    if several:
        return all(
            0 <= ran.configuration < sum(len(task.configurations) for task in models)
            for ran in row.ran
        )
    if row.ran and len(row.ran) != len(models):
        return False
    return all(
        0 <= ran.configuration < len(task.configurations)
        for ran, task in zip(row.ran, models, strict=False)
    )


def require_evaluated(
    path: Path, rows: Iterable[Evaluated], job: SearchJob, several: bool = False
) -> None:
    """Refuse a journal that states a memory or a configuration that the question does not have."""
    for row in rows:
        if not _fits(row, job, several):
            seen = (
                f"the journal is damaged (chip {row.chip} has a memory or a configuration "
                "that is none of its question)"
            )
            raise InputError(str(path), seen, REMEDY)


def require_closed(
    path: Path, closed: Sequence[PrunedChip], evaluated: Sequence[Evaluated], chips: int
) -> None:
    """Refuse a journal whose rows are not one for each of ``chips`` chips, each closed for a reason
    that there is."""
    if [row.chip for row in closed] != list(range(chips)):
        raise InputError(
            str(path), f"its {len(closed):,} rows are not the {chips:,} chips of its space", REMEDY
        )
    wrong = [row.reason for row in closed if row.reason not in REASONS]
    if wrong:
        raise InputError(
            str(path), f"the journal is damaged (no chip is excluded by {wrong[0][:40]!r})", REMEDY
        )
    beyond = [row.chip for row in evaluated if not 0 <= row.chip < chips]
    if beyond:
        raise InputError(
            str(path), f"the journal is damaged (there is no chip {beyond[0]})", REMEDY
        )
