"""A job with its network changed: another bandwidth of one level, or other devices. Nothing else of
it is.

Explanations ask what more of the network buys and how wrong its figures may be; they know a job's
network by this file alone. A network is a list of levels, innermost first; what counts on one flat
link has just that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from phaze.errors import InfeasibleError
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster, grown
from phaze.placement.settings import job_rules
from phaze.search.task import SearchJob, on_cluster, with_links
from phaze.values import replace


@dataclass(frozen=True, slots=True)
class NetworkLevel:
    """One level of a job's network; ``of_chip``: it runs at the chip's own links, so these change
    with it."""

    name: str
    bandwidth_bytes_per_s: float
    of_chip: bool


def levels_of(job: SearchJob, chip: Chip) -> tuple[NetworkLevel, ...]:
    """The levels of the job's network under a chip, as explanations name them; a flat link is the
    chip's own, and so is the innermost level where links are an axis of the space."""
    training = job.models[0].training
    cluster = training.machine.cluster
    if job.space.own_links:
        cluster = with_links(cluster, chip.links.bandwidth_bytes_per_s, of_chip=True)
    if job_rules(training).link_bytes_per_s is not None:
        return (NetworkLevel("link", cluster.levels[0].bandwidth_bytes_per_s, True),)
    levels = cluster.levels
    return tuple(
        NetworkLevel(f"{level.name} bandwidth", level.bandwidth_bytes_per_s, level.of_chip)
        for level in levels
    )


def with_bandwidths(job: SearchJob, bandwidths: Sequence[float]) -> SearchJob:
    """The job on levels of these bandwidths in bytes/s, innermost first."""

    def faster(cluster: Cluster) -> Cluster:
        pairs = zip(cluster.levels, bandwidths, strict=True)
        return replace(
            cluster,
            levels=tuple(replace(level, bandwidth_bytes_per_s=rate) for level, rate in pairs),
        )

    models = tuple(on_cluster(task, faster(task.training.machine.cluster)) for task in job.models)
    return replace(job, models=models, cluster=None if job.cluster is None else faster(job.cluster))


def with_devices(job: SearchJob, devices: int) -> SearchJob | None:
    """The job on so many devices, its cluster grown as that of a study; None where the cluster
    cannot have as many."""
    try:
        cluster = None if job.cluster is None else grown(job.cluster, devices, "devices")
        models = tuple(
            on_cluster(task, grown(task.training.machine.cluster, devices, "devices"), devices)
            for task in job.models
        )
        return replace(job, models=models, cluster=cluster)
    except InfeasibleError:
        return None
