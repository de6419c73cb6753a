"""``phaze schedule``: the best order of operators on one chip, for any number of files."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.schedule.problem import Problem, Schedule
    from phaze.schedule.solve import Known, Scheduler

Files = Annotated[list[str], typer.Argument(help="Operators (phaze.operators/1); - reads one from standard input.")]
By = Annotated[str, typer.Option("--scheduler", help="exact, list, cpsat, or ilp (the published program).")]
Perfetto = Annotated[str | None, typer.Option(help="Write a trace for ui.perfetto.dev to this file.")]


@answering
def schedule(files: Files, scheduler: By = "exact", perfetto: Perfetto = None) -> Answer:
    """Schedule operators on the cores of a chip: the least makespan, with a proof.

    One line for each file with --json, in order. Examples: phaze schedule layer.json · phaze schedule *.json --json ·
    phaze schedule layer.json --perfetto trace.json
    """
    from phaze.errors import PhazeError, one_line

    by = _scheduler(scheduler)
    documents: list[Any] = []
    answers: list[tuple[str, Problem, Schedule]] = []
    known: Known = {}
    for path in files:
        try:
            problem, found = _answer(path, by, known)
        except PhazeError as fault:
            sentence = one_line(str(fault))
            sys.stderr.write(f"phaze: {sentence}\n")
            documents.append({"error": sentence})
            continue
        documents.append(found.document())
        if found.effort.method == "large":
            count = len(problem.operators)
            sys.stderr.write(f"phaze: {path}: {count:,} operators are many: a list schedule and a bound, no proof.\n")
        answers.append((path, problem, found))
    if perfetto is not None:
        _write_trace(perfetto, answers)

    def show(console: "Console") -> None:
        from phaze.report.gantt import show_schedule

        for index, (path, problem, found) in enumerate(answers):
            if index:
                console.print()
            show_schedule(console, path, problem, found)

    return Answer(tuple(documents), show, 2 if len(answers) < len(files) else 0)


def _scheduler(name: str) -> "Scheduler":
    from typing import get_args

    from phaze.errors import unknown_name
    from phaze.schedule.solve import Scheduler

    known: tuple[Scheduler, ...] = get_args(Scheduler)
    for choice in known:
        if choice == name:
            return choice
    raise unknown_name("--scheduler", "scheduler", name, known)


def _answer(path: str, scheduler: "Scheduler", known: "Known") -> "tuple[Problem, Schedule]":
    from phaze.schedule.files import load_problem
    from phaze.schedule.solve import solve

    problem = load_problem(path)
    return problem, solve(problem, scheduler, known=known)


def _write_trace(path: str, answers: "list[tuple[str, Problem, Schedule]]") -> None:
    from pathlib import Path

    from phaze.documents import dumps
    from phaze.files import write_whole
    from phaze.report.trace import schedule_trace

    write_whole(Path(path), dumps(schedule_trace(answers)) + "\n")
