"""Chips beside each other: each model under the experts' split and under the best one, relative to
the baseline chip.

The experts' split (pipeline, data, tensor) and the rule of thumb are those of
:mod:`phaze.evaluate.baselines`; their microbatch, sequence parallelism and recompute choice are the
best that fit, by the study's objective. A ratio is throughput over that of the baseline chip under
the same kind of placement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from phaze.cost.chip_set import chip_set
from phaze.cost.table import cost_table
from phaze.evaluate.baselines import Split, even_plan, experts_plan, rule_of_thumb, usual_width
from phaze.hardware.chip import Chip
from phaze.placement.answer import UNNAMED
from phaze.schedule.solve import PartMemo
from phaze.search.bounds.part_loads import PartLoads, counts_parts, part_floors
from phaze.search.candidates import ComparedChip
from phaze.search.objective import UNITS, Objective
from phaze.search.rates import chip_rates
from phaze.search.reference import Choose, Offer, OpenLayers, best_offer, energy_table
from phaze.search.task import Configuration, ModelTask, SearchJob, tasks_for

KINDS = ("experts", "rule of thumb", "searched")
GIVEN = "given"
"""A plan that someone else has for a chip; its ratio is to the baseline's best plan."""


@dataclass(frozen=True, slots=True)
class GivenPlan:
    """A plan of a model to be priced: tensor width, even stages, and its microbatch, None: the
    best."""

    model: str
    tensor: int
    pipeline: int
    microbatch: int | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One model on one chip under one kind of placement; None where nothing fits.

    ``value`` is of a batch, in the objective's unit. ``link_bytes_per_s`` is the flat link that the
    chip is priced on (under rules cluster the innermost level). ``basis``, ``constants_of`` and
    ``band``: what its times rest on, whose constants they are, and by how much they may be off.
    ``family`` is a pipeline family other than 1F1B, interleaved or not.
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
    zero: int | None
    chunks: int | None
    link_bytes_per_s: float
    basis: str
    constants_of: str
    band: float
    context: int | None = None
    expert: int | None = None
    expert_tensor: int | None = None
    family: str | None = None
    shard: int | None = None


def _choose(
    task: ModelTask, configuration: Configuration, kind: str, split: Split | None
) -> Choose | bool:
    """How a kind of placement places a configuration, if not by the fastest plan; False where it
    does not use its width."""
    model = task.graphs[configuration.graph].model
    if kind == "searched":
        return True
    if task.degrees(
        configuration
    ):  # usual splits share neither sequences nor experts, and state over all replicas
        return False
    if kind == "experts" and split is not None:
        return lambda problem, prices: experts_plan(problem, model, split, prices)
    usual = usual_width((graph.width for graph in task.graphs), task.training.machine.cluster)
    if kind == "rule of thumb" and model.tensor == usual:
        return lambda problem, prices: rule_of_thumb(problem, model, prices)
    return False


def _floor_s(task: ModelTask, chip: Chip, timed: bool, graph: int) -> float:
    """What no batch of a graph undercuts on a chip by the loads of its parts; 0 where they say
    nothing, or where time alone does not count."""
    rank_graph, constants, chips = (
        task.graphs[graph],
        task.setting(chip).constants,
        chip_set([chip]),
    )
    if not timed or not counts_parts(rank_graph):
        return 0.0
    works = [
        work
        for layer in rank_graph.layers
        for layer_pass in layer.passes
        for work in layer_pass.works
    ]
    return float(
        part_floors(task, rank_graph, PartLoads(cost_table(works, chips, constants), chips))[0]
    )


def best_offers(
    task: ModelTask,
    chip: Chip,
    kinds: Sequence[str],
    split: Split | None,
    objective: Objective,
    parts: PartMemo | None = None,
) -> dict[str, Offer | None]:
    """For each kind of placement the plan of a model with the least value on a chip; ``parts``
    keeps schedules."""
    layers = OpenLayers(task, chip, energy_table(chip) if objective.needs_energy else None, parts)
    floor_s = partial(_floor_s, task, chip, layers.table is None)
    rates = chip_rates(objective, chip, task.training.devices)
    chosen = {kind: partial(_choose, task, kind=kind, split=split) for kind in kinds}
    return {
        kind: best_offer(layers, rates, chip.hbm.size_bytes, choose, floor_s)
        for kind, choose in chosen.items()
    }


