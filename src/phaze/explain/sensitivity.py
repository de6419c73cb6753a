"""The constants of a process on which an answer hangs: how far each must move before another chip
of the space wins.

A constant c of area or energy (:data:`CONSTANTS`) is multiplied by a factor for all chips. Then
other combinations fit the die, the power limit lets chips hold other clocks, and the best of the
changed space is searched again and proved. In each direction a change of 10 % is tried, then of 5 %
if that changed the chip and of 25 % if not:

    below, above = the last change that leaves the chip the best, and the first that does not
"""

from collections.abc import Callable
from dataclasses import dataclass

from phaze.explain.changed_space import Winner, best_of_changed
from phaze.explain.question import ExplainedRun, gain
from phaze.hardware.technology import Technology
from phaze.hardware.technology_tables import InterfaceAreas
from phaze.values import replace

FIRST, NEARER, FURTHER = 0.10, 0.05, 0.25


def _area(*names: str) -> Callable[[Technology, float], Technology]:
    def changed(node: Technology, factor: float) -> Technology:
        return replace(
            node,
            area=replace(node.area, **{name: getattr(node.area, name) * factor for name in names}),
        )

    return changed


def _energy(name: str) -> Callable[[Technology, float], Technology]:
    def changed(node: Technology, factor: float) -> Technology:
        return replace(
            node, energy=replace(node.energy, **{name: getattr(node.energy, name) * factor})
        )

    return changed


def _sram(node: Technology, factor: float) -> Technology:
    curves = {name: getattr(node.area, name).scaled(factor) for name in ("sram", "cache")}
    return replace(node, area=replace(node.area, **curves))


def _interfaces(node: Technology, factor: float) -> Technology:
    def stacked(interface: InterfaceAreas) -> InterfaceAreas:
        return replace(interface, stack_mm2=interface.stack_mm2 * factor)

    area = node.area
    return replace(
        node, area=replace(area, ga100=stacked(area.ga100), aldebaran=stacked(area.aldebaran))
    )


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a node, what its value rests on, and a node with another value of it."""

    name: str
    basis: str
    changed: Callable[[Technology, float], Technology]


CONSTANTS = (
    Constant("support area of a MAC", (
        "fitted: TPU v4i taken as 380 mm2, "
        "published as below 400"
    ), _area("support_mm2")),
    Constant("area of a MAC", "derived: 11 % of TPU v4i", _area("mac_mm2")),
    Constant("area of a lane and its control", "remainder of an A100 SM, split by assumption",
             _area("lane_mm2", "control_lane_mm2")),
    Constant("SRAM area", "TPU v4i's CMEM and the A100's L2", _sram),
    Constant("HBM interface area", "the A100's die photo", _interfaces),
    Constant("energy of a MAC", (
        "0.84 pJ at n7, chosen after seeing TPU "
        "v4, H100 and B200"
    ), _energy("mac_j")),
    Constant("energy at an array's edge", "fitted: what an A100 holds at 400 W", _energy("edge_j")),
    Constant("leakage", "derived: an idle A100", _energy("leakage_w_per_mm2")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConstantSide:
    """One direction: the last change that keeps the chip, the first that does not (None: none that
    was tried), the chip that wins then, and what a change of a tenth does to the objective."""

    keeps: float
    changes: float | None
    chip: str | None
    gain: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A constant and how far it must fall or rise before another chip wins."""

    constant: str
    basis: str
    less: ConstantSide
    more: ConstantSide

    @property
    def least(self) -> float:
        """The least change that makes another chip win."""
        sides = [abs(side.changes) for side in (self.less, self.more) if side.changes is not None]
        return min(sides, default=float("inf"))


def changed_answer(
    question: ExplainedRun, constant: Constant, factor: float, processes: int
) -> Winner | None:
    """The certified best where a constant is another; None where nothing fits."""
    space = question.job.space
    changed = replace(space, technology=constant.changed(space.technology, factor))
    return best_of_changed(question, replace(question.job, space=changed), processes)


def _side(
    question: ExplainedRun, best: Callable[[float], Winner | None], sign: float
) -> ConstantSide:
    def same(winner: Winner | None) -> bool:
        return winner is not None and winner.identity == question.identity

    first = best(sign * FIRST)
    won = -1.0 if first is None else gain(question.score, first.score)
    if not same(first):
        nearer = best(sign * NEARER)
        if same(nearer):
            return ConstantSide(
                sign * NEARER, sign * FIRST, None if first is None else first.name, won
            )
        return ConstantSide(0.0, sign * NEARER, None if nearer is None else nearer.name, won)
    further = best(sign * FURTHER)
    if same(further):
        return ConstantSide(sign * FURTHER, None, None, won)
    return ConstantSide(
        sign * FIRST, sign * FURTHER, None if further is None else further.name, won
    )


def sensitivities(
    question: ExplainedRun, processes: int, tell: Callable[[str], None]
) -> list[Sensitivity]:
    """Every constant, that which must move least first; none where the process does not set
    clocks."""
    if not question.job.space.technology.sets_clock:
        return []
    rows = []
    for constant in CONSTANTS:

        def best(change: float, constant: Constant = constant) -> Winner | None:
            tell(f"{constant.name}, {change:+.0%}")
            return changed_answer(question, constant, 1.0 + change, processes)

        sides = (_side(question, best, -1.0), _side(question, best, 1.0))
        rows.append(Sensitivity(constant.name, constant.basis, *sides))
    return sorted(rows, key=lambda row: (row.least, -max(abs(row.less.gain), abs(row.more.gain))))
