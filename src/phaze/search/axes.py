"""The axes of a space: each field of a chip that varies, as a list of values or as a range.

A range is ``{from, to, times}`` (each value the one before, times a factor) or ``{from, to, step}``; quantities may
have units: ``{from = "1 MiB", to = "128 MiB", times = 2}``.
"""

from collections.abc import Sequence
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Document, Hertz, Positive

Whole = Annotated[int, Field(gt=0, le=2**24)]
# An axis of more values is a slip of the pen; a study of them would be out of reach.
MOST_POINTS = 100_000
T = TypeVar("T", int, float)


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
            return [self.from_ + at * self.step for at in range(count + 1)]
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
    """The values of each varied field; what is not given is the base chip's, core buffers by the space's rule."""

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
    global_width: Annotated[list[Positive], Field(min_length=1, max_length=1000, description="bytes a cycle")]
    hbm_stacks: Counts
    links: Annotated[list[BytesPerSecond], Field(min_length=1, max_length=1000)]


def whole_points(axis: RangeTable | BytesRange | Sequence[int]) -> NDArray[np.int64]:
    """The distinct whole values of an axis, ascending."""
    points = axis.points() if isinstance(axis, Range) else axis
    return np.array(sorted(set(points)), dtype=np.int64)


def real_points(axis: RateRange | ClockRange | Sequence[float]) -> NDArray[np.float64]:
    """The distinct real values of an axis, ascending."""
    points = axis.points() if isinstance(axis, Range) else axis
    return np.array(sorted(set(points)), dtype=np.float64)
