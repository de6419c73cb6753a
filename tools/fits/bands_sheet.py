"""Bands in the terminal: each kind of answer, how far it may be off, and how many held-back runs
lie inside."""

from rich.console import Console

from phaze.evaluate.bands import SHARE, BandsFile, MemoryBand, TimeBand, fits_probability
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.report.terminal import paragraph, table

# Chances of fitting that headrooms are shown for.
CHANCES = (0.8, 0.9)


def _inside(entry: TimeBand | MemoryBand) -> str:
    return f"{entry.inside / entry.held_back:.0%}" if entry.held_back else ""


def _time_row(entry: TimeBand) -> tuple[str, ...]:
    names = (entry.layout, entry.bits, entry.trait, entry.stack)
    name = (entry.chip, *(each or "any" for each in names))
    return (*name, f"± {entry.band:.0%}", str(entry.rows), str(entry.sources), _inside(entry))


def _headroom_for(chance: float, entry: MemoryBand) -> float:
    """The headroom from which a plan that fills the rest fits with a chance, in steps of 1 %."""
    shares = [percent / 100 for percent in range(100)]
    return next(
        (share for share in shares if fits_probability(1.0, 1 - share, entry.ratios) >= chance), 1.0
    )


def _memory_row(entry: MemoryBand) -> tuple[str, ...]:
    usual = fits_probability(1.0, 1 - USUAL_HEADROOM, entry.ratios)
    jobs = f"{entry.inside_by_job / entry.rows:.0%}"
    needed = tuple(f"{_headroom_for(chance, entry):.0%}" for chance in CHANCES)
    name = entry.saves or "any"
    return (
        name,
        str(entry.rows),
        str(entry.sources),
        f"± {entry.band:.0%}",
        jobs,
        f"± {entry.band_elsewhere:.0%}",
        _inside(entry),
        f"{usual:.0%}",
        *needed,
    )


def show_bands(console: Console, bands: BandsFile) -> None:
    """The bands of times and of memory."""
    console.print(f"[bold]Iteration time: {SHARE:.0%} of runs within the band[/bold]")
    columns = ("chip", "layout", "bits", "trait", "stack", "band", "runs", "sources", "inside")
    console.print(table(columns, [_time_row(entry) for entry in bands.time], texts=5))
    paragraph(
        console,
        "inside: runs that the band of their kind holds when it is made without their source, of "
        "fewer than four sources without their job.",
    )
    console.print("\n[bold]Memory of the fullest device[/bold]")
    wanted = tuple(f"for {chance:.0%}" for chance in CHANCES)
    headings = (
        "keeps",
        "runs",
        "sources",
        "band",
        "by job",
        "new",
        "inside",
        f"fits at {USUAL_HEADROOM:.0%}",
        *wanted,
    )
    console.print(table(headings, [_memory_row(entry) for entry in bands.memory], texts=1))
    paragraph(
        console,
        "by job: runs inside the band made without their model, devices and batch; new: "
        "the band for "
        "laboratories of which nothing was seen, inside: runs that it holds when it is "
        "made without their source; fits "
        f"at {USUAL_HEADROOM:.0%}: the chance of a plan that leaves just that; for 80%, "
        "90%: the headroom "
        "that gives such a chance.",
    )
    known = bands.fitted
    paragraph(
        console,
        f"Of {known.runs} runs that are known to have fitted their device, "
        f"{known.above_headroom} come out above "
        f"{1 - USUAL_HEADROOM:.0%} of it, {known.too_large} of them above all of it.",
    )
