"""Bounds of the checker where seconds alone count; claims of boxes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.check.boxes import BoxClaim
from phaze.check.chips import Boxes
from phaze.check.energy import Goals, Rates, Shown
from phaze.check.means import Mean
from phaze.check.model import Model
from phaze.check.plan_bounds import ExactSolver, least_batches
from phaze.check.plan_classes import PlanSpace
from phaze.check.plan_graph import LayerSeconds
from phaze.check.row_costs import Chipwise
from phaze.check.space import Grid
from phaze.check.space_proof import one_goal

SECONDS = (Rates(np.ones(1), 0.0, 0),)


def on_one_chip(times: LayerSeconds, hbm_rate: float = np.inf) -> Chipwise:
    """A chip on which layers take so long."""
    return Chipwise(times, np.array([hbm_rate]), 0.0, SECONDS)


def least_seconds(
    spaces: Sequence[PlanSpace],
    chip: Chipwise,
    goal: float,
    sharp: bool,
    exact: ExactSolver | None = None,
) -> float:
    """What no plan undercuts, as far as it is below a goal; nothing shown before."""
    goals = one_goal(np.array([goal]))
    known = Shown(np.zeros((len(spaces), 1, 1)), np.zeros((len(spaces), 1, 1), bool))
    shown = least_batches(spaces, chip, goals, known, sharp, exact)
    reached = np.where(shown.corners[:, 0, 0], goal, shown.values[:, 0, 0])
    return float(np.minimum(reached, goal).min())


def box_claim(
    models: Sequence[Model], mean: Mean, grid: Grid, memories: Sequence[int], goal: float
) -> BoxClaim:
    """That no chip of a space of boxes scores below a goal."""

    def goals(boxes: Boxes, memory: NDArray[np.int64]) -> Goals:
        return one_goal(np.full(len(boxes), goal))

    return BoxClaim(models, [mean], grid, memories, False, goals, (), lambda _: None)
