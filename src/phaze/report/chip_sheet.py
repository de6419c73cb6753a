"""A chip in the terminal: its parts as a table, its area drawn, its power and cost."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from phaze.hardware.chip import Chip
from phaze.hardware.clocked import clocked
from phaze.hardware.sheet import Sheet
from phaze.report.terminal import facts, paragraph, shares, signed
from phaze.units import digits, show


def _parts(sheet: Sheet) -> list[tuple[str, str]]:
    chip = sheet.chip
    kind = "cache" if chip.global_buffer.cache else "scratchpad"
    rated = show(chip.rated_clock_hz, "Hz")
    return [
        ("peak", f"{show(chip.peak_flops, 'FLOP/s')} at {rated} ({chip.clock_basis} clock)"),
        *unit_rows(chip),
        (
            "global buffer",
            f"{_memory(chip.global_buffer.size_bytes, chip.global_bytes_per_s)}, {kind}",
        ),
        ("HBM", _stacks(chip) + _memory(chip.hbm.size_bytes, chip.hbm.bandwidth_bytes_per_s)),
        ("links", _links(chip)),
        ("technology", chip.technology or "none named: no area, power or cost"),
        ("default cluster", chip.cluster or "none named"),
    ]


def unit_rows(chip: Chip) -> list[tuple[str, str]]:
    """Cores, or clusters and the clock that they hold."""
    tensor, vector = chip.clusters, chip.vectors
    if not chip.of_clusters:
        cores = f"{tensor.count} of {tensor.rows} x {tensor.columns}, {show(tensor.operand_bytes, 'B')} each"
        lanes = f"{vector.count} of {vector.lanes} lanes, {show(vector.register_bytes, 'B')} each"
        return [("tensor cores", cores), ("vector cores", lanes)]
    arrays = f"{tensor.count} of {tensor.arrays} arrays of {tensor.rows} x {tensor.columns} and {vector.lanes} lanes"
    memory = f"operands {show(tensor.operand_bytes, 'B')}, registers {show(vector.register_bytes, 'B')}"
    shared = f"port {tensor.port_bytes_per_cycle:g} bytes a cycle, one read reaches {chip.global_buffer.fan_out}"
    limit = "no power limit is known" if chip.sustained_w is None else f"at most {chip.sustained_w:g} W"
    held = clocked(chip)
    held_hz, drawn = (chip.clock_hz, "") if held is None else (held.held_hz, f", {held.held_w:.0f} W")
    return [
        ("clusters", arrays),
        ("of a cluster", f"{memory}, {shared}"),
        ("clock held", f"{show(held_hz, 'Hz')}{drawn} ({limit})"),
    ]


def _stacks(chip: Chip) -> str:
    return f"{chip.hbm.stacks} stacks of {chip.hbm.generation}, " if chip.hbm.stacks else ""


def _links(chip: Chip) -> str:
    rate = f"{show(chip.links.bandwidth_bytes_per_s, 'B/s')} one way"
    return f"{chip.links.count}, together {rate}" if not chip.of_clusters else rate


def _memory(size_bytes: int, bandwidth_bytes_per_s: float) -> str:
    return f"{show(size_bytes, 'B')} at {show(bandwidth_bytes_per_s, 'B/s')}"


def _against(ours: float, said: float | None, unit: str, bound: bool = False) -> str:
    if said is None:
        return f"{ours:.0f} {unit} (nothing published)"
    return f"{ours:.0f} {unit} (published {'at most ' if bound else ''}{said:.0f}, {signed(ours / said - 1)})"


def show_sheet(console: Console, sheet: Sheet, notes: str | None, doubtful: Mapping[str, str]) -> None:
    """Print the sheet."""
    chip, said = sheet.chip, sheet.chip.published
    console.print(f"[bold]{escape(chip.name)}[/bold]  {escape(chip.title)}\n")
    rows = _parts(sheet)
    if sheet.area_mm2 is not None and sheet.power_w is not None:
        rows += [
            ("area, estimate", _against(sheet.area_mm2, said.die_mm2, "mm2", said.die_is_upper_bound)),
            ("power, estimate" if chip.of_clusters else "TDP, estimate", _against(sheet.power_w, said.tdp_w, "W")),
        ]
    if sheet.obstacle is not None:
        rows.append(("making", sheet.obstacle))
    if sheet.ownership is not None:
        owned = sheet.ownership
        rows += [
            ("making", f"{digits(owned.making_usd)} USD, {owned.embodied_kgco2e:.0f} kgCO2e"),
            ("running", f"{digits(owned.energy_usd)} USD, {owned.operational_kgco2e:,.0f} kgCO2e over its life"),
        ]
    console.print(facts(rows))
    if sheet.parts_mm2 is not None:
        shares(console, "Area", sheet.parts_mm2, "mm2")
    if notes:
        console.print()
        paragraph(console, notes)
    if doubtful:
        console.print(f"\n[bold]Not published readings ({len(doubtful)})[/bold]")
        for path, source in doubtful.items():
            paragraph(console, f"{path}: {source}", indent="  ")
