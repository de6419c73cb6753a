"""Fitted stacks and accuracy aims in the terminal: errors on the runs of a fit, and on the same
runs held back."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from phaze.report.terminal import paragraph, table
from tools.fits.marks import AT, Fitted, Reached, Spread
from tools.fits.share_curves import host_is_fitted


def _figures(found: Spread) -> tuple[str, str, str]:
    return f"{100 * found.median:.1f}", f"{100 * found.mean:.1f}", f"{100 * found.bias:+.1f}"


def _named(one: Fitted) -> str:
    return f"{one.stack} {one.generation}"


def show_fitted(console: Console, stacks: Sequence[Fitted]) -> None:
    """What runs give for each stack, beside its file, and the bias of its runs at other shares."""
    cells = [
        (
            _named(one),
            str(one.constants.runs),
            *(f"{100 * bias:+.1f}" for _, bias in one.at),
            "" if one.constants.own is None else f"{one.constants.own:.2f}",
            f"{one.constants.share:.2f}",
            f"{one.bundled:.2f}",
        )
        for one in stacks
    ]
    console.print("[bold]Software share by stack and generation of chips[/bold]")
    console.print(
        table(("", "runs", *(f"{share:.2f}" for share in AT), "alone", "fitted", "file"), cells)
    )
    hosts = [
        f"{one.stack} {1e6 * one.constants.host_s:.0f} us (file {1e6 * one.bundled_host_s:.0f})"
        for one in stacks
        if host_is_fitted(one.stack)
    ]
    said = f" Host time, fitted together with the share: {', '.join(hosts)}." if hosts else ""
    paragraph(
        console,
        "0.72 to 0.96: bias of the runs at that share, in per cent; alone: the share of "
        "these runs; fitted: with what "
        f"the release before counts for.{said}",
    )


def show_held_back(
    console: Console,
    stacks: Sequence[Fitted],
    marks: Sequence[Reached],
    weights: Mapping[float, float],
) -> None:
    """Both errors of every stack and every aim."""
    cells = [
        (
            _named(one),
            str(one.constants.runs),
            str(one.constants.models),
            *_figures(one.fitted),
            *_figures(one.held_back),
        )
        for one in stacks
    ]
    console.print("[bold]Stacks: errors of their runs, in per cent, fitted and held back[/bold]")
    both = ("med", "mean", "bias")
    console.print(table(("", "runs", "models", *both, *both), cells))
    console.print("\n[bold]Aims[/bold]")
    aims = [
        (one.mark.name, str(one.runs), _aim(one), *_figures(one.fitted), *_figures(one.held_back))
        for one in marks
    ]
    console.print(table(("", "runs", "aim", *both, *both), aims))
    said = ", ".join(f"{weight:.0f}: {100 * error:.2f}" for weight, error in weights.items())
    paragraph(
        console,
        "med, mean: of absolute errors; the first three figures of the fit, the others "
        "of the same runs, each without "
        "those of its source and model. Mean held-back error of dated releases by how "
        "many models the release before "
        f"counts for: {said}.",
    )


def _aim(one: Reached) -> str:
    return f"{one.mark.statistic.replace('median', 'med')} {100 * one.mark.target:.1f}"
