"""Published dies to hold our area and power models against (``phaze.die/1``).

A die names a preset chip or describes one, and says what is published of it: a total, perhaps an
upper bound, and perhaps areas of components. ``cores`` of a die photo is our tensor_arrays +
vector_units + core_buffers.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from phaze.documents import Document, Format, Mm2, NonNegative
from phaze.errors import InputError
from phaze.hardware.bundled import preset_names, read
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas, full_rate_power
from phaze.hardware.core_chip import CoreChip
from phaze.hardware.keys import Name, Sources, Text
from phaze.hardware.library import load_chip, with_technology

Basis = Literal["fitted", "predicted", "shares fitted, total predicted"]
Component = Literal[
    "cores", "tensor_arrays", "global_buffer", "network", "hbm_interface", "link_interface", "other"
]
CORES = ("tensor_arrays", "vector_units", "core_buffers")
POWER_FITTED_ON = "a100-80gb"


class Die(Document):
    """A published die (``phaze.die/1``)."""

    schema_: Annotated[Literal["phaze.die/1"], Field(alias="schema")]
    name: Name
    title: Text
    basis: Basis
    chip: Name | CoreChip
    total: Mm2
    total_is_upper_bound: bool = False
    components: dict[Component, NonNegative] = Field(default_factory=dict)
    sources: Sources = Field(default_factory=dict)

    def device(self) -> Chip:
        """The chip that it names or describes, with its technology."""
        return (
            with_technology(self.chip.chip())
            if isinstance(self.chip, CoreChip)
            else load_chip(self.chip, form="cores")
        )


DIE = Format("phaze.die/1", Die, "a published die, to compare our area model with")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of ours beside the published one; ``basis`` says whether it was fitted on it."""

    subject: str
    component: str
    basis: str
    predicted: float
    published: float
    upper_bound: bool

    @property
    def error(self) -> float:
        """Ours over the published one, less 1; infinite where nothing was expected."""
        return self.predicted / self.published - 1 if self.published else float("inf")


def _compare_die(die: Die) -> list[Comparison]:
    chip = die.device()
    areas = chip_areas(chip)
    if areas is None:
        raise InputError(
            f"{die.name}: chip",
            f"the chip '{chip.name}' names no technology",
            "choose one that does",
        )
    ours = areas.by_component()
    ours["cores"] = sum(ours[name] for name in CORES)
    parts_basis = "fitted" if die.basis != "predicted" else "predicted"
    parts = [
        Comparison(
            die.name, component, parts_basis, ours[component], said, die.total_is_upper_bound
        )
        for component, said in die.components.items()
    ]
    total = sum(value for name, value in ours.items() if name != "cores")
    total_basis = "fitted" if die.basis == "fitted" else "predicted"
    return [
        *parts,
        Comparison(die.name, "total", total_basis, total, die.total, die.total_is_upper_bound),
    ]


def compare_areas() -> list[Comparison]:
    """Every published die against the area model, component by component where published."""
    dies = [read(Die, "dies", name) for name in preset_names("dies")]
    return [row for die in dies for row in _compare_die(die)]


def compare_powers() -> list[Comparison]:
    """The TDP estimate of every chip that names a technology and has a published power."""
    rows = []
    for name in preset_names("chips"):
        chip = load_chip(name, form="cores")
        if chip.technology is not None and chip.published.tdp_w is not None:
            ours = full_rate_power(chip).design_w
            basis = "fitted" if name == POWER_FITTED_ON else "predicted"
            rows.append(Comparison(name, "TDP", basis, ours, chip.published.tdp_w, False))
    return rows
