"""What a plan that is given takes: ``phaze plan --fixed RUN``."""

from typing import TYPE_CHECKING

from phaze.cli.answer import Answer
from phaze.cli.place import write_trace

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.evaluate.training_run import Budget
    from phaze.hardware.calibration import Basis


def fixed_answer(path: str, basis: "Basis", perfetto: str | None, budget: "Budget | None") -> Answer:
    """The price of a run's plan; where it does not fit also what is short, with exit code 3."""
    from dataclasses import replace

    from phaze.evaluate.answer import fixed_document
    from phaze.evaluate.fixed import fixed_plan
    from phaze.evaluate.job_file import run_job
    from phaze.evaluate.run_file import job_of, read_run

    raw, where = read_run(path)
    job = job_of(raw, where)
    job = job if budget is None else replace(job, budget=budget)
    problem, found = fixed_plan(job, basis)
    if perfetto is not None:
        write_trace(perfetto, [(path, problem, found)])
    document = {**fixed_document(job, problem, found, basis), "job": run_job(raw, job, basis)}
    if "shortage" in document:
        from phaze.evaluate.levers import fixed_levers

        levers = fixed_levers(raw, document["shortage"]["needed_bytes"], basis)
        document["shortage"] = {**document["shortage"], "levers": levers}

    def show(console: "Console") -> None:
        from phaze.report.run_sheet import show_run

        show_run(console, document, job.chip.hbm.size_bytes)

    return Answer((document,), show, 0 if document["feasible"] else 3)
