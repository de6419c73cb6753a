"""The plan of a certificate: read strictly, held against every rule, and priced."""

from collections.abc import Mapping, Sequence
from typing import Any

from .families import PUBLISHED, Family
from .job import Job, Shape
from .plan_graph import LayerSeconds, PlanGraph
from .plans import allowed_families
from .pricing import Plan, broken_rules, in_even_chunks, price_of
from .reading import listed, require, whole

PLAN = ("graph", "recompute", "data", "stages")
"""The keys of every plan."""
DEGREES = ("zero", "order", "family", "chunks")
"""Those that the rules of the paper leave no choice of."""
ORDERS = ("pipeline", "data")


def plan_keys(job: Job, zeros: Sequence[int]) -> list[str]:
    """The keys of a plan whose stage of ZeRO may be one of these."""
    published = job.stack.arriving and job.stack.families == (PUBLISHED,)
    keys = [*PLAN]
    if not published or set(zeros) != {0}:
        keys += DEGREES
    if job.stack.schedules:
        keys.append("schedules")
    if job.shards:
        keys.append("shard")
    return keys


def _family(graph: PlanGraph, job: Job, table: Mapping[str, Any]) -> Family:
    families = allowed_families(graph, job)
    if "family" not in table:
        return families[0]
    chunks = whole(table["chunks"], "answer.chunks", 1)
    for family in families:
        if (family.name, family.chunks) == (table["family"], chunks):
            return family
    require(False, "answer.family: the stack has no such one with so many chunks")
    raise AssertionError


def _plan(graph: PlanGraph, job: Job, table: Mapping[str, Any]) -> Plan:
    last = len(graph.calls) - 1
    stages = []
    for row in listed(table["stages"], "answer.stages"):
        calls, mode = listed(row, "answer.stages", 2)
        numbers = [whole(call, "answer.stages", 0, last) for call in listed(calls, "stages")]
        stages.append((tuple(numbers), str(mode)))
    data, order = whole(table["data"], "answer.data", 1), table.get("order", "")
    orders = ("",) if job.stack.arriving else ORDERS
    require(order in orders, "answer.order: its stages and replicas have no such one")
    shape = Shape(
        tensor=graph.tensor,
        stages=len(stages),
        data=data,
        order=order,
        family=_family(graph, job, table),
        zero=whole(table.get("zero", 0), "answer.zero", 0, 3),
        context=graph.context,
        group=graph.group,
        shard=whole(table.get("shard", 0), "answer.shard"),
    )
    return Plan(shape, tuple(stages), -(-job.microbatches(graph.microbatch) // data))


def checked_plan(
    graph: PlanGraph, job: Job, table: Mapping[str, Any], way: tuple[str, Sequence[int]]
) -> Plan:
    """The plan of a certificate, every rule checked that needs no times; ``way``: its recompute and
    stages of ZeRO."""
    plan, (recompute, zeros) = _plan(graph, job, table), way
    require(plan.shape.zero in zeros, "answer.zero: the problem has no such configuration")
    for sentence in broken_rules(
        graph, job, plan, graph.names if recompute == "best" else (recompute,)
    ):
        require(False, f"answer: {sentence}")
    require(in_even_chunks(graph, plan), "answer.chunks: a stage has uneven ones")
    return plan


def plan_batch(
    graph: PlanGraph, job: Job, plan: Plan, hbm: tuple[float, float], times: LayerSeconds
) -> float:
    """The batch time of such a plan on one chip, into which it must fit; ``hbm``: bytes, and bytes
    a second that vector work reaches."""
    price = price_of(graph, job, plan, times, hbm[1])
    used = plan.shape.data * sum(stage.devices for stage in price.stages)
    require(used <= job.devices, f"answer: it takes {used} of {job.devices} devices")
    for number, stage in enumerate(price.stages, 1):
        fits = stage.need - stage.memory["reserve"] <= job.room(hbm[0])
        require(fits, f"answer: stage {number} does not fit into {hbm[0] / 2**30:g} GiB")
    return price.batch
