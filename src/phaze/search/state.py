"""A search under way: the bounds of every chip, what was evaluated, and how far the proof is."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.layer_table import CHUNK, LayerTable
from phaze.hardware.technology import Technology
from phaze.search.chips import SpaceChips
from phaze.search.deadline import NEVER, Deadline
from phaze.search.evaluated import Evaluated
from phaze.search.evaluation import ChipEvaluation
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.objective import Rates, Scale
from phaze.search.shared import Shared
from phaze.search.task import Networks, SearchJob
from phaze.search.work_item import Common, WorkItem, evaluate_item, evaluation_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Scores nearer than this are equal: sums in another order differ by less.
TIE = 1e-9
# How near to the best a chip is called as good: chips that may win are bounded as far.
WITHIN = 0.01


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a search is: chips by how they are closed, the best score, the bound, and the gap
    between them."""

    evaluated: int
    bound: int
    memory: int
    open: int
    best: float
    lower: float

    @property
    def gap(self) -> float:
        return max(0.0, 1.0 - self.lower / self.best) if 0 < self.best < float("inf") else 1.0


@dataclass(frozen=True, slots=True)
class BoxedChips:
    """Chips of a space that are in no list, because whole boxes of them were: how many, the least
    bound of their boxes, of how many at the most it is near the best score, and whether it is above
    the cut-off: else the time was up."""

    chips: int = 0
    least: float = float("inf")
    near: int = 0
    pruned: bool = True


@dataclass(slots=True)
class SearchState:
    """A search under way.

    ``rates`` are those of all memories of the job; ``memories`` are the ones that chips are
    evaluated with. ``times`` by model and graph (none in a large space), ``bounds`` on batch times
    by model [configurations, memories, chips], ``floors`` on joules [graphs, chips]. ``stopped``:
    the deadline came before the end. ``provisional`` and ``interim`` are there only under a
    deadline: a design for the case that no chip is evaluated in time, and bounds of all chips.
    ``listed`` is the score of a design by list schedules: no chip above it is evaluated, and its
    own chip is. ``shared``: what other searches of its family have computed.
    """

    job: SearchJob
    chips: SpaceChips
    arrays: ChipSet
    networks: Networks
    scale: Scale
    rates: Rates
    memories: list[int]
    times: list[list[LayerTable]]
    bounds: list[Floats]
    floors: list[Floats]
    memo: ScheduleMemo = field(default_factory=ScheduleMemo)
    evaluated: dict[int, Evaluated] = field(default_factory=dict)
    dual: frozenset[int] = frozenset()
    cached: Floats | None = None
    deadline: Deadline = NEVER
    stopped: bool = False
    provisional: Evaluated | None = None
    interim: list[Floats] | None = None
    listed: float = float("inf")
    boxed: BoxedChips = BoxedChips()
    shared: Shared | None = None

    @property
    def energy(self) -> Technology | None:
        """The table of energies, where they count."""
        return self.chips.space.technology if self.job.objective.needs_energy else None

    def values(self, model: int, index: Integers | slice) -> Floats:
        """Bounds on a model's value on some chips, [configurations, memories, chips]."""
        graphs = [configuration.graph for configuration in self.job.models[model].configurations]
        rates = Rates(
            self.rates.rate[self.memories][:, index], self.rates.weight, self.rates.delays
        )
        floors = self.floors[model][graphs][:, index] if self.rates.weight else np.zeros((1, 1))
        return rates.value(self.bounds[model][:, :, index], floors[:, None, :])

    def scored(self) -> Floats:
        """The bound of every chip, not to be changed."""
        if self.cached is None:
            self.cached = np.empty(len(self.arrays))
            for start in range(0, len(self.cached), CHUNK):
                some = slice(start, start + CHUNK)
                least = [self.values(model, some).min(axis=0) for model in range(len(self.bounds))]
                self.cached[some] = self.scale.score(np.stack(least)).min(axis=0, initial=np.inf)
        return self.cached

    def scores(self) -> Floats:
        """The bound of every chip; a fresh array."""
        return self.scored().copy()

    def set_bounds(self, bounds: list[Floats]) -> None:
        """Other bounds on the batch times of all chips."""
        self.bounds, self.cached = bounds, None

    def put_bounds(self, index: Integers | slice, bounds: list[Floats]) -> None:
        """Other bounds on the batch times of some chips."""
        for old, new in zip(self.bounds, bounds, strict=True):
            old[:, :, index] = new
        self.cached = None

    def raise_bounds(self, index: Integers, bounds: list[Floats]) -> None:
        """The greater of old and new bounds on some chips."""
        for old, new in zip(self.bounds, bounds, strict=True):
            old[:, :, index] = np.maximum(old[:, :, index], new)
        self.cached = None

    def common(self) -> Common:
        """What opening any chip needs."""
        return Common(self.job, self.scale, self.networks.tasks, tuple(self.memories), self.energy)

    def item(self, chip: int) -> WorkItem:
        """What opening one chip needs beside that."""
        index = np.array([chip])
        rates = Rates(self.rates.rate[:, index], self.rates.weight, self.rates.delays)
        bounds = tuple(self.values(model, index)[:, :, 0] for model in range(len(self.bounds)))
        floors = tuple(floor[:, chip] for floor in self.floors)
        figures = (self.arrays.taken(index), rates, bounds, floors)
        return WorkItem(chip, int(self.networks.of[chip]), *figures, float(self.scored()[chip]))

    def open(self, chip: int) -> ChipEvaluation:
        """One chip, to be evaluated."""
        return evaluation_of(self.common(), self.item(chip), self.memo)

    def evaluate(self, chip: int, cut: float) -> Evaluated:
        """A chip evaluated, against a cut-off."""
        return evaluate_item(self.common(), self.item(chip), cut, self.memo)

    @property
    def best(self) -> float:
        return min((evaluated.score for evaluated in self.evaluated.values()), default=float("inf"))

    @property
    def cut(self) -> float:
        """A chip whose bound is above this is closed."""
        return min(self.cut_at(self.best), self.listed * (1 + TIE))

    def cut_at(self, best: float) -> float:
        """The cut-off where the best score is that."""
        return best * (1 - self.job.gap if self.job.gap > 0 else 1 + TIE)

    def standing(self) -> Standing:
        """Where the search is."""
        scores = self.scores()
        for chip, evaluated in self.evaluated.items():
            scores[chip] = evaluated.lower
        memory = int(np.isinf(scores).sum())
        closed = np.zeros(len(scores), np.bool_)
        closed[list(self.evaluated)] = True
        above = ~closed & (scores > self.cut) & ~np.isinf(scores)
        left = len(scores) - memory - int(above.sum()) - int((closed & ~np.isinf(scores)).sum())
        lower = min(float(scores.min(initial=np.inf)), self.boxed.least, self.best)
        done, pruned = int((closed & ~np.isinf(scores)).sum()), int(above.sum()) + self.boxed.chips
        return Standing(done, pruned, memory, left, self.best, lower)
