"""``phaze plan``: how to split a training job over devices, or what a given split takes."""

from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.calibration import Basis

Fixed = Annotated[
    str | None, typer.Option("--fixed", help="A run (phaze.run/1) whose plan is priced; - for standard input.")
]
Datasheet = Annotated[bool, typer.Option("--datasheet", help="Use no measured constants, only the data sheet's.")]


@answering
def plan(fixed: Fixed = None, datasheet: Datasheet = False) -> Answer:
    """Price a given plan: its batch time, where the time goes, and whether every stage fits.

    Example: phaze plan --fixed examples/run.json
    """
    if fixed is None:
        raise InputError("--fixed", "there is no run to price", "give a phaze.run/1 file, or - for standard input")
    from phaze.documents import notation_of, parse, read_text
    from phaze.evaluate.answer import plan_document
    from phaze.evaluate.fixed import fixed_plan
    from phaze.evaluate.run_file import job_of

    text, where = read_text(fixed)
    job = job_of(parse(text, notation_of(fixed, text), where), where)
    basis: Basis = "datasheet" if datasheet else "calibrated"
    problem, found = fixed_plan(job, basis)
    document = plan_document(job, problem, found, basis)

    def show(console: "Console") -> None:
        from phaze.report.run_sheet import show_run

        show_run(console, document, job.chip.hbm.size_bytes)

    return Answer((document,), show, 0 if document["feasible"] else 3)
