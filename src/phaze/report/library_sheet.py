"""What is bundled, for a terminal: models, chips, clusters, stacks and technologies, all of a kind or one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from phaze.report.terminal import facts, paragraph, table
from phaze.units import show as with_unit

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.cluster import Cluster
    from phaze.hardware.sheet import Sheet
    from phaze.hardware.stack import Stack
    from phaze.hardware.technologies import Process


def show_models(console: "Console", rows: Sequence[Mapping[str, Any]]) -> None:
    """Every model."""
    columns = ("model", "layers", "hidden", "parameters", "sequence", "widths", "shipped")
    cells = [
        (
            row["name"],
            str(row["layers"]),
            f"{row['hidden']:,}",
            f"{row['parameters'] / 1e6:,.1f} M",
            str(row["sequence"]),
            " ".join(map(str, row["widths"])),
            " ".join(map(str, row["shipped_widths"])),
        )
        for row in rows
    ]
    console.print(table(columns, cells))
    console.print()
    text = (
        "widths: TP degrees that a search tries; shipped: bundled graphs, at any microbatch and sequence. "
        "By their sizes: phaze graph --gpt and --llama."
    )
    paragraph(console, text)


def show_model(console: "Console", row: Mapping[str, Any]) -> None:
    """One model."""
    longest = "any length" if row["positions"] is None else f"at most {row['positions']:,}"
    pairs = [
        ("layers", str(row["layers"])),
        ("hidden, heads", f"{row['hidden']:,}, {row['heads']}"),
        ("parameters", f"{row['parameters']:,}"),
        ("sequence", f"{row['sequence']:,}, {'always' if row['fixed'] else longest}"),
        ("widths searched", " ".join(map(str, row["widths"]))),
        ("widths shipped", " ".join(map(str, row["shipped_widths"]))),
    ]
    if row["experts"] is not None:
        split = ", ".join(f"{key} {value}" for key, value in row["experts"].items())
        pairs.append(("experts' split", f"{split} of 1024 devices"))
    console.print(f"[bold]{row['name']}[/bold]\n")
    console.print(facts(pairs))


def show_chips(console: "Console", sheets: "Sequence[Sheet]") -> None:
    """Every chip."""
    columns = ("chip", "TFLOP/s", "tensor", "vector", "GiB", "GB/s", "mm2", "W")
    console.print(table(columns, map(_chip_row, sheets)))
    console.print("\nmm2 and W are estimates, - where a chip names no technology; GiB and GB/s are of HBM.")


def _chip_row(sheet: "Sheet") -> tuple[str, ...]:
    chip = sheet.chip
    return (
        chip.name,
        f"{chip.peak_flops / 1e12:,.0f}",
        f"{chip.tensor_cores} of {chip.clusters.rows}x{chip.clusters.columns}",
        f"{chip.vectors.count} of {chip.vectors.lanes}",
        f"{chip.hbm.size_bytes / 2**30:.0f}",
        f"{chip.hbm.bandwidth_bytes_per_s / 1e9:,.0f}",
        "-" if sheet.area_mm2 is None else f"{sheet.area_mm2:.0f}",
        "-" if sheet.power_w is None else f"{sheet.power_w:.0f}",
    )


def show_space(console: "Console", title: str, sources: Mapping[str, str], counted: Mapping[str, int]) -> None:
    """How many chips and parts a space has."""
    console.print(title, style="bold", markup=False)
    if sources:
        console.print(facts(sorted(sources.items())))
    console.print(
        f"{counted['chips']:,} chips, made of {counted['tensor_parts']:,} different tensor parts "
        f"and {counted['vector_parts']:,} vector parts"
    )


def show_clusters(console: "Console", clusters: "Sequence[Cluster]") -> None:
    """Every cluster."""
    rows = [(c.name, c.chip or "-", c.stack, f"{c.devices:,}", " x ".join(_extent(c))) for c in clusters]
    console.print(table(("cluster", "chip", "stack", "devices", "levels"), rows, left=3))


def _extent(cluster: "Cluster") -> list[str]:
    return [f"{level.size:,} {level.kind}" for level in cluster.levels]


def show_cluster(console: "Console", cluster: "Cluster", notes: str | None) -> None:
    """One cluster: its levels."""
    console.print(f"{cluster.name}  {cluster.title}", style="bold", markup=False)
    usual = f"usually {cluster.chip or 'any chip'} with stack {cluster.stack}"
    console.print(f"{cluster.devices:,} devices, {usual}\n", markup=False)
    rows = [
        (
            level.name,
            level.kind,
            "x".join(map(str, level.shape)) or f"{level.size:,}",
            with_unit(level.bandwidth_bytes_per_s, "B/s"),
            with_unit(level.latency_s, "s"),
        )
        for level in cluster.levels
    ]
    console.print(table(("level", "kind", "joins", "a device, one way", "latency"), rows, left=2))
    if notes:
        console.print()
        paragraph(console, notes)


def show_stacks(console: "Console", stacks: "Sequence[Stack]", notes: str | None = None) -> None:
    """Stacks, and what there is to say of one."""
    columns = ("stack", "fusion", "optimizer", "host an op", "hidden sync", "state B")
    rows = [
        (
            stack.name,
            stack.fusion,
            stack.optimizer,
            with_unit(stack.host_s, "s"),
            f"{stack.hidden_synchronisation:.0%}",
            f"{stack.state_bytes:g}",
        )
        for stack in stacks
    ]
    console.print(table(columns, rows, left=3))
    if notes:
        console.print()
        paragraph(console, notes)


def show_processes(console: "Console", found: "Sequence[Process]") -> None:
    """Every technology."""
    columns = ("technology", "", "chips of", "MAC um2", "MAC pJ", "HBM pJ/B", "W/mm2", "wafer USD")
    rows = [
        (
            one.name,
            one.title,
            one.chips_of,
            f"{one.mac_mm2 * 1e6:,.0f}",
            f"{one.mac_j * 1e12:.2f}",
            f"{one.hbm_j_per_byte * 1e12:.1f}",
            f"{one.static_w_per_mm2:.3f}",
            f"{one.fab.wafer_usd:,.0f}",
        )
        for one in found
    ]
    console.print(table(columns, rows, left=3))


def show_process(console: "Console", one: "Process") -> None:
    """One technology."""
    console.print(f"{one.name}  {one.title}\n", style="bold", markup=False)
    console.print(facts(one.rows()))
    if one.notes:
        console.print()
        paragraph(console, one.notes)
    console.print("\nSources", style="bold")
    console.print(facts(sorted(one.sources.items())))


def show_named_processes(console: "Console", found: "Sequence[Process]") -> None:
    """The technologies of one name."""
    for at, one in enumerate(found):
        if at:
            console.print()
        show_process(console, one)
