"""Documents that differ in numbers only, as one structure and a list of expressions for each.

A *leaf* is a whole number in nested lists and objects. Documents are alike if they are equal but
for their leaves. Many groups of alike documents (one group: one document at several points) share a
:class:`Template`: a leaf that is the same number, not below zero, everywhere stays that number; any
other becomes ``-1 - i``, and each group says which expression its leaf number i is. Leaves that are
the same expression in every group have the same number.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.graph.fit import FitError, Values, fit
from phaze.graph.sizes import Expression, Point


def leaves(value: Any) -> Iterator[int]:
    """The whole numbers of a document, in order."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from leaves(member)
    elif isinstance(value, list):
        for member in value:
            yield from leaves(member)


def shape(value: Any) -> Any:
    """The document without its leaves, hashable."""
    if isinstance(value, dict):
        return tuple((key, shape(member)) for key, member in value.items())
    if isinstance(value, list):
        return tuple(shape(member) for member in value)
    return (
        0
        if isinstance(value, int) and not isinstance(value, bool)
        else (value, type(value).__name__)
    )


def refill(value: Any, new: Callable[[], int]) -> Any:
    """The document with its leaves, in order, replaced by what ``new`` gives."""
    if isinstance(value, dict):
        return {key: refill(member, new) for key, member in value.items()}
    if isinstance(value, list):
        return [refill(member, new) for member in value]
    return new() if isinstance(value, int) and not isinstance(value, bool) else value


def filled(structure: Any, numbers: Sequence[int]) -> Any:
    """The document of a structure whose leaf -1 - i is ``numbers[i]``."""
    if type(structure) is int:
        return structure if structure >= 0 else numbers[-1 - structure]
    if type(structure) is list:
        return [filled(member, numbers) for member in structure]
    if type(structure) is dict:
        return {key: filled(member, numbers) for key, member in structure.items()}
    return structure


@dataclass(frozen=True, slots=True)
class Symbolic:
    """One document as a function of its sizes: ``example`` at the first point, an expression for
    each leaf."""

    example: Any
    expressions: tuple[Expression, ...]

    def at(self, point: Point) -> Any:
        """The document at ``point``."""
        values: dict[Expression, int] = {}
        for expression in self.expressions:
            if expression not in values:
                values[expression] = expression.at(point)
        numbers = iter(self.expressions)
        return refill(self.example, lambda: values[next(numbers)])


def symbolic(
    points: Sequence[Point],
    documents: Sequence[Any],
    names: Sequence[str],
    more: Sequence[Values] = (),
    parts: Mapping[Values, Sequence[Values]] = MappingProxyType({}),
) -> Symbolic:
    """The document that is ``documents[i]`` at ``points[i]``; ``more`` are values of other sizes
    that it may be made of.

    ``parts`` are as in :func:`phaze.graph.fit.fit`.
    """
    if any(shape(document) != shape(documents[0]) for document in documents[1:]):
        raise FitError("the documents differ in more than numbers.")
    rows: list[Values] = list(zip(*(leaves(document) for document in documents), strict=True))
    expressions = fit(points, [*rows, *more], names, parts)
    return Symbolic(documents[0], tuple(expressions[row] for row in rows))


@dataclass(frozen=True, slots=True)
class Template:
    """A structure with numbered leaves, and for each of several documents the expressions of these
    leaves."""

    structure: Any
    rows: tuple[tuple[Expression, ...], ...]


def template(documents: Sequence[Symbolic]) -> Template:
    """One structure for documents that are alike."""
    columns = list(zip(*(document.expressions for document in documents), strict=True))
    numbers: dict[tuple[Expression, ...], int] = {}
    marks: list[int] = []
    for column, leaf in zip(columns, leaves(documents[0].example), strict=True):
        fixed = len(set(column)) == 1 and leaf >= 0 and column[0].sums[0] == _fixed_sum(column[0])
        marks.append(leaf if fixed else -1 - numbers.setdefault(column, len(numbers)))
    left = iter(marks)
    structure = refill(documents[0].example, lambda: next(left))
    return Template(
        structure, tuple(zip(*numbers, strict=True)) if numbers else tuple(() for _ in documents)
    )


def _fixed_sum(expression: Expression) -> Any:
    """The terms of ``expression`` that no variable is in."""
    return tuple(term for term in expression.sums[0] if not term.exponents)


def group_alike(documents: Mapping[Any, Symbolic]) -> list[list[Any]]:
    """The keys of ``documents`` in groups whose structures are alike, in order of first
    appearance."""
    groups: dict[Any, list[Any]] = {}
    for key, document in documents.items():
        groups.setdefault(shape(document.example), []).append(key)
    return list(groups.values())
