"""``phaze clusters``: how devices are joined, and the software stacks that run on them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.cluster import Cluster

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a cluster file (- for standard input).")]


@answering
def clusters(name: Name = None) -> Answer:
    """List clusters, or show one: its levels, bandwidths and latencies.

    Examples: phaze clusters · phaze clusters dgx-h100 · phaze clusters my-cluster.toml --json
    """
    from phaze.hardware.files import ClusterFile
    from phaze.hardware.library import load_cluster, preset_names, read

    if name is not None:
        file, cluster = read(ClusterFile, "clusters", name), load_cluster(name)
        document = {**_plain(cluster), "notes": file.notes, "sources": dict(file.sources)}
        return Answer((document,), lambda console: _show(console, cluster, file.notes))
    found = [load_cluster(each) for each in preset_names("clusters")]

    def show(console: "Console") -> None:
        from phaze.report.terminal import table

        rows = [(c.name, c.chip or "-", c.stack, f"{c.devices:,}", " x ".join(_extent(c))) for c in found]
        console.print(table(("cluster", "chip", "stack", "devices", "levels"), rows, left=3))

    return Answer(({"clusters": [_plain(c) for c in found]},), show)


def _plain(cluster: "Cluster") -> dict[str, Any]:
    """A cluster as its file has it; whether it grows is no part of that."""
    from dataclasses import asdict

    return {key: value for key, value in asdict(cluster).items() if key not in ("limit", "enlarged_from")}


def _extent(cluster: "Cluster") -> list[str]:
    return [f"{level.size:,} {level.kind}" for level in cluster.levels]


def _show(console: "Console", cluster: "Cluster", notes: str | None) -> None:
    from phaze.report.terminal import paragraph, table
    from phaze.units import show

    console.print(f"{cluster.name}  {cluster.title}", style="bold", markup=False)
    usual = f"usually {cluster.chip or 'any chip'} with stack {cluster.stack}"
    console.print(f"{cluster.devices:,} devices, {usual}\n", markup=False)
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
    console.print(table(("level", "kind", "joins", "a device, one way", "latency"), rows, left=2))
    if notes:
        console.print()
        paragraph(console, notes)
