"""A plan's document (``phaze.plan/1``) stated anew: the job that it names, its degrees and its
stages are priced again, and every figure that follows from them must be the one that it has.

    read        job, degrees, order, chunks, family, stage of ZeRO, the layers and the recompute of
                every stage
    priced      step time and its parts, seconds and bytes of every stage, tokens a second, MFU,
                HFU, memory left
    not priced  how other plans and jobs fare, launch files, cost and carbon of a whole training
                run, notes
"""

from collections.abc import Iterator, Mapping
from typing import Any

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.answer import PlanFacts, plan_document
from phaze.evaluate.flow import rank_problem
from phaze.evaluate.job_file import reopened
from phaze.evaluate.lowered_layer import keeping_of
from phaze.pipeline.families import named_family
from phaze.placement.job import TrainingJob
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.structure import StageCut

NEAR = 1e-9
"""Times are sums in another order than the planner has them."""
UNPRICED = (
    "alternatives", "rule_of_thumb", "experts", "choices", "imbalance_sensitivity", "what_if",
    "against", "launch",
    "training_run", "approximations", "requested_batch_tokens",
)  # fmt: skip
"""Keys of a plan's document that are not stated anew."""
APART = ("lower_bound_s", "approximations")


def repriced(document: Mapping[str, Any], headroom: float, where: str) -> dict[str, Any]:
    """What a plan's document says of its plan, priced anew; an InputError where its job cannot be
    opened."""
    plan_job = reopened(document, where)
    job, model, setting = plan_job.job, plan_job.model, plan_job.setting
    chunks = int(document.get("chunks", 1))
    family = named_family(document.get("family"), chunks)
    modes = {str(stage["recompute"]) for stage in document["stages"]}
    placement_job = TrainingJob(
        setting.machine, job.devices, job.batch, job.optimizer, (int(document["zero"]),),
        modes.pop() if len(modes) == 1 else "best", headroom=headroom,
        shards=(int(document.get("shard", 0)),),
    )  # fmt: skip
    problem = rank_problem(placement_job, model, setting, families=(family,))
    degrees = (model.tensor * model.context, len(document["stages"]), int(document["data"]))
    (family,) = problem.rules.families
    shape = Shape(*degrees, document.get("order", ""), chunks, family.name)
    cuts = [StageCut(tuple(stage["layers"]), stage["recompute"]) for stage in document["stages"]]
    plan = price(problem, shape, cuts, NetworkPrices(setting.cluster, setting.basis))
    facts = PlanFacts(model, setting, job.batch, job.devices, keeping=keeping_of(setting.stack))
    priced = plan_document(facts, problem, plan)
    return {key: value for key, value in priced.items() if key not in APART}


def _same(stated: Any, true: Any, least: float) -> bool:
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, true)
    )
    return abs(stated - true) <= NEAR * max(abs(true), least) if numbers else bool(stated == true)


def unlike(stated: Any, true: Any, least_s: float, where: str = "") -> Iterator[str]:
    """Where a document does not have the values of the true one; seconds may differ by rounding of
    ``least_s``."""
    if isinstance(true, Mapping) and isinstance(stated, Mapping):
        for key, value in true.items():
            place = f"{where}.{key}".lstrip(".")
            if key in stated:
                yield from unlike(stated[key], value, least_s, place)
            else:
                yield f"{place} is missing"
    elif isinstance(true, list | tuple) and isinstance(stated, list) and len(stated) == len(true):
        for index, (entry, other) in enumerate(zip(stated, true, strict=True)):
            yield from unlike(entry, other, least_s, f"{where}[{index}]")
    elif not _same(stated, true, least_s if where.endswith("_s") else 0.0):
        yield f"{where} is {stated!r}, and priced anew {true!r}"
