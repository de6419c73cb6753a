"""What joint search is worth in every cell of the map, from certified searches in their folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from examples.paper.cases import Found, Question, answer_all, axes_of, searched
from examples.paper.joint.cells import (
    SYSTEM_AXES,
    Cell,
    blind_question,
    joint_question,
    narrowed,
    space_of,
)
from examples.paper.sheets import markdown
from phaze.errors import InfeasibleError


@dataclass(frozen=True, slots=True)
class Value:
    """A cell with its joint chip, and what the blind chip and the one with the same memory and
    links reach; None where they do not fit."""

    cell: Cell
    joint: Found
    blind: Found
    blind_placed: Found | None
    given_placed: Found | None

    @property
    def value(self) -> float | None:
        """Of joint search."""
        return _over(self.joint, self.blind_placed)

    @property
    def value_of_cores(self) -> float | None:
        """Of joint search at the joint chip's own memory and links."""
        return _over(self.joint, self.given_placed)


def _over(joint: Found, other: Found | None) -> float | None:
    return None if other is None else joint.throughput_per_s / other.throughput_per_s


def _or_none(question: Question) -> Found | None:
    try:
        return searched(*question)
    except InfeasibleError:
        return None


def _placed(out: Path, cell: Cell, chip: Found, name: str) -> Question:
    """The certified placement of a cell on one chip: a search of a space that has this chip
    alone."""
    space = narrowed(out / "map" / cell.name / f"{name}.toml", space_of(out, cell), axes_of(chip))
    return joint_question(out, cell, space, name)


def _same_system(out: Path, cell: Cell, joint: Found) -> Question:
    """The blind search among the chips with the joint chip's memory and links."""
    axes = {name: value for name, value in axes_of(joint).items() if name in SYSTEM_AXES}
    space = narrowed(out / "map" / cell.name / "same-system.toml", space_of(out, cell), axes)
    return blind_question(out, cell, space, f"{cell.name}-given")


def _given(out: Path, cell: Cell) -> Question:
    """Where memory and links are free, every chip has them: the blind chip is the given one."""
    if cell.free:
        return blind_question(out, cell)
    return _same_system(out, cell, searched(*joint_question(out, cell)))


def answer(out: Path, cells: Sequence[Cell]) -> None:
    """All searches of the map, in three rounds, each of which needs the one before it."""
    blind = {
        question.folder: question for question in (blind_question(out, cell) for cell in cells)
    }
    answer_all([*(joint_question(out, cell) for cell in cells), *blind.values()])
    placed = [_placed(out, cell, searched(*blind_question(out, cell)), "blind") for cell in cells]
    answer_all([*placed, *(_given(out, cell) for cell in cells if not cell.free)])
    answer_all(
        [
            _placed(out, cell, searched(*_given(out, cell)), "given")
            for cell in cells
            if not cell.free
        ]
    )


def values(out: Path, cells: Sequence[Cell]) -> list[Value]:
    """The map, from searches that are done."""
    found = []
    for cell in cells:
        joint, blind = searched(*joint_question(out, cell)), searched(*blind_question(out, cell))
        placed = _or_none(_placed(out, cell, blind, "blind"))
        given = (
            placed
            if cell.free
            else _or_none(_placed(out, cell, searched(*_given(out, cell)), "given"))
        )
        found.append(Value(cell, joint, blind, placed, given))
    return found


def _value(value: float | None) -> str:
    return "does not fit" if value is None else f"{value:.3f}"


def _plan(found: Found) -> str:
    model = found.document["models"][0]
    plan = model["plan"]
    return f"{plan['pipeline']} x {plan['data']} x {plan['tensor']}, {model['microbatch']}"


def map_table(done: Sequence[Value]) -> str:
    """Every cell: the joint chip and its plan, the blind chip, and both values."""
    heads = (
        "group",
        "cell",
        "joint chip",
        "p x d x t, microbatch",
        "sequences/s",
        "blind chip",
        "value",
        "of cores",
    )
    cells = [
        [
            one.cell.group,
            one.cell.label,
            one.joint.chip.name,
            _plan(one.joint),
            f"{one.joint.throughput_per_s:,.4g}",
            "the same" if one.blind.chip.name == one.joint.chip.name else one.blind.chip.name,
            _value(one.value),
            _value(one.value_of_cores),
        ]
        for one in done
    ]
    return markdown(heads, cells)
