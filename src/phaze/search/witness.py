"""``certificate.json`` (``phaze.certificate/1``): what others need to prove a search's answer with
code of their own.

    problem, graphs, cost_model   SHA-256 of the two files, and of the tables of the cost model
    best, gap, bound              the score, the share by which nothing is better, best (1 - gap)
    answer                        chip by axis values, memory; of each model graph, recompute,
                                  replicas, stages, unless stages, pipeline and ZeRO are the paper's
                                  zero, order, family, chunks, and the schedule of every pass of
                                  that graph: a row [start, tensor core, vector core] for each
                                  operator, both null where it is spread (rules icml24 and overlap),
                                  or its start (rule links)
    bests                         of least regret: of each model alone, by what counts, its own
                                  best as such an answer
    fusion                        by model, graph, layer and pass: the traced operators of each
                                  fused one, in order
    multipliers                   by model and graph rows [layer, pass, [chains with weights, shares
                                  of either kind]]

:mod:`phaze.check` reads it, and nothing of a search or of its journal. Where the time was up and
schedules are not at hand, ``answer`` is null.
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
from phaze.schedule.rules import Rule
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
    """Which traced operators are one, by model, graph, layer and pass: forward, backward, where
    plans may recompute more than whole passes what selective, a trimmed full and every other mode
    run again, and the halves of a backward pass that runs apart."""
    return [
        [
            [
                [
                    [list(members) for members in layer_pass.members]
                    for layer_pass in _certified_passes(task, layer)
                ]
                for layer in graph.layers
            ]
            for graph in task.graphs
        ]
        for task in tasks
    ]


def _certified_passes(task: ModelTask, layer: LoweredLayer) -> tuple[LoweredPass, ...]:
    """The passes that a plan may run: where edges arrive inside stages these recompute whole passes
    or nothing."""
    if task.training.machine.stack.stages == "layers":
        return layer.passes
    return (layer.forward, layer.backward, *(layer.halves or ()))


def _rows(schedule: Schedule | None, rule: Rule) -> list[Any]:
    """When every unit starts, and on which cores where a rule places it on some."""
    slots = () if schedule is None else schedule.slots
    if rule.one_core:
        return [[slot.start_s, slot.tensor_core, slot.vector_core] for slot in slots]
    return [slot.start_s for slot in slots]


def schedules_of(
    task: ModelTask, graph: RankGraph, solved: Sequence[Schedule]
) -> list[list[list[Any]]] | None:
    """The rows of every certified pass of every layer, from the schedules in the order in which
    layers and passes were solved; None where some are missing."""
    rows, left = list[list[list[Any]]](), iter(solved)
    for layer in graph.layers:
        certified = {id(layer_pass) for layer_pass in _certified_passes(task, layer)}
        rows.append([])
        for layer_pass in layer.passes:
            schedule = next(left, None) if layer_pass.works else None
            if layer_pass.works and schedule is None:
                return None
            if id(layer_pass) in certified:
                rows[-1].append(_rows(schedule, layer_pass.rule))
    return rows


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
    return not (rule.one_queue or rule.named_only)


def _is_published(task: ModelTask) -> bool:
    """Whether order, family and ZeRO of every plan are those of the paper."""
    stack = task.training.machine.stack
    return stack.stages == stack.pipeline == "icml24" and set(task.training.zeros) == {0}


def model_witness(
    task: ModelTask, way: Configuration, solved: Sequence[Schedule], model: Mapping[str, Any]
) -> dict[str, Any] | None:
    """How the answer runs a model: under rules with a formula the plan, else its schedules too."""
    plan = model["plan"]
    stages = [[stage["layers"], stage["recompute"]] for stage in plan["stages"]]
    witness = {
        "graph": way.graph,
        "recompute": way.recompute,
        "data": plan["data"],
        "stages": stages,
    }
    if task.training.shards != (0,):
        witness["shard"] = way.shard
    if not _is_published(task):
        chunks = plan.get("chunks", 1)
        usual = "1f1b" if chunks == 1 else "interleaved"
        if task.training.machine.stack.pipeline == "icml24":
            usual = "icml24"
        witness |= {
            "zero": model["zero"],
            "order": plan.get("order", ""),
            "family": plan.get("family", usual),
            "chunks": chunks,
        }
    if not needs_schedules(task):
        return witness
    schedules = schedules_of(task, task.graphs[way.graph], solved)
    return None if schedules is None else {**witness, "schedules": schedules}


def witness_of(state: SearchState, best: BestDesign, parts: AnswerParts) -> dict[str, Any] | None:
    """The witness of an answer, or None where its schedules are not at hand."""
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
    if scale.objective.needs_energy or len(seconds) == 1 or scale.objective.mean != "geometric":
        return score * baseline_score(scale)
    return seconds_score(scale, seconds)


def baseline_score(scale: Scale) -> float:
    """What a score is of one that is relative to nothing: the mean of the baseline, where models
    count relative to one."""
    if len(scale.weights) == 1 or scale.objective.mean != "geometric":
        return 1.0
    return float(np.exp((np.array(scale.weights) * np.log(np.array(scale.baseline))).sum()))


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


def bests_of(scales: Sequence[Scale]) -> dict[str, Any]:
    """By what counts the answers that show each model's own best, where models count relative to
    these."""
    rows = [list(scale.bests) for scale in scales if scale.bests]
    return {"bests": rows} if rows else {}


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
    answer = witness_of(state, best, parts)
    gap = max(certificate.gap, certificate.asked_gap)
    return {
        **heading(papers),
        "best": score,
        "bound": score * (1 - gap),
        "gap": gap,
        "answer": answer,
        **bests_of([state.scale]),
        **tables_of(state.job.models, answer is not None),
    }
