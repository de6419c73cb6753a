"""The axes of a space: each field of a chip that varies, as a list of values or as a range.

A range is ``{from, to, times}`` (each value the one before, times a factor) or ``{from, to,
step}``; quantities may have units: ``{from = "1 MiB", to = "128 MiB", times = 2}``.
"""

from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Document, Hertz, Positive

Whole = Annotated[int, Field(gt=0, le=2**24)]
# An axis of more values is a slip of the pen; a study of them would be out of reach.
MOST_POINTS = 100_000
T = TypeVar("T", int, float)
Floats = NDArray[np.float64]


class Range(Document, Generic[T]):
    """Values ``from``..``to``, by a factor (``times``) or a ``step``."""

    from_: Annotated[T, Field(alias="from")]
    to: T
    times: Annotated[float, Field(gt=1)] | None = None
    step: T | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "Range[T]":
        if (self.times is None) == (self.step is None):
            raise ValueError("give either times or step")
        if self.to < self.from_:
            raise ValueError(f"let to be at least from, {self.from_}")
        if self.step is not None and (self.to - self.from_) / self.step > MOST_POINTS:
            raise ValueError(f"these are more than {MOST_POINTS:,} values")
        if isinstance(self.from_, int) and self.times is not None and not self.times.is_integer():
            raise ValueError("the values are whole numbers, so let times be one")
        return self

    def points(self) -> list[T]:
        """Every value, ascending."""
        if self.step is not None:
            count = int((self.to - self.from_) / self.step * (1 + 1e-12))
            return [self.from_ + step * self.step for step in range(count + 1)]
        factor = type(self.from_)(self.times or 2)
        points, value = [], self.from_
        while value <= self.to:
            points.append(value)
            value *= factor
        return points


class RangeTable(Range[Whole]):
    """Whole numbers, as counts are."""


class BytesRange(Range[Bytes]):
    """Sizes of a memory."""


class RateRange(Range[BytesPerSecond]):
    """Bandwidths."""


class ClockRange(Range[Hertz]):
    """Clocks."""


Axis = RangeTable | Annotated[list[Whole], Field(min_length=1)]
Sizes = BytesRange | Annotated[list[Bytes], Field(min_length=1)]
Rates = RateRange | Annotated[list[BytesPerSecond], Field(min_length=1)]
Clocks = ClockRange | Annotated[list[Hertz], Field(min_length=1)]


class AxesTable(Document):
    """The values of each varied field; what is not given is the base chip's, core buffers by the
    space's rule."""

    tensor_cores: Axis
    rows: Axis
    columns: Axis
    vector_cores: Axis | Literal["tensor_cores"]
    lanes: Axis | Literal["columns"]
    global_buffer: Sizes
    tensor_buffer: Sizes | None = None
    vector_buffer: Sizes | None = None
    global_bandwidth: Rates | None = None
    hbm_bandwidth: Rates | None = None
    links: Rates | None = None
    clock: Clocks | None = None


Counts = Annotated[list[Whole], Field(min_length=1, max_length=1000)]
BufferSizes = Annotated[list[Bytes], Field(min_length=1, max_length=1000)]


class ClusterAxesTable(Document):
    """The values of each axis of a space of chips of clusters."""

    clusters: Counts
    arrays: Annotated[Counts, Field(description="of a cluster")]
    rows: Counts
    columns: Counts
    lanes: Annotated[Counts, Field(description="of a cluster")]
    operand_buffer: Annotated[BufferSizes, Field(description="of an array")]
    registers: Annotated[BufferSizes, Field(description="of a cluster, half of them for sums")]
    global_buffer: BufferSizes
    global_width: Annotated[
        list[Positive], Field(min_length=1, max_length=1000, description="bytes a cycle")
    ]
    hbm_stacks: Counts
    links: Annotated[list[BytesPerSecond], Field(min_length=1, max_length=1000)]


class AxisField(NamedTuple):
    """A field of chips that may be an axis: what a file calls it, the field, and whether it is
    stated in whole numbers.

    A field is a column of :class:`phaze.hardware.columns.ChipColumns`, or ``array_bytes``, the
    operand buffer of one array."""

    name: str
    field: str
    whole: bool = False


class CoreBuffers(Document):
    """The rule for core buffers: max(least, bytes_per_unit * units)."""

    least: Bytes
    bytes_per_unit: Positive

    def over(self, units: Floats) -> Floats:
        """The buffers of so many units."""
        return np.floor(np.maximum(self.least, self.bytes_per_unit * units))


def constant(value: float, count: int) -> Floats:
    """One value for all chips takes no memory."""
    return np.broadcast_to(np.float64(value), count)


def ports_over(widths: Floats, clusters: Floats) -> Floats:
    """The port of every width and number of clusters: the least power of two at least width / N."""
    # A power of two is exact in both forms: doubling while below the share, as port_of does.
    port = np.ones(len(widths))
    while (narrow := port < widths / clusters).any():
        port = np.where(narrow, port * 2.0, port)
    return port
