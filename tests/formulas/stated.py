"""Formulas as documents state them, and a small evaluator, so that a test can set them beside the
code.

A formula is a line ``left = right`` of an indented or fenced block, or the cells ``| left | right
|`` of a table row; it ends where two blanks begin a remark. Written as people write them: factors
stand next to each other (``waves cycles``, ``2R``) or have ``x`` between them, ``^`` is a power,
and a name may be of several words (``core buffer bandwidth``) or hold signs (``w(X1)``). The
evaluator knows +, -, juxtaposition, x, /, ^, <=, parentheses, and the functions below; every name
must be given. Products and quotients go from left to right, so ``4 (d - 1)/d w / B`` is ``((4 (d -
1)) / d) w / B``.
"""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"
FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
    "log2": math.log2,
}
_LINE = re.compile(r"^(?P<left>[^=|]*?) *(?<![<>=])= (?P<right>.*)$")


def formulas(document: str, section: str) -> dict[str, str]:
    """Left side to right side of every formula in the blocks of a section; a line that begins with
    ``=`` is another case of the one before, named ``left (2)``, ``left (3)``, ..."""
    found: dict[str, str] = {}
    left, cases, fenced, heading = "", 1, "", ""
    for line in (DOCS / document).read_text().splitlines():
        if line.startswith("## ") and not fenced:
            heading = line[3:]
        if heading != section:
            continue
        if line.startswith("```"):
            fenced = "" if fenced else line
            continue
        inside = fenced == "```text" or (not fenced and line.startswith("    "))
        if not inside or not (match := _LINE.match(line.strip())):
            continue
        if match["left"]:
            left, cases = match["left"], 1
        else:
            cases += 1
        found[left if cases == 1 else f"{left} ({cases})"] = _end(match["right"])
    return found


def cells(document: str, first: str) -> list[str]:
    """The cells after the first of the table row that begins with ``first``, without their left
    sides."""
    for line in (DOCS / document).read_text().splitlines():
        row = [
            cell.strip().replace("\\|", "|")
            for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
        ]
        if line.startswith("|") and row[0] == first:
            return row[1:]
    raise AssertionError(f"docs/{document} has no row {first}")


def _end(text: str) -> str:
    return re.split(r"\s{2,}", text.strip())[0]


def evaluate(text: str, names: Mapping[str, float | Callable[..., float]]) -> float:
    """The value of a formula; an unknown name is an error that shows where it stands."""
    reader = _Reader(text, {**FUNCTIONS, **names})
    value = reader.comparison()
    reader.skip()
    assert reader.at == len(text), f"{text!r}: not read from {text[reader.at :]!r}"
    return value


class _Reader:
    def __init__(self, text: str, names: Mapping[str, float | Callable[..., float]]) -> None:
        self.text, self.names, self.at = text, names, 0
        self.longest_first = sorted(names, key=len, reverse=True)

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def take(self, sign: str) -> bool:
        self.skip()
        taken = self.text.startswith(sign, self.at)
        self.at += len(sign) if taken else 0
        return taken

    def comparison(self) -> float:
        value = self.sum()
        if self.take("<="):
            return float(value <= self.sum())
        return value

    def sum(self) -> float:
        value = -self.product() if self.take("-") else self.product()
        while True:
            if self.take("+"):
                value += self.product()
            elif self.take("-"):
                value -= self.product()
            else:
                return value

    def product(self) -> float:
        value = self.power()
        while True:
            self.skip()
            if self.take("/"):
                value /= self.power()
            elif re.match(r"x(?![\w(])", self.text[self.at :]) and "x" not in self.names:
                self.at += 1
                value *= self.power()
            elif self._begins():
                value *= self.power()
            else:
                return value

    def _begins(self) -> bool:
        """Whether another factor stands here."""
        rest = self.text[self.at :]
        return bool(re.match(r"[\d(]", rest)) or self._name() is not None

    def power(self) -> float:
        value = self.atom()
        if self.take("^"):
            negative = self.take("-")
            exponent = self.atom()
            value = value ** (-exponent if negative else exponent)
        return value

    def _name(self) -> str | None:
        rest = self.text[self.at :]
        for name in self.longest_first:
            if rest.startswith(name) and not (
                name[-1].isalnum() and re.match(r"[A-Za-z_0-9]", rest[len(name) :])
            ):
                return name
        return None

    def atom(self) -> float:
        self.skip()
        if self.take("("):
            value = self.comparison()
            assert self.take(")"), f"{self.text!r}: a bracket stays open"
            return value
        if number := re.match(r"\d+(\.\d+)?", self.text[self.at :]):
            self.at += number.end()
            return float(number[0])
        name = self._name()
        assert name is not None, f"{self.text!r}: unknown at {self.text[self.at :]!r}"
        self.at += len(name)
        known = self.names[name]
        if not callable(known):
            return known
        assert self.take("("), f"{self.text!r}: {name} has no arguments"
        arguments = [self.comparison()]
        while self.take(","):
            arguments.append(self.comparison())
        assert self.take(")"), f"{self.text!r}: a bracket stays open"
        return float(known(*arguments))


def between(document: str, before: str, after: str) -> str:
    """What stands between two phrases of running text, once; line ends are blanks, code marks are
    left out."""
    text = " ".join((DOCS / document).read_text().split()).replace("`", "")
    begins = text.count(before)
    assert begins == 1, f"docs/{document} has {begins} times {before!r}"
    return text.split(before, 1)[1].split(after, 1)[0].strip()
