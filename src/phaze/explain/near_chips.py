"""What the chips near the optimum have in common, in a sentence: what to hold on to, and what may
be chosen freely.

    shared      axes of which all near chips have one value, though the space has more
    differing   axes of which they have several: the least to the most
    free        axes of which they have every value of the space, each in at least half of its even
                share: the answer does not depend on them

A product may be the same though its factors differ: MACs stand beside the axes that make them, and
area and TDP beside all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from phaze.report.axis_text import amount, axis_name


@dataclass(frozen=True, slots=True)
class AxisCounts:
    """How many of the near chips have each value of an axis, values ascending, of so many that the
    space has."""

    axis: str
    values: tuple[tuple[float, int], ...]
    of: int

    @property
    def free(self) -> bool:
        """Whether any value of it will do."""
        chips = [many for _, many in self.values]
        return 1 < len(chips) == self.of and min(chips) * 2 * self.of >= sum(chips)

    @property
    def usual(self) -> float | None:
        """The value that two thirds of the near chips have, if one is."""
        chips = sum(many for _, many in self.values)
        return next((value for value, many in self.values if 3 * many >= 2 * chips), None)


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the most that near chips have of something that is no axis."""

    name: str
    low: float
    high: float

    @property
    def same(self) -> bool:
        """Whether all have as much, to three digits."""
        return f"{self.low:.3g}" == f"{self.high:.3g}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def _spanned(span: Span) -> str:
    name, _, unit = span.name.partition(", ")
    low, high = f"{span.low:,.0f}", f"{span.high:,.0f}"
    return f"{low if span.same else f'{low} to {high}'} {unit or name}"


def _differing(axis: AxisCounts) -> str:
    low, high = amount(axis.axis, axis.values[0][0]), amount(axis.axis, axis.values[-1][0])
    mostly = "" if axis.usual is None else f" (mostly {amount(axis.axis, axis.usual)})"
    return f"{axis_name(axis.axis)} {low} to {high}{mostly}"


def near_words(within: float, count: int, axes: Sequence[AxisCounts], spans: Sequence[Span]) -> str:
    """The sentence: ``4 chips are within 1 %: all have clusters 12 and lanes 1024; rows are 16 to
    64; ...``"""
    share = f"{100 * within:.3g} %"
    if count == 1:
        return f"No other chip is within {share}."
    macs = [_spanned(span) for span in spans if span.same and span.name == "MACs"]
    shared = [
        f"{axis_name(axis.axis)} {amount(axis.axis, axis.values[0][0])}"
        for axis in axes
        if len(axis.values) == 1
    ]
    differing = [_differing(axis) for axis in axes if len(axis.values) > 1 and not axis.free]
    free = [axis_name(axis.axis) for axis in axes if axis.free]
    clauses = [f"all have {_listed([*macs, *shared])}"] if macs or shared else []
    clauses += [f"they differ in {_listed(differing)}"] if differing else []
    clauses += [f"any value will do of {_listed(free)}"] if free else []
    clauses.append(_listed([_spanned(span) for span in spans if span.name != "MACs"]))
    return f"{count:,} chips are within {share}: {'; '.join(clauses)}."
