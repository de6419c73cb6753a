"""``phaze calibrate --rows stacks``: shares of stacks as the bundled runs give them, beside the files."""

from typing import TYPE_CHECKING

from phaze.api.values import Shown
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress


def calibrate_stacks(only: str, progress: "Progress") -> Shown:
    """Fit the software shares of stacks whose name has ``only`` in it, and those of the releases before them."""
    from dataclasses import asdict

    from phaze.evaluate.memo import Memo
    from phaze.validate.marks import bundled_constants, fitted_stacks
    from phaze.validate.share_curves import curves_of
    from phaze.validate.share_fit import Fits

    curves = curves_of(
        Memo(), lambda done, all_: progress.count(done, all_, "pricing runs at several shares"), family=only
    )
    fits = Fits(curves)
    found = [one for one in fitted_stacks(fits, bundled_constants(fits)) if only in one.stack]
    if not found:
        raise InputError("--only", f"no fitted stack has '{only}' in its name", "phaze stacks lists them")

    def show(console: "Console") -> None:
        from phaze.report.held_back_sheet import show_fitted

        show_fitted(console, found)

    return Shown({"rows": ["stacks"], "fits": [asdict(one) for one in found]}, show)
