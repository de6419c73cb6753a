"""The commands on a finished run as functions: explain, verify, report, export."""

import os
from pathlib import Path
from typing import Annotated, Any, Unpack

from phaze.api.function import api
from phaze.api.run_values import Fronted, Searched, Swept
from phaze.api.values import Answer, identified, notes, sheet
from phaze.errors import InputError
from phaze.options.option import Option
from phaze.options.runs import ExplainOptions, ExportOptions, ReportOptions, VerifyOptions
from phaze.report.progress import on_standard_error

Run = str | Path | Searched | Fronted | Swept


def place_of(run: Run) -> str:
    """The folder of a finished run, or the path that was given."""
    return str(run.folder if isinstance(run, Searched | Fronted | Swept) else run)


@api
def explain(
    run: Annotated[
        Run,
        Option("The folder of a finished search.", argument=True, python="Or the search itself."),
    ],
    **options: Unpack[ExplainOptions],
) -> Answer:
    """Why this chip: neighbours, near-ties, marginal values, sensitivity, as ``phaze explain``.

    Returns:
        ``phaze.explanation/1``: gains are relative, areas in mm2, powers in W.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> why = phaze.explain(phaze.search(study))
        >>> why["flatness"]["count"] >= 1
        True
    """
    with on_standard_error() as progress:
        progress.step("phaze explain")
        from phaze.documents import dumps
        from phaze.explain.flatness import share_of
        from phaze.explain.held_out import held_out_job
        from phaze.explain.question import question_of
        from phaze.explain.run import OtherModelsAndChips, explanation
        from phaze.files import write_whole
        from phaze.report.explanation_file import EXPLANATION, kept_with
        from phaze.study.compared import named_chip

        if options["error"] is not None and not 0 < options["error"] < 1:
            raise InputError(
                "--error",
                f"{options['error']} is not a share",
                "give a number above 0 and below 1, such as 0.2",
            )
        within, processes, folder = (
            share_of(options["flatness"]),
            options["workers"] or os.cpu_count() or 1,
            Path(place_of(run)),
        )
        question = question_of(str(folder))
        held_out = (
            held_out_job(str(folder), question, list(options["held_out"]))
            if options["held_out"]
            else None
        )
        for name in options["compare"]:  # before anything takes its time
            named_chip(name, question.job, "--compare")
        others = OtherModelsAndChips(held_out, tuple(options["compare"]), options["regret"])
        tell = progress.step
        document = explanation(
            question,
            options["error"],
            options["ranges"],
            processes,
            tell,
            list(options["instead"]),
            within,
            options["constants"],
            others,
        )
        try:  # for the page of the run: phaze report shows it from then on
            write_whole(folder / EXPLANATION, dumps(kept_with(folder, document)) + "\n")
        except InputError as fault:
            progress.say(f"The explanation is not kept for the page: {fault}\n")
    return identified(
        Answer(document, sheet("phaze.report.explain_sheet", "explanation_sections", document)),
        folder,
    )


@api
def verify(
    run: Annotated[
        Run,
        Option(
            "The folder of a run, front, sweep, or plan's certificate.",
            argument=True,
            python="Or a finished search or front itself.",
        ),
    ],
    **options: Unpack[VerifyOptions],
) -> Answer:
    """Check a certificate by independent code, as ``phaze verify``.

    Returns:
        ``holds``, the ``claim`` in words, ``proved`` chips, ``objections`` where it does not hold,
        and what is ``unchecked``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> phaze.verify(phaze.search(study))["holds"]
        True
    """
    from phaze.api.verified import verified

    if options["all_"] and options["quick"]:
        raise InputError("--all", "it cannot be combined with --quick", "give one of them")
    question, other = (
        None if path is None else str(path) for path in (options["study"], options["space"])
    )
    with on_standard_error() as progress:
        progress.step("phaze verify")
        return verified(
            place_of(run),
            question,
            options["quick"],
            other,
            options["gap"],
            options["allow_code"],
            progress,
        )


