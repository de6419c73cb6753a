"""``phaze validate --held-back``: errors of fitted stacks and of the aims, fitted and on runs held back."""

from typing import TYPE_CHECKING

from phaze.api.values import Shown

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress

WEIGHTS = (0.0, 1.0, 2.0, 4.0)
"""What a release before may count for, in models."""
FAMILY = "megatron-core"
"""The family of which many releases were measured."""


def held_back_validated(progress: "Progress") -> Shown:
    """Fit every stack again without the runs of each source and model, and judge these."""
    from phaze.evaluate.memo import Memo
    from phaze.validate.marks import bundled_constants, by_weight, fitted_stacks, held_back_document, reached
    from phaze.validate.share_curves import curves_of
    from phaze.validate.share_fit import Fits

    memo = Memo()
    curves = curves_of(memo, lambda done, all_: progress.count(done, all_, "pricing runs at several shares"))
    fits = Fits(curves)
    bundled = bundled_constants(fits)
    stacks, marks, weights = (
        fitted_stacks(fits, bundled),
        reached(fits, bundled, memo),
        by_weight(curves, FAMILY, WEIGHTS),
    )

    def show(console: "Console") -> None:
        from phaze.report.held_back_sheet import show_held_back

        show_held_back(console, stacks, marks, weights)

    return Shown(held_back_document(stacks, marks, weights), show)
