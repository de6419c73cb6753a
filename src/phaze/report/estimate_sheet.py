"""An estimate: time and what bounds it, the mapping, traffic and energy."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from phaze.cost.collective import CollectiveCost
from phaze.cost.estimate import Estimate
from phaze.cost.layer import LayerEstimate
from phaze.cost.mapping import Product, ProductCost
from phaze.hardware.chip import Chip
from phaze.hardware.chip_record import states_clusters
from phaze.report.drawings import Bar, Bars
from phaze.report.sections import Figures, Notes, Section, Table
from phaze.units import Unit, show

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


def _head(title: str, estimate: Estimate, peak: str) -> Figures:
    rows = [
        (
            "time",
            (
                f"{show(estimate.time_s, 's')}  (± {estimate.band:.0%}: "
                f"{BASES[estimate.basis]}, {estimate.load})"
            ),
        ),
        ("", f"waits for: {estimate.bound}; {show(estimate.start_up_s, 's')} of it to start"),
        ("utilisation", f"{estimate.share_of_peak:.1%} of {peak}"),
    ]
    return Figures(rows, title, f"on {estimate.chip}")


def _stays(product: Product, cost: ProductCost) -> str:
    chip = cost.chip
    resident = {
        "a": f"{chip.mg} of {product.m} rows of A stay; B and C stream in slices of {chip.ng}",
        "b": f"{chip.ng} of {product.n} columns of B stay; A and C stream in slices of {chip.mg}",
        "c": f"sums of {chip.mg} x {chip.ng} of C stay; A and B stream in slices of {chip.kg}",
        "through": "nothing stays: every tile is fetched from HBM",
    }[chip.order]
    return resident + ("; operands of the operator before are still here" if chip.resident else "")


def _workers(cost: ProductCost, chip: Chip) -> int:
    """Cores, clusters or arrays of clusters that make a tile each."""
    return cost.workers or chip.tensor_cores


def _worker_nouns(cost: ProductCost, chip: Chip) -> tuple[str, str]:
    """What makes a tile, in the singular and the plural."""
    if not states_clusters(chip):
        return "core", "cores"
    alone = cost.workers == chip.clusters.count
    return ("cluster", "clusters") if alone else ("array", "arrays of the clusters")


def _tiles(product: Product, cost: ProductCost, chip: Chip) -> list[str]:
    """The output C as tiles, a letter for each core of the first wave; a dot for what later waves
    make."""
    core = cost.core
    down, across = -(-product.m // core.mt), -(-product.n // core.nt)
    lines = []
    for row in range(min(down, MOST_DRAWN // 2)):
        cells = []
        for column in range(min(across, MOST_DRAWN)):
            group = (row // core.gm) * -(-across // core.gn) + column // core.gn
            number = group * core.gm * core.gn + (row % core.gm) * core.gn + column % core.gn
            cells.append(chr(ord("A") + number % 26) if number < _workers(cost, chip) else "·")
        lines.append("  " + " ".join(cells) + (" …" if across > MOST_DRAWN else ""))
    return [*lines, *(["  …"] if down > MOST_DRAWN // 2 else [])]


def _mapping(product: Product, cost: ProductCost, chip: Chip) -> list[Section]:
    core, workers, (noun, plural) = cost.core, _workers(cost, chip), _worker_nouns(cost, chip)
    items = product.batch * -(-product.m // core.mt) * -(-product.n // core.nt) * core.ks
    waves = -(-items // workers)
    split = f", k in {core.ks} parts that are summed after" if core.ks > 1 else ""
    sums, slices = f"sums of {core.mt} x {core.nt}", f"A and B in slices of {core.kc}, two of each"
    rows = [
        ("global buffer", _stays(product, cost)),
        (
            plural.split()[0],
            (
                f"{items:,} tiles of {core.mt} x {core.nt}{split}: {waves:,} waves over "
                f"{workers} {plural}"
            ),
        ),
        (
            "",
            (
                f"{core.gm} x {core.gn} {'clusters' if states_clusters(chip) else 'cores'} "
                "share what is read"
            ),
        ),
        ("operand buffer", f"{slices}; {sums} in registers")
        if states_clusters(chip)
        else ("core buffer", f"{sums}; {slices}"),
        ("array", f"{chip.clusters.rows} x {chip.clusters.columns}: {FLOWS[core.flow]}"),
    ]
    tiles = Notes(
        _tiles(product, cost, chip),
        f"Output C, a letter for each {noun} of the first wave",
        verbatim=True,
    )
    return [Figures(rows, "Mapping"), tiles]


def _bars(title: str, values: Mapping[str, float], unit: Unit) -> Bars:
    return Bars(
        [Bar(name.replace("_", " "), value, show(value, unit)) for name, value in values.items()],
        title,
    )


def _traffic_and_energy(estimate: Estimate) -> list[Section]:
    traffic = _bars("Traffic", estimate.traffic_bytes, "B")
    if estimate.energy_j is None:
        return [traffic, Notes(["No energy: the chip names no technology."])]
    watts = "" if estimate.average_w is None else f", {estimate.average_w:.0f} W"
    total = show(sum(estimate.energy_j.values()), "J")
    spent = {name: energy_j for name, energy_j in estimate.energy_j.items() if energy_j}
    return [traffic, _bars(f"Energy {total}{watts}", spent, "J")]


def product_sections(product: Product, estimate: Estimate, chip: Chip) -> list[Section]:
    """The estimate of a product."""
    title = f"{product.batch} x [{product.m} x {product.k}] [{product.k} x {product.n}]"
    sections: list[Section] = [_head(title, estimate, show(chip.peak_flops, "FLOP/s"))]
    mapping = estimate.mapping
    if mapping is not None:
        waits = {"array": mapping.core.array_s, "core buffer": mapping.core.core_s}
        waits |= {"global buffer": mapping.global_s, "hbm": mapping.hbm_s}
        sections += [*_mapping(product, mapping, chip), _bars("What it waits for", waits, "s")]
    return [*sections, *_traffic_and_energy(estimate)]


def vector_sections(title: str, estimate: Estimate, chip: Chip) -> list[Section]:
    """The estimate of a vector operator."""
    head = _head(title, estimate, f"{show(chip.vector_flops, 'FLOP/s')} of the lanes")
    return [head, *_traffic_and_energy(estimate)]


def collective_sections(title: str, algorithms: Sequence[CollectiveCost]) -> list[Section]:
    """The algorithms of a collective, best first."""
    least = algorithms[0].time_s
    rows = [
        (
            algorithm.way,
            show(algorithm.time_s, "s"),
            show(algorithm.latency_s, "s"),
            show(algorithm.sent_bytes, "B"),
            f"{algorithm.time_s / least if least else 1:.2f}",
        )
        for algorithm in algorithms
    ]
    return [Table(("algorithm", "time", "latency", "sent", "x best"), rows, title)]


def layers_sections(title: str, layers: Sequence[LayerEstimate]) -> list[Section]:
    """The passes of a model's layers."""
    rows, whole_s = [], {"forward": 0.0, "backward": 0.0}
    for layer in layers:
        for name, run in (("forward", layer.forward), ("backward", layer.backward)):
            watts = (
                "-"
                if run.average_w is None or run.peak_w is None
                else f"{run.average_w:.0f}/{run.peak_w:.0f}"
            )
            times = [
                f"{1e3 * time_s:,.3f}"
                for time_s in (run.time_s, run.tensor_s, run.vector_s, run.network_s)
            ]
            head = f"{layer.count} x {layer.name}" if name == "forward" else ""
            rows.append((head, name, *times, f"{run.share_of_peak:.0%}", watts))
            whole_s[name] += layer.count * run.time_s
    columns = ("layer", "pass", "ms", "tensor", "vector", "network", "peak", "W")
    sums = f"forward {show(whole_s['forward'], 's')}, backward {show(whole_s['backward'], 's')}"
    return [Table(columns, rows, title, texts=2), Notes([f"all calls: {sums}; W: mean/greatest"])]
