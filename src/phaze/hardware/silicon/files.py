"""The chip format of clusters (``phaze.chip/2``).

``[hbm]`` names stacks and a generation; ``bandwidth`` and ``size`` stand there where a chip's stacks run slower or hold
more than the generation's, and with no stacks (DDR, GDDR, LPDDR beside the package, whose interface has no area
here). ``[silicon]`` has pairs [on the die, in use]. ``[measured]`` is what was measured.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze import documents
from phaze.documents import (
    Bytes,
    BytesPerSecond,
    Document,
    FlopPerSecond,
    Format,
    Hertz,
    Positive,
    Reader,
    Seconds,
    Share,
    Watts,
)
from phaze.errors import unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.attention_file import known_family
from phaze.hardware.chip import ClockBasis, Published
from phaze.hardware.files import (
    ChipFile,
    FormatsTable,
    HostTable,
    Name,
    Place,
    PublishedTable,
    Sources,
    Text,
    UnitPair,
    Units,
)
from phaze.hardware.library import bundled, preset_names
from phaze.hardware.silicon.chip import (
    GENERATIONS,
    Accelerator,
    Built,
    ChipMeasurements,
    Clusters,
    GlobalBuffer,
    Hbm,
    Interfaces,
    SerialLinks,
    accelerator_of,
    port_of,
)

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
            return Hbm(0, None, self.size or 0, self.bandwidth or 0.0)
        one = GENERATIONS[self.generation]
        bandwidth = self.bandwidth or self.stacks * one.bandwidth_bytes_per_s
        return Hbm(self.stacks, self.generation, self.size or self.stacks * one.size_bytes, bandwidth)


class SerialLinksTable(Document):
    """Links to other devices, all together, one way; ``lane`` is the rate of one SerDes lane."""

    bandwidth: BytesPerSecond
    lane: BytesPerSecond | None = None


class BuiltTable(Document):
    """What lies on the dies: pairs [on the die, in use], where some parts are switched off."""

    clusters: UnitPair | None = None
    global_buffer: UnitPair = (1, 1)
    hbm: UnitPair = (1, 1)
    dies: Annotated[int, Field(gt=0, le=64)] = 1
    base_dies: Annotated[int, Field(ge=0, le=64)] = 0
    base_technology: Name | None = None
    interfaces: Interfaces = "ga100"
    second_cache: Bytes | None = None
    die_links: BytesPerSecond | None = None

    @model_validator(mode="after")
    def _possible(self) -> "BuiltTable":
        pairs = {"clusters": self.clusters or (1, 1), "global_buffer": self.global_buffer, "hbm": self.hbm}
        for name, (on_die, in_use) in pairs.items():
            if on_die < in_use:
                raise ValueError(f"let {name} have at least as many units on the die as in use ({on_die} and {in_use})")
        if (self.base_dies > 0) != (self.base_technology is not None):
            raise ValueError("give base_dies and base_technology together")
        return self


class PowerTable(Document):
    """The power that the chip may draw for long; it sets the clock."""

    sustained: Watts


class MeasurementsTable(Document):
    """What was measured, used by plans and never by a search: the rate of a long run of one product and its m, n, k,
    else the clock, of which single products are priced at any rate; power; start-ups, shares of HBM, rows kept."""

    rate: FlopPerSecond | None = None
    shape: Annotated[tuple[Units, Units, Units], Field(strict=False)] | None = None
    power: Watts | None = None
    clock: Hertz | None = None
    start_up: Seconds | None = None
    vector_start_up: Seconds | None = None
    hbm_share: Share | None = None
    vector_hbm_share: Share | None = None
    kept_row: Bytes | None = None
    attention: Annotated[str | None, Field(description="the family whose measured attention kernels it runs")] = None
    rate_fp8: FlopPerSecond | None = None

    @model_validator(mode="after")
    def _of_a_product(self) -> "MeasurementsTable":
        if (self.rate is None) != (self.shape is None):
            raise ValueError("give rate and shape together")
        if self.rate_fp8 is not None and self.rate is None:
            raise ValueError("give rate with rate_fp8, which is relative to it")
        return self

    def value(self) -> ChipMeasurements:
        return ChipMeasurements(
            self.rate, self.shape, self.power, self.clock, self.start_up, self.vector_start_up, self.hbm_share,
            self.vector_hbm_share, self.kept_row,
            None if self.attention is None else known_family(self.attention, "measured.attention"),
            self.rate_fp8,
        )  # fmt: skip


class AcceleratorFile(Document):
    """A chip as clusters of arrays (``phaze.chip/2``)."""

    schema_: Annotated[Literal["phaze.chip/2"], Field(alias="schema")]
    name: Name
    title: Text
    clock: Annotated[Hertz, Field(description="the most it may run; the power limit sets what it holds")]
    clock_basis: ClockBasis = "sourced"
    technology: Annotated[Place | None, Field(description="a process by name, or the path of a file")] = None
    cluster: Name | None = None
    clusters: ClustersTable
    global_buffer: GlobalBufferTable
    hbm: HbmStacksTable
    links: SerialLinksTable
    silicon: BuiltTable = BuiltTable()
    power: PowerTable | None = None
    published: PublishedTable = PublishedTable()
    measured: MeasurementsTable = MeasurementsTable()
    formats: FormatsTable = FormatsTable()
    host: HostTable | None = None
    notes: Text | None = None
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="after")
    def _those_in_use_are_the_count(self) -> "AcceleratorFile":
        said = self.silicon.clusters
        if said is not None and said[1] != self.clusters.count:
            raise ValueError(f"let silicon.clusters end with the clusters in use, {self.clusters.count}")
        return self

    def value(self) -> Accelerator:
        said, table, one = self.published, self.clusters, self.global_buffer
        return Accelerator(
            name=self.name,
            title=self.title,
            clock_hz=self.clock,
            technology=self.technology,
            clusters=Clusters(
                table.count, table.arrays, table.rows, table.columns, table.lanes, table.operand_buffer,
                table.registers, table.port or port_of(one.width, table.count), table.broadcast,
            ),
            global_buffer=GlobalBuffer(one.size, one.width, one.fan_out, one.kind == "cache"),
            hbm=self.hbm.value(),
            links=SerialLinks(self.links.bandwidth, self.links.lane),
            built=self._built(),
            sustained_w=None if self.power is None else self.power.sustained,
            cluster=self.cluster,
            clock_basis=self.clock_basis,
            published=Published(said.peak, said.die, said.die_is_upper_bound, said.tdp, said.process),
            measured=self.measured.value(),
            formats=self.formats.value(),
            host_bytes_per_s=None if self.host is None else self.host.bandwidth,
        )  # fmt: skip

    def _built(self) -> Built:
        table = self.silicon
        buffer_built, sites = table.global_buffer, table.hbm
        return Built(
            clusters=self.clusters.count if table.clusters is None else table.clusters[0],
            global_buffer_bytes=round(self.global_buffer.size * buffer_built[0] / buffer_built[1]),
            hbm_sites=round(self.hbm.stacks * sites[0] / sites[1]),
            dies=table.dies,
            base_dies=table.base_dies,
            base_technology=table.base_technology,
            interfaces=table.interfaces,
            second_cache_bytes=table.second_cache or 0,
            die_link_bytes_per_s=table.die_links or 0.0,
        )


ACCELERATOR = Format(SCHEMA, AcceleratorFile, "an accelerator device as clusters of arrays")


def accelerator_names() -> tuple[str, ...]:
    """The bundled chips of this format."""
    return preset_names("silicon/chips")


CORES_FIRST = ("chips", "silicon/chips", "silicon/bases")
"""Where bundled chips lie: those of cores, those of clusters, and the plain ones that spaces vary."""
CLUSTERS_FIRST = ("silicon/chips", "silicon/bases", "chips")
USUAL = CLUSTERS_FIRST
"""The order in which every command but a search looks for a name."""


def chip_names() -> tuple[str, ...]:
    """The bundled chips of both formats, but for those that only spaces vary."""
    return tuple(sorted({*preset_names("chips"), *accelerator_names()}))


def read_chip(text: str, reader: Reader = read_text, folders: Sequence[str] = USUAL) -> AcceleratorFile | ChipFile:
    """The checked file of a chip, of either version, by preset name or path; of a name the first that ``folders``
    have."""
    if is_path(text):
        raw, where = reader(text)
        found = documents.parse(raw, documents.notation_of(text, raw), where)
    else:
        folder = next((folder for folder in folders if text in preset_names(folder)), None)
        if folder is None:
            raise unknown_name("", "chip", text, chip_names())
        where = f"presets/{folder}/{text}.toml"
        found = dict(bundled(where))
    if found.get("schema") == SCHEMA:
        return documents.check(AcceleratorFile, found, where)
    return documents.check(ChipFile, found, where)


def changed_file(file: AcceleratorFile, changes: Mapping[str, Any], where: str) -> AcceleratorFile:
    """The file with other values, checked again; of a table only the keys that ``changes`` has."""
    raw = file.model_dump(by_alias=True)
    for key, value in changes.items():
        before = raw.get(key)
        raw[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, Mapping) else value
    return documents.check(AcceleratorFile, raw, where)


def load_accelerator(text: str, reader: Reader = read_text) -> Accelerator:
    """A chip by preset name or path; one of version 1 as clusters."""
    file = read_chip(text, reader, CLUSTERS_FIRST)
    return accelerator_of(file.value()) if isinstance(file, ChipFile) else file.value()
