"""Files of chips: what both formats have in common, and that of cores (``phaze.chip/1``).

Each class here says which keys a file may have; ``value()`` converts the checked file into the one chip.
A file's ``sources`` table names, for the path of a number, where the number comes from; a source that begins with
``assumed:``, ``recalled:`` or ``derived:`` says that it is not a published reading.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from phaze.documents import (
    Bytes,
    BytesPerSecond,
    Count,
    Document,
    Format,
    Hertz,
)
from phaze.hardware.calibration import Calibration
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import (
    UNPUBLISHED,
    Built,
    ClockBasis,
    Clusters,
    GlobalBuffer,
    Hbm,
    Links,
    Published,
    VectorUnits,
)
from phaze.hardware.formats import Ratios
from phaze.hardware.keys import Name, Place, Sources, Text, Units
from phaze.values import FrozenTable

Ratio = Annotated[float, Field(ge=1, le=64)]
UnitPair = Annotated[tuple[Units, Units], Field(strict=False)]


class CoreBufferTable(Document):
    """A core's buffer; without ``bandwidth`` it feeds its core fully."""

    size: Bytes
    bandwidth: BytesPerSecond | None = None


class MemoryTable(Document):
    """A memory of the whole chip."""

    size: Bytes
    bandwidth: BytesPerSecond
    kind: Literal["scratchpad", "cache"] = "scratchpad"


class TensorCoresTable(Document):
    """The tensor cores: how many, and the array of each."""

    count: Count
    rows: Annotated[int, Field(gt=0, le=65536)]
    columns: Annotated[int, Field(gt=0, le=65536)]
    buffer: CoreBufferTable


class VectorCoresTable(Document):
    """The vector cores: how many, and the lanes of each."""

    count: Count
    lanes: Annotated[int, Field(gt=0, le=2**24)]
    buffer: CoreBufferTable


class LinksTable(Document):
    """Links to other devices; ``bandwidth`` is of all links together, one direction."""

    count: Count
    bandwidth: BytesPerSecond


class SiliconKeys(Document):
    """What lies on the die(s): pairs [units on the die, units in use], where some are switched off."""

    dies: Annotated[int, Field(gt=0, le=64)] = 1
    global_buffer: UnitPair = (1, 1)
    hbm: UnitPair = (1, 1)

    @property
    def units(self) -> tuple[str, tuple[int, int]]:
        """What its clusters or cores are called, and their pair."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _all_in_use_lie_on_the_die(self) -> Self:
        pairs = (self.units, ("global_buffer", self.global_buffer), ("hbm", self.hbm))
        for name, (on_die, in_use) in pairs:
            if on_die < in_use:
                raise ValueError(f"let {name} have at least as many units on the die as in use ({on_die} and {in_use})")
        return self


class SiliconTable(SiliconKeys):
    """What lies on the die(s): pairs [units on the die, units in use], where some are switched off."""

    cores: UnitPair = (1, 1)

    @property
    def units(self) -> tuple[str, tuple[int, int]]:
        return "cores", self.cores

    def value(self) -> Built:
        return Built(self.cores, self.global_buffer, self.hbm, self.dies)


class FormatsTable(Document):
    """How many times faster than in 16 bits the arrays are in a number format; without a key they have none."""

    fp8: Ratio | None = None
    mxfp8: Ratio | None = None
    fp4: Ratio | None = None
    fp32: Annotated[float, Field(ge=1 / 64, le=1)] | None = None

    def value(self) -> Ratios:
        return tuple((name, ratio) for name, ratio in self.model_dump(exclude_none=True).items())


class HostTable(Document):
    """What joins the device to the memory of its host."""

    bandwidth: Annotated[BytesPerSecond, Field(description="one way, of one device")]


class HbmTable(MemoryTable):
    """The memory outside the die, whose ``kind`` is always a scratchpad's: software places what lies in it."""

    @model_validator(mode="after")
    def _no_cache(self) -> "HbmTable":
        if self.kind != "scratchpad":
            raise ValueError("HBM is priced as a memory that software fills, so leave kind out")
        return self


class ChipKeys(Document):
    """What files of chips have in common, of cores and of clusters."""

    schema_: Annotated[str, Field(alias="schema")]
    name: Name
    title: Text
    clock: Hertz
    clock_basis: ClockBasis
    technology: Place | None = None
    cluster: Name | None = None
    published: Published = UNPUBLISHED
    formats: FormatsTable = FormatsTable()
    host: HostTable | None = None
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)

    def _common(self) -> dict[str, Any]:
        """The fields of the chip that these keys state."""
        return {
            "name": self.name,
            "title": self.title,
            "clock_hz": self.clock,
            "clock_basis": self.clock_basis,
            "technology": self.technology,
            "cluster": self.cluster,
            "published": self.published,
            "formats": self.formats.value(),
            "host_bytes_per_s": None if self.host is None else self.host.bandwidth,
        }


class ChipFile(ChipKeys):
    """A chip (``phaze.chip/1``)."""

    schema_: Annotated[Literal["phaze.chip/1"], Field(alias="schema")]
    technology: Name | None = None
    tensor_cores: TensorCoresTable
    vector_cores: VectorCoresTable
    global_buffer: MemoryTable
    hbm: HbmTable
    links: LinksTable
    silicon: SiliconTable = SiliconTable()
    calibration: Calibration | None = None

    def value(self) -> Chip:
        """The chip; the process that it names is not read yet."""
        tensor, vector, shared = self.tensor_cores, self.vector_cores, self.global_buffer
        operands, registers = tensor.buffer, vector.buffer
        return Chip(
            **self._common(),
            clusters=Clusters(
                tensor.count, tensor.rows, tensor.columns, operands.size, buffer_bytes_per_s=operands.bandwidth
            ),
            vectors=VectorUnits(vector.count, vector.lanes, registers.size, registers.bandwidth),
            global_buffer=GlobalBuffer(shared.size, shared.bandwidth, shared.kind == "cache"),
            hbm=Hbm(self.hbm.size, self.hbm.bandwidth),
            links=Links(self.links.bandwidth, self.links.count),
            built=self.silicon.value(),
            calibration=self.calibration,
        )


CHIP = Format("phaze.chip/1", ChipFile, "an accelerator device")
