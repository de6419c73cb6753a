"""One chip of a space as a value, with a name that says what it is made of; and what all of them are made of as tables.

A name has counts and shapes, and every other axis along which chips differ.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import ALL_IN_USE, VectorUnits, power_limit
from phaze.hardware.columns import ChipColumns
from phaze.search.space import Space
from phaze.units import Unit
from phaze.values import replace

Row = tuple[str, NDArray[Any], Unit | None]
# The axes of a space of chips of cores, and the columns that hold them; all but rates are whole numbers.
CORES = (
    ("tensor_cores", "clusters"), ("rows", "rows"), ("columns", "columns"), ("vector_cores", "vectors"),
    ("lanes", "lanes"), ("global_buffer", "global_bytes"), ("tensor_buffer", "operand_bytes"),
    ("vector_buffer", "register_bytes"), ("global_bandwidth", "global_bytes_per_s"),
    ("hbm_bandwidth", "hbm_bytes_per_s"), ("links", "link_bytes_per_s"), ("clock", "clock_hz"),
)  # fmt: skip
CLUSTERS = (
    ("clusters", "clusters"), ("arrays", "arrays"), ("rows", "rows"), ("columns", "columns"), ("lanes", "lanes"),
    ("operand_buffer", "operand_bytes"), ("registers", "register_bytes"), ("global_buffer", "global_bytes"),
    ("global_width", "width"), ("hbm_stacks", "stacks"), ("links", "link_bytes_per_s"),
)  # fmt: skip
RATES = ("global_bandwidth", "hbm_bandwidth", "links", "clock")


def fields_of(space: Space, chips: ChipColumns) -> dict[str, NDArray[Any]]:
    """What every chip has of each field that may be an axis; counts and sizes of cores are whole numbers."""
    if space.of_clusters:
        values = {axis: getattr(chips, column) for axis, column in CLUSTERS}
        return values | {"operand_buffer": chips.operand_bytes / chips.arrays}
    every = {axis: getattr(chips, column) for axis, column in CORES}
    return {axis: value if axis in RATES else value.astype(np.int64) for axis, value in every.items()}


def described(space: Space, chips: ChipColumns) -> list[Row]:
    """What chips are made of, for people: name, values, unit."""
    each = fields_of(space, chips)
    if not space.of_clusters:
        whole = ("tensor_cores", "rows", "columns", "vector_cores", "lanes")
        rest: tuple[tuple[str, str, Unit], ...] = (
            ("global buffer", "global_buffer", "B"), ("global buffer bandwidth", "global_bandwidth", "B/s"),
            ("HBM bandwidth", "hbm_bandwidth", "B/s"), ("tensor buffer", "tensor_buffer", "B"),
            ("vector buffer", "vector_buffer", "B"), ("links", "links", "B/s"), ("clock", "clock", "Hz"),
        )  # fmt: skip
        counts: list[Row] = [(name.replace("_", " "), each[name], None) for name in whole]
        return [*counts, *((name, each[axis], unit) for name, axis, unit in rest)]
    counts = [(name, each[name].astype(np.int64), None) for name in ("clusters", "arrays", "rows", "columns", "lanes")]
    return [
        *counts,
        ("operand buffer of an array", each["operand_buffer"], "B"),
        ("registers", each["registers"], "B"),
        ("global buffer", each["global_buffer"], "B"),
        ("global buffer width", each["global_width"].astype(np.int64), None),
        ("HBM stacks", each["hbm_stacks"].astype(np.int64), None),
        ("links", each["links"], "B/s"),
    ]


CORE_FRAME = (
    ("tensor_cores", "tensor_cores"), ("rows", "rows"), ("columns", "columns"), ("vector_cores", "vector_cores"),
    ("lanes", "lanes"), ("global_buffer_bytes", "global_buffer"), ("global_bytes_per_s", "global_bandwidth"),
    ("hbm_bytes_per_s", "hbm_bandwidth"), ("clock_hz", "clock"), ("area_mm2", "area"),
    ("tensor_buffer_bytes", "tensor_buffer"), ("vector_buffer_bytes", "vector_buffer"), ("link_bytes_per_s", "links"),
)  # fmt: skip
CLUSTER_COUNTS = (
    ("clusters", "clusters"), ("arrays", "arrays"), ("rows", "rows"), ("columns", "columns"), ("lanes", "lanes"),
    ("operand_bytes", "operand_bytes"), ("register_bytes", "register_bytes"), ("global_buffer_bytes", "global_bytes"),
)  # fmt: skip


def frame_of(space: Space, chips: ChipColumns, area_mm2: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """What chips are made of, as columns of a table."""
    if not space.of_clusters:
        each = fields_of(space, chips) | {"area": area_mm2}
        return {key: each[axis] for key, axis in CORE_FRAME}
    counts = {key: getattr(chips, column).astype(np.int64) for key, column in CLUSTER_COUNTS}
    stacks = chips.stacks.astype(np.int64)
    return {
        **counts,
        "global_bytes_per_cycle": chips.width,
        "hbm_stacks": stacks,
        "hbm_bytes": stacks * space.stack_bytes,
        "hbm_bytes_per_s": chips.hbm_bytes_per_s,
        "link_bytes_per_s": chips.link_bytes_per_s,
    }


def core_name(space: Space, chips: ChipColumns, index: int) -> str:
    """What a chip of cores is made of: counts and shapes, and every other axis that is given."""
    axes = space.axes
    count, rows, columns = (int(column[index]) for column in (chips.clusters, chips.rows, chips.columns))
    name = f"t{count}x{rows}x{columns}-v{int(chips.vectors[index])}x{int(chips.lanes[index])}"
    name += f"-{chips.global_bytes[index] / 2**20:.9g}MiB"
    others = (
        ("tensor_buffer", f"-tb{chips.operand_bytes[index] / 2**10:.9g}KiB"),
        ("vector_buffer", f"-vb{chips.register_bytes[index] / 2**10:.9g}KiB"),
        ("global_bandwidth", f"-{chips.global_bytes_per_s[index] / 1e9:.9g}GBs"),
        ("hbm_bandwidth", f"-hbm{chips.hbm_bytes_per_s[index] / 1e9:.9g}GBs"),
        ("links", f"-link{chips.link_bytes_per_s[index] / 1e9:.9g}GBs"),
        ("clock", f"-{chips.clock_hz[index] / 1e9:.9g}GHz"),
    )
    return name + "".join(words for axis, words in others if getattr(axes, axis, None))


def cluster_name(space: Space, chips: ChipColumns, index: int) -> str:
    """What a chip of clusters is made of; buffers and the width where they are an axis."""
    points = space.axis_points()
    count, arrays, rows, columns, lanes, stacks = (
        int(column[index])
        for column in (chips.clusters, chips.arrays, chips.rows, chips.columns, chips.lanes, chips.stacks)
    )
    operand_bytes = chips.operand_bytes[index] / arrays
    name = f"{count}x{arrays}x{rows}x{columns}-l{lanes}"
    name += f"-o{operand_bytes / 1024:.9g}KiB" if len(points["operand_buffer"]) > 1 else ""
    name += f"-r{chips.register_bytes[index] / 1024:.9g}KiB" if len(points["registers"]) > 1 else ""
    name += f"-{chips.global_bytes[index] / 2**20:.9g}MiB"
    name += f"-w{chips.width[index]:.9g}" if len(points["global_width"]) > 1 else ""
    return name + f"-s{stacks}-{chips.link_bytes_per_s[index] / 1e9:.9g}GBs"


def chip_at(space: Space, chips: ChipColumns, index: int, number: int, hbm_bytes: int) -> Chip:
    """One chip of a space at its rated clock: of clusters with its own memory and under the space's limit, of cores
    with that much HBM."""
    base, of_clusters = space.base, space.of_clusters

    def whole(column: NDArray[Any]) -> int:
        return int(column[index])

    def real(column: NDArray[Any]) -> float:
        return float(column[index])

    clock_hz, count, stacks = real(chips.clock_hz), whole(chips.clusters), whole(chips.stacks)
    lanes, register_bytes = whole(chips.lanes), whole(chips.register_bytes)
    return replace(
        base,
        name=(cluster_name if of_clusters else core_name)(space, chips, index),
        title=f"chip {number} of the space {space.name}",
        stated_hz=clock_hz,
        clock_hz=clock_hz,
        clusters=replace(
            base.clusters,
            count=count,
            arrays=whole(chips.arrays),
            rows=whole(chips.rows),
            columns=whole(chips.columns),
            lanes=lanes,
            operand_bytes=whole(chips.operand_bytes),
            register_bytes=register_bytes,
            port_bytes_per_cycle=real(chips.port),
            buffer_bytes_per_s=None,
        ),
        vectors=None if of_clusters else VectorUnits(whole(chips.vectors), lanes, register_bytes),
        global_buffer=replace(
            base.global_buffer,
            size_bytes=whole(chips.global_bytes),
            bandwidth_bytes_per_s=real(chips.global_bytes_per_s),
        ),
        hbm=replace(
            base.hbm,
            stacks=stacks,
            size_bytes=stacks * space.stack_bytes if of_clusters else hbm_bytes,
            bandwidth_bytes_per_s=real(chips.hbm_bytes_per_s),
        ),
        links=replace(base.links, bandwidth_bytes_per_s=real(chips.link_bytes_per_s)),
        built=replace(ALL_IN_USE, clusters=(whole(chips.built), count)) if of_clusters else base.built,
        process=space.technology,
        power=power_limit(space.keep.sustained_power) if of_clusters else None,
    )
