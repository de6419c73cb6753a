"""The cluster of a study as its table ``cluster`` changes it: a flat link, or single levels by
name.

    [cluster.levels.node]      bandwidth, latency or size of one level of the cluster that
                               training.cluster names

What is swept of a network (``phaze sweep --over cluster.levels.node.bandwidth=...``) goes through
here, point by point.
"""

from math import prod

from phaze.errors import InputError, unknown_name
from phaze.hardware.cluster import Cluster, Level
from phaze.study.schema import ClusterTable, LevelChanges
from phaze.values import replace


def _level(level: Level, changes: LevelChanges, where: str) -> Level:
    if changes.size is not None and level.kind == "torus":
        shape = " x ".join(str(extent) for extent in level.shape)
        raise InputError(
            f"{where}.size",
            f"level {level.name} is a torus of {shape}",
            "give a cluster file of its own",
        )
    changed = level
    if changes.bandwidth is not None:
        changed = replace(changed, bandwidth_bytes_per_s=changes.bandwidth, of_chip=False)
    if changes.latency is not None:
        changed = replace(changed, latency_s=changes.latency)
    return changed if changes.size is None else replace(changed, size=changes.size)


def changed_cluster(cluster: Cluster, table: ClusterTable) -> Cluster:
    """The cluster with what the table says of its levels."""
    names = tuple(level.name for level in cluster.levels)
    for name in table.levels:
        if name not in names:
            raise unknown_name(f"cluster.levels.{name}", f"level of {cluster.name}", name, names)
    link, changes = table.link_bytes_per_s, dict(table.levels)
    if link is not None:
        if len(names) > 1:
            raise InputError(
                "cluster.link_bytes_per_s",
                f"{cluster.name} has {len(names)} levels, each with its own bandwidth",
                f"say cluster.levels.{names[0]}.bandwidth",
            )
        if changes.get(names[0], LevelChanges()).bandwidth is not None:
            raise InputError(
                "cluster.link_bytes_per_s", "the level's bandwidth is given too", "give one of them"
            )
        cluster = replace(
            cluster, levels=(replace(cluster.levels[0], bandwidth_bytes_per_s=link, of_chip=False),)
        )
    levels = tuple(
        _level(level, changes[level.name], f"cluster.levels.{level.name}")
        if level.name in changes
        else level
        for level in cluster.levels
    )
    return replace(cluster, devices=prod(level.size for level in levels), levels=levels)


def states_links(table: ClusterTable, cluster: Cluster) -> bool:
    """Whether the study itself says how fast the innermost level is, whatever links a chip has."""
    first = table.levels.get(cluster.levels[0].name)
    return table.link_bytes_per_s is not None or (first is not None and first.bandwidth is not None)
