"""``phaze technologies``: process technologies: area, energy and wafer cost of every component."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.technology import Technology

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a technology file (- for standard input).")]


@answering
def technologies(name: Name = None) -> Answer:
    """List process technologies, or show one: areas, energies, wafer, and the source of every number.

    Examples: phaze technologies · phaze technologies n5 · phaze technologies my-process.toml --json
    """
    from dataclasses import asdict

    from phaze.hardware.library import preset_names, read
    from phaze.hardware.technology_files import TechnologyFile

    files = [read(TechnologyFile, "technologies", each) for each in ([name] if name else preset_names("technologies"))]
    found = [file.value() for file in files]
    if name is not None:
        document = {**asdict(found[0]), "notes": files[0].notes, "sources": dict(files[0].sources)}
        return Answer((document,), lambda console: _show(console, found[0], document))

    def show(console: "Console") -> None:
        from phaze.report.terminal import table

        columns = ("technology", "", "MAC um2", "MAC pJ", "HBM pJ/B", "W/mm2", "wafer USD")
        rows = [
            (
                one.name,
                one.title,
                f"{one.area.mac_mm2 * 1e6:,.0f}",
                f"{one.energy.mac_j * 1e12:.2f}",
                f"{one.energy.hbm_j_per_byte * 1e12:.1f}",
                f"{one.energy.static_w_per_mm2:.3f}",
                f"{one.fab.wafer_usd:,.0f}",
            )
            for one in found
        ]
        console.print(table(columns, rows, left=2))

    return Answer(({"technologies": [asdict(one) for one in found]},), show)


def _show(console: "Console", one: "Technology", document: dict[str, Any]) -> None:
    from phaze.report.terminal import facts, paragraph

    area, energy, fab = one.area, one.energy, one.fab
    console.print(f"{one.name}  {one.title}\n", style="bold", markup=False)
    rows = [
        ("MAC unit", f"{area.mac_mm2 * 1e6:,.1f} um2, {energy.mac_j * 1e12:.3f} pJ"),
        ("vector lane", f"{area.lane_mm2 * 1e6:,.1f} um2, {energy.lane_j * 1e12:.3f} pJ"),
        ("1 MiB scratchpad", f"{float(area.scratchpad.at(2**20)):.2f} mm2"),
        ("1 MiB cache", f"{float(area.cache.at(2**20)):.2f} mm2"),
        ("buffer of 1 MiB", f"{float(energy.buffer.at(2**20)) * 1e12:.2f} pJ a byte"),
        ("HBM", f"{area.hbm_mm2_per_byte_per_s * 1e12:.1f} mm2 a TB/s, {energy.hbm_j_per_byte * 1e12:.1f} pJ a byte"),
        (
            "links",
            f"{area.link_mm2_per_byte_per_s * 1e12:.1f} mm2 a TB/s, {energy.link_j_per_byte * 1e12:.1f} pJ a byte",
        ),
        ("other area", f"{area.other_share:.0%} of the sum"),
        ("static power", f"{energy.static_w_per_mm2:.3f} W a mm2"),
        ("wafer", f"{fab.wafer_usd:,.0f} USD, {fab.defects_per_cm2:g} defects a cm2"),
    ]
    console.print(facts(rows))
    if document["notes"]:
        console.print()
        paragraph(console, document["notes"])
    console.print("\nSources", style="bold")
    console.print(facts(sorted(document["sources"].items())))
