"""The problem and the graphs of a search (:mod:`phaze.search.problem_file`) from its study.

    phaze.problem/1   {schema, residency, space, ownership, models, name, hbm_bytes, objective, gap,
                      round_size, baseline, cluster, budget, rules}
    space             {name, axes by name as values, tied, core_buffers, keep, base, area_chip}

How long a search may take is no part of the question. Nor is a path: the same values from other
files are the same problem.
"""

from collections.abc import Sequence
from typing import Any

from phaze.documents import plain_value
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.hardware.ownership import load_terms
from phaze.search.problem_file import SCHEMA, model_document
from phaze.search.space import Space
from phaze.search.task import SearchJob
from phaze.study.schema import StudyFile


def space_document(space: Space) -> dict[str, Any]:
    """A space as a problem states it."""
    # The clock that chips of clusters are rated at stands among their clusters.
    base = {**plain_value(space.base), "rated_hz": None}
    return {**space.document(), "base": base, "area_chip": plain_value(space.area_within)}


def stated(
    job: SearchJob, study: StudyFile, models: Sequence[Sequence[Model]]
) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    """Problem and graphs of a job whose models have these graphs."""
    graphs = [[store.plain(model) for model in of_model] for of_model in models]
    tables = [
        model_document(task, table.part, of_model)
        for task, table, of_model in zip(job.models, study.tables(), graphs, strict=True)
    ]
    problem = {
        "schema": SCHEMA,
        "residency": study.cost.residency,
        "space": space_document(job.space),
        "ownership": plain_value(load_terms()),
        "models": tables,
        "name": job.name,
        "hbm_bytes": list(job.hbm_bytes),
        "objective": plain_value(job.objective),
        "gap": job.gap,
        "round_size": job.round_size,
        "baseline": plain_value(job.baseline),
        "cluster": plain_value(job.cluster),
        "budget": plain_value(job.budget),
        "rules": job.rules,
    }
    return problem, graphs
