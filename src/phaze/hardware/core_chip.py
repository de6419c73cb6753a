"""The chip format of cores (``phaze.chip/1``), read as a chip of one array a cluster and ports
without limit.

Beside chips of clusters it is read as one of them (:meth:`CoreChip.clustered`), without what was
measured of its cores:

    clusters of T arrays and V vector units     N = gcd(T, V) of T / N arrays and V / N vector units
                                                each
    power limit                                 its published TDP

N is V where V divides T, as on every GPU and TPU.
"""

from math import gcd
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Count, Document, Format
from phaze.hardware.calibration import Calibration
from phaze.hardware.chip import CHIP, Chip, ChipKeys
from phaze.hardware.chip_parts import (
    GENERATIONS,
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
    """What lies on the die(s): pairs [units on the die, units in use], where some are switched
    off."""

    cores: UnitPair = (1, 1)

    @property
    def units(self) -> tuple[str, Pair]:
        return "cores", self.cores


class CoreHbm(CoreMemory):
    """The memory outside the die, whose ``kind`` is always a scratchpad's: software places what
    lies in it."""

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
        tensor, vector, shared, silicon = (
            self.tensor_cores,
            self.vector_cores,
            self.global_buffer,
            self.silicon,
        )
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
            size_bytes=shared.size,
            width=shared.bandwidth / self.stated_hz,
            fan_out=MULTICAST**2,
            kind=shared.kind,
        )
        chip = Chip.model_construct(
            **{name: getattr(self, name) for name in ChipKeys.model_fields},
            clusters=replace(
                clusters,
                buffer_bytes_per_s=tensor.buffer.bandwidth,
                latency_cycles=0.0,
                sustained_share=None,
            ),
            global_buffer=replace(
                memory, bandwidth_bytes_per_s=shared.bandwidth, multicast=MULTICAST
            ),
            hbm=Hbm.model_construct(
                stacks=0, bandwidth_bytes_per_s=self.hbm.bandwidth, size_bytes=self.hbm.size
            ),
            links=replace(
                Links.model_construct(bandwidth_bytes_per_s=self.links.bandwidth),
                count=self.links.count,
            ),
            built=Built.model_construct(
                clusters=silicon.cores,
                global_buffer=silicon.global_buffer,
                hbm=silicon.hbm,
                dies=silicon.dies,
            ),
        )
        units = VectorUnits(vector.count, vector.lanes, vector.buffer.size, vector.buffer.bandwidth)
        return replace(chip, vectors=units, calibration=self.calibration, power_sets_clock=False)

    def clustered(self) -> Chip:
        """The chip as clusters at its rated clock."""
        tensor, vector, shared, silicon = (
            self.tensor_cores,
            self.vector_cores,
            self.global_buffer,
            self.silicon,
        )
        count = gcd(tensor.count, vector.count)
        arrays, units = tensor.count // count, vector.count // count
        stacks, generation = _generation_of(self.hbm.bandwidth, self.technology)
        stated: dict[str, Any] = {
            **{
                field.alias or name: getattr(self, name)
                for name, field in ChipKeys.model_fields.items()
            },
            "schema": CHIP.name,
            "clusters": {
                "count": count,
                "arrays": arrays,
                "rows": tensor.rows,
                "columns": tensor.columns,
                "lanes": units * vector.lanes,
                "operand_buffer": arrays * tensor.buffer.size,
                "registers": units * vector.buffer.size,
            },
            "global_buffer": {
                "size": shared.size,
                "width": shared.bandwidth / self.stated_hz,
                "fan_out": MULTICAST,
                "kind": shared.kind,
            },
            "hbm": {
                "stacks": stacks,
                "generation": generation,
                "bandwidth": self.hbm.bandwidth,
                "size": self.hbm.size,
            },
            "links": {"bandwidth": self.links.bandwidth},
            "silicon": {
                "dies": silicon.dies,
                "clusters": (round(count * silicon.cores[0] / silicon.cores[1]), count),
                "global_buffer": silicon.global_buffer,
                "hbm": (round(stacks * silicon.hbm[0] / silicon.hbm[1]), stacks),
            },
            "power": None if self.published.tdp_w is None else {"sustained": self.published.tdp_w},
        }
        return Chip.model_validate(stated)


def _generation_of(bandwidth_bytes_per_s: float, technology: str | None) -> tuple[int, str]:
    """Stacks and generation of a chip that states neither: of its process's time, as many as its
    rate needs."""
    name = {"n5": "hbm3", "n3": "hbm3e", "n22": "hbm2", "paper-22nm": "hbm2"}.get(
        technology or "", "hbm2e"
    )
    return max(1, round(bandwidth_bytes_per_s / GENERATIONS[name].bandwidth_bytes_per_s)), name


CORE_CHIP = Format("phaze.chip/1", CoreChip, "an accelerator device")
