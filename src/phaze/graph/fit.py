"""Expressions from numbers: which sum of monomials takes these values at these points, exactly.

Of n variables the first n + 1 points are a base and, for each variable, the base with that variable
alone changed.

    monomial   e_i = log(y_i / y_0) / log(x_i / x_0) is whole for every i; c = y_0 / x_0^e
               (:func:`_monomial`)
    sum        over the shapes x^e that single monomials had, as far as possible
               (:func:`_possible`): for every point p y_p = sum over e of c_e x_p^e, solved in
               rational numbers; there are fewer shapes than points, so some points check the rest
               (:class:`_System`); where there are more, over two or three of them. Where that
               fails, over the same shapes and those divided by one variable (:func:`_lower`)
    least      of two expressions found before, none below the values, at every point one equal
               (:func:`_least`)

Whatever is found takes the right value at every point, or :class:`FitError` says that there is
none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from types import MappingProxyType

from phaze.errors import PhazeError
from phaze.graph.sizes import Exponents, Expression, Point, Term, constant, one_sum, power

Values = tuple[int, ...]
HIGHEST = 4
"""The highest power of a size in any count is 2 (scores over a sequence); twice that is
searched."""


class FitError(PhazeError):
    """Some numbers are no sum of monomials, or there are too few points to tell."""


def _exponent(ratio: Fraction, step: Fraction) -> int | None:
    return next((e for e in range(-HIGHEST, HIGHEST + 1) if step**e == ratio), None)


def _monomial(values: Values, points: Sequence[Point], names: Sequence[str]) -> Expression | None:
    """The single monomial through all ``values``, if there is one."""
    if not all(values):
        return None
    exponents: list[tuple[str, int]] = []
    for place, name in enumerate(names, start=1):
        step = Fraction(points[place][name], points[0][name])
        exponent = _exponent(Fraction(values[place], values[0]), step)
        if exponent is None:
            return None
        if exponent:
            exponents.append((name, exponent))
    shape: Exponents = tuple(sorted(exponents))
    monomial = one_sum([Term(values[0] / power(shape, points[0]), shape)])
    return monomial if _agrees(monomial, values, points) else None


def _agrees(expression: Expression, values: Values, points: Sequence[Point]) -> bool:
    return all(
        expression.exact(point) == value for point, value in zip(points, values, strict=True)
    )


class _System:
    """The linear system of some shapes over some points, eliminated once, solved for many
    right-hand sides."""

    def __init__(self, shapes: Sequence[Exponents], points: Sequence[Point]) -> None:
        self.shapes = shapes
        self.steps: list[tuple[int, int, list[Fraction]]] = []
        rows = [[power(shape, point) for shape in shapes] for point in points]
        for column in range(len(shapes)):
            pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
            if pivot is None:
                self.steps.clear()
                return
            rows[column], rows[pivot] = rows[pivot], rows[column]
            scale = rows[column][column]
            rows[column] = [value / scale for value in rows[column]]
            factors = [Fraction(0) if r == column else rows[r][column] for r in range(len(rows))]
            factors[column] = scale
            for r, factor in enumerate(factors):
                if r != column and factor:
                    rows[r] = [a - factor * b for a, b in zip(rows[r], rows[column], strict=True)]
            self.steps.append((column, pivot, factors))

    def solve(self, values: Values) -> Expression | None:
        """The one sum of the shapes that takes ``values``; none if there is none, or if the points
        leave it open."""
        if len(self.steps) < len(self.shapes):
            return None
        right = [Fraction(value) for value in values]
        for column, pivot, factors in self.steps:
            right[column], right[pivot] = right[pivot], right[column]
            right[column] /= factors[column]
            for r, factor in enumerate(factors):
                if r != column and factor:
                    right[r] -= factor * right[column]
        if any(right[len(self.shapes) :]):
            return None
        return one_sum(Term(c, shape) for c, shape in zip(right, self.shapes, strict=False))


def _least(
    values: Values, points: Sequence[Point], pool: Mapping[Values, Expression]
) -> Expression | None:
    """The least of two expressions of ``pool`` that takes all ``values``."""
    above = [
        candidate
        for candidate in pool
        if all(a >= b for a, b in zip(candidate, values, strict=True))
    ]
    for i, first in enumerate(above):
        open_places = [p for p, value in enumerate(values) if first[p] != value]
        if len(open_places) == len(points):
            continue
        for second in above[i + 1 :]:
            if all(second[p] == values[p] for p in open_places):
                return Expression((*pool[first].sums, *pool[second].sums))
    return None


def _lower(shapes: Iterable[Exponents]) -> Iterator[Exponents]:
    """Each shape divided by each of its variables: s^2 + s is found where s alone never stands."""
    for shape in shapes:
        for place, (name, exponent) in enumerate(shape):
            if exponent > 0:
                changed = ((name, exponent - 1),) if exponent > 1 else ()
                yield shape[:place] + changed + shape[place + 1 :]


def _possible(
    values: Values, points: Sequence[Point], names: Sequence[str], shapes: set[Exponents]
) -> set[Exponents]:
    """The shapes that a sum may hold: where one variable alone scales it by a power, all its terms
    have that power."""
    possible = shapes
    for place, name in enumerate(names, start=1):
        step = Fraction(points[place][name], points[0][name])
        exponent = _exponent(Fraction(values[place], values[0]), step) if values[0] else None
        if exponent is not None:
            possible = {shape for shape in possible if dict(shape).get(name, 0) == exponent}
    return possible


def _choices(possible: frozenset[Exponents], points: int) -> Iterator[frozenset[Exponents]]:
    """All possible shapes, if the points tell them apart; else each two or three of them."""
    if 0 < len(possible) < points:
        yield possible
    elif possible:
        for count in (2, 3):
            yield from map(frozenset, combinations(sorted(possible), count))


def _shapes(expressions: Iterable[Expression]) -> set[Exponents]:
    return {
        term.exponents for expression in expressions for terms in expression.sums for term in terms
    }


def _solved(
    wanted: Mapping[Values, set[Exponents]],
    points: Sequence[Point],
    names: Sequence[str],
    expressions: dict[Values, Expression],
) -> list[Values]:
    """Put those of ``wanted`` that are sums of the shapes they may hold into ``expressions``; the
    others come back."""
    systems: dict[frozenset[Exponents], _System] = {}
    left: list[Values] = []
    for values, shapes in wanted.items():
        possible = frozenset(_possible(values, points, names, shapes))
        solved = None
        for chosen in _choices(possible, len(points)):
            if chosen not in systems:
                systems[chosen] = _System(sorted(chosen), points)
            solved = systems[chosen].solve(values)
            if solved is not None:
                break
        if solved is None:
            left.append(values)
        else:
            expressions[values] = solved
    return left


def fit(
    points: Sequence[Point],
    wanted: Iterable[Values],
    names: Sequence[str],
    parts: Mapping[Values, Sequence[Values]] = MappingProxyType({}),
) -> dict[Values, Expression]:
    """An expression in the variables ``names`` for each of ``wanted``: its values at ``points``.

    ``parts`` says of some of them which others they are a sum of multiples of; that leaves fewer
    shapes to try.
    """
    left: list[Values] = []
    expressions: dict[Values, Expression] = {}
    for values in dict.fromkeys(wanted):
        same = constant(values[0]) if len(set(values)) == 1 else _monomial(values, points, names)
        if same is None:
            left.append(values)
        else:
            expressions[values] = same
    shapes = _shapes(expressions.values()) | {()}
    shapes_of_sums = {
        v: _shapes(expressions[part] for part in parts[v] if part in expressions)
        for v in left
        if v in parts
    }
    _solved(shapes_of_sums, points, names, expressions)
    for tried in (shapes, shapes | set(_lower(shapes))):
        left = _solved(
            {values: tried for values in left if values not in expressions},
            points,
            names,
            expressions,
        )
    for values in left:
        least = _least(values, points, expressions)
        if least is None:
            raise FitError(
                f"no sum of monomials takes the values {values[:6]} at the points "
                f"{_spell(points[:6])}."
            )
        expressions[values] = least
    return expressions


def _spell(points: Iterable[Point]) -> str:
    def assignments(point: Point) -> Iterator[str]:
        return (f"{name}={value}" for name, value in point.items())

    return ", ".join("(" + " ".join(assignments(point)) + ")" for point in points)
