"""The answer to a placement problem: the fastest plan or the shortage, and its checked document
``phaze.plan/1``."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from phaze.check.printed import plan_faults
from phaze.cost.network_prices import NetworkPrices
from phaze.documents import plain_value
from phaze.errors import PhazeError
from phaze.pipeline.families import FAMILIES, ICML24, SPLIT_FAMILIES
from phaze.pipeline.names import NAMES
from phaze.placement.layers import LayerGraph
from phaze.placement.plan import Plan, Stage
from phaze.placement.problem import PlacementProblem
from phaze.placement.shortage import Shortage, shortage_of
from phaze.placement.solve import fastest_plan

RULE_VALUES = (
    "name", "stage", "end", "unsplit_stages", "last_stage_recomputes", "link_bytes_per_s",
    "reduction_cost", "gather_cost", "sharded_cost", "bucket", "norm", "host_s",
    "piece_start_s", "overlapped_transfers", "exchange_beside", "gradient_wire", "weight_wire", "prefetch",
)  # fmt: skip
PROBLEM_VALUES = (
    "devices", "hbm_bytes", "microbatches", "recompute", "zero", "sent_bytes", "hbm_bytes_per_s",
    "optimizer_traffic_bytes", "zeroed_bytes", "reserve_bytes", "scatter_gather", "headroom",
)  # fmt: skip


def place(problem: PlacementProblem, prices: NetworkPrices | None = None) -> Plan | Shortage:
    """The fastest plan, or why there is none; plain rings serve where no prices are given."""
    return fastest_plan(problem, prices) or shortage_of(problem, prices)


def _width(graph: LayerGraph) -> dict[str, Any]:
    distinct = {place: asdict(graph.layers[place]) for place in set(graph.alike)}
    rows = [
        {**distinct[place], "id": layer.id}
        for layer, place in zip(graph.layers, graph.alike, strict=True)
    ]
    return {
        "layers": rows,
        "edges": [[edge.tail, edge.head, edge.size_bytes] for edge in graph.edges],
    }


def question_document(
    problem: PlacementProblem, prices: NetworkPrices | None = None
) -> Mapping[str, Any]:
    """The problem as a document of plain values: what an independent checker reads beside a
    plan."""
    rules = problem.rules
    levels = [plain_value(level) for level in problem.cluster.levels]
    return {
        "rules": {
            **{name: getattr(rules, name) for name in RULE_VALUES},
            "modes": list(rules.modes),
            "orders": list(rules.orders),
            "families": [
                {"name": family.name, "chunks": family.chunks, "most_stages": family.most_stages}
                for family in rules.families
            ],
        },
        **{name: getattr(problem, name) for name in PROBLEM_VALUES},
        "state": asdict(problem.state),
        "sharing": asdict(problem.sharing),
        "cluster": {"levels": levels, "library": problem.cluster.library},
        "prices": NetworkPrices(problem.cluster).basis if prices is None else prices.basis,
        "widths": {str(graph.width): _width(graph) for graph in problem.graphs},
    }


def require_true(
    problem: PlacementProblem, document: Mapping[str, Any], prices: NetworkPrices | None = None
) -> None:
    """Let the checker look at a plan."""
    wrong = plan_faults(question_document(problem, prices), document)
    if wrong:
        raise PhazeError(f"the plan does not pass its check: {wrong[0]}")


def checked_document(
    problem: PlacementProblem, answer: Plan | Shortage, prices: NetworkPrices | None = None
) -> Mapping[str, Any]:
    """The document of what was found; a plan that the checker objects to is never handed out."""
    document = document_of(answer)
    if isinstance(answer, Plan):
        require_true(problem, document, prices)
    return document


# Families that the chunks and the rules of a document tell apart.
UNNAMED = (ICML24.name, *(name for name in NAMES if FAMILIES[name].implied))


def _stage(stage: Stage, split: bool = False) -> dict[str, Any]:
    apart = {
        "forward_transfer_s": stage.forward_transfer_s,
        "backward_transfer_s": stage.backward_transfer_s,
    }
    return {
        "layers": list(stage.layers),
        "devices": stage.devices,
        "recompute": stage.recompute,
        "time_s": stage.time_s,
        "memory_bytes": stage.memory.total_bytes,
        "forward_s": stage.forward_s,
        "backward_s": stage.backward_s,
        **({"weight_s": stage.weight_s} if split else {}),
        **(apart if any(apart.values()) else {}),
        "memory": asdict(stage.memory),
    }


def _shortage(shortage: Shortage) -> dict[str, Any]:
    stage, plan = shortage.tightest, shortage.plan
    closest = None
    if plan is not None and stage is not None:
        closest = {
            "pipeline": len(plan.stages),
            "tensor": plan.tensor,
            "stage": plan.stages.index(stage),
        }
    return {
        "short_of": "devices" if stage is None else "memory",
        "sentence": shortage.sentence,
        "available_bytes": shortage.available_bytes,
        "available_devices": shortage.available_devices,
        "needed_bytes": None if stage is None else stage.memory.total_bytes,
        "terms": None if stage is None else asdict(stage.memory),
        "closest": closest,
        "stage": None if stage is None else _stage(stage),
        "levers": asdict(shortage.levers),
    }


def document_of(answer: Plan | Shortage) -> Mapping[str, Any]:
    """The document ``phaze.plan/1``."""
    if isinstance(answer, Shortage):
        return {
            "schema": "phaze.plan/1",
            "rules": answer.rules,
            "feasible": False,
            "shortage": _shortage(answer),
        }
    return {
        "schema": "phaze.plan/1",
        "rules": answer.rules,
        "feasible": True,
        "batch_s": answer.batch_s,
        "lower_bound_s": answer.lower_bound_s,
        "simulated_s": answer.simulated_s,
        "pipeline": len(answer.stages),
        "data": answer.data,
        "tensor": answer.tensor // answer.sharing.context,
        **{name: degree for name, degree in asdict(answer.sharing).items() if degree > 1},
        **({"order": answer.order} if answer.order else {}),
        **({"chunks": answer.chunks} if answer.chunks > 1 else {}),
        **({"family": answer.family} if answer.family not in UNNAMED else {}),
        "stages": [_stage(stage, answer.family in SPLIT_FAMILIES) for stage in answer.stages],
        "breakdown": asdict(answer.breakdown),
    }
