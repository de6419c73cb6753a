"""``phaze place``: the fastest split of measured layers over devices, for any number of files."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from phaze.placement.plan import Plan
    from phaze.placement.problem import Problem
    from phaze.placement.shortage import Shortage
    from phaze.report.progress import Progress

Perfetto = Annotated[str | None, typer.Option(help="Write the timeline to this file, for ui.perfetto.dev.")]
Files = Annotated[list[str], typer.Argument(help="Profiles (phaze.profile/1); - reads one from standard input.")]


@answering
def place(files: Files, perfetto: Perfetto = None, *, progress: "Progress") -> Answer:
    """Place layers on devices: stages, data and tensor degrees, recompute, proved to be the fastest.

    One line for each file with --json, in order. Examples: phaze place profile.json · phaze place *.json --json ·
    phaze place profile.json --perfetto trace.json
    """
    from phaze.errors import PhazeError, one_line
    from phaze.placement.answer import checked_document

    documents: list[Any] = []
    answers: list[tuple[str, Problem, Plan | Shortage]] = []
    bad = False
    for done, path in enumerate(files):
        progress.count(done, len(files), "placing profiles")
        try:
            problem, found = _answer(path)
            document = checked_document(problem, found)
        except PhazeError as fault:
            if fault.exit_code != 2:
                raise
            sentence = one_line(str(fault))
            progress.say(f"phaze: {sentence}\n")
            documents.append({"error": sentence})
            bad = True
            continue
        documents.append(document)
        answers.append((path, problem, found))

    if perfetto is not None:
        from phaze.placement.shortage import Shortage as Short

        write_trace(
            perfetto, [(path, problem, found) for path, problem, found in answers if not isinstance(found, Short)]
        )

    def show(console: "Console") -> None:
        from phaze.report.plan_sheet import show_answer

        for index, (path, problem, found) in enumerate(answers):
            if index:
                console.print()
            show_answer(console, path, problem, found)

    infeasible = any(not document.get("feasible", True) for document in documents)
    return Answer(tuple(documents), show, 2 if bad else 3 if infeasible else 0)


def write_trace(path: str, plans: "Sequence[tuple[str, Problem, Plan]]") -> None:
    """Write the timelines of plans to a file for ui.perfetto.dev."""
    from pathlib import Path

    from phaze.documents import dumps
    from phaze.files import write_whole
    from phaze.report.plan_trace import plan_trace

    write_whole(Path(path), dumps(plan_trace(plans)) + "\n")


def _answer(path: str) -> "tuple[Problem, Plan | Shortage]":
    from phaze.documents import notation_of, parse
    from phaze.errors import InputError
    from phaze.files import read_text
    from phaze.placement.answer import place as place_problem
    from phaze.placement.profile import problem_of

    text, where = read_text(path)
    problem = problem_of(parse(text, notation_of(path, text), where), where)
    try:
        return problem, place_problem(problem)
    except InputError as fault:
        raise InputError(f"{where}: {fault.where}", fault.problem, fault.remedy) from None
