"""A search of a space in boxes: a first incumbent from some chips, then what boxes leave below it, chip by chip."""

from collections.abc import Callable

from phaze.search.boxes.box_bounds import BoxQuestion
from phaze.search.boxes.opening import first_chips, left_chips, nothing_left_out, unlooked
from phaze.search.deadline import OutOfTime
from phaze.search.numbered_journal import Journal, NumberedJournal
from phaze.search.spaces import EnumeratedSpace, enumerate_space
from phaze.search.state import SearchState

# A search of chips: which, where evaluated ones are kept, and the score of a design that is known to be among them.
SearchChips = Callable[[EnumeratedSpace, Journal | None, float], SearchState]


def search_boxes(question: BoxQuestion, search_chips: SearchChips, journal: Journal | None) -> SearchState:
    """The search; where the time is up before all boxes are bounded, the state is that of the first chips."""
    job, some = question.job, first_chips(question)
    first = search_chips(nothing_left_out(some), None, float("inf"))
    best = min(first.evaluated.values(), key=lambda one: (one.score, one.chip), default=None)
    if first.stopped:
        first.opened, first.boxed = some, unlooked(some)
        return first
    if best is None or not best.ran:
        # What fits hardly depends on the chip: then there is nothing that boxes could beat.
        if len(some) and not job.space.memory_limited:
            first.opened, first.boxed = some, unlooked(some)
            return first
        return search_chips(enumerate_space(job.space), journal, float("inf"))
    try:
        chips, boxed = left_chips(question, best.score, first.cut_at(best.score), some.number(best.chip))
    except OutOfTime:
        first.opened, first.boxed, first.stopped = some, unlooked(some), True
        return first
    state = search_chips(chips, None if journal is None else NumberedJournal(journal, chips), best.score)
    state.boxed = boxed
    return state
