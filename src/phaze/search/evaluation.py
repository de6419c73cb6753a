"""A chip opened: exact schedules and exact placements, as far as its bounds leave a chance.

For each memory size, best bound first, and for each model its ways, best bound first: the layers' exact schedules, then
the fastest plan, then its value (:mod:`phaze.search.objective`). A way is left out when its bound is no better than the
best value of the model so far, or when with it the chip's score could not beat the cut-off. What was left out keeps its
bound, so that

    lower  =  least over memories of score( over models: least over ways of the proved value or the bound )

is a lower bound on the chip's score whether or not it was evaluated to the end. Schedules that are not proved count
with their makespan for ``score``, and for ``lower`` with their bound and the least energy of any schedule.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.cost.table import CostTable
from phaze.evaluate.flow import LayerSeconds, Prepared, Training, graph_of, placement_of
from phaze.evaluate.passes import Pass, problem_on, table_of, times_on
from phaze.hardware.technology import EnergyTable
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Plan, Recompute
from phaze.schedule.list_schedule import QUICK
from phaze.schedule.problem import ROUNDING
from phaze.schedule.solve import Limits, Scheduler, solve
from phaze.search.deadline import OutOfTime
from phaze.search.energy import Electricity, LayerJoules, layer_joules, plan_joules, spread_of
from phaze.search.objective import Rates, Scale
from phaze.search.task import Job, ModelTask

Floats = NDArray[np.float64]
Found = tuple[float, float, bytes]
# How far above the last useful batch time plans are still looked at.
BARELY = 1e-6
# Within a search schedules are proved by labels alone; what they leave open counts in the gap.
LIMITS = Limits(cpsat=0.0, label_effort=200_000_000)
# List schedules are for those who are short of time: one rule of priority.
LISTED = Limits(list_work=QUICK)


def limits_of(scheduler: Scheduler) -> Limits:
    """How much a search spends on one schedule."""
    return LISTED if scheduler == "list" else LIMITS


@dataclass(slots=True)
class Known:
    """Schedules solved so far, by all that they depend on: makespan, bound, what is spread; and counts of the work.

    ``frozen``: the time is up, and what is not there raises :class:`OutOfTime` instead of being solved.
    """

    schedules: MutableMapping[bytes, Found] = field(default_factory=dict)
    asked: int = 0
    placements: int = 0
    scheduler: Scheduler = "exact"
    frozen: bool = False

    @property
    def sentence(self) -> str:
        """The work done, for people."""
        if not self.asked:
            return f"It took {self.placements:,} placements."
        schedules = f"{len(self.schedules):,} distinct exact schedules ({self.asked:,} asked for)"
        return f"It took {schedules} and {self.placements:,} placements."


@dataclass(frozen=True, slots=True)
class Ran:
    """The best plan of a model on a chip: which way, its batch, its value, and what no way can undercut."""

    way: int
    batch_s: float
    dynamic_j: float
    value: float
    lower: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A chip's score with its best memory, and its lower bound; ``ran`` is empty where it was closed before the end."""

    chip: int
    hbm: int
    score: float
    lower: float
    ran: tuple[Ran, ...]
    error: str = ""

    def document(self) -> dict[str, Any]:
        """Plain values, for the journal; infinities as null."""
        ran = [[r.way, r.batch_s, r.dynamic_j, r.value, r.lower] for r in self.ran]
        return {
            "hbm": self.hbm,
            "score": _plain(self.score),
            "lower": _plain(self.lower),
            "ran": ran,
            "error": self.error,
        }


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


# No batch takes less or costs more; what divides by less leaves the numbers of 64 bits.
LEAST, MOST = 1e-30, 1e30


def _number(value: Any, least: float = 0.0) -> float:
    if type(value) not in (int, float) or not least <= value <= MOST:  # NaN is not
        raise ValueError(f"{str(value)[:40]!r} is no number from {least:g} to {MOST:g}")
    return float(value)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{str(value)[:40]!r} is no whole number")
    return value


