"""Chips side by side: each model under the experts' split and under the best one, as ratios to the baseline chip.

The experts' split (pipeline, data, tensor) cuts the layers into stages of equal numbers of blocks, the prologue with
the first and the epilogue with the last, and has as many copies as there are devices for (on 1024 those published); its
microbatch and recompute choice are the best that fit, by the study's objective. The rule of thumb
takes the widest tensor split, the fewest such stages that fit, doubled each time, and copies with the rest. A ratio is
throughput over that of the baseline chip under the same kind of placement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.flow import Prepared
from phaze.hardware.chip import Chip
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.one.layout import Shape
from phaze.placement.one.pipeline import Cut, fits, price
from phaze.placement.one.problem import Plan, Problem
from phaze.placement.one.solve import fastest_plan
from phaze.search.candidates import Candidate
from phaze.search.cluster_compare import best_offer
from phaze.search.cluster_task import ClusterTask
from phaze.search.objective import UNITS, Objective
from phaze.search.plain import Choose, Offer, electricity_on, layers_on, offers_on
from phaze.search.task import Job, ModelTask, Way, tasks_for

Split = tuple[int, int, int]
KINDS = ("experts", "rule of thumb", "searched")


@dataclass(frozen=True, slots=True)
class Row:
    """One model on one chip under one kind of placement; None where nothing fits.

    ``value`` is of a batch, in the objective's unit. ``link_bytes_per_s`` is the flat link that the chip is priced on
    (under rules cluster the innermost level). ``basis``, ``constants_of`` and ``band``: what its times rest on, whose
    constants they are, and by how much they may be off.
    """

    model: str
    chip: str
    placement: str
    throughput_per_s: float | None
    ratio: float | None
    value: float | None
    pipeline: int | None
    data: int | None
    tensor: int | None
    microbatch: int | None
    recompute: str | None
    link_bytes_per_s: float
    basis: str
    constants_of: str
    band: float


def even_cuts(layers: int, stages: int, again: bool) -> list[Cut]:
    """Blocks in equal numbers, the first stages one more; prologue and epilogue with their neighbours."""
    blocks = layers - 2
    if not 1 <= stages <= blocks:
        raise InputError("experts", f"{stages} stages cannot share {blocks} blocks", "use fewer stages")
    sizes = [blocks // stages + (at < blocks % stages) for at in range(stages)]
    sizes[0] += 1
    sizes[-1] += 1
    cuts, start = [], 0
    for at, size in enumerate(sizes):
        cuts.append(Cut(tuple(range(start, start + size)), "full" if again and at < stages - 1 else "none"))
        start += size
    return cuts


def _experts_plan(problem: Problem, graph: Prepared, split: Split, again: bool) -> Plan | None:
    pipeline, _, tensor = split
    data = min(problem.devices // (pipeline * tensor), problem.microbatches)
    if graph.width != tensor or data < 1 or pipeline > len(graph.calls) - 2:
        return None
    plan = _even_plan(problem, graph, (tensor, pipeline, data), again)
    return plan if fits(problem, plan) else None


def _even_plan(problem: Problem, graph: Prepared, degrees: Split, again: bool) -> Plan:
    """The plan of tensor, pipeline and data degrees whose blocks are cut evenly."""
    tensor, pipeline, data = degrees
    cuts = even_cuts(len(graph.calls), pipeline, again)
    return price(problem, Shape(tensor, pipeline, data), cuts, RingPrices(problem.cluster))


def _thumb_plan(problem: Problem, graph: Prepared, again: bool) -> Plan | None:
    """The rule of thumb: the fewest stages, doubled until they fit, and copies with the rest."""
    pipeline = 1
    while pipeline <= len(graph.calls) - 2 and graph.width * pipeline <= problem.devices:
        data = min(problem.devices // (graph.width * pipeline), problem.microbatches)
        plan = _even_plan(problem, graph, (graph.width, pipeline, data), again)
        if fits(problem, plan):
            return plan
        pipeline *= 2
    return None


def _choose(graph: Prepared, way: Way, kind: str, split: Split | None, widest: int) -> Choose | None:
    """How a kind of placement places a graph; None where it does not use it."""
    again = way.recompute == "full"
    if kind == "searched":
        return fastest_plan
    if kind == "experts" and split is not None:
        return lambda problem: _experts_plan(problem, graph, split, again)
    if kind == "rule of thumb" and graph.width == widest:
        return lambda problem: _thumb_plan(problem, graph, again)
    return None


def best_offers(
    task: ModelTask, chip: Chip, kinds: Sequence[str], split: Split | None, objective: Objective
) -> dict[str, Offer | None]:
    """For each kind of placement the plan of a model with the least value on a chip."""
    if isinstance(task, ClusterTask):
        return {kind: best_offer(task, chip, kind, split, objective) for kind in kinds}
    electricity = electricity_on(task, chip, objective)
    layers = [layers_on(graph, chip, electricity) for graph in task.graphs]
    widest, found = max(graph.width for graph in task.graphs), dict[str, Offer | None]()
    for kind in kinds:
        choice = partial(_choice, task, kind, split, widest)
        offers = offers_on(task, chip, objective, layers, choice)
        found[kind] = min(offers, key=lambda offer: offer.value, default=None)
    return found


def _choice(task: ModelTask, kind: str, split: Split | None, widest: int, way: Way) -> Choose | None:
    return _choose(task.graphs[way.graph], way, kind, split, widest)


def _row(task: ModelTask, candidate: Candidate, kind: str, offer: Offer | None, base: float | None) -> Row:
    chip, trust = candidate.chip, candidate.trust
    link = task.training.link_bytes_per_s
    basis = (link, trust.basis, candidate.constants_of, trust.band)
    if offer is None:
        return Row(task.name, chip.name, kind, *(None,) * 8, *basis)
    rate, plan = task.training.batch / offer.plan.batch_s, offer.plan
    recompute: str = offer.way.recompute
    if task.rules == "cluster":
        recompute = ", ".join(sorted({stage.recompute for stage in plan.stages}))
    split = (len(plan.stages), plan.data, plan.tensor, task.graphs[offer.way.graph].microbatch)
    ratio = None if base is None else rate / base
    return Row(task.name, chip.name, kind, rate, ratio, offer.value, *split, recompute, *basis)


def compare(job: Job, candidates: Sequence[Candidate], experts: Mapping[str, Split]) -> list[Row]:
    """Every model on every chip, each as a search prices it; the first chip is the baseline."""
    rows: list[Row] = []
    tasks = [tasks_for(job, one.chip, one.own_links) for one in candidates]
    for model, task in enumerate(job.models):
        kinds, split = KINDS if task.name in experts else KINDS[1:], experts.get(task.name)
        own = [mine[model] for mine in tasks]
        found = [
            best_offers(mine, one.chip, kinds, split, job.objective) for mine, one in zip(own, candidates, strict=True)
        ]
        for kind in kinds:
            first = found[0][kind]
            base = None if first is None else task.training.batch / first.plan.batch_s
            rows += [
                _row(mine, one, kind, offers[kind], base)
                for mine, one, offers in zip(own, candidates, found, strict=True)
            ]
    return rows


def compare_document(job: Job, rows: Sequence[Row], baseline: str, basis: str) -> dict[str, Any]:
    """The rows as plain values."""
    return {
        "schema": "phaze.comparison/1",
        "baseline": baseline,
        "basis": basis,
        "objective": {"kind": job.objective.kind, "unit": UNITS[job.objective.kind]},
        "cluster": None if job.cluster is None else job.cluster.label,
        "rows": [asdict(row) for row in rows],
        "notes": list(dict.fromkeys(note for task in job.models for note in task.graphs[0].notes)),
    }
