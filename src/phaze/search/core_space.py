"""A space of chips of cores (``phaze.space/1``).

The axes are tensor_cores, rows, columns, vector_cores (or tied to the tensor cores), lanes (or tied to the columns),
global_buffer and, where they are given, tensor_buffer, vector_buffer, global_bandwidth, hbm_bandwidth, links and clock.
A core with u units (rows * columns, or lanes) whose buffer is no axis has one of max(least, bytes_per_unit * u); any
other field that is no axis is the base chip's.
"""

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, Format, Positive
from phaze.errors import InputError
from phaze.hardware.chip_parts import VectorUnits, on_die
from phaze.hardware.columns import ChipColumns
from phaze.hardware.library import Form
from phaze.search.axes import AxesTable, real_points, whole_points
from phaze.search.space import Described, Each, Floats, Space
from phaze.search.space_rules import CoreRules
from phaze.units import Unit

# In boxes a search takes seconds; beyond it counts of chips lose their last digits and their memory is felt.
MOST_COMBINATIONS = 1e10
WHOLE_AXES = (
    "tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer", "tensor_buffer", "vector_buffer",
)  # fmt: skip
RATES = ("global_bandwidth", "hbm_bandwidth", "links", "clock")
# The axes, and the columns of chips that hold them.
COLUMNS = (
    ("tensor_cores", "clusters"), ("rows", "rows"), ("columns", "columns"), ("vector_cores", "vectors"),
    ("lanes", "lanes"), ("global_buffer", "global_bytes"), ("tensor_buffer", "operand_bytes"),
    ("vector_buffer", "register_bytes"), ("global_bandwidth", "global_bytes_per_s"),
    ("hbm_bandwidth", "hbm_bytes_per_s"), ("links", "link_bytes_per_s"), ("clock", "clock_hz"),
)  # fmt: skip
QUANTITIES: tuple[tuple[str, str, Unit], ...] = (
    ("global buffer", "global_buffer", "B"), ("global buffer bandwidth", "global_bandwidth", "B/s"),
    ("HBM bandwidth", "hbm_bandwidth", "B/s"), ("tensor buffer", "tensor_buffer", "B"),
    ("vector buffer", "vector_buffer", "B"), ("links", "links", "B/s"), ("clock", "clock", "Hz"),
)  # fmt: skip
FRAME = (
    ("tensor_cores", "tensor_cores"), ("rows", "rows"), ("columns", "columns"), ("vector_cores", "vector_cores"),
    ("lanes", "lanes"), ("global_buffer_bytes", "global_buffer"), ("global_bytes_per_s", "global_bandwidth"),
    ("hbm_bytes_per_s", "hbm_bandwidth"), ("clock_hz", "clock"), ("area_mm2", "area"),
    ("tensor_buffer_bytes", "tensor_buffer"), ("vector_buffer_bytes", "vector_buffer"), ("link_bytes_per_s", "links"),
)  # fmt: skip


class CoreBuffers(Document):
    """The rule for core buffers: max(least, bytes_per_unit * units)."""

    least: Bytes
    bytes_per_unit: Positive


