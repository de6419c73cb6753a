"""An estimate in the terminal: time and what bounds it, the mapping drawn, traffic and energy."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rich.console import Console
from rich.markup import escape

from phaze.cost.collective import CollectiveCost
from phaze.cost.estimate import Estimate
from phaze.cost.layer import LayerEstimate
from phaze.cost.mapping import Product, ProductCost
from phaze.hardware.chip import Chip
from phaze.report.terminal import bar, facts, table
from phaze.units import show

FLOWS: Mapping[str, str] = MappingProxyType(
    {
        "os-mn": "m on rows, n on columns; outputs stay, k streams",
        "os-nm": "n on rows, m on columns; outputs stay, k streams",
        "ws": "k on rows, n on columns; weights stay, m streams",
        "is": "k on rows, m on columns; inputs stay, n streams",
    }
)
BASES: Mapping[str, str] = MappingProxyType(
    {
        "calibrated": "measured constants of this chip",
        "fitted": "one share measured, the rest data sheet",
        "datasheet": "data-sheet defaults, nothing measured on this chip",
        "held": "the clock that its power limit allows, nothing measured on this chip",
        "ideal": "peak rates, no start-up",
    }
)
MOST_DRAWN = 16
"""Tiles across a terminal of 80 columns."""


def _head(console: Console, title: str, found: Estimate, peak: str) -> None:
    console.print(f"[bold]{escape(title)}[/bold]  on {escape(found.chip)}\n")
    basis = BASES[found.basis]
    waits = f"waits for: {found.bound}; {show(found.start_up_s, 's')} of it to start"
    rows = [
        ("time", f"{show(found.time_s, 's')}  (± {found.band:.0%}: {basis}, {found.load})"),
        ("", waits),
        ("utilisation", f"{found.share_of_peak:.1%} of {peak}"),
    ]
    console.print(facts(rows))


def _stays(p: Product, found: ProductCost) -> str:
    chip = found.chip
    kept = {
        "a": f"{chip.mg} of {p.m} rows of A stay; B and C stream in slices of {chip.ng}",
        "b": f"{chip.ng} of {p.n} columns of B stay; A and C stream in slices of {chip.mg}",
        "c": f"sums of {chip.mg} x {chip.ng} of C stay; A and B stream in slices of {chip.kg}",
        "through": "nothing stays: every tile is fetched from HBM",
    }[chip.order]
    return kept + ("; operands of the operator before are still here" if chip.resident else "")


def _workers(found: ProductCost, chip: Chip) -> int:
    """Cores, clusters or arrays of clusters that make a tile each."""
    return found.workers or chip.tensor_cores


def _named(found: ProductCost, chip: Chip) -> tuple[str, str]:
    """What makes a tile, one and several."""
    if not chip.of_clusters:
        return "core", "cores"
    alone = found.workers == chip.clusters.count
    return ("cluster", "clusters") if alone else ("array", "arrays of the clusters")


def _tiles(p: Product, found: ProductCost, chip: Chip) -> list[str]:
    """The output C as tiles, a letter for each core of the first wave; a dot for what later waves make."""
    core = found.core
    down, across = -(-p.m // core.mt), -(-p.n // core.nt)
    lines = []
    for row in range(min(down, MOST_DRAWN // 2)):
        cells = []
        for column in range(min(across, MOST_DRAWN)):
            group = (row // core.gm) * -(-across // core.gn) + column // core.gn
            number = group * core.gm * core.gn + (row % core.gm) * core.gn + column % core.gn
            cells.append(chr(ord("A") + number % 26) if number < _workers(found, chip) else "·")
        lines.append(" ".join(cells) + (" …" if across > MOST_DRAWN else ""))
    return [*lines, *(["…"] if down > MOST_DRAWN // 2 else [])]


def _mapping(console: Console, p: Product, found: ProductCost, chip: Chip) -> None:
    core, workers, (one, several) = found.core, _workers(found, chip), _named(found, chip)
    items = p.batch * -(-p.m // core.mt) * -(-p.n // core.nt) * core.ks
    waves = -(-items // workers)
    split = f", k in {core.ks} parts that are summed after" if core.ks > 1 else ""
    array = f"{chip.clusters.rows} x {chip.clusters.columns}"
    rows = [
        ("global buffer", _stays(p, found)),
        (
            several.split()[0],
            f"{items:,} tiles of {core.mt} x {core.nt}{split}: {waves:,} waves over {workers} {several}",
        ),
        ("", f"{core.gm} x {core.gn} {'clusters' if chip.of_clusters else 'cores'} share what is read"),
        (
            "operand buffer" if chip.of_clusters else "core buffer",
            f"sums of {core.mt} x {core.nt}; A and B in slices of {core.kc}, two of each"
            if not chip.of_clusters
            else f"A and B in slices of {core.kc}, two of each; sums of {core.mt} x {core.nt} in registers",
        ),
        ("array", f"{array}: {FLOWS[core.flow]}"),
    ]
    console.print("\n[bold]Mapping[/bold]")
    console.print(facts(rows))
    console.print(f"\nC, one letter for each {one} of the first wave:", style="dim")
    for line in _tiles(p, found, chip):
        console.print("  " + line, markup=False)


def _bars(console: Console, title: str, values: Mapping[str, tuple[float, str]]) -> None:
    most = max((value for value, _ in values.values()), default=0.0)
    console.print(f"\n[bold]{title}[/bold]")
    rows = [(name, text, bar(value / most if most else 0.0, 40)) for name, (value, text) in values.items()]
    for name, text, drawn in rows:
        console.print(f"{name:<15}{text:>12}  {drawn}".rstrip(), markup=False)


def _tail(console: Console, found: Estimate) -> None:
    traffic = {name: (moved, show(moved, "B")) for name, moved in found.traffic_bytes.items()}
    _bars(console, "Traffic", traffic)
    if found.energy_j is None:
        console.print("\nNo energy: the chip names no technology.")
        return
    total = sum(found.energy_j.values())
    spent = {name.replace("_", " "): (j, show(j, "J")) for name, j in found.energy_j.items() if j}
    watts = "" if found.average_w is None else f", {found.average_w:.0f} W"
    _bars(console, f"Energy {show(total, 'J')}{watts}", spent)


def show_product(console: Console, p: Product, found: Estimate, chip: Chip) -> None:
    """Print the estimate of a product."""
    title = f"{p.batch} x [{p.m} x {p.k}] [{p.k} x {p.n}]"
    _head(console, title, found, show(chip.peak_flops, "FLOP/s"))
    mapping = found.mapping
    if mapping is not None:
        _mapping(console, p, mapping, chip)
        waits = {"array": mapping.core.array_s, "core buffer": mapping.core.core_s}
        waits |= {"global buffer": mapping.global_s, "hbm": mapping.hbm_s}
        _bars(console, "What it waits for", {name: (s, show(s, "s")) for name, s in waits.items()})
    _tail(console, found)


def show_vector(console: Console, title: str, found: Estimate, chip: Chip) -> None:
    """Print the estimate of a vector operator."""
    _head(console, title, found, f"{show(chip.vector_flops, 'FLOP/s')} of the lanes")
    _tail(console, found)


def show_collective(console: Console, title: str, ways: Sequence[CollectiveCost]) -> None:
    """Print the ways to run a collective, best first."""
    console.print(f"[bold]{escape(title)}[/bold]\n")
    least = ways[0].time_s
    rows = [
        (
            way.way,
            show(way.time_s, "s"),
            show(way.latency_s, "s"),
            show(way.sent_bytes, "B"),
            f"{way.time_s / least if least else 1:.2f}",
        )
        for way in ways
    ]
    console.print(table(("algorithm", "time", "latency", "sent", "x best"), rows))


def show_layers(console: Console, title: str, layers: Sequence[LayerEstimate]) -> None:
    """Print the passes of a model's layers."""
    console.print(f"[bold]{escape(title)}[/bold]\n")
    rows = []
    for layer in layers:
        for name, one in (("forward", layer.forward), ("backward", layer.backward)):
            watts = "-" if one.average_w is None or one.peak_w is None else f"{one.average_w:.0f}/{one.peak_w:.0f}"
            spans = (one.time_s, one.tensor_s, one.vector_s, one.network_s)
            head = f"{layer.count} x {layer.name}" if name == "forward" else ""
            rows.append((head, name, *(f"{1e3 * s:,.3f}" for s in spans), f"{one.share_of_peak:.0%}", watts))
    console.print(table(("layer", "pass", "ms", "tensor", "vector", "network", "peak", "W"), rows, left=2))
    whole = [
        sum(x.count * one.time_s for x, one in ((x, getattr(x, p)) for x in layers)) for p in ("forward", "backward")
    ]
    console.print(f"\nall calls: forward {show(whole[0], 's')}, backward {show(whole[1], 's')}; W: mean/greatest")
