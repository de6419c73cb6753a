"""A chip: its parts, its area by part, its power and cost."""

from collections.abc import Mapping

from phaze.hardware.chip import Chip
from phaze.hardware.chip_document import Sheet
from phaze.hardware.chip_record import states_clusters
from phaze.hardware.clocked import clocked
from phaze.report.drawings import Bar, Bars
from phaze.report.numbers import signed
from phaze.report.sections import Figures, Notes, Section
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
    if not states_clusters(chip):
        cores = (
            f"{tensor.count} of {tensor.rows} x {tensor.columns}, "
            f"{show(tensor.operand_bytes, 'B')} each"
        )
        lanes = f"{vector.count} of {vector.lanes} lanes, {show(vector.register_bytes, 'B')} each"
        return [("tensor cores", cores), ("vector cores", lanes)]
    arrays = (
        f"{tensor.count} of {tensor.arrays} arrays of {tensor.rows} x {tensor.columns} and "
        f"{vector.lanes} lanes"
    )
    memory = (
        f"operands {show(tensor.operand_bytes, 'B')}, registers {show(vector.register_bytes, 'B')}"
    )
    shared = (
        f"port {tensor.port_bytes_per_cycle:g} bytes a cycle, one read reaches "
        f"{chip.global_buffer.fan_out}"
    )
    limit = (
        "no power limit is known" if chip.sustained_w is None else f"at most {chip.sustained_w:g} W"
    )
    sustained = clocked(chip)
    clock_hz, drawn = (
        (chip.clock_hz, "")
        if sustained is None
        else (sustained.held_hz, f", {sustained.held_w:.0f} W")
    )
    return [
        ("clusters", arrays),
        ("of a cluster", f"{memory}, {shared}"),
        ("clock held", f"{show(clock_hz, 'Hz')}{drawn} ({limit})"),
    ]


def _stacks(chip: Chip) -> str:
    return f"{chip.hbm.stacks} stacks of {chip.hbm.generation}, " if chip.hbm.stacks else ""


def _links(chip: Chip) -> str:
    rate = f"{show(chip.links.bandwidth_bytes_per_s, 'B/s')} one way"
    return f"{chip.links.count}, together {rate}" if not states_clusters(chip) else rate


def _memory(size_bytes: int, bandwidth_bytes_per_s: float) -> str:
    return f"{show(size_bytes, 'B')} at {show(bandwidth_bytes_per_s, 'B/s')}"


def _against(estimate: float, published: float | None, unit: str, bound: bool = False) -> str:
    if published is None:
        return f"{estimate:.0f} {unit} (nothing published)"
    limit, error = "at most " if bound else "", signed(estimate / published - 1)
    return f"{estimate:.0f} {unit} (published {limit}{published:.0f}, {error})"


def _estimates(sheet: Sheet) -> list[tuple[str, str]]:
    chip, published, rows = sheet.chip, sheet.chip.published, []
    if sheet.area_mm2 is not None and sheet.power_w is not None:
        area = _against(sheet.area_mm2, published.die_mm2, "mm2", published.die_is_upper_bound)
        power = _against(sheet.power_w, published.tdp_w, "W")
        rows += [
            ("area, estimate", area),
            ("power, estimate" if states_clusters(chip) else "TDP, estimate", power),
        ]
    if sheet.obstacle is not None:
        rows.append(("manufacturing", sheet.obstacle))
    if sheet.ownership is not None:
        cost = sheet.ownership
        rows += [
            ("manufacturing", f"{digits(cost.making.usd)} USD, {cost.making.kgco2e:.0f} kgCO2e"),
            (
                "running",
                (
                    f"{digits(cost.energy_usd)} USD, {cost.operational_kgco2e:,.0f} kgCO2e "
                    "over its life"
                ),
            ),
        ]
    return rows


def area_bars(parts_mm2: Mapping[str, float]) -> Bars:
    """The area of every part and its share of the whole."""
    total = sum(parts_mm2.values()) or 1.0
    rows = [
        Bar(name.replace("_", " "), area, f"{area:.1f} mm2", f"{area / total:.0%}")
        for name, area in parts_mm2.items()
    ]
    return Bars(rows, "Area")


def chip_sections(sheet: Sheet, notes: str | None, doubtful: Mapping[str, str]) -> list[Section]:
    """The chip; ``doubtful`` are the sources of figures that nobody can look up."""
    chip = sheet.chip
    sections: list[Section] = [Figures([*_parts(sheet), *_estimates(sheet)], chip.name, chip.title)]
    if sheet.parts_mm2 is not None:
        sections.append(area_bars(sheet.parts_mm2))
    if notes:
        sections.append(Notes([notes]))
    if doubtful:
        lines = [f"{path}: {source}" for path, source in doubtful.items()]
        sections.append(Notes(lines, f"Not published readings ({len(doubtful)})"))
    return sections
