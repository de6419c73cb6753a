"""A chip opened: exact schedules and exact placements, as far as its bounds leave a chance.

For each memory size, best bound first, and for each model its ways, best bound first: the layers' exact schedules, then
the fastest plan. A way is left out when its bound is no better than the best plan of the model so far, or when with it
the chip's score could not beat the cut-off. What was left out keeps its bound, so that

    lower  =  least over memories of score( over models: least over ways of the proved batch time or the bound )

is a lower bound on the chip's score whether or not it was evaluated to the end. Schedules that are not proved count
with their makespan for ``score`` and with their bound for ``lower``.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.evaluate.flow import LayerSeconds, Prepared, Training, graph_of, placement_of
from phaze.evaluate.passes import Pass, problem_on, table_of, times_on
from phaze.placement.problem import Recompute
from phaze.placement.solve import fastest_plan
from phaze.schedule.solve import Limits, solve
from phaze.search.objective import Scale
from phaze.search.task import Job

Floats = NDArray[np.float64]
# Within a search schedules are proved by labels alone; what they leave open counts in the gap.
LIMITS = Limits(cpsat=0.0, label_effort=200_000_000)


@dataclass(slots=True)
class Known:
    """Schedules solved so far, by all that they depend on, and counts of the work done."""

    schedules: MutableMapping[bytes, tuple[float, float]] = field(default_factory=dict)
    asked: int = 0
    placements: int = 0


@dataclass(frozen=True, slots=True)
class Ran:
    """The best plan of a model on a chip: which way, its batch time, and what no plan can undercut."""

    way: int
    batch_s: float
    lower_s: float


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
        ran = [[r.way, r.batch_s, r.lower_s] for r in self.ran]
        return {
            "hbm": self.hbm,
            "score": _plain(self.score),
            "lower": _plain(self.lower),
            "ran": ran,
            "error": self.error,
        }


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


def evaluated_from(chip: int, raw: dict[str, Any]) -> Evaluated:
    """The value of :meth:`Evaluated.document`."""
    ran = tuple(Ran(int(way), float(batch_s), float(lower_s)) for way, batch_s, lower_s in raw["ran"])
    score, lower = (float("inf") if raw[key] is None else float(raw[key]) for key in ("score", "lower"))
    return Evaluated(chip, int(raw["hbm"]), score, lower, ran, str(raw["error"]))


def _schedule(
    one: Pass, at: bytes, times: tuple[Floats, Floats], cores: tuple[int, int], known: Known
) -> tuple[float, float]:
    """Makespan and bound of a pass; cores beyond the number of operators make no difference."""
    known.asked += 1
    least = (min(cores[0], len(one.works)), min(cores[1], len(one.works)))
    key = b"%s %d %d " % (at, *least) + times[0].tobytes() + times[1].tobytes()
    if key not in known.schedules:
        found = solve(problem_on(one, times[0].tolist(), times[1].tolist(), least), limits=LIMITS)
        known.schedules[key] = (found.makespan_s, found.lower_bound_s)
    return known.schedules[key]


def exact_layers(
    model: Prepared, name: bytes, chip: ChipArrays, known: Known
) -> tuple[tuple[LayerSeconds, ...], tuple[LayerSeconds, ...]]:
    """Makespans and proved bounds of all distinct layers of one graph on one chip."""
    table, first, found = table_of(model.passes, chip), 0, []
    cores = (int(chip.tensor_cores[0]), int(chip.vector_cores[0]))
    for at, one in enumerate(model.passes):
        singles, spreads = times_on(one, table, first)
        times = (np.ascontiguousarray(singles[:, 0]), np.ascontiguousarray(spreads[:, 0]))
        found.append(_schedule(one, b"%s %d" % (name, at), times, cores, known))
        first += len(one.works)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    return (
        tuple(LayerSeconds(forward[0], backward[0]) for forward, backward in pairs),
        tuple(LayerSeconds(forward[1], backward[1]) for forward, backward in pairs),
    )


def _batch(
    model: Prepared, seconds: tuple[LayerSeconds, ...], recompute: Recompute, hbm_bytes: float, training: Training
) -> float:
    plan = fastest_plan(placement_of([graph_of(model, seconds)], model.microbatch, recompute, hbm_bytes, training))
    return float("inf") if plan is None else plan.batch_s


@dataclass(slots=True)
class Opened:
    """One chip being evaluated: its layer times by (model, graph), found when they are asked for."""

    job: Job
    scale: Scale
    chip: int
    arrays: ChipArrays
    known: Known
    layers: dict[tuple[int, int], Any] = field(default_factory=dict)

    def batch(self, model: int, way: int, hbm_bytes: int) -> tuple[float, float]:
        """Batch time of a way, and what no plan of it can undercut."""
        task = self.job.models[model]
        chosen, key = task.ways[way], (model, task.ways[way].graph)
        graph = task.graphs[chosen.graph]
        if key not in self.layers:
            self.layers[key] = exact_layers(graph, b"%d %d" % key, self.arrays, self.known)
        found, proved = self.layers[key]
        self.known.placements += 1
        batch_s = _batch(graph, found, chosen.recompute, hbm_bytes, task.training)
        if found == proved or batch_s == float("inf"):
            return batch_s, batch_s
        return batch_s, _batch(graph, proved, chosen.recompute, hbm_bytes, task.training)

    def model(self, model: int, hbm: int, bounds: Floats, lowers: Floats, factor: float, cut: float) -> Ran | None:
        """The best way of one model; ``lowers[model]`` is raised to what was proved. None: the chip cannot win."""
        best: Ran | None = None
        lower = float("inf")
        for way in np.argsort(bounds, kind="stable").tolist():
            bound = float(bounds[way])
            if bound >= (float("inf") if best is None else best.batch_s):
                break
            lowers[model] = min(lower, bound)
            if float(self.scale.score(lowers, factor)) > cut:
                return best
            batch_s, proved_s = self.batch(model, way, self.job.hbm_bytes[hbm])
            lower = min(lower, max(proved_s, bound))
            if batch_s < (float("inf") if best is None else best.batch_s):
                best = Ran(way, batch_s, lower)
        lowers[model] = lower
        return None if best is None else Ran(best.way, best.batch_s, lower)


def evaluate(opened: Opened, bounds: list[Floats], factors: Floats, memories: list[int], cut: float) -> Evaluated:
    """The chip of ``opened``; ``bounds`` by model are [ways, memories], ``factors`` [memories]."""
    best = Evaluated(opened.chip, memories[-1], float("inf"), float("inf"), ())
    lower = float("inf")
    starts = [np.array([b[:, at].min() for b in bounds]) for at in range(len(memories))]
    scores = [float(opened.scale.score(start, factors[at])) for at, start in enumerate(starts)]
    for at in sorted(range(len(memories)), key=lambda i: (scores[i], i)):
        bar, lowers, ran = min(cut, best.score), starts[at].copy(), []
        for model in range(len(bounds)):
            if float(opened.scale.score(lowers, factors[at])) > bar:
                break
            found = opened.model(model, memories[at], bounds[model][:, at], lowers, float(factors[at]), bar)
            if found is None:
                break
            ran.append(found)
        lower = min(lower, float(opened.scale.score(lowers, factors[at])))
        if len(ran) == len(bounds):
            score = float(opened.scale.score(np.array([r.batch_s for r in ran]), factors[at]))
            if score < best.score:
                best = Evaluated(opened.chip, memories[at], score, lower, tuple(ran))
    return Evaluated(best.chip, best.hbm, best.score, min(lower, best.score), best.ran)
