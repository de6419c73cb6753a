"""A job with its network changed: another bandwidth of one level, or other devices. Nothing else of it is.

Explanations ask what more of the network buys and how wrong its figures may be; they know a job's network by this file
alone. A network is a list of levels, innermost first; rules icml24 have one, the flat link.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phaze.errors import InfeasibleError
from phaze.evaluate.prices import KnownPrices, LevelPrices
from phaze.evaluate.shelf import Shelf
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster, grown
from phaze.schedule.solve import KnownPart
from phaze.search.cluster_task import ClusterTask, ClusterTraining, serial_graph
from phaze.search.task import Job, ModelTask, at_link


@dataclass(frozen=True, slots=True)
class NetworkLevel:
    """One level of a job's network; ``of_chip``: it runs at the chip's own links, so these change with it."""

    name: str
    bandwidth_bytes_per_s: float
    of_chip: bool


def levels_of(job: Job) -> tuple[NetworkLevel, ...]:
    """The levels of the job's network, as explanations name them."""
    task = job.models[0]
    if not isinstance(task, ClusterTask):
        return (NetworkLevel("link", task.training.link_bytes_per_s, True),)
    levels = task.job.machine.cluster.levels
    return tuple(
        NetworkLevel(f"{level.name} bandwidth", level.bandwidth_bytes_per_s, level.of_chip) for level in levels
    )


def _moved(task: ClusterTask, training: ClusterTraining) -> ClusterTask:
    """The model in another training: collectives and prices anew, schedules found so far kept (they say of what)."""
    machine = training.machine
    graphs = tuple(serial_graph(task.graph(at).model, machine) for at in range(len(task.graphs)))
    prices = KnownPrices(LevelPrices(machine.cluster, machine.basis))
    shelf = Shelf()
    shelf.take("schedules", lambda: task.shelf.take("schedules", dict[str, KnownPart]))
    return replace(task, training=training, graphs=graphs, prices=prices, shelf=shelf)


def _on_cluster(task: ClusterTask, cluster: Cluster, devices: int) -> ClusterTask:
    link = cluster.levels[0].bandwidth_bytes_per_s
    machine = replace(task.job.machine, cluster=cluster)
    return _moved(task, replace(task.job, machine=machine, devices=devices, link_bytes_per_s=link))


def with_bandwidths(job: Job, bandwidths: Sequence[float]) -> Job:
    """The job on levels of these bandwidths in bytes/s, innermost first."""

    def faster(cluster: Cluster) -> Cluster:
        pairs = zip(cluster.levels, bandwidths, strict=True)
        return replace(cluster, levels=tuple(replace(one, bandwidth_bytes_per_s=rate) for one, rate in pairs))

    def own(task: ModelTask) -> ModelTask:
        if isinstance(task, ClusterTask):
            return _on_cluster(task, faster(task.job.machine.cluster), task.job.devices)
        return at_link(task, bandwidths[0])

    cluster = None if job.cluster is None else faster(job.cluster)
    return replace(job, models=tuple(own(task) for task in job.models), cluster=cluster)


def with_devices(job: Job, devices: int) -> Job | None:
    """The job on so many devices, its cluster grown as that of a study; None where the cluster cannot have as many."""

    def own(task: ModelTask) -> ModelTask:
        if isinstance(task, ClusterTask):
            return _on_cluster(task, grown(task.job.machine.cluster, devices, "devices"), devices)
        return replace(task, training=replace(task.training, devices=devices))

    try:
        cluster = None if job.cluster is None else grown(job.cluster, devices, "devices")
        return replace(job, models=tuple(own(task) for task in job.models), cluster=cluster)
    except InfeasibleError:
        return None


def chip_with_links(chip: Chip, link_bytes_per_s: float) -> Chip:
    """The chip with links of another bandwidth."""
    return replace(chip, links=replace(chip.links, bandwidth_bytes_per_s=link_bytes_per_s))
