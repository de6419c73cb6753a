"""Every key of a study with the value that was searched with, and where it comes from: the study,
its rules, or what the space, the cluster or the stack has of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from phaze.search.task import SearchJob
from phaze.study.schema import StudyFile
from phaze.study.settings import (
    context_degrees,
    expert_degrees,
    recompute_of,
    space_name,
    usual,
)
from phaze.units import show

STUDY = "the study"


@dataclass(frozen=True, slots=True)
class ResolvedSetting:
    """A key of the study, its value in words, and where the value comes from."""

    key: str
    value: str
    origin: str

    @property
    def row(self) -> tuple[str, str, str]:
        """The three as texts."""
        return self.key, self.value, self.origin


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ", ".join(_words(part) for part in value)


def _frame(study: StudyFile, job: SearchJob) -> list[ResolvedSetting]:
    """Rules, space, memories, limits, objective and proof."""
    rules, space, goal = f"default of rules {study.rules}", job.space, job.objective
    limits = {"area": "mm2", "power": "W", "usd": "USD"}
    rows = [
        ("rules", study.rules, STUDY if "rules" in study.model_fields_set else "default"),
        ("space", space_name(study), STUDY if study.space else rules),
        (
            "hbm",
            ", ".join(show(size, "B") for size in job.hbm_bytes),
            STUDY if study.hbm else rules if space.memories is None else "the space",
        ),
    ]
    for key, unit in limits.items():
        most = space.limits.get(key)
        stated = getattr(study.budget, key) is not None
        limit = "none" if most is None else f"{most:,.4g} {unit}"
        rows.append((f"budget.{key}", limit, STUDY if stated else "the space"))
    table = study.objective.model_fields_set
    baseline = "the space" if space.usual_baseline else rules
    rows += [
        ("objective.kind", goal.kind, STUDY if "kind" in table else "default"),
        ("objective.mean", goal.mean, STUDY if "mean" in table else "default"),
        ("objective.baseline", goal.baseline, STUDY if study.objective.baseline else baseline),
        ("search.gap", f"{100 * job.gap:g} %", STUDY if study.search.gap is not None else rules),
        (
            "search.round_size",
            str(job.round_size),
            STUDY if "round_size" in study.search.model_fields_set else "default",
        ),
    ]
    return [ResolvedSetting(*row) for row in rows]


def _training(study: StudyFile, job: SearchJob) -> list[ResolvedSetting]:
    """The job that all models have in common."""
    table, training = study.training, job.models[0].training
    machine, rules = training.machine, f"default of rules {study.rules}"
    stack, cluster = machine.stack, machine.cluster
    own_stack = f"the cluster {cluster.name}" if usual(study, "training.stack") is None else rules
    stated = table.model_fields_set
    changed = " with changes of the study" if study.stack.model_fields_set else ""
    linked = " with changes of the study" if study.cluster.model_fields_set else ""
    chunks = "all that divide the blocks" if training.chunks is None else _words(training.chunks)
    family = f"the stack {stack.name}"
    cases: list[tuple[str, Any, str]] = [
        (
            "devices",
            f"{training.devices:,}",
            rules if table.cluster is None else f"the cluster {cluster.name}",
        ),
        ("cluster", cluster.name + linked, "the space" if job.space.usual_cluster else rules),
        ("stack", stack.name + changed, own_stack),
        ("precision", training.precision, family),
        ("optimizer", training.optimizer, family),
        ("zero", _words(training.zeros), rules),
        ("chunks", chunks, family if stack.pipeline != "1f1b" else "default"),
        ("family", _words(stack.families), family),
        ("microbatches", _words(sorted(set(table.microbatches))), "default"),
        ("recompute", _words(recompute_of(study)), rules),
        (
            "attention",
            _words(sorted({graph.model.attention for graph in job.models[0].graphs})),
            family,
        ),
        ("sequence_parallel", _words(table.sequence_parallel), "default"),
        ("context", _words(context_degrees(study)), "default"),
        ("expert", _words(expert_degrees(study)), "default"),
        ("headroom", f"{100 * training.headroom:g} %", rules),
    ]
    rows = [
        ResolvedSetting(
            f"training.{key}",
            str(value),
            STUDY if getattr(table, key) is not None and key in stated else origin,
        )
        for key, value, origin in cases
    ]
    cost = study.cost
    rows.append(ResolvedSetting("cost.basis", machine.basis, STUDY if cost.basis else rules))
    residency = STUDY if "residency" in cost.model_fields_set else "default"
    return [*rows, ResolvedSetting("cost.residency", _words(cost.residency), residency)]


def _models(study: StudyFile, job: SearchJob) -> list[ResolvedSetting]:
    """What differs between models."""
    rows = []
    batch = study.training.batch is not None
    for index, (table, task) in enumerate(zip(study.tables(), job.models, strict=True)):
        where, graphs = f"models[{index}]", task.graphs
        ranks = sorted({graph.width for graph in graphs})
        stated = table.sequence is not None or study.training.sequence is not None
        length = STUDY if stated else "the model"
        rows += [
            ResolvedSetting(f"{where}.name", task.name, STUDY),
            ResolvedSetting(f"{where}.sequence", _words(graphs[0].model.sequence), length),
            ResolvedSetting(
                f"{where}.widths", _words(ranks), STUDY if table.widths else "the model"
            ),
            ResolvedSetting(
                f"{where}: training.batch",
                f"{task.training.batch:,} sequences",
                STUDY if batch else f"default of rules {study.rules}",
            ),
        ]
        if len(job.models) > 1:
            weight = STUDY if "weight" in table.model_fields_set else "default"
            rows.append(ResolvedSetting(f"{where}.weight", _words(table.weight), weight))
    return rows


def resolved(study: StudyFile, job: SearchJob) -> list[ResolvedSetting]:
    """Every key of a study that has a value, with that value and its origin."""
    return [*_frame(study, job), *_models(study, job), *_training(study, job)]
