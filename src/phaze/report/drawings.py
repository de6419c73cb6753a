"""Sections that are drawn: bars, gauges, timelines, scatters, plots of many designs, and a chip to
scale."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # sections are known to every command, and help needs no numpy
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

Colour = Literal[
    "tensor", "vector", "buffer", "network", "hbm", "links", "other", "good", "bad", "peak",
    "front", "ink", "room",
    "over", "forward", "backward", "weight", "sync",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar: where it starts and how long it is, its colour, and what it is in words."""

    start: float
    length: float
    colour: Colour
    text: str = ""


Legend = Sequence[tuple[Colour, str]]


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of bars: its name, its length in the unit of all of them, its value and a remark as
    texts. One that does not run from 0 in one colour has ``pieces``; ``band`` are the ends of its
    error; the answer's own is ``marked``."""

    name: str
    length: float
    value: str
    remark: str = ""
    meaning: str = ""
    pieces: Sequence[Piece] = ()
    band: tuple[float, float] | None = None
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Values drawn on one scale, which ends at ``scale``; by default at the largest of them.
    ``look``: thin bars, bars below their names, or tall ones; rows of a ``breakdown`` are
    explained, and compared with those of a variant."""

    rows: Sequence[Bar]
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    scale: float | None = None
    legend: Legend = ()
    look: Literal["plain", "thin", "below", "tall", "breakdown"] = "plain"

    @property
    def end(self) -> float:
        """Where the scale ends."""
        lengths = [max(row.length, *(row.band or (0.0,))) for row in self.rows]
        return self.scale or max(lengths, default=0.0) or 1.0


@dataclass(frozen=True, slots=True)
class Gauge:
    """One bar of pieces on a scale from 0 to ``scale``: what it says, and what stands at its
    ends."""

    pieces: Sequence[Piece]
    scale: float
    text: str
    ends: tuple[str, str]
    thin: bool = False
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


BlockKind = Literal[
    "tensor",
    "vector",
    "both",
    "network",
    "forward",
    "backward",
    "recomputed",
    "inputs",
    "weight",
    "sync",
]


@dataclass(frozen=True, slots=True)
class Block:
    """Something that runs on a lane for a while; ``symbol`` stands for it where its name has no
    room. ``pale``: how far its colour is taken back, 0 to 1."""

    start_s: float
    end_s: float
    name: str
    symbol: str
    kind: BlockKind
    pale: float = 0.0


@dataclass(frozen=True, slots=True)
class Timeline:
    """What runs when: lanes of blocks, from 0 to ``end_s``. Where ``zoom_s`` is given, so much of
    either end fills a page that can be zoomed and moved; ``skipped`` is a stretch of which blocks
    are left out."""

    lanes: Sequence[tuple[str, Sequence[Block]]]
    end_s: float
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    zoom_s: float = 0.0
    skipped: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from ``start`` to ``end``: its name, and values that are marked with a text. Equal
    ratios are equally far apart on a ``logarithmic`` one."""

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
class PlotPoint:
    """A point, and what it is in words."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name, in order along x; ``symbol`` stands for each where there is room for a
    letter alone."""

    name: str
    points: Sequence[PlotPoint]
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
    """Points over two axes, those of a series joined; ``regions`` are shaded, ``ranges`` drawn
    along the x axis; ``thin``: half as high."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    regions: Sequence[Region] = ()
    ranges: Sequence[Region] = ()
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    thin: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of every design: whether ``more`` of it is better, and whether it may be a bound
    alone."""

    name: str
    unit: str
    values: "Floats"
    more: bool = False
    bound: bool = False

    @property
    def label(self) -> str:
        """Its name with its unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


@dataclass(frozen=True, slots=True)
class DesignParameter:
    """A parameter of every design: which of the ``values``, already in words, it has."""

    name: str
    values: tuple[str, ...]
    which: "Integers"


@dataclass(frozen=True, slots=True)
class DesignPlot:
    """Designs over any two of their figures, the first over the second at first. Names are texts,
    or numbers of chips; ``exact`` says of which designs more than a bound is known, ``decided_by``
    how each was decided, ``stands_for`` how many others it is drawn for. The first ``limits``
    columns can be limited."""

    columns: Sequence[Column]
    names: "Sequence[str] | Integers"
    best: int
    file: str
    parameters: Sequence[DesignParameter] = ()
    exact: "NDArray[np.bool_] | None" = None
    decided_by: DesignParameter | None = None
    stands_for: "Integers | None" = None
    pinned: Sequence[int] = ()
    addresses: Sequence[str] = ()
    limits: int = 0
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """A rectangle of a drawing, its colour, and what it is."""

    x: float
    y: float
    width: float
    height: float
    colour: Colour
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """A square from the lower left corner of a drawing; one of a ``variant`` is shown with it
    alone."""

    name: str
    side: float
    solid: bool
    variant: str = ""


@dataclass(frozen=True, slots=True)
class FloorPlan:
    """A square chip to scale in a drawing 100 wide and high, from its lower left corner;
    ``chooser`` is that of the variants of its outlines."""

    shapes: Sequence[Shape]
    side: float
    outlines: Sequence[Outline]
    text: str
    legend: Sequence[tuple[Colour, str]]
    chooser: str = ""
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
