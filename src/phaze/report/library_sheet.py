"""What is bundled: models, chips, clusters, stacks and technologies, all of a kind or one of
them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from phaze.report.sections import Figures, Notes, Section, Table
from phaze.units import show

if TYPE_CHECKING:
    from phaze.hardware.chip_document import Sheet
    from phaze.hardware.cluster import Cluster
    from phaze.hardware.stack import Stack
    from phaze.hardware.technology import Technology

MODELS_NOTE = (
    "widths: TP degrees that a search tries; shipped: bundled graphs, at any microbatch "
    "and sequence. By their sizes: "
    "phaze graph --gpt and --llama."
)
CHIPS_NOTE = "mm2 and W are estimates, - where a chip names no technology; GiB and GB/s are of HBM."


def models_sections(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    """Every model."""
    columns = ("model", "layers", "hidden", "parameters", "sequence", "widths", "shipped")
    cells = [
        (
            row["name"],
            str(row["layers"]),
            f"{row['hidden']:,}",
            f"{row['parameters'] / 1e6:,.1f} M",
            str(row["sequence"]),
            _listed(row["widths"]),
            _listed(row["shipped_widths"]),
        )
        for row in rows
    ]
    return [Table(columns, cells), Notes([MODELS_NOTE])]


def _listed(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def model_sections(row: Mapping[str, Any]) -> list[Section]:
    """A model."""
    longest = "any length" if row["positions"] is None else f"at most {row['positions']:,}"
    pairs = [
        ("layers", str(row["layers"])),
        ("hidden, heads", f"{row['hidden']:,}, {row['heads']}"),
        ("parameters", f"{row['parameters']:,}"),
        ("sequence", f"{row['sequence']:,}, {'always' if row['fixed'] else longest}"),
        ("widths searched", _listed(row["widths"])),
        ("widths shipped", _listed(row["shipped_widths"])),
    ]
    if row["experts"] is not None:
        split = ", ".join(f"{key} {value}" for key, value in row["experts"].items())
        pairs.append(("experts' split", f"{split} of 1024 devices"))
    return [Figures(pairs, row["name"])]


def chips_sections(sheets: "Sequence[Sheet]") -> list[Section]:
    """Every chip."""
    columns = ("chip", "TFLOP/s", "tensor", "vector", "GiB", "GB/s", "mm2", "W")
    return [Table(columns, [_chip_row(sheet) for sheet in sheets]), Notes([CHIPS_NOTE])]


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


def space_sections(
    name: str, title: str, sources: Mapping[str, str], counts: Mapping[str, int]
) -> list[Section]:
    """How many chips and parts a space has."""
    note = (
        f"{counts['chips']:,} chips, made of {counts['tensor_parts']:,} different tensor parts "
        f"and {counts['vector_parts']:,} vector parts"
    )
    return [Figures(sorted(sources.items()), name, title, notes=[note])]


def clusters_sections(clusters: "Sequence[Cluster]") -> list[Section]:
    """Every cluster."""
    rows = [
        (cluster.name, cluster.chip or "-", cluster.stack, f"{cluster.devices:,}", _extent(cluster))
        for cluster in clusters
    ]
    return [Table(("cluster", "chip", "stack", "devices", "levels"), rows, texts=3)]


def _extent(cluster: "Cluster") -> str:
    return " x ".join(f"{level.size:,} {level.kind}" for level in cluster.levels)


def cluster_sections(cluster: "Cluster", notes: str | None) -> list[Section]:
    """A cluster: its levels."""
    usual = (
        f"{cluster.devices:,} devices, usually {cluster.chip or 'any chip'} with stack "
        f"{cluster.stack}"
    )
    rows = [
        (
            level.name,
            level.kind,
            "x".join(map(str, level.shape)) or f"{level.size:,}",
            show(level.bandwidth_bytes_per_s, "B/s"),
            show(level.latency_s, "s"),
        )
        for level in cluster.levels
    ]
    levels = Table(("level", "kind", "joins", "a device, one way", "latency"), rows, texts=2)
    return [Notes([usual], cluster.name, cluster.title), levels, *_noted(notes)]


def _noted(notes: str | None) -> list[Section]:
    return [Notes([notes])] if notes else []


def stacks_sections(stacks: "Sequence[Stack]", notes: str | None = None) -> list[Section]:
    """Stacks; ``notes`` are those of a single one."""
    columns = ("stack", "fusion", "optimizer", "host an op", "sync adds", "state B")
    rows = [
        (
            stack.name,
            stack.fusion,
            stack.optimizer,
            show(stack.host_s, "s"),
            f"{stack.overlap.reduction.cost:.0%}",
            f"{stack.state_bytes:g}",
        )
        for stack in stacks
    ]
    return [Table(columns, rows, texts=3), *_noted(notes)]


def processes_sections(processes: "Sequence[Technology]") -> list[Section]:
    """Every technology."""
    columns = ("technology", "", "chips of", "MAC um2", "MAC pJ", "HBM pJ/B", "W/mm2", "wafer USD")
    rows = [
        (
            process.name,
            process.title,
            "clusters" if process.sets_clock else "cores",
            f"{process.area.mac_mm2 * 1e6:,.0f}",
            f"{process.energy.mac_j * 1e12:.2f}",
            f"{process.energy.hbm_j_per_byte * 1e12:.1f}",
            f"{process.energy.static_w_per_mm2:.3f}",
            f"{process.fab.wafer_usd:,.0f}",
        )
        for process in processes
    ]
    return [Table(columns, rows, texts=3)]


def named_processes_sections(processes: "Sequence[Technology]") -> list[Section]:
    """The technologies of one name."""
    from phaze.hardware.technologies import technology_rows

    sections: list[Section] = []
    for process in processes:
        sections.append(Figures(technology_rows(process), process.name, process.title))
        sections += _noted(process.notes)
        sections.append(Figures(sorted(process.sources.items()), "Sources"))
    return sections
