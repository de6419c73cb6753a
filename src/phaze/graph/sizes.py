"""Sizes as expressions: sums of monomials with rational coefficients and whole exponents, or the
least of two such.

    expression = sum | min(sum, sum)        sum = term + ... + term        term = c x1^e1 ... xn^en

The variables are letters: b microbatch, s sequence; in the families also t tensor width, h hidden,
a heads, k heads of keys and values, d width of a head, f width of the MLP, v vocabulary. As text:
``34*b*s*h + 5*a*b*s^2*t^-1``. A value that is not whole is rounded up: the share of the fullest
rank or expert.

The least of two is needed for look-ups: a table is read once, or once for each row requested,
whichever is less.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

Point = Mapping[str, int]
Exponents = tuple[tuple[str, int], ...]
"""The variables of a monomial with their exponents, none of them zero, in the order of the
alphabet."""

_FACTOR = re.compile(r"([a-z])(?:\^(-?\d+))?")
_NUMBER = re.compile(r"-?\d+(?:/\d+)?")


@dataclass(frozen=True, slots=True)
class Term:
    """One monomial: ``coefficient`` times the product of variables to their exponents."""

    coefficient: Fraction
    exponents: Exponents

    def at(self, point: Point) -> Fraction:
        return self.coefficient * power(self.exponents, point)


@dataclass(frozen=True, slots=True)
class Expression:
    """The least of some sums of terms; usually there is one."""

    sums: tuple[tuple[Term, ...], ...]

    def at(self, point: Point) -> int:
        """The value at ``point``, rounded up."""
        return min(_rounded_up(terms, point) for terms in self.sums)

    def exact(self, point: Point) -> Fraction:
        """The value at ``point`` before it is rounded."""
        return min(sum((term.at(point) for term in terms), Fraction(0)) for terms in self.sums)


def _rounded_up(terms: Iterable[Term], point: Point) -> int:
    """A sum at ``point``, rounded up; over one denominator that is never reduced, as fractions take
    far longer."""
    total, whole = 0, 1
    for term in terms:
        above, below = term.coefficient.numerator, term.coefficient.denominator
        for name, exponent in term.exponents:
            if exponent > 0:
                above *= point[name] ** exponent
            else:
                below *= point[name] ** -exponent
        total, whole = (
            (total + above, whole)
            if below == whole
            else (total * below + above * whole, whole * below)
        )
    return -(-total // whole)


def power(exponents: Exponents, point: Point) -> Fraction:
    """The product of variables to their exponents at ``point``."""
    above = below = 1
    for name, exponent in exponents:
        if exponent > 0:
            above *= point[name] ** exponent
        else:
            below *= point[name] ** -exponent
    return Fraction(above, below)


def one_sum(terms: Iterable[Term]) -> Expression:
    """The sum of ``terms``, highest degree first, so that equal sums are equal values."""
    nonzero = [term for term in terms if term.coefficient]
    return Expression(
        (tuple(sorted(nonzero, key=lambda t: (-sum(e for _, e in t.exponents), t.exponents))),)
    )


def constant(value: int) -> Expression:
    return one_sum([Term(Fraction(value), ())])


def _term_text(term: Term) -> str:
    factors = [name if exponent == 1 else f"{name}^{exponent}" for name, exponent in term.exponents]
    if term.coefficient != 1 or not factors:
        factors.insert(0, str(term.coefficient))
    return "*".join(factors)


def text(expression: Expression) -> str:
    """The expression as it stands in a file."""
    return " | ".join(" + ".join(map(_term_text, terms)) or "0" for terms in expression.sums)


def _term(words: str) -> Term:
    coefficient = Fraction(1)
    exponents: list[tuple[str, int]] = []
    for word in words.split("*"):
        factor = _FACTOR.fullmatch(word)
        if factor is not None:
            exponents.append((factor[1], int(factor[2] or 1)))
        elif _NUMBER.fullmatch(word):
            coefficient *= Fraction(word)
        else:
            raise ValueError(f"'{words}' is not a product of numbers and variables")
    return Term(coefficient, tuple(exponents))


def parse(words: str) -> Expression:
    """The expression of a text; a ValueError says what cannot be read."""
    return Expression(
        tuple(
            tuple(map(_term, part.split(" + "))) if part != "0" else ()
            for part in words.split(" | ")
        )
    )
