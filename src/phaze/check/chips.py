"""Chips as columns: clusters of arrays behind a port, vector units, memories (docs/formats.md,
phaze.chip).

A chip of cores is a chip of clusters with one array a cluster, a port without a limit, and sums
that lie in the buffer of operands; its vector cores are counted apart from its tensor cores. In a
chip of clusters every cluster is a vector unit too, and half of its registers hold sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .reading import number, positive

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chips:
    """One array for each field, all of one length; ``operands``, ``sums`` are bytes of a cluster,
    ``registers`` of a vector unit, ``port`` and ``global_width`` bytes a cycle, ``hbm_bandwidth``
    and ``links`` bytes a second."""

    clusters: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    vector_units: Floats
    lanes: Floats
    operands: Floats
    sums: Floats
    registers: Floats
    port: Floats
    global_buffer: Floats
    global_width: Floats
    hbm_stacks: Floats
    hbm_bandwidth: Floats
    links: Floats
    clock: Floats
    area: Floats

    def __len__(self) -> int:
        return len(self.area)

    def taken(self, index: NDArray[Any]) -> Self:
        """The chips of ``index``."""
        return type(self)(*(getattr(self, field.name)[index] for field in fields(self)))

    def words(self, index: int) -> str:
        """A chip in words."""
        names = ("clusters", "arrays", "rows", "columns", "vector_units", "lanes")
        clusters, arrays, rows, columns, vectors, lanes = (
            int(getattr(self, name)[index]) for name in names
        )
        mib, hbm, links = (
            self.global_buffer[index] / 2**20,
            self.hbm_bandwidth[index] / 1e9,
            self.links[index] / 1e9,
        )
        units = f"{clusters} x {arrays} arrays of {rows} x {columns}, {vectors} x {lanes} lanes"
        return f"{units}, {mib:g} MiB, HBM of {hbm:g} GB/s, links of {links:g} GB/s"

    @property
    def of_cores(self) -> bool:
        """Whether no port limits a cluster."""
        return bool(np.isinf(self.port).all())

    @property
    def wired_port(self) -> Floats:
        """Bytes a cycle of a port that has a limit, 0 where it has none."""
        return np.where(np.isinf(self.port), 0.0, self.port)

    @property
    def macs(self) -> Floats:
        """Multiply-accumulate units of a cluster."""
        return self.arrays * self.rows * self.columns

    @property
    def global_bandwidth(self) -> Floats:
        """Bytes a second of the global buffer."""
        return self.global_width * self.clock


@dataclass(frozen=True, slots=True)
class Boxes(Chips):
    """Boxes of chips as virtual chips: the high corner at the clock that no chip exceeds, ``least``:
    the low corner with the least area at the clock that every chip holds, the most
    multiply-accumulates and lane operations a second, and the most bytes a cycle through all
    ports."""

    least: Chips
    unit_rate: Floats
    lane_rate: Floats
    all_ports: Floats

    def taken(self, index: NDArray[Any]) -> Self:
        """The boxes of ``index``."""
        columns = dict[str, Any]()
        for field in fields(self):
            column = getattr(self, field.name)
            columns[field.name] = column.taken(index) if field.name == "least" else column[index]
        return type(self)(**columns)


def least_of(chips: Chips) -> Chips:
    """The least chip of boxes; a chip is that of itself."""
    return chips.least if isinstance(chips, Boxes) else chips


def core_chips(values: Mapping[str, Floats]) -> Chips:
    """Chips of cores by the fields of phaze.space/1, without their areas."""
    each = np.ones(len(values["rows"]))
    never = np.full(len(each), np.inf)
    return Chips(
        clusters=values["tensor_cores"], arrays=each, rows=values["rows"],
        columns=values["columns"],
        vector_units=values["vector_cores"], lanes=values["lanes"],
        operands=values["tensor_buffer"], sums=never,
        registers=values["vector_buffer"], port=never, global_buffer=values["global_buffer"],
        global_width=values["global_bandwidth"] / values["clock"], hbm_stacks=0.0 * each,
        hbm_bandwidth=values["hbm_bandwidth"], links=values["links"], clock=values["clock"],
        area=0.0 * each,
    )  # fmt: skip


def cluster_chips(values: Mapping[str, Floats]) -> Chips:
    """Chips of clusters by the fields of phaze.space/2 with port, HBM bandwidth and clock, without
    their areas."""
    same = ("clusters", "arrays", "rows", "columns", "lanes", "registers", "port", "global_buffer",
    "global_width",
            "hbm_stacks", "hbm_bandwidth", "links", "clock")  # fmt: skip
    return Chips(
        **{name: values[name] for name in same}, vector_units=values["clusters"],
        operands=values["operand_buffer"] * values["arrays"],
        sums=np.floor(values["registers"] / 2.0),
        area=np.zeros(len(values["clusters"])),
    )  # fmt: skip


def core_fields(chip: Mapping[str, Any]) -> dict[str, float]:
    """The fields of one chip of cores, read from its document."""
    tensor, vector, shared = chip["tensor_core"], chip["vector_core"], chip["global_buffer"]
    values = {
        "tensor_cores": chip["tensor_cores"], "rows": tensor["rows"], "columns": tensor["columns"],
        "vector_cores": chip["vector_cores"], "lanes": vector["lanes"],
        "global_buffer": shared["size_bytes"],
        "tensor_buffer": tensor["buffer"]["size_bytes"],
        "vector_buffer": vector["buffer"]["size_bytes"],
        "global_bandwidth": shared["bandwidth_bytes_per_s"],
        "hbm_bandwidth": chip["hbm"]["bandwidth_bytes_per_s"],
        "clock": chip["clock_hz"],
    }  # fmt: skip
    read = {name: positive(value, f"chip.{name}") for name, value in values.items()}
    return read | {"links": number(chip["links"]["bandwidth_bytes_per_s"], "chip.links")}


def alone(values: Mapping[str, float]) -> dict[str, Floats]:
    """The fields of one chip as arrays of one."""
    return {name: np.array([value]) for name, value in values.items()}
