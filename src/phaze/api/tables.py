"""The commands that list what is bundled or measured, as functions."""

from collections.abc import Sequence
from pathlib import Path

from phaze.api.answered import answered
from phaze.api.values import Shown
from phaze.cli.calibrate import calibrate as calibrate_command
from phaze.cli.validate import validate as validate_command


def validate(
    rows: str | Path | None = None,
    *,
    silicon: bool = False,
    operators: bool = False,
    datasheet: bool = False,
    sets: Sequence[str] = (),
    best: bool = False,
    rediscovery: bool = False,
    bands: bool = False,
    write: str | Path | None = None,
) -> Shown:
    """Our estimates beside published figures, as ``phaze validate``.

    Args:
        rows: A CSV file of measured runs; without it the bundled ones.
        silicon: Area, power and sustained rates of published chips instead.
        operators: Operators, collectives and layers instead.
        datasheet: Chips and links from their data sheets, uncalibrated.
        sets: Only these sets of runs.
        best: The best plan for each job beside the one that was run.
        rediscovery: The best chip within a real one's area and power instead.
        bands: The band of each kind of answer, and how many held-back runs lie inside, instead.
        write: With ``bands``: the file that they go to.

    Returns:
        Every row with its error, and the medians of every set.

    Examples:
        >>> import phaze
        >>> found = phaze.validate(sets=["korthikanti"])
        >>> [one["name"] for one in found["sets"]]
        ['korthikanti']
    """
    chosen = None if rows is None else Path(rows)
    target = None if write is None else Path(write)
    asked = (chosen, silicon, operators, datasheet, list(sets), False, best, rediscovery, bands, target)
    return answered(validate_command, *asked)


def calibrate(
    measurements: str | Path | None = None,
    *,
    chip: str | None = None,
    out: str | Path | None = None,
    trace: Sequence[str | Path] = (),
    run: str | Path | None = None,
    rows: Sequence[str | Path] = (),
    only: str = "",
) -> Shown:
    """Fit a chip's constants to measured operators, or those of chip, network and stack to a measured run, and write
    their files, as ``phaze calibrate``.

    Args:
        measurements: A CSV file: operator,batch,m,n,k,elements,rows,seconds.
        chip: The chip that was measured: a preset or a file.
        out: Where the chip file with the constants goes; of ``trace`` the folder of the files.
        trace: Instead: profiler traces of some ranks of a run, or its log.
        run: With ``trace``: the run that was measured (``phaze.run/1``).
        rows: Instead: files of ``phaze.rows/1``, or ``"products"``, ``"attention"``, ``"collectives"``.
        only: With ``rows``: chips, kernels and clusters with this in their name.

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
    if rows:
        return answered(calibrate_command, rows=[str(path) for path in rows], only=only)
    operators, target = (None if path is None else str(path) for path in (measurements, out))
    traces, plan = [str(path) for path in trace], None if run is None else str(run)
    return answered(calibrate_command, measurements=operators, chip=chip, out=target, trace=traces, run=plan)
