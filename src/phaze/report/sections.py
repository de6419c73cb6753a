"""What an answer shows, as values: an answer is a sequence of sections, and two renderers show any of them.

    document -> sections (one function a command, in the modules ``*_sheet.py``) -> :mod:`phaze.report.terminal`
                                                                                 -> :mod:`phaze.report.html`

The title of the first section says the answer itself: a page has it as its headline. ``caption`` explains a title in a
few words; ``notes`` are sentences below a section. Texts are plain: each renderer escapes and wraps them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal


@dataclass(frozen=True, slots=True)
class Meter:
    """A cell that is drawn as a bar: a share of a whole, and what is written behind it."""

    share: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A cell that is a number: its text, and the value that it is sorted by."""

    text: str
    value: float


@dataclass(frozen=True, slots=True)
class Link:
    """A cell that leads to a page; on a terminal its text alone."""

    text: str
    address: str


Cell = str | Meter | Number | Link


@dataclass(frozen=True, slots=True)
class Figures:
    """Names and their values."""

    rows: Sequence[tuple[str, Cell]]
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first ``texts`` columns hold texts, the others numbers, which end at the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    texts: int = 1


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of bars: its name, its length in the unit of all of them, its value and a remark as texts."""

    name: str
    length: float
    value: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Values drawn on one scale, which ends at ``scale``; by default at the largest of them."""

    rows: Sequence[Bar]
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    scale: float | None = None


BlockKind = Literal["tensor", "vector", "both", "network"]


@dataclass(frozen=True, slots=True)
class Block:
    """Something that runs on a lane for a while; ``symbol`` stands for it where its name has no room."""

    start_s: float
    end_s: float
    name: str
    symbol: str
    kind: BlockKind


@dataclass(frozen=True, slots=True)
class Timeline:
    """What runs when: lanes of blocks, from 0 to ``end_s``."""

    lanes: Sequence[tuple[str, Sequence[Block]]]
    end_s: float
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from ``start`` to ``end``: its name, and values that are marked with a text. Equal ratios are equally far
    apart on a ``logarithmic`` one."""

    name: str
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def scale(self) -> Callable[[float], float]:
        """What maps a value of the axis to its place, 0 at the start and 1 at the end."""
        if self.start == self.end:
            return lambda value: 0.5
        if self.logarithmic:
            return lambda value: log(value / self.start) / log(self.end / self.start)
        return lambda value: (value - self.start) / (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Point:
    """A point, and what it is in words."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name, in order along x; ``symbol`` stands for each where there is room for a letter alone."""

    name: str
    points: Sequence[Point]
    symbol: str = "•"


@dataclass(frozen=True, slots=True)
class Region:
    """A range of x under one name, and what it means."""

    start: float
    end: float
    name: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points over two axes, those of a series joined; ``regions`` are shaded, ``ranges`` drawn along the x axis."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    regions: Sequence[Region] = ()
    ranges: Sequence[Region] = ()
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences, each a paragraph; ``verbatim`` lines, such as paths and code, are neither wrapped nor indented."""

    lines: Sequence[str] = ()
    title: str = ""
    caption: str = ""
    verbatim: bool = False


Section = Figures | Table | Bars | Timeline | Scatter | Notes
Sections = Sequence[Section]
Sheet = Callable[[], Sections]
"""What makes the sections of an answer when they are to be shown."""
