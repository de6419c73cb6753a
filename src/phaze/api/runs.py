"""The commands on a finished run as functions: explain, verify, report, export."""

from collections.abc import Sequence
from pathlib import Path

from phaze.api.answered import answered
from phaze.api.values import Fronted, Searched, Shown, Swept
from phaze.cli.explain import explain as explain_command
from phaze.cli.export import export as export_command
from phaze.cli.report import report as report_command
from phaze.cli.verify import verify as verify_command

Run = str | Path | Searched | Fronted | Swept


def _place(run: Run) -> str:
    """The folder of a finished run, or the path that was given."""
    return str(run.folder if isinstance(run, Searched | Fronted | Swept) else run)


def explain(
    run: Run,
    *,
    instead: Sequence[str] = (),
    flatness: str = "1%",
    constants: bool = False,
    ranges: bool = False,
    error: float | None = None,
    held_out: Sequence[str] = (),
    beside: Sequence[str] = (),
    regret: bool = False,
    workers: int = 0,
) -> Shown:
    """Why this chip: neighbours, chips as good as it, what more of each resource buys, as ``phaze explain``.

    Args:
        run: A finished search, or its folder.
        instead: ``"axis=value"``: the best chip that has it, such as ``"vector_cores=64"``.
        flatness: Count the chips within so much of the answer, exactly.
        constants: Also how far each constant of area and energy must move before another chip wins.
        ranges: Also how wrong each constant may be.
        error: Also the best when every constant is lower by this share.
        held_out: Also this chip on models that were not searched for, by name or place.
        beside: Also chips that exist, by name or path, to compare with on the page.
        regret: Also the best chip for each model alone, and what this one loses to it.
        workers: Processes; 0 takes one for each core.

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
    asked = {"held_out": list(held_out), "beside": list(beside), "regret": regret, "workers": workers}
    return answered(explain_command, _place(run), list(instead), flatness, constants, ranges, error, **asked)


def verify(
    run: Run,
    *,
    study: str | Path | None = None,
    quick: bool = False,
    space: str | Path | None = None,
    gap: float | None = None,
) -> Shown:
    """Check a certificate by code that shares none with the search, as ``phaze verify``.

    Args:
        run: A finished search or front, or the folder of one, of a sweep, or of a plan's certificate.
        study: The question that it must answer: a study file.
        quick: The answer, and what rooflines exclude: no proof.
        space: A space, by name or file, that the answer is held against instead of its own, however large.
        gap: With ``space``, by how much nothing in it may be better.

    Returns:
        ``holds``, the ``claim`` in words, ``proved`` chips, and ``objections`` where it does not hold.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> phaze.verify(phaze.search(study))["holds"]
        True
    """
    question, other = (None if path is None else str(path) for path in (study, space))
    return answered(verify_command, _place(run), study=question, quick=quick, space=other, gap=gap)


def report(run: Run, *, out: str | Path | None = None, design: int | None = None) -> Shown:
    """Make the page of a run, front, sweep or plan, as ``phaze report``.

    Args:
        run: A finished search, front or sweep, its folder, or the file of a plan.
        out: Where the page goes; without it into the folder.
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
    return answered(report_command, _place(run), None if out is None else str(out), design)


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
    return answered(export_command, _place(run), to=to, out=None if out is None else str(out), model=model)
