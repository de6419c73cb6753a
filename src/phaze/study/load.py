"""From a study's file to a search's job: presets by name, graphs loaded and fused, ``--set a.b=c``
put in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phaze import documents
from phaze.documents import Reader
from phaze.errors import InputError
from phaze.evaluate.training_run import Budget
from phaze.files import read_text
from phaze.hardware.library import require_links
from phaze.hardware.ownership import load_terms
from phaze.search.objective import Objective
from phaze.search.problem_file import graphs_text, problem_text
from phaze.search.question_files import STUDY, Papers, RecordingReader, reader_of
from phaze.search.space import Space
from phaze.search.spaces import load_space
from phaze.search.task import SearchJob
from phaze.study.network import states_links
from phaze.study.places import with_texts
from phaze.study.problem import stated
from phaze.study.schema import StudyFile
from phaze.study.settings import (
    baseline_name,
    constants_on,
    gap_of,
    memories_of,
    model_task,
    space_name,
    training_of,
)


def study_of(raw: Mapping[str, Any], where: str) -> StudyFile:
    """The study that plain values state, checked."""
    return documents.check(StudyFile, raw, where)


def space_of(study: StudyFile, reader: Reader = read_text) -> Space:
    """The space of a study, within its budget."""
    space, budget = load_space(space_name(study), reader), study.budget
    stated = {"area": budget.area, "power": budget.power, "usd": budget.usd}
    return space.within({name: most for name, most in stated.items() if most is not None})


@dataclass(frozen=True, slots=True)
class Question:
    """A study resolved: its job, and all that the job depends on as texts for the folder of a
    run."""

    study: StudyFile
    job: SearchJob
    problem: Mapping[str, Any]
    graphs: str
    files: Mapping[str, str]

    def fronted(self, wanted: Mapping[str, Any]) -> "Question":
        """The question of a front: what it weighs and its limits belong to it."""
        problem = {**self.problem, "front": dict(wanted)}
        return replace(
            self, job=replace(self.job, digest=documents.digest(problem)), problem=problem
        )

    def papers(self, study_text: str) -> Papers:
        """What the folder of a run keeps of it."""
        return Papers(study_text, problem_text(self.problem), self.graphs, self.files)


def _budget(study: StudyFile, reader: Reader) -> Budget | None:
    table = study.training
    return (
        None
        if table.tokens is None
        else Budget(table.tokens, load_terms(table.terms or "default", reader))
    )


def question_of(
    study: StudyFile, limit_s: float | None = None, reader: Reader = read_text
) -> Question:
    """A study resolved, every file that it names read once by ``reader``; nothing is searched
    yet."""
    recorder = RecordingReader(reader)
    recorded = with_texts(study.files, recorder)
    space, goal = space_of(study, recorded), study.objective
    training = training_of(study, space, recorded)
    tables = list(enumerate(study.tables()))
    for index, table in tables:
        if table.model is not None:
            raise InputError(
                f"models[{index}].model",
                f"'{table.model}' is not traced yet",
                "run phaze search STUDY",
            )
    constants = constants_on(training, space.base)
    tasks = [
        model_task(table, study, training, constants, f"models[{index}]", recorded)
        for index, table in tables
    ]
    models, cluster = (
        [[graph.model for graph in task.graphs] for task in tasks],
        training.machine.cluster,
    )
    named = baseline_name(study, space)
    baseline = space.chip_named(named, recorded)
    if not space.own_links and not states_links(study.cluster, cluster):
        require_links(baseline, named, cluster, "objective.baseline")
    job = SearchJob(
        study.name,
        tuple(tasks),
        space,
        memories_of(study, space),
        Objective(goal.kind, goal.mean, baseline.name),
        gap_of(study),
        "",
        study.search.round_size,
        limit_s,
        baseline,
        cluster,
        _budget(study, recorded),
        study.rules,
    )
    problem, graphs = stated(job, study, models)
    return Question(
        study,
        replace(job, digest=documents.digest(problem)),
        problem,
        graphs_text(graphs),
        recorder.texts,
    )


def job_of(study: StudyFile, limit_s: float | None = None, reader: Reader = read_text) -> SearchJob:
    """The job of a study, its graphs loaded; nothing is searched yet."""
    return question_of(study, limit_s, reader).job


def question_in(folder: Path, front: Mapping[str, Any] | None = None) -> Question:
    """The question of a run, or of a front that weighs ``front``, from the files of its folder
    alone."""
    text, where = read_text(str(folder / STUDY))
    question = question_of(
        study_of(documents.parse(text, "toml", where), where), reader=reader_of(folder)
    )
    return question if front is None else question.fronted(front)
