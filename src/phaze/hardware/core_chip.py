"""The chip format of cores (``phaze.chip/1``), read as a chip of one array a cluster and ports without limit."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Count, Document, Format
from phaze.hardware.calibration import Calibration
from phaze.hardware.chip import Chip, ChipKeys
from phaze.hardware.chip_parts import (
    MULTICAST,
    Built,
    Clusters,
    GlobalBuffer,
    Hbm,
    Lanes,
    Links,
    MemoryKind,
    Pair,
    Side,
    SiliconKeys,
    UnitPair,
    VectorUnits,
)
from phaze.hardware.keys import Name
from phaze.values import replace


class CoreBuffer(Document):
    """A core's buffer; without ``bandwidth`` it feeds its core fully."""

    size: Bytes
    bandwidth: BytesPerSecond | None = None


class CoreMemory(Document):
    """A memory of the whole chip."""

    size: Bytes
    bandwidth: BytesPerSecond
    kind: MemoryKind = "scratchpad"


class TensorCores(Document):
    """The tensor cores: how many, and the array of each."""

    count: Count
    rows: Side
    columns: Side
    buffer: CoreBuffer


class VectorCores(Document):
    """The vector cores: how many, and the lanes of each."""

    count: Count
    lanes: Lanes
    buffer: CoreBuffer


class CoreLinks(Document):
    """Links to other devices; ``bandwidth`` is of all links together, one direction."""

    count: Count
    bandwidth: BytesPerSecond


class CoreSilicon(SiliconKeys):
    """What lies on the die(s): pairs [units on the die, units in use], where some are switched off."""

    cores: UnitPair = (1, 1)

    @property
    def units(self) -> tuple[str, Pair]:
        return "cores", self.cores


class CoreHbm(CoreMemory):
    """The memory outside the die, whose ``kind`` is always a scratchpad's: software places what lies in it."""

    @model_validator(mode="after")
    def _no_cache(self) -> "CoreHbm":
        if self.kind != "scratchpad":
            raise ValueError("HBM is priced as a memory that software fills, so leave kind out")
        return self


class CoreChip(ChipKeys):
    """A chip (``phaze.chip/1``)."""

    schema_: Annotated[Literal["phaze.chip/1"], Field(alias="schema")]
    technology: Name | None = None
    tensor_cores: TensorCores
    vector_cores: VectorCores
    global_buffer: CoreMemory
    hbm: CoreHbm
    links: CoreLinks
    silicon: CoreSilicon = CoreSilicon()
    calibration: Calibration | None = None

    def chip(self) -> Chip:
        """The chip; the process that it names is not read yet."""
        tensor, vector, shared, silicon = self.tensor_cores, self.vector_cores, self.global_buffer, self.silicon
        clusters = Clusters.model_construct(
            count=tensor.count,
            arrays=1,
            rows=tensor.rows,
            columns=tensor.columns,
            lanes=vector.lanes,
            operand_bytes=tensor.buffer.size,
            register_bytes=vector.buffer.size,
        )
        memory = GlobalBuffer.model_construct(
            size_bytes=shared.size, width=shared.bandwidth / self.stated_hz, fan_out=MULTICAST, kind=shared.kind
        )
        chip = Chip.model_construct(
            **{name: getattr(self, name) for name in ChipKeys.model_fields},
            clusters=replace(clusters, buffer_bytes_per_s=tensor.buffer.bandwidth),
            global_buffer=replace(memory, bandwidth_bytes_per_s=shared.bandwidth),
            hbm=Hbm.model_construct(stacks=0, bandwidth_bytes_per_s=self.hbm.bandwidth, size_bytes=self.hbm.size),
            links=replace(Links.model_construct(bandwidth_bytes_per_s=self.links.bandwidth), count=self.links.count),
            built=Built.model_construct(
                clusters=silicon.cores, global_buffer=silicon.global_buffer, hbm=silicon.hbm, dies=silicon.dies
            ),
        )
        units = VectorUnits(vector.count, vector.lanes, vector.buffer.size, vector.buffer.bandwidth)
        return replace(chip, vectors=units, calibration=self.calibration)


CORE_CHIP = Format("phaze.chip/1", CoreChip, "an accelerator device")