@api
def report(
    run: Annotated[
        Run,
        Option(
            "The folder of a run, front or sweep; or a plan (phaze plan ... --json).",
            argument=True,
            python="Or a finished search, front or sweep itself.",
        ),
    ],
    **options: Unpack[ReportOptions],
) -> Answer:
    """Write the HTML page of a run, front, sweep or plan, as ``phaze report``.

    Returns:
        ``page``: the path of the HTML file.

    Examples:
        >>> import pathlib, tempfile
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
        >>> pathlib.Path(phaze.report(phaze.search(study),
        ...     out=page)["page"]).stat().st_size > 10_000
        True
    """
    place, wanted = place_of(run), None if options["out"] is None else Path(options["out"])
    folder = Path(place)
    with on_standard_error() as progress:
        progress.step(f"making the page of {place}")
        makers = {"result.json": _search_page, "front.json": _front_page, "sweep.json": _sweep_page}
        answers = [name for name in makers if (folder / name).exists()]
        if len(answers) > 1:
            raise InputError(
                place, f"it holds {' and '.join(answers)}", "move away what does not belong to it"
            )
        if options["design"] is not None and (answers != ["front.json"] or options["design"] < 0):
            seen = (
                f"{options['design']} is out of range"
                if options["design"] < 0
                else f"{place} is not a front"
            )
            raise InputError(
                "--design", seen, "give the folder of one (phaze front), and a number from 0 on"
            )
        plan = None
        if options["design"] is not None:
            path = _design_page(folder, options["design"], wanted)
        elif place == "-" or folder.is_file():
            path, plan = _plan_page(place, wanted)
        else:
            path = makers[answers[0] if answers else "result.json"](folder, wanted)
    page = {"page": str(path), "bytes": path.stat().st_size}
    return identified(Answer(page, notes(f"The page: {path}")), folder, plan)


def _written(path: Path, text: str) -> Path:
    from phaze.files import write_whole

    write_whole(path, text)
    return path


def _search_page(folder: Path, out: Path | None) -> Path:
    from phaze.export.load_run import run_of
    from phaze.report.page.search_page import search_page

    return _written(out or folder / "report.html", search_page(run_of(folder)))


def _front_page(folder: Path, out: Path | None) -> Path:
    from phaze.front.folder import PAGE
    from phaze.front.schema import front_in
    from phaze.report.front_sheet import front_page

    return _written(out or folder / PAGE, front_page(front_in(folder)[0]))


def _design_page(folder: Path, index: int, out: Path | None) -> Path:
    from phaze.front.design import design_in
    from phaze.report.page.design_page import design_page

    return _written(out or folder / f"design-{index}.html", design_page(design_in(folder, index)))


def _sweep_page(folder: Path, out: Path | None) -> Path:
    from phaze.report.sweep_sheet import sweep_page
    from phaze.sweep.schema import sweep_in

    return _written(out or folder / "sweep.html", sweep_page(sweep_in(folder)))


def _plan_page(path: str, out: Path | None) -> tuple[Path, dict[str, Any]]:
    """The page of a plan's document, and the document."""
    from phaze.export.launch_files import launch_texts
    from phaze.export.load_run import read_plan
    from phaze.report.page.plan_page import plan_page

    document, where = read_plan(path)
    page = out or (Path("plan.html") if path == "-" else Path(path).with_suffix(".html"))
    return _written(page, plan_page(document, where, launch_texts(document, where))), dict(document)


@api
def export(
    run: Annotated[
        Run,
        Option(
            "The folder of a run, or a plan (phaze plan ... --json).",
            argument=True,
            python="Or a finished search itself.",
        ),
    ],
    **options: Unpack[ExportOptions],
) -> Answer:
    """Launch files, traces and tables of a run or a plan, as ``phaze export``.

    Returns:
        ``text`` or ``out``, and ``bytes``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> phaze.export(phaze.search(study), to="csv")["text"].startswith("chip,")
        True
    """
    from phaze.api.exported import exported

    return exported(
        place_of(run),
        options["to"],
        None if options["out"] is None else str(options["out"]),
        options["model"],
    )
