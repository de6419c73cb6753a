"""What an answer shows, as values: an answer is a sequence of sections, and two renderers show any
of them.

    document -> sections (modules ``*_sheet.py``) -> :mod:`phaze.report.terminal`
                                                  -> :mod:`phaze.report.html`

The title of the first section says the answer itself: a page has it as its headline. ``caption``
explains a title in a few words; ``notes`` are sentences below a section. Texts are plain: each
renderer escapes and wraps them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from phaze.report.drawings import Bars, Colour, DesignPlot, FloorPlan, Gauge, Scatter, Timeline
from phaze.units import digits, show_count

Tone = Literal["", "soft", "good", "warn", "bad"]


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
    """A cell that leads to a page, with a ``tag`` behind it; on a terminal its text alone."""

    text: str
    address: str
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Pin:
    """A cell that pins a design, by its place, in the plot of the page."""

    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Pick:
    """A cell that picks its row, by a key, to be compared with another; without a key the row
    cannot be."""

    text: str
    key: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A cell that chooses a variant of the page: whose it is, which, and what it is in a few
    tags."""

    text: str
    chooser: str
    key: str
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Swatch:
    """A cell with the colour that stands for it in a drawing."""

    text: str
    colour: Colour


Cell = str | Meter | Number | Link | Pin | Pick | Choice | Swatch


@dataclass(frozen=True, slots=True)
class Figures:
    """Names and their values; ``paired``: two a line, each value below its name."""

    rows: Sequence[tuple[str, Cell]]
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    paired: bool = False


@dataclass(frozen=True, slots=True)
class Lead:
    """The figure that an answer leads with, and what it counts."""

    figure: str
    unit: str
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()

    @property
    def text(self) -> str:
        """Both."""
        return f"{self.figure} {self.unit}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first ``texts`` columns and the last ``end_texts`` hold texts, the others
    numbers, which end at the right. A long one is sorted by the column ``sorted_by`` at first, and
    shows ``narrow`` columns alone where a phone has no room for more; the first ``on_terminal`` are
    those that 80 characters have room for, where all fit a phone as cards. ``compares``: the
    address of what compares two rows that are picked.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    texts: int = 1
    end_texts: int = 0
    sorted_by: int | None = None
    narrow: int | None = None
    on_terminal: int | None = None
    compares: str = ""

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers."""
        return self.texts <= column < len(self.columns) - self.end_texts


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences, each a paragraph; ``verbatim`` lines, such as paths and code, are neither wrapped
    nor indented, and can be saved as ``file``. ``look``: bold, small, a list, a box, a warning, or
    tags of a few words."""

    lines: Sequence[str] = ()
    title: str = ""
    caption: str = ""
    verbatim: bool = False
    file: str = ""
    look: Literal["plain", "bold", "small", "list", "box", "warning", "tags"] = "plain"


@dataclass(frozen=True, slots=True)
class RunCost:
    """What a training run takes, which a page reckons again for other tokens, prices and power.
    ``None``: unknown."""

    tokens: float
    tokens_per_s: float
    devices: int
    usd_per_device_hour: float | None
    device_w: float | None
    power_usage_effectiveness: float
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()

    @property
    def days(self) -> float:
        """From the first token to the last."""
        return self.tokens / self.tokens_per_s / 86400

    @property
    def device_hours(self) -> float:
        """Hours of all devices together."""
        return 24 * self.days * self.devices

    @property
    def usd(self) -> float | None:
        """What the device hours cost."""
        return (
            None
            if self.usd_per_device_hour is None
            else self.device_hours * self.usd_per_device_hour
        )

    @property
    def mwh(self) -> float | None:
        """Energy of devices and of what cools them."""
        if self.device_w is None:
            return None
        return self.device_hours * self.device_w * self.power_usage_effectiveness / 1e6

    @property
    def figures(self) -> list[tuple[str, str]]:
        """What it takes, as names and texts."""
        amounts = {
            "days": self.days,
            "USD": self.usd,
            "device hours": self.device_hours,
            "MWh": self.mwh,
        }
        return [
            (name, "unknown" if amount is None else digits(amount))
            for name, amount in amounts.items()
        ]

    @property
    def terms(self) -> list[tuple[str, str, str]]:
        """What it is reckoned with: a key, a name, a text that can be changed."""
        usd = "" if self.usd_per_device_hour is None else f"{self.usd_per_device_hour:.3g}"
        return [
            ("tokens", "Tokens", show_count(self.tokens)),
            ("usd", "USD a device hour", usd),
            ("watts", "W a device", "" if self.device_w is None else f"{self.device_w:.0f}"),
            ("pue", "PUE", f"{self.power_usage_effectiveness:g}"),
        ]


@dataclass(frozen=True, slots=True)
class Card:
    """Sections under one question, and the answer in two words."""

    title: str
    sections: "Sections"
    verdict: str = ""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """Questions side by side; with ``wide`` three in a row, of which the first is twice as tall."""

    cards: Sequence[Card]
    wide: bool = False
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Sections under one title; ``folded`` behind a line of text, or beside each other in
    ``columns``."""

    sections: "Sections"
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()
    folded: str = ""
    columns: bool = False


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several answers: its key in the address of a page, its name, what it shows."""

    key: str
    name: str
    sections: "Sections"


@dataclass(frozen=True, slots=True)
class Variants:
    """Answers of which one is shown: the first, unless they are ``optional``, till another is
    chosen. All variants of one ``chooser`` follow the choice, which is made by a list in the page's
    bar, by a list or tabs here, or elsewhere. A terminal, which cannot choose, shows the first, or
    all of them ``together``.
    """

    chooser: str
    variants: Sequence[Variant]
    control: Literal["", "bar", "list", "tabs"] = ""
    optional: bool = False
    together: bool = False
    title: str = ""
    caption: str = ""
    notes: Sequence[str] = ()


Section = (
    Figures
    | Lead
    | Table
    | Bars
    | Gauge
    | Timeline
    | Scatter
    | Notes
    | RunCost
    | Cards
    | Group
    | Variants
    | DesignPlot
    | FloorPlan
)
Sections = Sequence[Section]
Sheet = Callable[[], Sections]
"""What makes the sections of an answer when they are to be shown."""
