"""The commands on a finished run as functions: explain, verify, report, export."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phaze.api.given import asked
from phaze.api.run_values import Fronted, Searched, Swept
from phaze.api.values import Shown, identified, sheet
from phaze.errors import InputError
from phaze.report.progress import on_standard_error

Run = str | Path | Searched | Fronted | Swept


def place_of(run: Run) -> str:
    """The folder of a finished run, or the path that was given."""
    return str(run.folder if isinstance(run, Searched | Fronted | Swept) else run)


@asked
def explain(
    run: Run,
    *,
    instead: Sequence[str] = (),
    flatness: str = "1%",
    constants: bool = False,
    ranges: bool = False,
    error: float | None = None,
    held_out: Sequence[str] = (),
    compare: Sequence[str] = (),
    regret: bool = False,
    workers: int = 0,
) -> Shown:
    """Why this chip: neighbours, near-ties, marginal values, sensitivity, as ``phaze explain``.

    Args:
        run: A finished search, or its folder.
        instead: ``"axis=value"``: the best chip that has it, such as ``"vector_cores=64"``.
        flatness: Count exactly the chips within this margin of the answer, ``"1%"``.
        constants: Also how far each constant of area and energy must change before another chip wins.
        ranges: Also the range of each rate within which the answer stays best.
        error: Also the best when every rate is lower by this share, 0.2 for 20 %.
        held_out: Also this chip on models that were not part of the search, by name or location.
        compare: Also existing chips, by name or path, to compare with on the page.
        regret: Also the best chip for each model alone, and what this one loses to it.
        workers: Worker processes; 0: one for each core.

    Returns:
        ``phaze.explanation/1``: gains are relative, areas in mm2, powers in W.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
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

        if error is not None and not 0 < error < 1:
            raise InputError("--error", f"{error} is not a share", "give a number above 0 and below 1, such as 0.2")
        within, processes, folder = share_of(flatness), workers or os.cpu_count() or 1, Path(place_of(run))
        question = question_of(str(folder))
        held = held_out_job(str(folder), question, list(held_out)) if held_out else None
        for name in compare:  # before anything takes its time
            named_chip(name, question.job, "--compare")
        others = OtherModelsAndChips(held, tuple(compare), regret)
        told = progress.step
        said = explanation(question, error, ranges, processes, told, list(instead), within, constants, others)
        try:  # for the page of the run: phaze report shows it from then on
            write_whole(folder / EXPLANATION, dumps(kept_with(folder, said)) + "\n")
        except InputError as fault:
            progress.say(f"The explanation is not kept for the page: {fault}\n")
    return identified(Shown(said, sheet("phaze.explain.sheet", "show_explanation", said)), folder)


@asked
def verify(
    run: Run,
    *,
    study: str | Path | None = None,
    quick: bool = False,
    all_: bool = False,
    space: str | Path | None = None,
    gap: float | None = None,
    allow_code: bool = False,
) -> Shown:
    """Check a certificate by independent code, as ``phaze verify``.

    Args:
        run: A finished search or front, or the folder of one, of a sweep, or of a plan's certificate.
        study: A study file that the run must answer.
        quick: Check the answer and what rooflines exclude; not a full proof.
        all_: Every chip of the space (the default); not with ``quick``.
        space: Check the answer against this space instead of its own, a name or a file, of any size.
        gap: With ``space``: the relative gap to prove.
        allow_code: Let ``study`` name Python code as a model, which then runs.

    Returns:
        ``holds``, the ``claim`` in words, ``proved`` chips, ``objections`` where it does not hold, and what is
        ``unchecked``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> phaze.verify(phaze.search(study))["holds"]
        True
    """
    from phaze.api.verified import verified

    if all_ and quick:
        raise InputError("--all", "it cannot be combined with --quick", "give one of them")
    question, other = (None if path is None else str(path) for path in (study, space))
    with on_standard_error() as progress:
        progress.step("phaze verify")
        return verified(place_of(run), question, quick, other, gap, allow_code, progress)


