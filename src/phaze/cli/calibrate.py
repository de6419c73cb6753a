"""``phaze calibrate``: fit a chip's few constants to your own operator measurements."""

from typing import Annotated

import typer

from phaze.api import tables
from phaze.cli.answer import asking
from phaze.cli.search import AllowCode

Measurements = Annotated[
    str | None, typer.Argument(help="CSV: operator,batch,m,n,k,elements,rows,seconds (- for stdin).")
]
ChipName = Annotated[str | None, typer.Option("--chip", help="The chip that was measured: a preset or a file.")]
Traces = Annotated[
    list[str] | None,
    typer.Option("--trace", help="A PyTorch profiler trace (.json, .json.gz) of a rank, or a log; repeatable."),
]
RunPath = Annotated[str | None, typer.Option("--run", help="With --trace: the run that was measured (phaze.run/1).")]
Out = Annotated[
    str | None, typer.Option(help="The chip file to write (CHIP-calibrated.toml); with --trace a folder (RUN-fitted).")
]


@asking(tables.calibrate)
def calibrate(
    measurements: Measurements, chip: ChipName, out: Out, trace: Traces, run: RunPath,
    allow_code: AllowCode,
) -> None:  # fmt: skip
    """Fit a chip's constants to measured operators, or those of chip, network and stack to your own run.

    A row is a GEMM (operator gemm; batch, m, n, k) or a vector operator (its kind; elements, rows) with its seconds.
    A trace or log of a run fits what it determines, lists what it does not, and writes files for phaze plan.
    Examples: phaze calibrate a100.csv --chip a100-80gb --out my-a100.toml ·
    phaze calibrate --trace rank0.json.gz --trace rank1.json.gz --run run.json --out mine
    """