def evaluated_from(chip: int, raw: dict[str, Any]) -> Evaluated:
    """The value of :meth:`Evaluated.document`; raises ValueError, TypeError or KeyError where it is none."""
    if type(raw["error"]) is not str:
        raise ValueError("an error is no text")
    raw["error"].encode()  # raises ValueError for half a character, which no file can hold
    ran = tuple(Ran(_whole(way), *map(_number, rest)) for way, *rest in raw["ran"])
    score = float("inf") if raw["score"] is None else _number(raw["score"], LEAST)
    lower = float("inf") if raw["lower"] is None else _number(raw["lower"])
    for one in ran:
        _number(one.batch_s, LEAST)
    return Evaluated(chip, _whole(raw["hbm"]), score, lower, ran, raw["error"])


def _schedule(one: Pass, at: bytes, times: tuple[Floats, Floats], cores: tuple[int, int], known: Known) -> Found:
    """Makespan and bound of a pass, and what it spreads; cores beyond the number of operators make no difference."""
    known.asked += 1
    least = (min(cores[0], len(one.works)), min(cores[1], len(one.works)))
    key = b"%s %d %d " % (at, *least) + times[0].tobytes() + times[1].tobytes()
    if key not in known.schedules:
        if known.frozen:
            raise OutOfTime
        problem = problem_on(one, times[0].tolist(), times[1].tolist(), least)
        found = solve(problem, known.scheduler, limits_of(known.scheduler))
        known.schedules[key] = (found.makespan_s, found.lower_bound_s, spread_of(found))
    return known.schedules[key]


@dataclass(frozen=True, slots=True)
class ExactLayers:
    """The distinct layers of one graph on one chip: makespans, proved bounds, and where they count joules."""

    seconds: tuple[LayerSeconds, ...]
    proved: tuple[LayerSeconds, ...]
    joules: tuple[LayerJoules, ...]


def exact_passes(model: Prepared, name: bytes, chip: ChipArrays, table: CostTable, known: Known) -> list[Found]:
    """The schedules of all passes of one graph on one chip; ``name`` tells graphs apart."""
    first, found = 0, []
    cores = (int(chip.tensor_cores[0]), int(chip.vector_cores[0]))
    for at, one in enumerate(model.passes):
        singles, spreads = times_on(one, table, first)
        times = (np.ascontiguousarray(singles[:, 0]), np.ascontiguousarray(spreads[:, 0]))
        found.append(_schedule(one, b"%s %d" % (name, at), times, cores, known))
        first += len(one.works)
    return found


def exact_layers(
    model: Prepared, name: bytes, chip: ChipArrays, known: Known, electricity: Electricity | None = None
) -> ExactLayers:
    """All distinct layers of one graph on one chip; ``name`` tells graphs apart."""
    table = table_of(model.passes, chip)
    found = exact_passes(model, name, chip, table, known)
    spread = [flags for _, _, flags in found]
    joules = () if electricity is None else layer_joules(model, table, chip, electricity, spread)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    return ExactLayers(
        tuple(LayerSeconds(forward[0], backward[0]) for forward, backward in pairs),
        tuple(LayerSeconds(forward[1], backward[1]) for forward, backward in pairs),
        joules,
    )


def plan_of(
    model: Prepared, seconds: tuple[LayerSeconds, ...], recompute: Recompute, hbm_bytes: float, training: Training
) -> Plan | None:
    """The fastest plan with these layer times."""
    return fastest_plan(placement_of([graph_of(model, seconds)], model.microbatch, recompute, hbm_bytes, training))


@dataclass(frozen=True, slots=True)
class Priced:
    """What a batch takes under the fastest plan, and seconds that no plan can undercut."""

    batch_s: float
    dynamic_j: float
    lower_s: float


NOTHING = Priced(float("inf"), 0.0, float("inf"))


