"""The commands that set our figures beside measured ones, as functions: validate and calibrate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

from phaze.api.function import api
from phaze.api.values import Answer
from phaze.errors import InputError
from phaze.options.option import Option
from phaze.options.runs import CalibrateOptions, ValidateOptions
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.hardware.calibration import Basis


@api
def validate(
    rows: Annotated[
        str | Path | None,
        Option("A CSV file of measured runs; default: the bundled ones.", argument=True),
    ] = None,
    **options: Unpack[ValidateOptions],
) -> Answer:
    """Estimates against published figures, as ``phaze validate``.

    Returns:
        Every row with its error, and the medians of every set.

    Examples:
        >>> import phaze
        >>> found = phaze.validate(sets=["korthikanti"])
        >>> [one["name"] for one in found["sets"]]
        ['korthikanti']
    """
    alone = options["silicon"] + options["operators"] + options["rediscovery"] + (rows is not None)
    if alone > 1 or (options["sets"] and alone):
        remedy = "give a file, --set, --operators, --silicon or --rediscovery"
        raise InputError("", "more than one thing is chosen to validate", remedy)
    from phaze.api import validated

    with on_standard_error() as progress:
        progress.step("phaze validate")
        if options["rediscovery"]:
            return validated.rediscovery_validated()
        if options["silicon"]:
            return validated.silicon_validated()
        if options["operators"]:
            return validated.operators_validated()
        basis: Basis = "datasheet" if options["datasheet"] else "calibrated"
        measured = validated.sets_of(
            None if rows is None else Path(rows), list(options["sets"]), options["allow_code"]
        )
        if options["best"]:
            return validated.best_validated(measured, basis, progress)
        return validated.runs_validated(
            measured, basis, options["every"] or rows is not None, progress
        )


@api
def calibrate(
    measurements: Annotated[
        str | Path | None,
        Option(
            "CSV: operator,batch,m,n,k,elements,rows,seconds (- for stdin), or a table of products, "
            "attention and collectives (JSON, phaze.rows/1).",
            argument=True,
        ),
    ] = None,
    **options: Unpack[CalibrateOptions],
) -> Answer:
    """Fit a chip's constants to measured operators, or those of chip, network and stack to a
    measured run, and write their files, as ``phaze calibrate``.

    Returns:
        Of operators ``calibration`` (seconds and shares), ``median_error`` before, fitted and
        cross-validated, and ``file``; of a table ``fitted``, ``kernels``, ``groups`` and ``files``;
        of a run ``step_s`` (measured, before and fitted, in
        seconds), ``fitted``, ``undetermined`` and ``files``.

    Examples:
        >>> import pathlib, tempfile
        >>> import phaze
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> sizes = [512, 1024, 1536, 2048, 3072, 4096, 6144, 8192]
        >>> rows = [f"gemm,1,{n},{n},{n},,,{2 * n**3 / 200e12 + 1e-5}" for n in sizes]
        >>> text = "\\n".join(["operator,batch,m,n,k,elements,rows,seconds", *rows])
        >>> _ = (folder / "mine.csv").write_text(text)
        >>> fitted = phaze.calibrate(folder / "mine.csv", chip="a100-80gb",
        ...     out=folder / "mine.toml")
        >>> fitted["median_error"]["fitted"] <= fitted["median_error"]["before"]
        True
    """
    with on_standard_error() as progress:
        progress.step("phaze calibrate")
        operators, target, plan = (
            None if path is None else str(path)
            for path in (measurements, options["out"], options["run"])
        )
        if options["trace"] or plan is not None:
            if operators is not None or options["chip"] is not None:
                remedy = "give a CSV file and --chip, or --trace and --run"
                raise InputError("--trace", "operators are given too", remedy)
            if not options["trace"]:
                raise InputError(
                    "--trace",
                    "there is nothing that was measured",
                    "give a trace or a log of the run",
                )
            from phaze.api.calibrate_run import calibrate_run

            return calibrate_run(
                [str(path) for path in options["trace"]],
                plan,
                target,
                options["allow_code"],
                progress,
            )
        if operators is None or options["chip"] is None:
            missing = "measurements" if operators is None else "--chip"
            raise InputError(
                missing, "it is missing", "give a CSV file and --chip, or --trace and --run"
            )
        if operators.endswith(".json"):
            from phaze.api.calibrate_table import calibrate_table

            machine = (options["chip"], options["cluster"], options["stack"])
            return calibrate_table(operators, machine, target, progress)
        for name in ("cluster", "stack"):
            if options[name] is not None:
                remedy = "give a table (.json), or leave it out"
                raise InputError(f"--{name}", "a CSV file says nothing of it", remedy)
        from phaze.api.calibrate_chip import calibrate_chip

        return calibrate_chip(operators, options["chip"], target, progress)