def _row(
    task: ModelTask, candidate: ComparedChip, kind: str, offer: Offer | None, base: float | None
) -> ComparisonRow:
    chip, trust = candidate.chip, candidate.trust
    link = task.training.link_bytes_per_s
    basis = (link, trust.basis, candidate.constants_of, trust.band)
    if offer is None:
        return ComparisonRow(task.name, chip.name, kind, *(None,) * 10, *basis)
    rate, plan = task.training.batch / offer.plan.batch_s, offer.plan
    recompute: str = offer.configuration.recompute
    if recompute == "best":
        recompute = ", ".join(sorted({stage.recompute for stage in plan.stages}))
    sharing = plan.sharing
    split = (
        len(plan.stages),
        plan.data,
        plan.tensor // sharing.context,
        task.graphs[offer.configuration.graph].microbatch,
    )
    ratio = None if base is None else rate / base
    shared = (sharing.context, sharing.expert, sharing.expert_tensor)
    family = None if plan.family in UNNAMED else plan.family
    planned = (*split, recompute, offer.zero, plan.chunks)
    values = (rate, ratio, offer.value, *planned, *basis, *shared, family, sharing.shard or None)
    return ComparisonRow(task.name, chip.name, kind, *values)


def given_offer(task: ModelTask, chip: Chip, plan: GivenPlan, objective: Objective) -> Offer | None:
    """A given plan of a model on a chip, at its best recompute, sequence parallelism and stage of
    ZeRO."""
    layers = OpenLayers(task, chip, energy_table(chip) if objective.needs_energy else None)

    def choose(configuration: Configuration) -> Choose | bool:
        graph = task.graphs[configuration.graph]
        if graph.model.tensor != plan.tensor or plan.microbatch not in (None, graph.microbatch):
            return False
        if task.degrees(configuration):
            return False
        return lambda problem, prices: even_plan(problem, graph.model, plan.pipeline, prices)

    return best_offer(
        layers, chip_rates(objective, chip, task.training.devices), chip.hbm.size_bytes, choose
    )


def _given_rows(
    tasks: Sequence[ModelTask],
    candidates: Sequence[ComparedChip],
    plans: Sequence[GivenPlan | None],
    objective: Objective,
    base: float | None,
) -> list[ComparisonRow]:
    """The rows of given plans of one model; ``base``: the baseline's best throughput."""
    return [
        _row(task, candidate, GIVEN, given_offer(task, candidate.chip, plan, objective), base)
        for task, candidate, plan in zip(tasks, candidates, plans, strict=True)
        if plan is not None and plan.model == task.name
    ]


def compare(
    job: SearchJob,
    candidates: Sequence[ComparedChip],
    experts: Mapping[str, Split],
    plans: Sequence[GivenPlan | None] | None = None,
) -> list[ComparisonRow]:
    """Every model on every chip, each as a search prices it; the first chip is the baseline.
    ``plans``: one that is given for each of the candidates, or none."""
    rows: list[ComparisonRow] = []
    tasks = [tasks_for(job, candidate.chip, candidate.own_links) for candidate in candidates]
    for model, task in enumerate(job.models):
        kinds, split = KINDS if task.name in experts else KINDS[1:], experts.get(task.name)
        tasks_of_model = [mine[model] for mine in tasks]
        offers_by_chip = [
            best_offers(mine, candidate.chip, kinds, split, job.objective)
            for mine, candidate in zip(tasks_of_model, candidates, strict=True)
        ]
        for kind in kinds:
            first = offers_by_chip[0][kind]
            base = None if first is None else task.training.batch / first.plan.batch_s
            rows += [
                _row(mine, candidate, kind, offers[kind], base)
                for mine, candidate, offers in zip(
                    tasks_of_model, candidates, offers_by_chip, strict=True
                )
            ]
        rows += _given_rows(
            tasks_of_model, candidates, plans or [None] * len(candidates), job.objective, base
        )
    return rows


def compare_document(
    job: SearchJob, rows: Sequence[ComparisonRow], baseline: str, basis: str
) -> dict[str, Any]:
    """The rows as plain values."""
    return {
        "schema": "phaze.comparison/1",
        "baseline": baseline,
        "basis": basis,
        "objective": {"kind": job.objective.kind, "unit": UNITS[job.objective.kind]},
        "cluster": None if job.cluster is None else job.cluster.label,
        "rows": [asdict(row) for row in rows],
        "notes": list(dict.fromkeys(note for task in job.models for note in task.notes())),
    }
