"""From a study's file to a search's job: presets by name, graphs loaded and fused, ``--set a.b=c`` put in."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from phaze import documents
from phaze.errors import InputError
from phaze.evaluate.flow import Prepared, Training, block_of, prepare
from phaze.files import read_text
from phaze.graph import store
from phaze.graph.zoo import entry_of, load_model
from phaze.hardware.library import load_cluster
from phaze.placement.problem import Recompute
from phaze.search.objective import Objective
from phaze.search.space import SpaceFile, load_space
from phaze.search.task import Job, ModelTask, ways_of
from phaze.study.cluster_load import cluster_task, cluster_training
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


def space_of(study: StudyFile) -> SpaceFile:
    """The space of a study, within its budget."""
    space, budget = load_space(study.space), study.budget
    changed: dict[str, Any] = {}
    if budget.area is not None:
        changed |= {"area_of": None, "most_area": budget.area}
    if budget.power is not None:
        changed["most_power"] = budget.power
    if budget.usd is not None:
        changed["most_usd"] = budget.usd
    return space.model_copy(update={"keep": space.keep.model_copy(update=changed)})


def _training(study: StudyFile) -> Training:
    """The job under rules icml24, which know one flat link and 16-bit SGD or Adam."""
    table, cluster = study.training, load_cluster(study.training.cluster)
    if len(cluster.levels) != 1:
        raise InputError(
            "training.cluster",
            f"{cluster.name} has {len(cluster.levels)} levels and rules icml24 know one flat link",
            'give a cluster of one level, such as paper-flat, or rules = "cluster"',
        )
    foreign = {
        "training.stack": table.stack,
        "training.precision": table.precision,
        "training.zero": table.zero or None,
        "cost.basis": study.cost.basis,
        "training.sequence_parallel": "best" if table.sequence_parallel == "best" else None,
    }
    for where, value in foreign.items():
        if value is not None:
            raise InputError(
                where, f"rules icml24 do not know {value!r} there", 'leave it out, or say rules = "cluster"'
            )
    devices = cluster.devices if table.devices is None else table.devices
    link = study.cluster.link_bytes_per_s or cluster.levels[0].bandwidth_bytes_per_s
    return Training(devices, table.batch, link, table.optimizer or "sgd")


def _named(table: ModelTable, training: TrainingTable, link: float, residency: bool) -> list[Prepared]:
    widths = entry_of(table.name).widths if table.widths is None else tuple(table.widths)
    return [
        prepare(
            load_model(
                table.name,
                width,
                microbatch,
                training.sequence if table.sequence is None else table.sequence,
                attention=training.attention,
                sequence_parallel=training.sequence_parallel is True,
            ),
            link,
            residency,
        )
        for microbatch in sorted(set(training.microbatches))
        for width in sorted(set(widths))
    ]


def _graphs(table: ModelTable, study: StudyFile, job: Training, where: str) -> tuple[Prepared, ...]:
    link, residency = job.link_bytes_per_s, study.cost.residency
    if table.graphs is None:
        found = _named(table, study.training, link, residency)
    else:
        found = [prepare(store.load(path), link, residency) for path in table.graphs]
        found.sort(key=lambda graph: (graph.microbatch, graph.width))
    if table.part == "block":
        found = [block_of(graph) for graph in found]
    fitting = [graph for graph in found if graph.width <= job.devices and graph.microbatch <= job.batch]
    if not fitting:
        raise InputError(where, "no width and microbatch fits the devices and the batch", "give smaller ones")
    return tuple(fitting)


def _recompute(choices: Sequence[bool | str]) -> tuple[Recompute, ...]:
    named: dict[bool | str, Recompute] = {False: "none", True: "full", "best": "best"}
    wanted = {named[choice] for choice in choices}
    order: tuple[Recompute, ...] = ("none", "full", "best")
    return tuple(choice for choice in order if choice in wanted)


def job_of(study: StudyFile, limit_s: float | None = None) -> Job:
    """The job of a study, its graphs loaded; nothing is searched yet."""
    space, tables = space_of(study), list(enumerate(study.tables()))
    usual: list[bool | str] = ["best"] if study.rules == "cluster" else [False, True]
    choices = _recompute(study.training.recompute or usual)
    tasks: list[ModelTask] = []
    if study.rules == "cluster":
        job = cluster_training(study, space)
        tasks += [cluster_task(table, study, job, choices, f"models[{at}]") for at, table in tables]
    else:
        training = _training(study)
        for at, table in tables:
            graphs = _graphs(table, study, training, f"models[{at}]")
            tasks.append(ModelTask(table.name, table.weight, training, graphs, ways_of(graphs, choices)))
    goal = study.objective
    files = [read_text(path)[0] for table in study.tables() for path in table.graphs or ()]
    said = [value.model_dump(mode="json", by_alias=True) for value in (study, space)]
    return Job(
        study.name,
        tuple(tasks),
        space,
        tuple(sorted(set(study.hbm))),
        Objective(goal.kind, goal.mean, goal.baseline),
        study.search.gap,
        documents.digest([*said, files]),
        study.search.round_size,
        limit_s,
    )
