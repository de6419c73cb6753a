"""What a front still has to do when its time is up, done ahead and measured, so that it ends when
it should.

To state a design, its plans are found again with the least memory that keeps them: some ten
milliseconds each, seconds for a hundred; and what shows it to others has its schedules, which are
solved again. Where the time is limited that is done after every round, and rounds end so early that
the rest fits:

    rounds end at   limit - (a round's designs + 2 * the document)

the first being the most seconds that stating the designs of one round took, the second what the
whole document took when there were first designs.
"""

from dataclasses import dataclass, field
from time import monotonic

from phaze.front.answer import StatedDesign, front_document, in_order, state_designs
from phaze.front.certificate import closed_units
from phaze.front.measures import measures_of
from phaze.front.state import FrontState
from phaze.front.witness import Witness, design_witness
from phaze.search.deadline import Deadline
from phaze.search.result import written

# Table, page and what is printed take less than the document before them, and it grows with the
# designs: once more.
DOCUMENTS = 2.0


@dataclass(slots=True)
class Ending:
    """The designs stated so far by number and what shows each, and the most seconds that a round's
    designs and a document took."""

    stated: dict[int, StatedDesign] = field(default_factory=dict)
    witnesses: dict[int, Witness] = field(default_factory=dict)
    designs_s: float = 0.0
    document_s: float = 0.0

    @property
    def reserve_s(self) -> float:
        """Seconds that the end takes."""
        return self.designs_s + DOCUMENTS * self.document_s

    def clear(self) -> None:
        """Forget all designs: they are numbered by the chips of one front."""
        self.stated.clear()
        self.witnesses.clear()

    def witnesses_of(self, state: FrontState) -> list[Witness]:
        """What shows the designs of a front, all of which are stated, in their order."""
        for number in state.archive.numbers.tolist():
            if number not in self.witnesses:
                self.witnesses[number] = design_witness(state, self.stated[number])
        return in_order(state, self.witnesses)

    def prepare(self, state: FrontState, limit: Deadline) -> None:
        """State the designs of a round; the search has until what is left to do fits before the
        limit."""
        began = monotonic()
        measures = measures_of(
            state.job, state.metrics, state.front_scales, state.chips, state.memories
        )
        state_designs(state, measures, self.stated)
        self.witnesses_of(state)
        stated = monotonic()
        if len(state.archive.numbers) and not self.document_s:
            written(front_document(state, closed_units(state), "", self.stated))
            self.document_s = monotonic() - stated
        self.designs_s = max(self.designs_s, stated - began)
        state.deadline = limit.earlier(self.reserve_s)
