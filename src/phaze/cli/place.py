"""``phaze place``: the fastest split of measured layers over devices, for any number of files."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.placement.cluster_problem import ClusterProblem
    from phaze.placement.problem import Plan, Problem
    from phaze.placement.shortage import Shortage

Files = Annotated[list[str], typer.Argument(help="Profiles (phaze.profile/1); - reads one from standard input.")]


@answering
def place(files: Files) -> Answer:
    """Place layers on devices: stages, data and tensor degrees, recompute, proved to be the fastest.

    One line for each file with --json, in order. Examples: phaze place profile.json · phaze place *.json --json
    """
    from phaze.errors import PhazeError, one_line
    from phaze.placement.answer import document_of

    documents: list[Any] = []
    answers: list[tuple[str, Problem | ClusterProblem, Plan | Shortage]] = []
    bad = False
    for path in files:
        try:
            problem, found = _answer(path)
        except PhazeError as fault:
            if fault.exit_code != 2:
                raise
            sentence = one_line(str(fault))
            sys.stderr.write(f"phaze: {sentence}\n")
            documents.append({"error": sentence})
            bad = True
            continue
        documents.append(document_of(found))
        answers.append((path, problem, found))

    def show(console: "Console") -> None:
        from phaze.report.plan_sheet import show_answer

        for index, (path, problem, found) in enumerate(answers):
            if index:
                console.print()
            show_answer(console, path, problem, found)

    infeasible = any(not document.get("feasible", True) for document in documents)
    return Answer(tuple(documents), show, 2 if bad else 3 if infeasible else 0)


def _answer(path: str) -> "tuple[Problem | ClusterProblem, Plan | Shortage]":
    from phaze.documents import notation_of, parse, read_text
    from phaze.placement.answer import place as place_problem
    from phaze.placement.cluster_profile import any_problem_of

    text, where = read_text(path)
    problem = any_problem_of(parse(text, notation_of(path, text), where), where)
    return problem, place_problem(problem)
