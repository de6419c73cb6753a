"""A front checked again by the plain path: one chip at a time, the general placement solver, no structures, no arrays.

files     study and limits give the digest that the front names; the list of closed units has its digest
designs   chip, plans and metrics of a sample of the designs (or of all) by scheduling and placing anew; no design
          beats another; the bound of each by the list, where one metric comes with a run
proof     counts; for a sample of the units that a bound closed (or all) their bounds anew, and for a sample of the
          opened ones every way exactly: some design of the front must be no worse, to the gap, in all metrics
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.front.answer import shown_value
from phaze.front.certificate import counts_of
from phaze.front.metrics import METRICS, known_values
from phaze.front.order import steps, undominated
from phaze.front.plain import PlainFront
from phaze.search.answer import Best
from phaze.search.certificate import digest_of
from phaze.search.evaluation import Evaluated
from phaze.search.journal import Closed
from phaze.search.plain import layers_on, planned
from phaze.search.result import chip_document
from phaze.search.verify import NEAR, bounded

Floats = NDArray[np.float64]


def _sampled(units: Sequence[Any], count: int | None, seed: int) -> list[Any]:
    return list(units) if count is None or len(units) <= count else random.Random(seed).sample(list(units), count)


def _near(said: Any, true: Any) -> bool:
    if isinstance(true, bool) or not isinstance(true, int | float):
        return bool(said == true)
    return isinstance(said, int | float) and isclose(said, true, rel_tol=NEAR, abs_tol=0.0)


def check_points(front: PlainFront, result: Mapping[str, Any], count: int | None, seed: int) -> list[str]:
    """What is wrong with the designs themselves."""
    wrong, points = [], front.points
    kept = undominated(points, np.arange(points.shape[1]))
    wrong += [f"points[{at}] is beaten by another" for at in range(points.shape[1]) if at not in set(kept.tolist())]
    for at in _sampled(range(points.shape[1]), count, seed):
        wrong += [f"points[{at}].{sentence}" for sentence in _check_point(front, result["points"][at])]
    return wrong


def _check_point(front: PlainFront, point: Mapping[str, Any]) -> Iterable[str]:
    plain, job = front.plain, front.plain.job
    number, size = point["chip"]["number"], point["chip"]["hbm_bytes"]
    if not isinstance(number, int) or not 0 <= number < front.chips or size not in job.hbm_bytes:
        yield "chip: no chip and memory of the study"
        return
    hbm, electricity = job.hbm_bytes.index(size), front.electricity(number)
    for key, true in chip_document(plain.opened, Best(number, hbm, 0.0, ()), job.hbm_bytes).items():
        if not _near(point["chip"].get(key), true):
            yield f"chip.{key}: {point['chip'].get(key)!r}, but {true!r}"
    chip, seconds, joules = plain.opened.chip(number, size), [], []
    static_w = front.plain.opened.technology.energy.static_w_per_mm2 * front.known(METRICS[1], number, hbm)
    for task, said in zip(plain.networks.tasks_of(number), point["models"], strict=True):
        wanted, graphs = (said["microbatch"], said["tensor"], said["recompute"]), task.graphs
        ways = [w for w in task.ways if (graphs[w.graph].microbatch, graphs[w.graph].width, w.recompute) == wanted]
        if not ways:
            yield f"models[{task.name}]: the study knows no such microbatch, width and recompute"
            return
        graph = graphs[ways[0].graph]
        plan = planned(task, ways[0], layers_on(graph, chip, electricity), size, electricity)
        if plan is None:
            yield f"models[{task.name}]: the plan does not fit"
            return
        batch_s = plan.plan.batch_s
        seconds.append(batch_s)
        joules.append(plan.dynamic_j)
        true = {
            "name": task.name,
            "throughput_per_s": task.training.batch / batch_s,
            "batch_s": batch_s,
            "energy_j": plan.dynamic_j + task.training.devices * static_w * batch_s,
            "pipeline": len(plan.plan.stages),
            "data": plan.plan.data,
        }
        for name, value in true.items():
            if not _near(said.get(name), value):
                yield f"models[{task.name}].{name}: {said.get(name)!r}, but {value!r}"
    values = front.values(number, hbm, seconds, joules)
    for metric, score in zip(front.asked.of, values.tolist(), strict=False):
        said, value = point["metrics"].get(metric.name), shown_value(job, metric, score)
        if not _near(said, value):
            yield f"metrics.{metric.name}: {said!r}, but {value!r}"
    if not front.inside(number, hbm, values):
        yield "metrics: not within the limits"


def check_closed(
    front: PlainFront, result: Mapping[str, Any], closed: Sequence[Closed], evaluated: Sequence[Evaluated]
) -> list[str]:
    """What is wrong with the list of closed units and what the certificate says of it."""
    said, plain = result["certificate"], front.plain
    if [one.chip for one in closed] != list(range(front.chips * len(front.memories))):
        return ["the journal does not close every unit once"]
    true = {
        "asked_gap": plain.job.gap,
        "closed": counts_of(closed, plain.opened.kept),
        "units": len(closed),
        "list_digest": digest_of(closed, evaluated),
    }
    wrong = [
        f"certificate.{key}: {said.get(key)!r}, but {value!r}" for key, value in true.items() if said.get(key) != value
    ]
    if float(said["gap"]) > plain.job.gap and not any(one.reason in ("open", "failed") for one in closed):
        wrong += [] if _unproved(evaluated) else [f"certificate.gap: {said['gap']!r} is more than was asked for"]
    return wrong + _check_bounds_of_points(front, result, closed)


def _unproved(evaluated: Sequence[Evaluated]) -> bool:
    """Whether some schedule was not proved, which leaves a gap."""
    return any(ran.lower < ran.value * (1 - NEAR) for one in evaluated for ran in one.ran)


def _check_bounds_of_points(front: PlainFront, result: Mapping[str, Any], closed: Sequence[Closed]) -> list[str]:
    """The bound of every design from the list: the least of all units that are no worse in what is known of them."""
    asked, job = front.asked, front.plain.job
    if len(asked.runs) > 1 or asked.runs[0] not in asked.of:
        return []
    sizes = [job.hbm_bytes[at] for at in front.memories]
    others = [at for at, metric in enumerate(asked.of) if metric.kind is None]
    row = asked.of.index(asked.runs[0])
    known = np.stack([steps(known_values(asked.of[at], front.plain.opened, sizes).ravel()) for at in others])
    bounds = np.array([np.inf if one.bound is None or one.reason == "within" else one.bound for one in closed])
    wrong = []
    for at, point in enumerate(result["points"]):
        inside = (known <= steps(front.points[others, at])[:, None]).all(axis=0)
        least = min(float(bounds[inside].min(initial=np.inf)), float(front.points[row, at]))
        true = {"bound": shown_value(job, asked.of[row], least), "gap": max(0.0, 1 - least / front.points[row, at])}
        for key, value in true.items():
            if not isclose(float(point["certificate"][key]), value, rel_tol=NEAR, abs_tol=1e-9):
                wrong.append(f"points[{at}].certificate.{key}: {point['certificate'][key]!r}, but {value!r}")
    return wrong


def check_units(front: PlainFront, closed: Sequence[Closed], count: int | None, seed: int) -> list[str]:
    """What is wrong with the bounds of units that a bound, a limit or memory closed."""
    ours = _sampled([one for one in closed if one.reason in ("bound", "memory", "within")], count, seed)
    plain, job = front.plain, front.plain.job
    numbers = [one.chip % front.chips for one in ours]
    layers = bounded(plain, numbers, [plain.opened.chip(number, job.hbm_bytes[-1]) for number in numbers])
    wrong = []
    for one, chip, own in zip(ours, numbers, layers, strict=True):
        hbm = front.memories[one.chip // front.chips]
        for values in _bounds(front, chip, hbm, own.seconds, own.joules):
            if one.reason == "memory":
                wrong.append(f"unit {one.chip} is said to fit nothing, and something fits")
            elif front.inside(chip, hbm, values) and not front.covered(values, job.gap):
                wrong.append(f"unit {one.chip} may have {values.tolist()}, which no design of the front covers")
    return wrong


def _bounds(front: PlainFront, chip: int, hbm: int, seconds: Any, joules: Any) -> list[Floats]:
    """Lower bounds of a unit's lanes by the general solver: of every way, or of several models together."""
    tasks, size = front.plain.networks.tasks_of(chip), front.plain.job.hbm_bytes[hbm]
    found: list[list[tuple[float, float]]] = []
    for task, times, energies in zip(tasks, seconds, joules, strict=True):
        rows = [(front.plain.batch(task, w, times[w.graph], size, np.inf), energies[w.graph]) for w in task.ways]
        found.append([row for row in rows if row[0] < np.inf])
    if not all(found):
        return []
    if len(tasks) == 1:
        return [front.values(chip, hbm, [s], [j]) for s, j in found[0]]
    least = [(min(s for s, _ in own), min(j for _, j in own)) for own in found]
    return [front.values(chip, hbm, [s for s, _ in least], [j for _, j in least])]


def check_opened(front: PlainFront, closed: Sequence[Closed], count: int | None, seed: int) -> list[str]:
    """What is wrong with opened units: a way on one that no design of the front covers."""
    ours = _sampled([one for one in closed if one.reason == "evaluated"], count, seed)
    wrong = []
    for one in ours:
        chip, hbm = one.chip % front.chips, front.memories[one.chip // front.chips]
        for values in front.exact(chip, hbm):
            if front.inside(chip, hbm, values) and not front.covered(values, front.plain.job.gap):
                wrong.append(f"unit {one.chip} has {values.tolist()}, which no design of the front covers")
                break
    return wrong


def objections(
    front: PlainFront,
    result: Mapping[str, Any],
    closed: Sequence[Closed],
    evaluated: Sequence[Evaluated],
    count: int | None,
    seed: int,
) -> list[str]:
    """Everything that is wrong with a front; ``count`` units are sampled, None takes all."""
    few = None if count is None else max(1, count // 20)
    return [
        *check_points(front, result, few, seed),
        *check_closed(front, result, closed, evaluated),
        *check_opened(front, closed, few, seed),
        *check_units(front, closed, count, seed),
    ]
