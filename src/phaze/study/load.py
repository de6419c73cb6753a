"""From a study's file to a search's job: presets by name, graphs loaded and fused, ``--set a.b=c`` put in."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phaze import documents
from phaze.documents import Reader
from phaze.errors import InputError
from phaze.evaluate.flow import Prepared, Training, block_of, prepare_fused
from phaze.evaluate.request import sequences_of
from phaze.evaluate.training_run import Budget
from phaze.files import read_text
from phaze.graph.fuse import fuse
from phaze.graph.ir import Model
from phaze.graph.zoo import entry_of, load_model
from phaze.hardware.cluster import Cluster, grown
from phaze.hardware.library import load_chip, load_cluster, require_links
from phaze.hardware.ownership import load_run_terms
from phaze.placement.problem import Recompute
from phaze.search.objective import Objective
from phaze.search.papers import STUDY, Papers, Recorder, reader_of
from phaze.search.space import Space, load_space
from phaze.search.task import Job, ModelTask, ways_of
from phaze.study.cluster_load import cluster_task, cluster_training, graph_files, stated_batch
from phaze.study.network import changed_cluster, states_links
from phaze.study.problem import graphs_text, problem_text, stated
from phaze.study.schema import ModelTable, StudyFile, TrainingTable


def default_study(model: str) -> dict[str, Any]:
    """The study of one model with everything at its default."""
    return {"schema": "phaze.study/1", "name": model, "models": [model]}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def with_settings(raw: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """``raw`` with each ``a.b=c`` put in; c is a TOML value, or else a text."""
    found: dict[str, Any] = dict(raw)
    for setting in settings:
        path, equals, text = setting.partition("=")
        steps = [step.strip() for step in path.split(".")]
        if not equals or not all(steps):
            raise InputError(f"--set {setting}", "this is not of the form a.b=c", "e.g. training.batch=2048")
        inner = found
        for step in steps[:-1]:
            below = inner.get(step, {})
            if not isinstance(below, dict):
                raise InputError(f"--set {setting}", f"'{step}' is no table", "name a key of a table")
            inner[step] = dict(below)
            inner = inner[step]
        inner[steps[-1]] = _value(text.strip())
    return found


def read_study(path: str) -> tuple[dict[str, Any], str]:
    """The plain values of a study's file, and the name to call it by in messages."""
    text, where = read_text(path)
    return documents.parse(text, documents.notation_of(path, text), where), where


def study_of(raw: Mapping[str, Any], where: str) -> StudyFile:
    """The study that plain values state, checked."""
    return documents.check(StudyFile, raw, where)


def space_of(study: StudyFile, reader: Reader = read_text) -> Space:
    """The space of a study, within its budget."""
    space, budget = load_space(study.space, reader), study.budget
    changed: dict[str, Any] = {}
    if budget.area is not None:
        changed |= {"area_of": None, "most_area": budget.area}
    if budget.power is not None:
        changed["most_power"] = budget.power
    if budget.usd is not None:
        changed["most_usd"] = budget.usd
    return space.keeping(**changed)


def _flat(study: StudyFile, space: Space, reader: Reader) -> Cluster:
    """The flat network of a job under rules icml24, as large as the job; where links are an axis, a chip's own."""
    cluster = load_cluster(study.training.cluster, reader, space.base)
    if len(cluster.levels) != 1:
        raise InputError(
            "training.cluster",
            f"{cluster.name} has {len(cluster.levels)} levels and rules icml24 know one flat link",
            'give a cluster of one level, such as paper-flat, or rules = "cluster"',
        )
    for name, changes in study.cluster.levels.items():
        if changes.latency is not None:
            where = f"cluster.levels.{name}.latency"
            raise InputError(where, "rules icml24 know no latency", 'leave it out, or say rules = "cluster"')
    cluster = changed_cluster(cluster, study.cluster)
    if not states_links(study.cluster, cluster) and space.axes.links is None:
        require_links(space.base, space.file.base, cluster, "space.base")
    return cluster if study.training.devices is None else grown(cluster, study.training.devices, "training.devices")


def _training(study: StudyFile, cluster: Cluster) -> Training:
    """The job under rules icml24, which know one flat link and 16-bit SGD or Adam."""
    table = study.training
    foreign = {
        "training.stack": table.stack,
        "training.precision": table.precision,
        "training.zero": table.zero or None,
        "training.headroom": table.headroom,
        "training.attention": "best" if table.attention == "best" else None,
        "cost.basis": study.cost.basis,
        "training.sequence_parallel": "best" if table.sequence_parallel == "best" else None,
    }
    for where, value in foreign.items():
        if value is not None:
            raise InputError(
                where, f"rules icml24 do not know {value!r} there", 'leave it out, or say rules = "cluster"'
            )
    devices = cluster.devices if table.devices is None else table.devices
    return Training(
        devices, stated_batch(table.batch), cluster.levels[0].bandwidth_bytes_per_s, table.optimizer or "sgd"
    )


def _named(table: ModelTable, training: TrainingTable) -> list[Model]:
    widths = entry_of(table.name).widths if table.widths is None else tuple(table.widths)
    return [
        load_model(
            table.name,
            width,
            microbatch,
            training.sequence if table.sequence is None else table.sequence,
            attention="fused" if training.attention == "fused" else "eager",
            sequence_parallel=training.sequence_parallel is True,
        )
        for microbatch in sorted(set(training.microbatches))
        for width in sorted(set(widths))
    ]


