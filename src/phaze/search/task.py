"""What is searched, as frozen values: models ready to be scheduled, a space of chips, memories, an objective, a gap."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.flow import Prepared, Training
from phaze.evaluate.passes import LayerPasses, Pass
from phaze.evaluate.training_run import Budget
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.placement.problem import Recompute
from phaze.search.objective import Objective
from phaze.search.space import Space

Rules = Literal["icml24", "cluster"]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a model on a chip: which of its prepared graphs (width, microbatch), and whether it recomputes."""

    graph: int
    recompute: Recompute


@dataclass(frozen=True, slots=True)
class ModelTask:
    """One model: its graphs at every width and microbatch, its job, and how much it counts beside other models."""

    rules: ClassVar[Rules] = "icml24"
    name: str
    weight: float
    training: Training
    graphs: tuple[Prepared, ...]
    ways: tuple[Way, ...]


def ways_of(graphs: tuple[Prepared, ...], recompute: tuple[Recompute, ...]) -> tuple[Way, ...]:
    """Every graph with every recompute choice, in a fixed order."""
    return tuple(Way(at, choice) for at in range(len(graphs)) for choice in recompute)


@dataclass(frozen=True, slots=True)
class Job:
    """A search: everything that its answer depends on. ``hbm_bytes`` ascends; ``digest`` is over all of
    it, graphs included; ``baseline`` is the chip that the objective names, ``cluster`` where the job runs."""

    name: str
    models: tuple[ModelTask, ...]
    space: Space
    hbm_bytes: tuple[int, ...]
    objective: Objective
    gap: float
    digest: str
    round_size: int = 16
    limit_s: float | None = None
    baseline: Chip | None = None
    cluster: Cluster | None = None
    budget: Budget | None = None

    def cluster_on(self, chip: Chip) -> Cluster | None:
        """The cluster of the answer; where links are an axis, its one level is as fast as the chip's own."""
        if self.cluster is None or self.space.axes.links is None:
            return self.cluster
        level = replace(self.cluster.levels[0], bandwidth_bytes_per_s=chip.links.bandwidth_bytes_per_s, of_chip=True)
        return replace(self.cluster, levels=(level,))

    @property
    def rules(self) -> Rules:
        """The rules that all its models are placed under."""
        return self.models[0].rules


def _pass_at(one: Pass, ratio: float) -> Pass:
    return replace(one, network_s=tuple(ratio * wait_s for wait_s in one.network_s))


def _layer_at(layer: LayerPasses, ratio: float) -> LayerPasses:
    return replace(layer, forward=_pass_at(layer.forward, ratio), backward=_pass_at(layer.backward, ratio))


def at_link(task: ModelTask, link_bytes_per_s: float) -> ModelTask:
    """The task on another flat link: collectives take so many times longer or shorter."""
    ratio = task.training.link_bytes_per_s / link_bytes_per_s
    if ratio == 1.0:
        return task
    graphs = tuple(replace(g, layers=tuple(_layer_at(layer, ratio) for layer in g.layers)) for g in task.graphs)
    return replace(task, training=replace(task.training, link_bytes_per_s=link_bytes_per_s), graphs=graphs)


def tasks_for(job: Job, chip: Chip, own_links: bool = False) -> tuple[ModelTask, ...]:
    """The job's models as one chip runs them: on its own links where those are an axis of its space, else on the
    cluster's; under rules cluster the levels of the cluster are the links."""
    if job.rules == "cluster" or (job.space.axes.links is None and not own_links):
        return job.models
    return tuple(at_link(task, chip.links.bandwidth_bytes_per_s) for task in job.models)


@dataclass(frozen=True, slots=True)
class Networks:
    """The job's models on every link of the space: where links are an axis, a chip's own are the job's flat link."""

    tasks: tuple[tuple[ModelTask, ...], ...]
    of: NDArray[np.int64]

    def tasks_of(self, chip: int) -> tuple[ModelTask, ...]:
        """The models on that chip's link."""
        return self.tasks[int(self.of[chip])]

    def groups(self, index: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], tuple[ModelTask, ...]]]:
        """The positions within ``index`` of the chips of each link, and the models on it."""
        for at, tasks in enumerate(self.tasks):
            own = np.flatnonzero(self.of[index] == at)
            if len(own):
                yield own, tasks


def networks_of(models: tuple[ModelTask, ...], space: Space, links: NDArray[np.float64]) -> Networks:
    """The networks of chips with these link bandwidths."""
    if space.axes.links is None:
        return Networks((models,), np.broadcast_to(np.int64(0), len(links)))
    values, of = np.unique(links, return_inverse=True)
    return Networks(tuple(tuple(at_link(task, float(link)) for task in models) for link in values), of.astype(np.int64))
