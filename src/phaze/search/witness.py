"""``certificate.json`` (``phaze.certificate/1``): what others need to prove a search's answer with
code of their own.

    problem, graphs, cost_model   SHA-256 of the two files, and of the tables of the cost model
    best, gap, bound              the score, the share by which nothing is better, best (1 - gap)
    answer                        chip by axis values, memory; of each model graph, recompute,
                                  replicas, stages, and the schedule of every pass of that graph: a
                                  row [start, tensor core, vector core] for each operator, both null
                                  where it is spread (rules icml24), or its start (rule links)
    fusion                        by model, graph, layer and pass: the traced operators of each
                                  fused one, in order
    multipliers                   by model and graph rows [layer, pass, [chains with weights, shares
                                  of either kind]]

:mod:`phaze.check` reads it, and nothing of a search or of its journal. Where it does not cover the
rules yet, ``answer`` is null.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from phaze.cost.vector import BURST_BYTES, PASSES, ROW_KINDS
from phaze.documents import digest
from phaze.evaluate.lowered_layer import LoweredLayer
from phaze.evaluate.lowered_pass import LoweredPass
from phaze.graph.opset import KINDS
from phaze.schedule.problem import Schedule
from phaze.search.answer import BestDesign
from phaze.search.certificate import Certificate
from phaze.search.chips import SpaceChips
from phaze.search.objective import Scale
from phaze.search.question_files import Papers
from phaze.search.rank_graph import RankGraph
from phaze.search.result import AnswerParts
from phaze.search.state import SearchState
from phaze.search.task import Configuration, ModelTask

CERTIFICATE, SCHEMA = "certificate.json", "phaze.certificate/1"


def cost_model() -> str:
    """The digest of the tables of the cost model."""
    lanes = {
        name: kind.operations for name, kind in KINDS.items() if kind.core in ("vector", "both")
    }
    summed = sorted(name for name, kind in KINDS.items() if kind.rule == "reduce")
    sent = {
        name: 2.0 if name == "all_reduce" else 1.0
        for name, kind in KINDS.items()
        if kind.rule == "collective"
    }
    return digest(
        [lanes, sorted(PASSES), summed, sorted(ROW_KINDS), sent, BURST_BYTES, "phaze.cost/1"]
    )


def fusion_of(tasks: Sequence[ModelTask]) -> list[list[list[list[list[list[int]]]]]]:
    """Which traced operators are one, by model, graph, layer and pass: forward, backward, and where
    plans may recompute more than whole passes what selective, a trimmed full and every other mode
    run again."""
    return [
        [
            [
                [[list(own) for own in one.members] for one in _listed(layer)]
                for layer in graph.layers
            ]
            for graph in task.graphs
        ]
        for task in tasks
    ]


def _listed(layer: LoweredLayer) -> tuple[LoweredPass, ...]:
    return (layer.forward, layer.backward) if layer.rule.paired else layer.passes


def _rows(schedule: Schedule) -> list[list[Any]]:
    return [[slot.start_s, slot.tensor_core, slot.vector_core] for slot in schedule.slots]


def schedules_of(graph: RankGraph, solved: Sequence[Schedule]) -> list[list[list[Any]]] | None:
    """The rows of both passes of every layer, from the schedules in the order in which layers and
    passes were solved; None where some are missing."""
    wanted, left = [], iter(solved)
    for layer in graph.layers:
        own = [
            _rows(found) if one.works and (found := next(left, None)) is not None else []
            for one in layer.passes
        ]
        if any(one.works and not rows for one, rows in zip(layer.passes, own, strict=True)):
            return None
        wanted.append(own[:2])
    return wanted


def starts_of(graph: RankGraph, solved: Sequence[Schedule]) -> list[list[list[float]]] | None:
    """When every unit of every pass of every layer starts, from the schedules in the order in which
    they were solved; None where some are missing."""
    wanted, left = [], iter(solved)
    for layer in graph.layers:
        own = [next(left, None) if one.works else () for one in layer.passes]
        if None in own:
            return None
        wanted.append(
            [
                [slot.start_s for slot in one.slots] if isinstance(one, Schedule) else []
                for one in own
            ]
        )
    return wanted


def chip_of(opened: SpaceChips, number: int) -> dict[str, Any] | None:
    """A chip by the values of its axes; None where it is no combination of axes."""
    if not isinstance(opened, SpaceChips):
        return None
    return {
        name: values[0].item() for name, values in opened.taken(np.array([number])).fields().items()
    }


def needs_schedules(task: ModelTask) -> bool:
    """Whether the checker needs schedules of an answer: where no formula gives what a pass
    takes."""
    rule = task.graphs[0].layers[0].rule
    return rule.paired or not (rule.one_queue or rule.named_only or rule.one_core)


def model_witness(
    task: ModelTask, way: Configuration, solved: Sequence[Schedule], model: Mapping[str, Any]
) -> dict[str, Any] | None:
    """How the answer runs a model: under rules with a formula the plan, else its schedules too."""
    plan, rule = model["plan"], task.graphs[way.graph].layers[0].rule
    stages = [[stage["layers"], stage["recompute"]] for stage in plan["stages"]]
    found = {"graph": way.graph, "recompute": way.recompute, "data": plan["data"], "stages": stages}
    if rule.paired:
        rows = schedules_of(task.graphs[way.graph], solved)
        return None if rows is None else {**found, "schedules": rows}
    chunks = plan.get("chunks", 1)
    family = plan.get("family", "1f1b" if chunks == 1 else "interleaved")
    if task.training.shards != (0,):
        found["shard"] = way.shard
    found |= {"zero": model["zero"], "order": plan["order"], "family": family, "chunks": chunks}
    if rule.one_queue or rule.named_only:
        return found
    starts = None if rule.one_core else starts_of(task.graphs[way.graph], solved)
    return None if starts is None else {**found, "schedules": starts}


def _answer(state: SearchState, best: BestDesign, parts: AnswerParts) -> dict[str, Any] | None:
    """The witness of the answer, or None where the checker has no rules for it yet."""
    chip, rows = (
        chip_of(state.chips, best.chip),
        zip(
            parts.tasks,
            parts.configurations,
            parts.schedules,
            parts.document["models"],
            strict=True,
        ),
    )
    models = [model_witness(*row) for row in rows]
    if chip is None or None in models:
        return None
    return {"chip": chip, "hbm_bytes": state.job.hbm_bytes[best.hbm], "models": models}


def proved_score(scale: Scale, score: float, seconds: Sequence[float]) -> float:
    """The score that is proved: where models count relative to a baseline, without it, for it is
    the same for all."""
    if len(seconds) == 1 or scale.objective.mean != "geometric":
        return score
    if scale.objective.needs_energy:
        return score * float(
            np.exp((np.array(scale.weights) * np.log(np.array(scale.baseline))).sum())
        )
    return seconds_score(scale, seconds)


def seconds_score(scale: Scale, seconds: Sequence[float]) -> float:
    """The mean of batch times that is proved: relative to nothing where models count relative to a
    baseline."""
    if len(seconds) == 1 or scale.objective.mean != "geometric":
        return float(scale.score(np.array(seconds)))
    return float(np.exp((np.array(scale.weights) * np.log(np.array(seconds))).sum()))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def heading(papers: Papers) -> dict[str, str]:
    """What every certificate begins with: of which question and which cost model it is."""
    return {
        "schema": SCHEMA,
        "problem": _digest(papers.problem),
        "graphs": _digest(papers.graphs),
        "cost_model": cost_model(),
    }


def tables_of(tasks: Sequence[ModelTask], witnessed: bool) -> dict[str, Any]:
    """What is fused, and the multipliers of passes, where the answer has a witness."""
    empty: list[list[list[Any]]] = [[[] for _ in task.graphs] for task in tasks]
    return {
        "fusion": fusion_of(tasks) if witnessed else [],
        "multipliers": empty if witnessed else [],
    }


def proof_of(
    state: SearchState,
    best: BestDesign,
    parts: AnswerParts,
    certificate: Certificate,
    papers: Papers,
) -> dict[str, Any]:
    """The document; the gap is the one that was asked for, or what a search that was stopped has
    shown."""
    seconds = [float(model["batch_s"]) for model in parts.document["models"]]
    score = proved_score(state.scale, float(parts.document["objective"]["score"]), seconds)
    answer = _answer(state, best, parts)
    gap = max(certificate.gap, certificate.asked_gap)
    return {
        **heading(papers),
        "best": score,
        "bound": score * (1 - gap),
        "gap": gap,
        "answer": answer,
        **tables_of(state.job.models, answer is not None),
    }
