"""One comparison: the same input, our time, another's time, their ratio, and whether the answers
agree."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

Basis = Literal["published", "measured", "estimated"]
PARTS = ("placement", "schedule", "cost", "search")


@dataclass(frozen=True, slots=True)
class Took:
    """Processor seconds of all threads, from ``least_s`` to ``most_s`` where a range was published.

    ``stopped``: it was stopped at its limit and had not ended, so it takes longer than that.
    ``memory_bytes``: its peak above what the process held before (:mod:`tools.bench.memory`); None
    where that is not known.
    """

    least_s: float
    most_s: float
    elapsed_s: float | None = None
    stopped: bool = False
    memory_bytes: int | None = None

    def document(self) -> dict[str, Any]:
        """As it stands in ``phaze.bench/1``."""
        return {
            "processor_s": [self.least_s, self.most_s],
            "elapsed_s": self.elapsed_s,
            "stopped": self.stopped,
            "memory_bytes": self.memory_bytes,
        }


def took(
    processor_s: float,
    elapsed_s: float | None = None,
    stopped: bool = False,
    memory_bytes: int | None = None,
) -> Took:
    """A single figure."""
    return Took(processor_s, processor_s, elapsed_s, stopped, memory_bytes)


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Line:
    """``ours`` and ``theirs`` (None: the peer is not there, ``missing`` says why) on the input that
    ``input`` names.

    ``values`` are both answers in ``unit``; ``answers`` says in a word how they compare, and
    ``agree`` whether they may differ so: None where there is nothing to compare, as with a
    published time. ``basis`` of their time: published, measured in this run, or estimated from a
    time that was.
    """

    input: str
    against: str
    basis: Basis
    ours: Took
    theirs: Took | None
    answers: str = ""
    agree: bool | None = None
    values: tuple[float, float] | None = None
    unit: str = ""
    missing: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as long they take, at the least: their least over our most."""
        if self.theirs is None or self.ours.most_s <= 0:
            return None
        return self.theirs.least_s / self.ours.most_s

    def document(self) -> dict[str, Any]:
        """As it stands in ``phaze.bench/1``."""
        return {
            "input": self.input,
            "against": self.against,
            "basis": self.basis,
            "ours": self.ours.document(),
            "theirs": None if self.theirs is None else self.theirs.document(),
            "ratio": self.ratio,
            "answers": self.answers,
            "agree": self.agree,
            "values": None if self.values is None else [_finite(value) for value in self.values],
            "unit": self.unit,
            "missing": self.missing,
        }


@dataclass(frozen=True, slots=True)
class Section:
    """The lines of one part, and what a reader must know of its inputs and differences."""

    part: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As it stands in ``phaze.bench/1``."""
        return {
            "part": self.part,
            "lines": [line.document() for line in self.lines],
            "notes": list(self.notes),
        }


def same(ours: float, theirs: float, tolerance: float) -> tuple[str, bool]:
    """How two answers compare, in a word: ``same``, or how far theirs is above ours; and whether
    that is allowed."""
    if ours == theirs:
        return "same", True
    share = (theirs - ours) / ours if ours else float("inf")
    agree = abs(share) <= tolerance
    return ("same" if abs(share) <= 1e-6 else percent(share)), agree


def percent(share: float) -> str:
    """A difference with its sign, two digits below 10 %, whole above."""
    return f"{100 * share:+.0f} %" if abs(share) >= 0.1 else f"{100 * share:+.2g} %"
