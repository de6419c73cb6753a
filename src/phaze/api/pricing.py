"""A plan that is given, priced; and answers opened again."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from phaze.api.function import api
from phaze.api.run_values import Searched, searched
from phaze.api.single import write_trace
from phaze.api.values import Planned, identified, sheet
from phaze.errors import InputError
from phaze.options.arguments import parsed
from phaze.options.jobs import BasisName, CodeOptions, Source
from phaze.options.option import Option
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.evaluate.training_run import Budget
    from phaze.hardware.calibration import Basis


def planned_value(document: Mapping[str, Any], exit_code: int = 0) -> Planned:
    """A plan's document as a value that prints as the command does."""
    shown = sheet("phaze.report.plan_sheet", "planned_sections", document)
    return Planned(document, shown, exit_code=exit_code)


def budget_of(tokens: int | str | None, terms: str | Path | None) -> "Budget | None":
    """Tokens to train on and their terms, if any were given."""
    if tokens is None:
        if terms is not None:
            raise InputError("--terms", "there is nothing to price", "add --tokens 15T")
        return None
    from phaze.evaluate.training_run import Budget
    from phaze.hardware.ownership import load_terms
    from phaze.units import parse_tokens

    return Budget(parsed("--tokens", tokens, parse_tokens), load_terms(str(terms or "default")))


def priced(
    run: Source,
    basis: "Basis",
    perfetto: str | Path | None = None,
    budget: "Budget | None" = None,
    allow_code: bool = False,
) -> Planned:
    """The price of a run's plan; where it does not fit also what is short. Code that the run names
    as its model runs only if ``allow_code``."""
    from dataclasses import replace

    from phaze.evaluate.answer import fixed_document
    from phaze.evaluate.fixed import fixed_plan
    from phaze.evaluate.job_file import run_job
    from phaze.evaluate.run_file import job_of, read_run, with_tensor_plan

    raw, where = (
        (with_tensor_plan(dict(run)), "run") if isinstance(run, Mapping) else read_run(str(run))
    )
    job = job_of(raw, where, allow_code=allow_code)
    job = job if budget is None else replace(job, budget=budget)
    problem, plan_priced = fixed_plan(job, basis)
    if perfetto is not None:
        write_trace(perfetto, [(where, problem, plan_priced)])
    document = {**fixed_document(job, problem, plan_priced, basis), "job": run_job(raw, job, basis)}
    if "shortage" in document:
        from phaze.evaluate.levers import fixed_levers

        levers = fixed_levers(raw, document["shortage"]["needed_bytes"], basis, allow_code)
        document["shortage"] = {**document["shortage"], "levers": levers}
    return planned_value(document, 0 if document["feasible"] else 3)


@api
def price(
    run: Annotated[Source, Option("A run (phaze.run/1): a file, or its values.")],
    basis: Annotated[
        BasisName, Option("Constants: calibrated, datasheet or ideal.")
    ] = "calibrated",
    **options: Unpack[CodeOptions],
) -> Planned:
    """Step time and memory of a given plan, whether it fits or not, as ``phaze plan --fixed``.

    Returns:
        The plan evaluated: ``batch_s`` in seconds, memory of every stage in bytes, ``shortage``
        where it does not fit.

    Examples:
        >>> import phaze
        >>> gpt = {"hidden": 1024, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 512}
        >>> split = {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2}
        >>> run = {"schema": "phaze.run/1", "gpt": gpt, "chip": "a100-80gb", "cluster": "selene"}
        >>> priced = phaze.price({**run, "devices": 8, "batch": 32, "plan": split})
        >>> priced["feasible"], priced.batch_s > 0
        (True, True)
    """
    with on_standard_error() as progress:
        progress.step("phaze plan --fixed")
        return identified(priced(run, basis, allow_code=options["allow_code"]))


@api
def load(
    path: Annotated[str | Path, Option("The folder of a run, or the file of a plan.")],
) -> Searched | Planned:
    """A finished search from its folder, or a plan from what ``phaze plan ... --json`` printed.

    Returns:
        What :func:`phaze.search` or :func:`phaze.plan` returned.

    Examples:
        >>> import json, pathlib, tempfile
        >>> import phaze
        >>> plan = phaze.plan("bert-large", chip="a100-80gb", devices=8, batch=64, tensor=[1],
        ...     microbatch=[4])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
        >>> _ = path.write_text(json.dumps(plan.document))
        >>> phaze.load(path).batch_s == plan.batch_s
        True
    """
    if Path(path).is_dir():
        from phaze.search.result_file import read_result

        return searched(read_result(Path(path)), Path(path))
    from phaze.documents import check
    from phaze.evaluate.job_file import JobTable
    from phaze.evaluate.plan_file import require_shown_plan
    from phaze.export.load_run import read_plan

    document, where = read_plan(str(path))
    require_shown_plan(document, where)
    check(JobTable, document["job"], f"{where}: job")
    return identified(planned_value(document))