def _fused(
    table: ModelTable, study: StudyFile, job: Training, where: str, reader: Reader
) -> tuple[list[Model], Training]:
    """The graphs of a model that fit the devices and the batch, fused; and the job with its batch in sequences."""
    if table.graphs is None:
        found = _named(table, study.training)
    else:
        found = graph_files(table, study.training, reader, where)
        found.sort(key=lambda model: (model.microbatch, model.tensor))
    job = replace(job, batch=sequences_of(study.training.batch, found[0].sequence, "training.batch"))
    fitting = [model for model in found if model.tensor <= job.devices and model.microbatch <= job.batch]
    if not fitting:
        raise InputError(where, "no width and microbatch fits the devices and the batch", "give smaller ones")
    return [fuse(model, "full") for model in fitting], job


def _prepared(table: ModelTable, models: Sequence[Model], job: Training, residency: bool) -> tuple[Prepared, ...]:
    found = [prepare_fused(model, job.link_bytes_per_s, residency) for model in models]
    return tuple(block_of(graph) for graph in found) if table.part == "block" else tuple(found)


def _recompute(choices: Sequence[bool | str]) -> tuple[Recompute, ...]:
    named: dict[bool | str, Recompute] = {False: "none", True: "full", "best": "best"}
    wanted = {named[choice] for choice in choices}
    order: tuple[Recompute, ...] = ("none", "full", "best")
    return tuple(choice for choice in order if choice in wanted)


@dataclass(frozen=True, slots=True)
class Question:
    """A study resolved: its job, and all that the job depends on as texts for the folder of a run."""

    study: StudyFile
    job: Job
    problem: Mapping[str, Any]
    graphs: str
    files: Mapping[str, str]

    def fronted(self, asked: Mapping[str, Any]) -> "Question":
        """The question of a front: what it weighs and its limits belong to it."""
        problem = {**self.problem, "front": dict(asked)}
        return replace(self, job=replace(self.job, digest=documents.digest(problem)), problem=problem)

    def papers(self, study_text: str) -> Papers:
        """What the folder of a run keeps of it."""
        return Papers(study_text, problem_text(self.problem), self.graphs, self.files)


def _tasks(
    study: StudyFile, space: Space, choices: tuple[Recompute, ...], reader: Reader
) -> tuple[list[ModelTask], list[Sequence[Model]], Cluster]:
    """The models of a study, the graphs of each, and the cluster that they run on."""
    tasks, models, tables = list[ModelTask](), list[Sequence[Model]](), list(enumerate(study.tables()))
    if study.rules == "cluster":
        job = cluster_training(study, space, reader)
        for at, table in tables:
            task = cluster_task(table, study, job, choices, f"models[{at}]", reader)
            tasks.append(task)
            models.append([task.graph(number).model for number in range(len(task.graphs))])
        return tasks, models, job.machine.cluster
    cluster = _flat(study, space, reader)
    training = _training(study, cluster)
    for at, table in tables:
        fused, own = _fused(table, study, training, f"models[{at}]", reader)
        models.append(fused)
        graphs = _prepared(table, fused, own, study.cost.residency)
        tasks.append(ModelTask(table.name, table.weight, own, graphs, ways_of(graphs, choices)))
    return tasks, models, cluster


def _budget(study: StudyFile, reader: Reader) -> Budget | None:
    table = study.training
    return None if table.tokens is None else Budget(table.tokens, load_run_terms(table.terms or "default", reader))


def question_of(study: StudyFile, limit_s: float | None = None, reader: Reader = read_text) -> Question:
    """A study resolved, every file that it names read once by ``reader``; nothing is searched yet."""
    kept = Recorder(reader)
    space, goal = space_of(study, kept), study.objective
    usual: list[bool | str] = ["best"] if study.rules == "cluster" else [False, True]
    tasks, models, cluster = _tasks(study, space, _recompute(study.training.recompute or usual), kept)
    baseline = load_chip(goal.baseline, kept)
    if space.axes.links is None and not states_links(study.cluster, cluster):
        require_links(baseline, goal.baseline, cluster, "objective.baseline")
    job = Job(
        study.name,
        tuple(tasks),
        space,
        tuple(sorted(set(study.hbm))),
        Objective(goal.kind, goal.mean, baseline.name),
        study.search.gap,
        "",
        study.search.round_size,
        limit_s,
        baseline,
        cluster,
        _budget(study, kept),
    )
    problem, graphs = stated(job, study, models)
    return Question(study, replace(job, digest=documents.digest(problem)), problem, graphs_text(graphs), kept.texts)


def job_of(study: StudyFile, limit_s: float | None = None) -> Job:
    """The job of a study, its graphs loaded; nothing is searched yet."""
    return question_of(study, limit_s).job


def question_in(folder: Path, front: Mapping[str, Any] | None = None) -> Question:
    """The question of a run, or of a front that weighs ``front``, from the files of its folder alone."""
    text, where = read_text(str(folder / STUDY))
    found = question_of(study_of(documents.parse(text, "toml", where), where), reader=reader_of(folder))
    return found if front is None else found.fronted(front)