@dataclass(slots=True)
class Opened:
    """One chip being evaluated: its layers by (model, graph), found when they are asked for; ``rates`` are its own."""

    job: Job
    scale: Scale
    rates: Rates
    chip: int
    arrays: ChipArrays
    tasks: tuple[ModelTask, ...]
    network: int
    known: Known
    energy: EnergyTable | None = None
    layers: dict[tuple[int, int], ExactLayers] = field(default_factory=dict)

    def _electricity(self, task: ModelTask) -> Electricity | None:
        return None if self.energy is None else Electricity(self.energy, task.training.link_bytes_per_s)

    def price(self, model: int, way: int, hbm: int, below_s: float = float("inf")) -> Priced:
        """A batch of a model run that way, with that memory (its position in the job's list).

        Only plans that take less than ``below_s`` matter; rules may use it.
        """
        task = self.tasks[model]
        chosen, key = task.ways[way], (model, task.ways[way].graph)
        graph, electricity = task.graphs[chosen.graph], self._electricity(task)
        if key not in self.layers:
            name = b"%d %d %d" % (self.network, *key)
            self.layers[key] = exact_layers(graph, name, self.arrays, self.known, electricity)
        layers, hbm_bytes = self.layers[key], self.job.hbm_bytes[hbm]
        self.known.placements += 1
        plan = plan_of(graph, layers.seconds, chosen.recompute, hbm_bytes, task.training)
        if plan is None:
            return NOTHING
        joules = 0.0
        if electricity is not None:
            joules = float(plan_joules(graph, plan, layers.joules, electricity, task.training).sum())
        if layers.seconds == layers.proved:
            return Priced(plan.batch_s, joules, plan.batch_s)
        lower = plan_of(graph, layers.proved, chosen.recompute, hbm_bytes, task.training)
        return Priced(plan.batch_s, joules, 0.0 if lower is None else lower.batch_s)

    def model(self, model: int, hbm: int, bounds: Floats, floors: Floats, lowers: Floats, cut: float) -> Ran | None:
        """The best way of one model; ``lowers[model]`` is raised to what was proved. None: the chip cannot win.

        ``bounds`` are on the value of each way, ``floors`` on the joules of each graph.
        """
        best: Ran | None = None
        lower, rates = float("inf"), self.rates.at(hbm, 0)
        for way in np.argsort(bounds, kind="stable").tolist():
            bound = float(bounds[way])
            if bound >= (float("inf") if best is None else best.value):
                break
            lowers[model] = min(lower, bound)
            if float(self.scale.score(lowers)) > cut:
                return best
            floor_j = float(floors[self.tasks[model].ways[way].graph])
            useful = min(float("inf") if best is None else best.value, cut if len(lowers) == 1 else float("inf"))
            below_s = rates.last_s(useful, floor_j) * (1 + BARELY) if useful < float("inf") else useful
            found = self.price(model, way, hbm, below_s)
            value = float(rates.value(np.asarray(found.batch_s), found.dynamic_j))
            joules = floor_j if found.lower_s < found.batch_s * (1 - ROUNDING) else found.dynamic_j
            proved = float(rates.value(np.asarray(found.lower_s), joules))
            lower = min(lower, max(proved, bound))
            if value < (float("inf") if best is None else best.value):
                best = Ran(way, found.batch_s, found.dynamic_j, value, lower)
        lowers[model] = lower
        return None if best is None else Ran(best.way, best.batch_s, best.dynamic_j, best.value, lower)


def evaluate(opened: Opened, bounds: list[Floats], floors: list[Floats], memories: list[int], cut: float) -> Evaluated:
    """The chip of ``opened``; ``bounds`` on values by model are [ways, memories], ``floors`` on joules [graphs]."""
    best = Evaluated(opened.chip, memories[-1], float("inf"), float("inf"), ())
    lower = float("inf")
    starts = [np.array([b[:, at].min() for b in bounds]) for at in range(len(memories))]
    scores = [float(opened.scale.score(start)) for start in starts]
    for at in sorted(range(len(memories)), key=lambda i: (scores[i], i)):
        bar, lowers, ran = min(cut, best.score), starts[at].copy(), []
        for model in range(len(bounds)):
            if float(opened.scale.score(lowers)) > bar:
                break
            found = opened.model(model, memories[at], bounds[model][:, at], floors[model], lowers, bar)
            if found is None:
                break
            ran.append(found)
        lower = min(lower, float(opened.scale.score(lowers)))
        if len(ran) == len(bounds):
            score = float(opened.scale.score(np.array([r.value for r in ran])))
            if score < best.score:
                best = Evaluated(opened.chip, memories[at], score, lower, tuple(ran))
    return Evaluated(best.chip, best.hbm, best.score, min(lower, best.score), best.ran)
