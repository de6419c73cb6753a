"""The chip format of clusters (``phaze.chip/2``).

``[hbm]`` names stacks and a generation; ``bandwidth`` and ``size`` stand there where a chip's stacks run slower or hold
more than the generation's, and with no stacks (DDR, GDDR, LPDDR beside the package, whose interface has no area
here). ``[silicon]`` has pairs [on the die, in use]. ``[measured]`` is what was measured.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.documents import (
    Bytes,
    BytesPerSecond,
    Document,
    Format,
    Hertz,
    Positive,
    Watts,
)
from phaze.hardware.chip import Chip
from phaze.hardware.chip_file import ChipKeys, SiliconKeys, UnitPair
from phaze.hardware.chip_parts import (
    GENERATIONS,
    UNMEASURED,
    Built,
    ChipMeasurements,
    ClockBasis,
    Clusters,
    GlobalBuffer,
    Hbm,
    Interfaces,
    Links,
    VectorUnits,
)
from phaze.hardware.converted import port_of
from phaze.hardware.keys import Name, Place, Units

SCHEMA = "phaze.chip/2"
Side = Annotated[int, Field(gt=0, le=65536)]
Lanes = Annotated[int, Field(gt=0, le=2**24)]
Generations = Literal["hbm2", "hbm2e", "hbm3", "hbm3e"]


class ClustersTable(Document):
    """The clusters in use; without ``port`` each gets its share of the global buffer, rounded up to a power of two."""

    count: Units
    arrays: Units
    rows: Side
    columns: Side
    lanes: Annotated[Lanes, Field(description="of one cluster")]
    operand_buffer: Annotated[Bytes, Field(description="of one cluster")]
    registers: Annotated[Bytes, Field(description="of one cluster; half of them may hold sums")]
    port: Annotated[Positive | None, Field(description="bytes a cycle, each way, of one cluster")] = None
    broadcast: Annotated[bool, Field(description="arrays of a cluster share the operands they read")] = False


class GlobalBufferTable(Document):
    """The global buffer."""

    size: Bytes
    width: Annotated[Positive, Field(description="bytes a cycle")]
    fan_out: Annotated[Units, Field(description="clusters that one read reaches")] = 1
    kind: Literal["scratchpad", "cache"] = "scratchpad"


class HbmStacksTable(Document):
    """HBM; ``bandwidth`` and ``size`` of all stacks, where they are not the generation's."""

    stacks: Annotated[int, Field(ge=0, le=64)]
    generation: Generations | None = None
    bandwidth: BytesPerSecond | None = None
    size: Bytes | None = None

    @model_validator(mode="after")
    def _complete(self) -> "HbmStacksTable":
        if (self.stacks > 0) != (self.generation is not None):
            raise ValueError("give a generation with stacks, and none without")
        if self.generation is None and (self.bandwidth is None or self.size is None):
            raise ValueError("without stacks give bandwidth and size")
        return self

    def value(self) -> Hbm:
        if self.generation is None:
            return Hbm(self.size or 0, self.bandwidth or 0.0)
        stack = GENERATIONS[self.generation]
        bandwidth = self.bandwidth or self.stacks * stack.bandwidth_bytes_per_s
        return Hbm(self.size or self.stacks * stack.size_bytes, bandwidth, self.stacks, self.generation)


class SerialLinksTable(Document):
    """Links to other devices, all together, one way; ``lane`` is the rate of one SerDes lane."""

    bandwidth: BytesPerSecond
    lane: BytesPerSecond | None = None


class BuiltTable(SiliconKeys):
    """What lies on the dies: pairs [on the die, in use], where some parts are switched off."""

    clusters: UnitPair | None = None
    base_dies: Annotated[int, Field(ge=0, le=64)] = 0
    base_technology: Name | None = None
    interfaces: Interfaces = "ga100"
    second_cache: Bytes | None = None
    die_links: BytesPerSecond | None = None

    @property
    def units(self) -> tuple[str, tuple[int, int]]:
        return "clusters", self.clusters or (1, 1)

    @model_validator(mode="after")
    def _a_process_of_base_dies(self) -> "BuiltTable":
        if (self.base_dies > 0) != (self.base_technology is not None):
            raise ValueError("give base_dies and base_technology together")
        return self


class PowerTable(Document):
    """The power that the chip may draw for long; it sets the clock."""

    sustained: Watts


class ClusterChipFile(ChipKeys):
    """A chip as clusters of arrays (``phaze.chip/2``)."""

    schema_: Annotated[Literal["phaze.chip/2"], Field(alias="schema")]
    clock: Annotated[Hertz, Field(description="the most it may run; the power limit sets what it holds")]
    clock_basis: ClockBasis = "sourced"
    technology: Annotated[Place | None, Field(description="a process by name, or the path of a file")] = None
    clusters: ClustersTable
    global_buffer: GlobalBufferTable
    hbm: HbmStacksTable
    links: SerialLinksTable
    silicon: BuiltTable = BuiltTable()
    power: PowerTable | None = None
    measured: ChipMeasurements = UNMEASURED

    @model_validator(mode="after")
    def _those_in_use_are_the_count(self) -> "ClusterChipFile":
        said = self.silicon.clusters
        if said is not None and said[1] != self.clusters.count:
            raise ValueError(f"let silicon.clusters end with the clusters in use, {self.clusters.count}")
        return self

    def value(self) -> Chip:
        """The chip at its rated clock; the processes that it names are not read yet."""
        table, shared = self.clusters, self.global_buffer
        return Chip(
            **self._common(),
            clusters=Clusters(
                table.count, table.rows, table.columns, table.operand_buffer, table.arrays,
                table.port or port_of(shared.width, table.count), table.broadcast,
            ),
            vectors=VectorUnits(table.count, table.lanes, table.registers),
            global_buffer=GlobalBuffer(shared.size, shared.width * self.clock, shared.kind == "cache", shared.fan_out),
            hbm=self.hbm.value(),
            links=Links(self.links.bandwidth, lane_bytes_per_s=self.links.lane),
            built=self._built(),
            calibration=self.measured.calibration,
            measured=self.measured,
            sustained_w=None if self.power is None else self.power.sustained,
            rated_hz=self.clock,
        )  # fmt: skip

    def _built(self) -> Built:
        table = self.silicon
        return Built(
            clusters=table.clusters or (self.clusters.count, self.clusters.count),
            global_buffer=table.global_buffer,
            hbm=table.hbm,
            dies=table.dies,
            base_dies=table.base_dies,
            base_technology=table.base_technology,
            interfaces=table.interfaces,
            second_cache_bytes=table.second_cache or 0,
            die_link_bytes_per_s=table.die_links or 0.0,
        )


CLUSTER_CHIP = Format(SCHEMA, ClusterChipFile, "an accelerator device as clusters of arrays")
