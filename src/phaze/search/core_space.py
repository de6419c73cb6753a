"""A space of chips of cores (``phaze.space/1``).

The axes are tensor_cores, rows, columns, vector_cores (or tied to the tensor cores), lanes (or tied
to the columns), global_buffer and, where they are given, tensor_buffer, vector_buffer,
global_bandwidth, hbm_bandwidth, links and clock. A buffer that is no axis has a rule
(``core_buffers``).
"""

from math import prod
from typing import Annotated, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Format
from phaze.errors import InputError
from phaze.hardware.columns import ChipColumns
from phaze.hardware.library import Form
from phaze.search.axes import AxesTable, AxisField, CoreBuffers
from phaze.search.space import Described, Floats, Space
from phaze.search.space_rules import CoreRules
from phaze.units import Unit

# In boxes a search takes seconds; beyond it counts of chips lose their last digits and their memory
# is felt.
MOST_COMBINATIONS = 1e10
AXIS_FIELDS = (
    AxisField("tensor_cores", "clusters", True), AxisField("rows", "rows", True),
    AxisField("columns", "columns", True),
    AxisField("vector_cores", "vectors", True), AxisField("lanes", "lanes", True),
    AxisField("global_buffer", "global_bytes", True),
    AxisField("tensor_buffer", "array_bytes", True),
    AxisField("vector_buffer", "register_bytes", True),
    AxisField("global_bandwidth", "global_bytes_per_s"),
    AxisField("hbm_bandwidth", "hbm_bytes_per_s"), AxisField("links", "link_bytes_per_s"),
    AxisField("clock", "clock_hz"),
)  # fmt: skip
QUANTITIES: tuple[tuple[str, str, Unit], ...] = (
    ("global buffer", "global_buffer", "B"), ("global buffer bandwidth", "global_bandwidth", "B/s"),
    ("HBM bandwidth", "hbm_bandwidth", "B/s"), ("tensor buffer", "tensor_buffer", "B"),
    ("vector buffer", "vector_buffer", "B"), ("links", "links", "B/s"), ("clock", "clock", "Hz"),
)  # fmt: skip
FRAME = (
    ("tensor_cores", "tensor_cores"), ("rows", "rows"), ("columns", "columns"),
    ("vector_cores", "vector_cores"),
    ("lanes", "lanes"), ("global_buffer_bytes", "global_buffer"),
    ("global_bytes_per_s", "global_bandwidth"),
    ("hbm_bytes_per_s", "hbm_bandwidth"), ("clock_hz", "clock"), ("area_mm2", "area"),
    ("tensor_buffer_bytes", "tensor_buffer"), ("vector_buffer_bytes", "vector_buffer"),
    ("link_bytes_per_s", "links"),
)  # fmt: skip


class CoreSpace(Space):
    """A space of chips (``phaze.space/1``)."""

    schema_: Annotated[Literal["phaze.space/1"], Field(alias="schema")]
    axes: AxesTable
    core_buffers: CoreBuffers | None = None
    keep: CoreRules
    form: ClassVar[Form] = "cores"
    power_rule: ClassVar[str] = "most_power"
    axis_fields: ClassVar[tuple[AxisField, ...]] = AXIS_FIELDS
    spares: ClassVar[int | None] = None

    @model_validator(mode="after")
    def _every_buffer(self) -> "CoreSpace":
        if self.core_buffers is None and (
            self.axes.tensor_buffer is None or self.axes.vector_buffer is None
        ):
            raise ValueError("give core_buffers, or the axes tensor_buffer and vector_buffer")
        return self

    @property
    def buffer_rule(self) -> CoreBuffers | None:
        return self.core_buffers

    def axis_points(self) -> dict[str, NDArray[Any]]:
        points = super().axis_points()
        count = prod(float(len(axis)) for axis in points.values())
        if count > MOST_COMBINATIONS:
            raise InputError(
                "axes",
                f"there are {count:.3g} combinations",
                f"give at most {MOST_COMBINATIONS:.0e}",
            )
        return points

    def document(self) -> dict[str, Any]:
        rule, tied = (
            self.core_buffers,
            {name: getattr(self.axes, name) for name in ("vector_cores", "lanes")},
        )
        return {
            "name": self.name,
            "axes": {name: values.tolist() for name, values in self.axis_points().items()},
            "tied": {name: value for name, value in tied.items() if isinstance(value, str)},
            "core_buffers": None if rule is None else rule.model_dump(),
            "keep": self.keep.model_dump(exclude={"area_of"}),
        }

    def described(self, chips: ChipColumns) -> list[Described]:
        fields = self.fields_of(chips)
        counts: list[Described] = [
            (name.replace("_", " "), fields[name], None) for name in list(fields)[:5]
        ]
        return [*counts, *((name, fields[axis], unit) for name, axis, unit in QUANTITIES)]

    def frame_of(
        self, chips: ChipColumns, area_mm2: Floats, held_hz: Floats
    ) -> dict[str, NDArray[Any]]:
        fields = self.fields_of(chips) | {"area": area_mm2}
        return {key: fields[axis] for key, axis in FRAME}

    def chip_name(self, chips: ChipColumns, index: int) -> str:
        """What a chip is made of: counts and shapes, and every other axis that is given."""
        count, rows, columns = (
            int(column[index]) for column in (chips.clusters, chips.rows, chips.columns)
        )
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


SPACE = Format("phaze.space/1", CoreSpace, "the chips that a search may choose from")
