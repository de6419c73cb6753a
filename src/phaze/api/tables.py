"""The commands that set our figures beside measured ones, as functions: validate and calibrate."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from phaze.api.given import asked
from phaze.api.values import Shown
from phaze.errors import InputError
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.hardware.calibration import Basis


@asked
def validate(
    rows: str | Path | None = None,
    *,
    silicon: bool = False,
    operators: bool = False,
    datasheet: bool = False,
    sets: Sequence[str] = (),
    every: bool = False,
    best: bool = False,
    rediscovery: bool = False,
    allow_code: bool = False,
) -> Shown:
    """Estimates against published figures, as ``phaze validate``.

    Args:
        rows: A CSV file of measured runs; without it the bundled ones.
        silicon: Area, power and sustained rates of published chips instead.
        operators: Operators, collectives and layers instead.
        datasheet: Chips and links from their data sheets, uncalibrated.
        sets: Only these sets of runs.
        every: Print every run too; the document always has them.
        best: The best plan for each job against the one that was run.
        rediscovery: The best chip within a real one's area and power instead.
        allow_code: Let rows name Python code as their model, which then runs.

    Returns:
        Every row with its error, and the medians of every set.

    Examples:
        >>> import phaze
        >>> found = phaze.validate(sets=["korthikanti"])
        >>> [one["name"] for one in found["sets"]]
        ['korthikanti']
    """
    alone = silicon + operators + rediscovery + (rows is not None)
    if alone > 1 or (sets and alone):
        remedy = "give a file, --set, --operators, --silicon or --rediscovery"
        raise InputError("", "more than one thing is chosen to validate", remedy)
    from phaze.api import validated

    with on_standard_error() as progress:
        progress.step("phaze validate")
        if rediscovery:
            return validated.rediscovery_validated()
        if silicon:
            return validated.silicon_validated()
        if operators:
            return validated.operators_validated()
        basis: Basis = "datasheet" if datasheet else "calibrated"
        measured = validated.sets_of(None if rows is None else Path(rows), list(sets), allow_code)
        if best:
            return validated.best_validated(measured, basis, progress)
        return validated.runs_validated(measured, basis, every or rows is not None, progress)


@asked
def calibrate(
    measurements: str | Path | None = None,
    *,
    chip: str | None = None,
    out: str | Path | None = None,
    trace: Sequence[str | Path] = (),
    run: str | Path | None = None,
    allow_code: bool = False,
) -> Shown:
    """Fit a chip's constants to measured operators, or those of chip, network and stack to a measured run, and write
    their files, as ``phaze calibrate``.

    Args:
        measurements: A CSV file: operator,batch,m,n,k,elements,rows,seconds.
        chip: The chip that was measured: a preset or a file.
        out: The chip file to write; with ``trace`` a folder.
        trace: Instead: profiler traces of some ranks of a run, or its log.
        run: With ``trace``: the run that was measured (``phaze.run/1``).
        allow_code: Let ``run`` name Python code as its model, which then runs.

    Returns:
        Of operators ``calibration`` (seconds and shares), ``median_error`` before, fitted and cross-validated, and
        ``file``; of a run ``step_s`` (measured, before and fitted, in seconds), ``fitted``, ``undetermined`` and
        ``files``.

    Examples:
        >>> import pathlib, tempfile
        >>> import phaze
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> sizes = [512, 1024, 1536, 2048, 3072, 4096, 6144, 8192]
        >>> rows = [f"gemm,1,{n},{n},{n},,,{2 * n**3 / 200e12 + 1e-5}" for n in sizes]
        >>> text = "\\n".join(["operator,batch,m,n,k,elements,rows,seconds", *rows])
        >>> _ = (folder / "mine.csv").write_text(text)
        >>> fitted = phaze.calibrate(folder / "mine.csv", chip="a100-80gb", out=folder / "mine.toml")
        >>> fitted["median_error"]["fitted"] <= fitted["median_error"]["before"]
        True
    """
    with on_standard_error() as progress:
        progress.step("phaze calibrate")
        operators, target, plan = (None if path is None else str(path) for path in (measurements, out, run))
        if trace or plan is not None:
            if operators is not None or chip is not None:
                remedy = "give a CSV file and --chip, or --trace and --run"
                raise InputError("--trace", "operators are given too", remedy)
            if not trace:
                raise InputError("--trace", "there is nothing that was measured", "give a trace or a log of the run")
            from phaze.api.calibrate_run import calibrate_run

            return calibrate_run([str(path) for path in trace], plan, target, allow_code, progress)
        if operators is None or chip is None:
            missing = "measurements" if operators is None else "--chip"
            raise InputError(missing, "it is missing", "give a CSV file and --chip, or --trace and --run")
        from phaze.api.calibrate_chip import calibrate_chip

        return calibrate_chip(operators, chip, target, progress)