class CoreSpace(Space):
    """A space of chips (``phaze.space/1``)."""

    schema_: Annotated[Literal["phaze.space/1"], Field(alias="schema")]
    axes: AxesTable
    core_buffers: CoreBuffers | None = None
    keep: CoreRules
    of_clusters: ClassVar[bool] = False
    form: ClassVar[Form] = "cores"
    power_rule: ClassVar[str] = "most_power"

    @model_validator(mode="after")
    def _every_buffer(self) -> "CoreSpace":
        if self.core_buffers is None and (self.axes.tensor_buffer is None or self.axes.vector_buffer is None):
            raise ValueError("give core_buffers, or the axes tensor_buffer and vector_buffer")
        return self

    def within(self, limits: Mapping[str, float]) -> Self:
        """The space under other limits; an area that is given takes the place of a chip's."""
        space = super().within(limits)
        return space.keeping(area_of=None) if "area" in limits else space

    def axis_points(self) -> dict[str, NDArray[Any]]:
        points = dict[str, NDArray[Any]]()
        for name in (*WHOLE_AXES, *RATES):
            values = getattr(self.axes, name)
            if values is not None and not isinstance(values, str):
                points[name] = whole_points(values) if name in WHOLE_AXES else real_points(values)
        count = prod(float(len(axis)) for axis in points.values())
        if count > MOST_COMBINATIONS:
            raise InputError("axes", f"there are {count:.3g} combinations", f"give at most {MOST_COMBINATIONS:.0e}")
        return points

    def document(self) -> dict[str, Any]:
        rule, tied = self.core_buffers, {name: getattr(self.axes, name) for name in ("vector_cores", "lanes")}
        return {
            "name": self.name,
            "axes": {name: values.tolist() for name, values in self.axis_points().items()},
            "tied": {name: value for name, value in tied.items() if isinstance(value, str)},
            "core_buffers": None if rule is None else rule.model_dump(),
            "keep": self.keep.model_dump(exclude={"area_of"}),
        }

    def parts(self, axes: Mapping[str, Floats], each: Each) -> dict[str, Any]:
        base, built, rule = self.base, self.base.built, self.core_buffers

        def buffer(name: str, units: Floats) -> Floats:
            if name in axes:
                return axes[name]
            if rule is None:
                raise AssertionError("a buffer that is no axis has a rule")
            return np.floor(np.maximum(rule.least, rule.bytes_per_unit * units))

        tensor_cores, lanes = axes["tensor_cores"], axes.get("lanes", axes["columns"])
        vector_cores = axes.get("vector_cores", tensor_cores)
        shared = axes.get("global_bandwidth", each(base.global_buffer.bandwidth_bytes_per_s))
        hbm = axes.get("hbm_bandwidth", each(base.hbm.bandwidth_bytes_per_s))
        clock = axes.get("clock", each(base.clock_hz))
        return {
            "clusters": tensor_cores, "built": on_die(tensor_cores, built.clusters), "arrays": each(1.0),
            "vectors": vector_cores, "vectors_built": on_die(vector_cores, built.clusters), "lanes": lanes,
            "operand_bytes": buffer("tensor_buffer", axes["rows"] * axes["columns"]),
            "register_bytes": buffer("vector_buffer", lanes), "port": each(np.inf), "broadcast": each(0.0) > 0,
            "global_built_bytes": on_die(axes["global_buffer"], built.global_buffer), "width": shared / clock,
            "global_bytes_per_s": shared, "fan_out": each(base.global_buffer.fan_out),
            "stacks": each(0.0), "sites": each(0.0),
            "hbm_bytes_per_s": hbm, "hbm_built_bytes_per_s": on_die(hbm, built.hbm),
            "link_bytes_per_s": axes.get("links", each(base.links.bandwidth_bytes_per_s)),
            "lane_bytes_per_s": each(np.inf), "clock_hz": clock, "limit_w": each(np.inf),
        }  # fmt: skip

    def fields_of(self, chips: ChipColumns) -> dict[str, NDArray[Any]]:
        """What every chip has of each field that may be an axis; all but rates are whole numbers."""
        every = {axis: getattr(chips, column) for axis, column in COLUMNS}
        return {axis: value if axis in RATES else value.astype(np.int64) for axis, value in every.items()}

    def identity(self, chips: ChipColumns) -> tuple[float, ...]:
        fields = self.fields_of(chips)
        names = ("tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer")
        return tuple(int(fields[name][0]) for name in names)

    def described(self, chips: ChipColumns) -> list[Described]:
        fields = self.fields_of(chips)
        counts: list[Described] = [(name.replace("_", " "), fields[name], None) for name in WHOLE_AXES[:5]]
        return [*counts, *((name, fields[axis], unit) for name, axis, unit in QUANTITIES)]

    def frame_of(self, chips: ChipColumns, area_mm2: Floats, held_hz: Floats) -> dict[str, NDArray[Any]]:
        fields = self.fields_of(chips) | {"area": area_mm2}
        return {key: fields[axis] for key, axis in FRAME}

    def chip_name(self, chips: ChipColumns, index: int) -> str:
        """What a chip is made of: counts and shapes, and every other axis that is given."""
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
        return name + "".join(words for axis, words in others if getattr(self.axes, axis, None))

    def memory_of(self, chips: ChipColumns, index: int) -> int | None:
        return None

    def surroundings(self, chips: ChipColumns, index: int) -> dict[str, Any]:
        count, lanes, registers = (int(column[index]) for column in (chips.vectors, chips.lanes, chips.register_bytes))
        return {"vectors": VectorUnits(count, lanes, registers), "power": None}


SPACE = Format("phaze.space/1", CoreSpace, "the chips that a search may choose from")
