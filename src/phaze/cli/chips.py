"""``phaze chips``: the bundled chips, one chip in full, or the size of a space of chips."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.sheet import Sheet

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a chip file (- for standard input).")]
Space = Annotated[str | None, typer.Option(help="A space of chips: a preset such as 'paper', or a file.")]
CountOnly = Annotated[bool, typer.Option("--count", help="With --space: how many chips and different parts it has.")]
Terms = Annotated[str, typer.Option(help="Prices, lifetime and carbon intensities: a preset or a file.")]


@answering
def chips(name: Name = None, space: Space = None, count: CountOnly = False, terms: Terms = "default") -> Answer:
    """List chips, or show one: parts, area, power, cost.

    Examples: phaze chips · phaze chips tpu-v4 · phaze chips my-chip.toml --json · phaze chips --space paper --count
    """
    if space is not None:
        if name is not None:
            raise InputError("--space", f"the chip '{name}' is given too", "give either a chip or a space")
        if not count:
            raise InputError("--space", "there is nothing to show of a whole space but its size", "add --count")
        return _count(space)
    if count:
        raise InputError("--count", "there is no space to count", "add --space paper")
    return _all(terms) if name is None else _one(name, terms)


def _count(space: str) -> Answer:
    from phaze.search.spaces import enumerate_space, load_space

    opened = load_space(space)
    found, sources = enumerate_space(opened), opened.file.sources
    document = {"chips": len(found), "tensor_parts": found.tensor_parts(), "vector_parts": found.vector_parts()}

    def show(console: "Console") -> None:
        from phaze.report.terminal import facts

        console.print(f"{opened.name}  {opened.file.title}", style="bold", markup=False)
        if sources:
            console.print(facts(sorted(sources.items())))
        console.print(
            f"{document['chips']:,} chips, made of {document['tensor_parts']:,} different tensor parts "
            f"and {document['vector_parts']:,} vector parts"
        )

    return Answer((document,), show)


def _all(terms: str) -> Answer:
    from phaze.hardware.library import load_chip
    from phaze.hardware.ownership import load_terms
    from phaze.hardware.sheet import sheet_of
    from phaze.hardware.silicon.files import chip_names

    prices = load_terms(terms)
    sheets = [sheet_of(load_chip(name), prices) for name in chip_names()]

    def show(console: "Console") -> None:
        from phaze.report.terminal import table

        console.print(table(("chip", "TFLOP/s", "tensor", "vector", "GiB", "GB/s", "mm2", "W"), map(_row, sheets)))
        console.print("\nmm2 and W are estimates, - where a chip names no technology; GiB and GB/s are of HBM.")

    return Answer(({"chips": [_brief(sheet) for sheet in sheets]},), show)


def _brief(sheet: "Sheet") -> dict[str, Any]:
    chip = sheet.chip
    return {
        "name": chip.name,
        "title": chip.title,
        "peak_flops": chip.peak_flops,
        "hbm_bytes": chip.hbm.size_bytes,
        "hbm_bytes_per_s": chip.hbm.bandwidth_bytes_per_s,
        "area_mm2": sheet.area_mm2,
        "design_power_w": sheet.power_w,
        "technology": chip.technology,
        "cluster": chip.cluster,
    }


def _row(sheet: "Sheet") -> tuple[str, ...]:
    chip = sheet.chip
    return (
        chip.name,
        f"{chip.peak_flops / 1e12:,.0f}",
        f"{chip.tensor_cores} of {chip.tensor_core.rows}x{chip.tensor_core.columns}",
        f"{chip.vector_cores} of {chip.vector_core.lanes}",
        f"{chip.hbm.size_bytes / 2**30:.0f}",
        f"{chip.hbm.bandwidth_bytes_per_s / 1e9:,.0f}",
        "-" if sheet.area_mm2 is None else f"{sheet.area_mm2:.0f}",
        "-" if sheet.power_w is None else f"{sheet.power_w:.0f}",
    )


def _one(name: str, terms: str) -> Answer:
    from phaze.hardware.library import chip_of_file, read
    from phaze.hardware.ownership import TermsFile, load_terms
    from phaze.hardware.sheet import sheet_document, sheet_of
    from phaze.hardware.silicon.files import read_chip

    file = read_chip(name)
    sheet, prices = sheet_of(chip_of_file(file), load_terms(terms)), read(TermsFile, "ownership", terms)
    about = {"name": prices.name, "title": prices.title, "notes": prices.notes, "sources": dict(prices.sources)}
    unread = ("assumed:", "recalled:", "derived:")
    doubtful = {path: source for path, source in file.sources.items() if source.startswith(unread)}

    def show(console: "Console") -> None:
        from phaze.report.chip_sheet import show_sheet

        show_sheet(console, sheet, file.notes, doubtful)

    return Answer(
        ({**sheet_document(sheet), "sources": dict(file.sources), "notes": file.notes, "terms": about},), show
    )
