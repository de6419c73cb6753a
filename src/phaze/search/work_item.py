"""What it takes to open a chip, and nothing else: so it can be done anywhere, in this process or on
another machine.

:class:`Common` is the same for all chips of a search and sent once; a :class:`WorkItem` is one
chip's own numbers: its fields, its rates, its bounds by model [configurations, memories] and its
floors on joules by model [graphs].
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.hardware.technology import Technology
from phaze.search.evaluated import Evaluated
from phaze.search.evaluation import ChipEvaluation, evaluate
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.objective import Rates, Scale
from phaze.search.task import ModelTask, SearchJob

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Common:
    """The search itself: its models on every network of the space, and the memories that chips are
    evaluated with."""

    job: SearchJob
    scale: Scale
    networks: tuple[tuple[ModelTask, ...], ...]
    memories: tuple[int, ...]
    energy: Technology | None


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One chip: ``arrays`` of length one, ``rates`` [memories of the job, 1], and ``bound``, the
    bound on its score."""

    chip: int
    network: int
    arrays: ChipSet
    rates: Rates
    bounds: tuple[Floats, ...]
    floors: tuple[Floats, ...]
    bound: float


def failed(chip: int, memory: int, bound: float, why: str) -> Evaluated:
    """A chip that could not be evaluated: it keeps its bound."""
    return Evaluated(chip, memory, float("inf"), bound, (), why)


def evaluation_of(common: Common, item: WorkItem, memo: ScheduleMemo) -> ChipEvaluation:
    """The chip, to be evaluated."""
    tasks = common.networks[item.network]
    on_chip = (item.rates, item.chip, item.arrays, tasks, item.network)
    return ChipEvaluation(common.job, common.scale, *on_chip, memo, common.energy)


def evaluate_item(common: Common, item: WorkItem, cut: float, memo: ScheduleMemo) -> Evaluated:
    """One chip against a cut-off; a failure is an answer that keeps the chip's bound."""
    try:
        chip = evaluation_of(common, item, memo)
        return evaluate(chip, list(item.bounds), list(item.floors), list(common.memories), cut)
    except Exception as fault:
        return failed(
            item.chip, common.memories[-1], item.bound, f"{type(fault).__name__}: {fault}"
        )
