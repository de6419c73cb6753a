"""Chips as columns: one array for each number that areas, powers and costs depend on, one chip or many alike.

A chip of clusters (:class:`phaze.hardware.silicon.chip.Accelerator`) has as many vector units as clusters. A chip of
cores is one array a cluster behind a port without limit, and vector cores beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.chip import Chip, array_feed_bytes_per_cycle, lane_feed_bytes_per_cycle
from phaze.hardware.silicon.chip import MULTICAST, Accelerator
from phaze.hardware.technology import Technology

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChipColumns:
    """One array a number. ``*_bytes`` of buffers are of one cluster or vector unit, and so are their rates;
    ``limit_w`` is infinite where there is none."""

    clusters: Floats
    built: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    vectors: Floats
    vectors_built: Floats
    lanes: Floats
    operand_bytes: Floats
    operand_bytes_per_s: Floats
    register_bytes: Floats
    register_bytes_per_s: Floats
    port: Floats
    broadcast: Flags
    global_bytes: Floats
    global_built_bytes: Floats
    width: Floats
    global_bytes_per_s: Floats
    fan_out: Floats
    cache: Flags
    stacks: Floats
    sites: Floats
    hbm_bytes_per_s: Floats
    hbm_built_bytes_per_s: Floats
    link_bytes_per_s: Floats
    lane_bytes_per_s: Floats
    clock_hz: Floats
    limit_w: Floats

    def __len__(self) -> int:
        return len(self.clusters)

    def taken(self, index: NDArray[Any]) -> "ChipColumns":
        """The chips of ``index``, numbers or flags."""
        return ChipColumns(*(getattr(self, f.name)[index] for f in fields(self)))

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates a cycle of a cluster."""
        return self.arrays * self.rows * self.columns


def _of_clusters(chip: Accelerator, technology: Technology | None) -> tuple[float, ...]:
    clusters, built, shared, hbm, links = chip.clusters, chip.built, chip.global_buffer, chip.hbm, chip.links
    feed = clusters.arrays * array_feed_bytes_per_cycle(clusters.rows, clusters.columns)
    return (
        clusters.count, built.clusters, clusters.arrays, clusters.rows, clusters.columns,
        clusters.count, built.clusters, clusters.lanes,
        clusters.operand_bytes, feed * chip.clock_hz,
        clusters.register_bytes, lane_feed_bytes_per_cycle(clusters.lanes) * chip.clock_hz,
        clusters.port_bytes_per_cycle, clusters.broadcast,
        shared.size_bytes, built.global_buffer_bytes, shared.bytes_per_cycle, shared.bytes_per_cycle * chip.clock_hz,
        shared.fan_out, shared.cache, hbm.stacks, built.hbm_sites, hbm.bandwidth_bytes_per_s, hbm.bandwidth_bytes_per_s,
        links.bandwidth_bytes_per_s,
        links.lane_bytes_per_s or (float("nan") if technology is None else technology.area.lane_bytes_per_s),
        chip.clock_hz, float("inf") if chip.sustained_w is None else chip.sustained_w,
    )  # fmt: skip


def _of_cores(chip: Chip) -> tuple[float, ...]:
    tensor, vector, shared, hbm, silicon = (
        chip.tensor_core, chip.vector_core, chip.global_buffer, chip.hbm, chip.silicon,
    )  # fmt: skip
    return (
        chip.tensor_cores, chip.tensor_cores * silicon.cores_built, 1, tensor.rows, tensor.columns,
        chip.vector_cores, chip.vector_cores * silicon.cores_built, vector.lanes,
        tensor.buffer.size_bytes, tensor.buffer.bandwidth_bytes_per_s,
        vector.buffer.size_bytes, vector.buffer.bandwidth_bytes_per_s, float("inf"), False,
        shared.size_bytes, shared.size_bytes * silicon.global_buffer_built,
        shared.bandwidth_bytes_per_s / chip.clock_hz, shared.bandwidth_bytes_per_s,
        MULTICAST, shared.cache, 0, 0, hbm.bandwidth_bytes_per_s, hbm.bandwidth_bytes_per_s * silicon.hbm_built,
        chip.links.bandwidth_bytes_per_s, float("inf"), chip.clock_hz, float("inf"),
    )  # fmt: skip


def columns_of(chips: Sequence[Accelerator], technology: Technology | None) -> ChipColumns:
    """Chips of clusters; ``technology`` knows SerDes lanes."""
    return _columns([_of_clusters(chip, technology) for chip in chips])


def core_columns(chips: Sequence[Chip]) -> ChipColumns:
    """Chips of cores."""
    return _columns([_of_cores(chip) for chip in chips])


def _columns(rows: Sequence[tuple[float, ...]]) -> ChipColumns:
    names = [f.name for f in fields(ChipColumns)]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(names)).T
    columns: dict[str, Any] = dict(zip(names, table, strict=True))
    return ChipColumns(**{**columns, "broadcast": columns["broadcast"] > 0, "cache": columns["cache"] > 0})
