"""The chips of a run that has ended, and what its journal has of each, by place."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from phaze.errors import InputError
from phaze.search.boxes.opening import is_boxed, reopened
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip, read_closed, read_evaluated
from phaze.search.journal_rows import REMEDY
from phaze.search.spaces import AnySpace, EnumeratedSpace


def rows_in(journal: Path, space: AnySpace) -> tuple[EnumeratedSpace, list[PrunedChip], list[Evaluated]]:
    """Of a space that is looked at in boxes the chips are those that its journal lists; of others all of them."""
    closed, evaluated = read_closed(journal), read_evaluated(journal)
    opened = reopened(space, np.array([one.chip for one in closed], np.int64))
    if not is_boxed(space):
        return opened, closed, evaluated
    if len(opened) != len(closed):
        raise InputError(str(journal), "it lists chips that are none of its space", REMEDY)
    places = [opened.index_of(one.chip) for one in evaluated]
    known = [replace(one, chip=place) for one, place in zip(evaluated, places, strict=True) if place is not None]
    return opened, [one._replace(chip=place) for place, one in enumerate(closed)], known


def place_of(opened: EnumeratedSpace, number: int, where: str) -> int:
    """The place of the chip that a document calls by a number."""
    place = opened.index_of(number)
    if place is None:
        raise InputError(where, f"its chip {number:,} is none of the {opened.total:,} of its space", "search again")
    return place