@asked
def report(run: Run, *, out: str | Path | None = None, design: int | None = None) -> Shown:
    """Write the HTML page of a run, front, sweep or plan, as ``phaze report``.

    Args:
        run: A finished search, front or sweep, its folder, or the file of a plan.
        out: The page to write; default: in the folder.
        design: One design of a front, by its number there.

    Returns:
        ``page``: the path of the HTML file.

    Examples:
        >>> import pathlib, tempfile
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
        >>> pathlib.Path(phaze.report(phaze.search(study), out=page)["page"]).stat().st_size > 10_000
        True
    """
    place, wanted = place_of(run), None if out is None else Path(out)
    folder = Path(place)
    with on_standard_error() as progress:
        progress.step(f"making the page of {place}")
        makers = {"result.json": _search_page, "front.json": _front_page, "sweep.json": _sweep_page}
        kept = [name for name in makers if (folder / name).exists()]
        if len(kept) > 1:
            raise InputError(place, f"it holds {' and '.join(kept)}", "move away what does not belong to it")
        if design is not None and (kept != ["front.json"] or design < 0):
            seen = f"{design} is out of range" if design < 0 else f"{place} is not a front"
            raise InputError("--design", seen, "give the folder of one (phaze front), and a number from 0 on")
        plan = None
        if design is not None:
            path = _design_page(folder, design, wanted)
        elif place == "-" or folder.is_file():
            path, plan = _plan_page(place, wanted)
        else:
            path = makers[kept[0] if kept else "result.json"](folder, wanted)
    page = {"page": str(path), "bytes": path.stat().st_size}
    return identified(Shown(page, lambda console: console.print(f"The page: {path}", markup=False)), folder, plan)


def _written(path: Path, text: str) -> Path:
    from phaze.files import write_whole

    write_whole(path, text)
    return path


def _search_page(folder: Path, out: Path | None) -> Path:
    from phaze.export.opened import run_of
    from phaze.report.page.search_page import search_page

    return _written(out or folder / "report.html", search_page(run_of(folder)))


def _front_page(folder: Path, out: Path | None) -> Path:
    from phaze.front.folder import PAGE
    from phaze.front.schema import front_in
    from phaze.report.front_page import front_page

    return _written(out or folder / PAGE, front_page(front_in(folder)[0]))


def _design_page(folder: Path, at: int, out: Path | None) -> Path:
    from phaze.front.design import design_in
    from phaze.report.page.design_page import design_page

    return _written(out or folder / f"design-{at}.html", design_page(design_in(folder, at)))


def _sweep_page(folder: Path, out: Path | None) -> Path:
    from phaze.report.sweep_page import sweep_page
    from phaze.sweep.schema import sweep_in

    return _written(out or folder / "sweep.html", sweep_page(sweep_in(folder)))


def _plan_page(path: str, out: Path | None) -> tuple[Path, dict[str, Any]]:
    """The page of a plan's document, and the document."""
    from phaze.export.launch_files import launch_texts
    from phaze.export.opened import read_plan
    from phaze.report.page.plan_page import plan_page

    document, where = read_plan(path)
    page = out or (Path("plan.html") if path == "-" else Path(path).with_suffix(".html"))
    return _written(page, plan_page(document, where, launch_texts(document, where))), dict(document)


@asked
def export(run: Run, *, to: str, out: str | Path | None = None, model: str | None = None) -> Shown:
    """Launch files, traces and tables of a run or a plan, as ``phaze export``.

    Args:
        run: A finished search, its folder, or the file of a plan.
        to: ``"megatron"``, ``"torchtitan"``, ``"maxtext"``, ``"deepspeed"``, ``"chakra"``, ``"perfetto"``, ``"csv"`` or
            ``"parquet"``.
        out: The file to write, of ``"chakra"`` the folder; without it the text is in ``text``.
        model: Which model, where a run has several.

    Returns:
        ``text`` or ``out``, and ``bytes``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> phaze.export(phaze.search(study), to="csv")["text"].startswith("chip,")
        True
    """
    from phaze.api.exported import exported

    return exported(place_of(run), to, None if out is None else str(out), model)
