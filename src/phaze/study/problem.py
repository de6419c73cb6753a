"""``problem.json`` and ``graphs.json`` of a run's folder: all that its answer depends on, resolved,
as plain values.

    phaze.problem/1   {schema, rules, residency, space, ownership, models, name, hbm_bytes,
                      objective, gap, baseline}
    space             {name, axes by name as values, tied, core_buffers, keep, base, area_chip}
    models            [{name, part, weight, training, configurations, graphs: [{tensor, microbatch,
                      ..., digest}]}]
    phaze.graphs/1    {schema, models: [[graph]]} as in phaze.graph/1, as traced

Every field of a job and of its models is in it, whatever fields they have, but for how long it may
take. A path is not: the same values from other files are the same problem.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from phaze.documents import digest, dumps, plain_value
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.hardware.ownership import load_terms
from phaze.search.space import Space
from phaze.search.task import ModelTask, SearchJob
from phaze.study.schema import StudyFile

SCHEMA, GRAPHS = "phaze.problem/1", "phaze.graphs/1"
# What of a job and a model is not stated field by field: stated otherwise, derived, or no part of
# the question.
JOB_APART = ("models", "space", "digest", "limit_s")
TASK_APART = ("graphs", "prices", "memo", "shared")


def space_document(space: Space) -> dict[str, Any]:
    """A space as a problem states it."""
    # The clock that chips of clusters are rated at stands among their clusters.
    base = {**plain_value(space.base), "rated_hz": None}
    return {**space.document(), "base": base, "area_chip": plain_value(space.area_within)}


def _model(task: ModelTask, part: str, graphs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    apart = {
        column.name: getattr(task, column.name)
        for column in fields(task)
        if column.name not in TASK_APART
    }
    heads = ("tensor", "microbatch", "sequence", "sequence_parallel", "attention", *store.DEGREES)
    stated = [
        {**{key: graph[key] for key in heads if key in graph}, "digest": digest(graph)}
        for graph in graphs
    ]
    plain = plain_value(apart)
    if task.training.shards == (
        0,
    ):  # stated only where some ranks with the same weights share out state, not all
        del plain["training"]["shards"]
        for configuration in plain["configurations"]:
            del configuration["shard"]
    return {**plain, "part": part, "graphs": stated}


def stated(
    job: SearchJob, study: StudyFile, models: Sequence[Sequence[Model]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Problem and graphs of a job whose models have these graphs."""
    graphs = [[store.plain(model) for model in of_model] for of_model in models]
    rest = {
        column.name: getattr(job, column.name)
        for column in fields(job)
        if column.name not in JOB_APART
    }
    tables = [
        _model(task, table.part, of_model)
        for task, table, of_model in zip(job.models, study.tables(), graphs, strict=True)
    ]
    problem = {
        "schema": SCHEMA,
        "residency": study.cost.residency,
        "space": space_document(job.space),
        "ownership": plain_value(load_terms()),
        "models": tables,
        **plain_value(rest),
    }
    return problem, {"schema": GRAPHS, "models": graphs}


def problem_text(problem: Mapping[str, Any]) -> str:
    """``problem.json``."""
    return dumps(problem, pretty=True) + "\n"


def graphs_text(graphs: Mapping[str, Any]) -> str:
    """``graphs.json``."""
    return dumps(graphs) + "\n"
