"""python -m tools.fits products | attention | collectives | FILE ... | stacks | held-back | bands

Constants of the package fitted anew on measured rows, beside those that it has:

  products, attention, collectives, FILE   constants of operators, on bundled rows or files of
                                           phaze.rows/1
  stacks      software shares, on the bundled runs
  held-back   errors of fitted stacks and of the accuracy targets, fitted and on runs held back
  bands       the error band of each kind of answer; --write FILE writes it
              (src/phaze/evaluate/data/bands.json)
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from phaze.errors import InputError, PhazeError
from phaze.evaluate.bands import BandsFile
from phaze.evaluate.memo import Memo
from phaze.files import write_whole
from phaze.report.progress import Progress, on_standard_error
from tools.fits.bands import bands_document, bands_text
from tools.fits.bands_sheet import show_bands
from tools.fits.held_back import HeldBack, bundled_rows, held_back
from tools.fits.held_back_sheet import show_fitted, show_held_back
from tools.fits.marks import (
    bundled_constants,
    by_weight,
    fitted_stacks,
    held_back_document,
    reached,
)
from tools.fits.operators import fitted_operators, operators_document, show_operators
from tools.fits.share_curves import curves_of
from tools.fits.share_fit import Fits

Answer = tuple[dict[str, Any], Callable[[Console], None]]
WEIGHTS = (0.0, 1.0, 2.0, 4.0)
"""What a release before may count for, in models."""
FAMILY = "megatron-core"
"""The family of which many releases were measured."""


def _counted(progress: Progress) -> Callable[[int, int], object]:
    return lambda done, total: progress.count(done, total, "pricing runs at several shares")


def operators(paths: list[str], only: str, progress: Progress) -> Answer:
    """Constants of operators."""
    fits = fitted_operators(paths, only, progress)
    return operators_document(paths, fits), lambda console: show_operators(console, fits)


def stacks(only: str, progress: Progress) -> Answer:
    """Software shares of stacks whose name has ``only`` in it, and of the releases before them."""
    fits = Fits(curves_of(Memo(), _counted(progress), family=only))
    shares = [
        share for share in fitted_stacks(fits, bundled_constants(fits)) if only in share.stack
    ]
    if not shares:
        raise InputError(
            "--only", f"no fitted stack has '{only}' in its name", "phaze stacks lists them"
        )
    return {
        "rows": ["stacks"],
        "fits": [asdict(share) for share in shares],
    }, lambda console: show_fitted(console, shares)


def judged(progress: Progress) -> Answer:
    """Every stack fitted again without the runs of each source and model, and judged on these."""
    memo = Memo()
    curves = curves_of(memo, _counted(progress))
    fits = Fits(curves)
    bundled = bundled_constants(fits)
    shares = fitted_stacks(fits, bundled)
    marks = reached(fits, bundled, memo)
    weights = by_weight(curves, FAMILY, WEIGHTS)
    document = held_back_document(shares, marks, weights)
    return document, lambda console: show_held_back(console, shares, marks, weights)


def bands(target: Path | None, progress: Progress) -> Answer:
    """How far answers of a kind may be off, written to a file if one is named."""
    rows, memo = bundled_rows(), Memo()
    fits = Fits(curves_of(memo, _counted(progress)))
    priced: list[HeldBack] = []
    for done, row in enumerate(rows):
        progress.count(done, len(rows), "pricing runs, each without its source")
        priced += held_back(row, fits, memo)
    document = bands_document(rows, priced)
    if target is not None:
        write_whole(target, bands_text(document))
    return document, lambda console: show_bands(console, BandsFile.model_validate(document))


def _answer(options: argparse.Namespace, progress: Progress) -> Answer:
    if options.what == ["bands"]:
        return bands(options.write, progress)
    if options.what == ["held-back"]:
        return judged(progress)
    if options.what == ["stacks"]:
        return stacks(options.only, progress)
    return operators(options.what, options.only, progress)


def main() -> int:
    """Fit, and print tables or one JSON document."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", nargs="+", metavar="WHAT", help="what to fit, as above")
    parser.add_argument(
        "--only",
        default="",
        help="only chips, kernels, clusters or stacks whose name contains this",
    )
    parser.add_argument("--write", type=Path, help="with bands: the file that they go to")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    try:
        with on_standard_error() as progress:
            document, show = _answer(options, progress)
    except PhazeError as fault:
        parser.error(str(fault))
    if options.json:
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        show(Console(highlight=False, width=None if sys.stdout.isatty() else 100))
    return 0


if __name__ == "__main__":
    sys.exit(main())
