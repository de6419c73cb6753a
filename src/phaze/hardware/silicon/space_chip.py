"""One chip of a space of chips of clusters as a value, with a name that says what it is made of."""

from dataclasses import replace

from phaze.hardware.silicon.chip import Accelerator, Built, Clusters, Hbm, SerialLinks, port_of
from phaze.hardware.silicon.space import ClusterSpace, SpaceColumns


def _name(space: ClusterSpace, own: Clusters, held: int, width: float, stacks: int, links: float) -> str:
    """What a chip is made of; buffers and the width where they are an axis."""
    axes = space.file.axes
    said = f"{own.count}x{own.arrays}x{own.rows}x{own.columns}-l{own.lanes}"
    said += f"-o{own.operand_bytes / own.arrays / 1024:.9g}KiB" if len(set(axes.operand_buffer)) > 1 else ""
    said += f"-r{own.register_bytes / 1024:.9g}KiB" if len(set(axes.registers)) > 1 else ""
    said += f"-{held / 2**20:.9g}MiB" + (f"-w{width:.9g}" if len(set(axes.global_width)) > 1 else "")
    return said + f"-s{stacks}-{links / 1e9:.9g}GBs"


def space_chip(space: ClusterSpace, found: SpaceColumns, index: int, number: int | None = None) -> Accelerator:
    """One chip of the space as a value, at its rated clock and under the space's limit; ``number``: what documents call
    it where that is not its place."""
    chips, base = found.chips, space.base
    count, arrays, rows, columns = (int(x[index]) for x in (chips.clusters, chips.arrays, chips.rows, chips.columns))
    stacks, held = int(chips.stacks[index]), int(chips.global_bytes[index])
    width = float(chips.width[index])
    clusters = replace(
        base.clusters,
        count=count,
        arrays=arrays,
        rows=rows,
        columns=columns,
        lanes=int(chips.lanes[index]),
        operand_bytes=int(chips.operand_bytes[index]),
        register_bytes=int(chips.register_bytes[index]),
        port_bytes_per_cycle=port_of(width, count),
    )
    rate = stacks * space.stack_bytes_per_s
    return replace(
        base,
        name=_name(space, clusters, held, width, stacks, float(chips.link_bytes_per_s[index])),
        title=f"chip {index if number is None else number} of the space {space.file.name}",
        clusters=clusters,
        global_buffer=replace(base.global_buffer, size_bytes=held, bytes_per_cycle=width),
        hbm=Hbm(stacks, base.hbm.generation, stacks * space.stack_bytes, rate),
        links=SerialLinks(float(chips.link_bytes_per_s[index]), base.links.lane_bytes_per_s),
        built=Built(int(chips.built[index]), held, stacks),
        sustained_w=space.file.keep.sustained_power,
    )
