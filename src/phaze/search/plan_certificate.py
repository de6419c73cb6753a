"""A plan's question and certificate as documents: what others need to prove that no plan of it is
faster.

    problem.json      phaze.problem/1 with the ``chip`` of the plan in place of a space: job,
                      network, stack, constants, graphs by digest, configurations (graph, recompute,
                      stages of ZeRO), and as ``restricted`` what was requested of the plans that
                      are searched, as ``job`` of the plan states it
    graphs.json       one traced rank for every choice of width, microbatch, sequence parallelism,
                      attention, context and expert degree that was tried
    certificate.json  phaze.certificate/1: ``best`` in seconds of a batch, gap 0, the plan as
                      ``answer``

:mod:`phaze.check` reads them as those of a search over one chip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from phaze.documents import dumps, plain_value
from phaze.errors import InputError
from phaze.evaluate.parallel_rank import parallels
from phaze.evaluate.plan import Candidate, PlanRequest, choices
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.placement.answer import document_of
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.problem_file import SCHEMA, graphs_text, model_document, problem_text
from phaze.search.question_files import Papers
from phaze.search.rank_graph import rank_graph
from phaze.search.reference import layers_on
from phaze.search.task import ModelTask, task_of
from phaze.search.witness import heading, model_witness, needs_schedules, tables_of


@dataclass(frozen=True, slots=True)
class PlanPapers:
    """The three documents as texts."""

    problem: str
    graphs: str
    certificate: str

    @property
    def texts(self) -> dict[str, str]:
        """By the names of their files."""
        return {f"{one.name}.json": getattr(self, one.name) for one in fields(self)}


def ranks(request: PlanRequest) -> Iterator[Model]:
    """Every traced rank that a plan of the request may run; degrees that a choice cannot have are
    left out."""
    for choice in choices(request):
        for own in parallels(
            choice[0], request.contexts, request.expert, request.ways, request.rows
        ):
            if (own.context, own.expert) == (1, 1) or request.rank_at is None:
                yield request.model_at(*choice)
                continue
            try:
                yield request.rank_at(choice, own)
            except InputError:
                continue


def _task(request: PlanRequest, name: str, models: list[Model]) -> ModelTask:
    """The request as a search would have it, on one chip."""
    machine = request.setting.machine
    return task_of(
        name,
        1.0,
        request.job,
        request.setting.constants,
        [rank_graph(model, machine) for model in models],
        (request.job.recompute,),
    )


def _problem(
    request: PlanRequest,
    task: ModelTask,
    graphs: list[dict[str, Any]],
    restricted: Mapping[str, Any],
) -> dict[str, Any]:
    chip = request.setting.chip
    return {
        "schema": SCHEMA,
        "name": task.name,
        "residency": request.setting.residency,
        "chip": plain_value(chip),
        "hbm_bytes": [chip.hbm.size_bytes],
        "models": [model_document(task, "model", graphs)],
        "gap": 0.0,
        **({"restricted": dict(restricted)} if restricted else {}),
    }


def plan_papers(
    request: PlanRequest,
    name: str,
    best: Candidate,
    restricted: Mapping[str, Any] = MappingProxyType({}),
) -> PlanPapers:
    """The documents of a plan that was proved fastest, among those that were requested."""
    models = list(ranks(request))
    task, graphs = _task(request, name, models), [store.plain(model) for model in models]
    problem = problem_text(_problem(request, task, graphs, restricted))
    text = graphs_text([graphs])
    if best.plan is None:
        raise AssertionError(f"{name}: a plan that does not fit is not certified")
    place, table = (
        graphs.index(store.plain(best.model)),
        {"plan": document_of(best.plan), "zero": best.problem.zero},
    )
    zero, shard = best.problem.zero, best.problem.sharing.shard
    ways = [
        one
        for one in task.configurations
        if (one.graph, one.shard) == (place, shard) and zero in one.zeros
    ]
    memo = ScheduleMemo(in_order=[])
    if needs_schedules(task):
        layers_on(task, place, request.setting.chip, None, (memo, b""))
    witness = model_witness(task, ways[0], memo.in_order or [], table)
    certificate = {
        **heading(Papers("", problem, text)),
        "best": best.plan.batch_s,
        "bound": best.plan.batch_s,
        "gap": 0.0,
        "answer": None if witness is None else {"models": [witness]},
        **tables_of([task], witness is not None),
    }
    return PlanPapers(problem, text, dumps(certificate) + "\n")
