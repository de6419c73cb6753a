"""Chips as columns: one array for each number that areas, powers and costs depend on, one chip or
many alike."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import inf, nan
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import on_die

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
T = TypeVar("T", int, Floats)


@dataclass(frozen=True, slots=True)
class ChipColumns:
    """One array a number. ``*_bytes`` of buffers are of one cluster or vector unit, and so are
    their rates; ``limit_w`` is infinite where there is none, ``sustained_share`` 0 where it is what
    was measured."""

    clusters: Floats
    built: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    vectors: Floats
    vectors_built: Floats
    lanes: Floats
    operand_bytes: Floats
    operand_bytes_per_cycle: Floats
    register_bytes: Floats
    register_bytes_per_cycle: Floats
    sum_bytes: Floats
    latency_cycles: Floats
    sustained_share: Floats
    port: Floats
    broadcast: Flags
    global_bytes: Floats
    global_built_bytes: Floats
    width: Floats
    global_bytes_per_s: Floats
    fan_out: Floats
    multicast: Floats
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


def sum_bytes(register_bytes: T, chip: Chip) -> T | float:
    """What sums have of the registers of a cluster such as a chip's: half of them, or no limit
    where they lie beside the operands."""
    return register_bytes // 2 if chip.sums_in_registers else inf


def _row(chip: Chip) -> tuple[float, ...]:
    clusters, vectors, shared, hbm, links = (
        chip.clusters,
        chip.vectors,
        chip.global_buffer,
        chip.hbm,
        chip.links,
    )
    clock = chip.rated_hz
    # Without a process nothing is known of its SerDes, and so of its area.
    lane = nan if chip.process is None else chip.process.lane_bytes_per_s
    return (
        clusters.count, on_die(clusters.count, chip.built.clusters), clusters.arrays, clusters.rows,
        clusters.columns,
        vectors.count, on_die(vectors.count, chip.built.clusters), vectors.lanes,
        clusters.operand_bytes, clusters.feed_bytes_per_cycle(clock),
        vectors.register_bytes, vectors.feed_bytes_per_cycle(clock),
        sum_bytes(vectors.register_bytes, chip), clusters.latency_cycles,
        clusters.sustained_share or 0.0,
        clusters.port_bytes_per_cycle, clusters.broadcast,
        shared.size_bytes, on_die(shared.size_bytes, chip.built.global_buffer),
        chip.global_bytes_per_cycle,
        shared.bandwidth_bytes_per_s, shared.fan_out, shared.multicast, shared.cache,
        hbm.stacks, round(on_die(hbm.stacks, chip.built.hbm)), hbm.bandwidth_bytes_per_s,
        on_die(hbm.bandwidth_bytes_per_s, chip.built.hbm), links.bandwidth_bytes_per_s,
        links.lane_bytes_per_s or lane,
        clock, inf if chip.sustained_w is None else chip.sustained_w,
    )  # fmt: skip


def columns_of(chips: Sequence[Chip]) -> ChipColumns:
    """Chips at their rated clocks."""
    return _columns([_row(chip) for chip in chips])


def _columns(rows: Sequence[tuple[float, ...]]) -> ChipColumns:
    names = [f.name for f in fields(ChipColumns)]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(names)).T
    columns: dict[str, Any] = dict(zip(names, table, strict=True))
    return ChipColumns(
        **{**columns, "broadcast": columns["broadcast"] > 0, "cache": columns["cache"] > 0}
    )
