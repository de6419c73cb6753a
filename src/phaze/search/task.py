"""What is searched, as frozen values: models ready to be placed, a space of chips, memories, an
objective, a gap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.evaluate.layers import Setting
from phaze.evaluate.memo import Memo
from phaze.evaluate.training_run import Budget
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster, links_words, same_links
from phaze.hardware.formats import require_format
from phaze.options.values import RuleName
from phaze.placement.job import TrainingJob
from phaze.placement.machine import Machine
from phaze.placement.problem import RecomputeChoice
from phaze.placement.settings import job_rules
from phaze.search.objective import Objective
from phaze.search.rank_graph import RankGraph, graph_on
from phaze.search.space import Space
from phaze.values import replace


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration of a model on a chip: which of its graphs (width, microbatch), whether it
    recomputes, the stages of ZeRO that its plan may run at, and how many of
    the ranks with the same weights shard state, 0: all of them."""

    graph: int
    recompute: RecomputeChoice
    zeros: tuple[int, ...] = (0,)
    shard: int = 0


@dataclass(frozen=True, slots=True)
class ModelTask:
    """One model: its graphs at every width and microbatch, its job, and how much it counts beside
    other models; ``constants`` are those of the space's chips.

    ``prices`` remember what collectives and transfers take, ``memo`` what depends on no chip,
    ``shared`` what depends on no bandwidth either, so that all networks of a space have it in
    common.
    """

    name: str
    weight: float
    training: TrainingJob
    constants: Constants
    graphs: tuple[RankGraph, ...]
    configurations: tuple[Configuration, ...]
    prices: NetworkPrices = field(compare=False, repr=False)
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)
    shared: Memo = field(default_factory=Memo, compare=False, repr=False)

    def setting(self, chip: Chip) -> Setting:
        """A chip in the job, whose links a cluster that runs at a chip's links must know."""
        machine = self.training.machine
        if machine.cluster.levels[0].of_chip and not same_links(chip, machine.cluster):
            words = links_words(chip, machine.cluster)
            raise InputError(
                "training.cluster",
                f"{words}, the links of the space's chips",
                "compare chips of those",
            )
        require_format(machine.precision, chip.formats, chip.name, "training.precision")
        return Setting(
            chip,
            machine.cluster,
            machine.stack,
            machine.basis,
            machine.residency,
            machine.precision,
        )

    def degrees(self, configuration: Configuration) -> dict[str, int | str]:
        """How a configuration's ranks share sequences, experts and state, where more than one does,
        or not all."""
        shared = {"shard": configuration.shard} if configuration.shard else {}
        return {**self.graphs[configuration.graph].degrees, **shared}

    def notes(self, graph: int = 0) -> tuple[str, ...]:
        """What an answer that runs one of the graphs must say beside its numbers."""
        return self.graphs[graph].notes(
            any(rank_graph.model.expert > 1 for rank_graph in self.graphs)
        )


def on_all_devices(
    task: ModelTask, graph: RankGraph, layers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What all devices together spend on the layers of a batch at the least, on every chip, from
    what a layer takes on one device [layers, chips]: seconds or joules.

        M sum over layers of (t where it is split or every stage is, else 1) x(layer)

    Devices run at the same time, so a batch takes at least such seconds over the number of devices.
    """
    rounds, total = task.training.microbatches(graph.microbatch), np.zeros(layers.shape[1])
    unsplit = job_rules(task.training).unsplit_stages
    for kind, layer in enumerate(graph.layers):
        devices = graph.width * graph.model.context if layer.sharded or not unsplit else 1
        total = total + rounds * devices * graph.calls.count(kind) * layers[kind]
    return total


def configurations_of(
    graphs: tuple[RankGraph, ...],
    recompute: tuple[RecomputeChoice, ...],
    zeros: tuple[int, ...],
    shards: tuple[int, ...] = (0,),
) -> tuple[Configuration, ...]:
    """Every graph with every recompute choice, stage of ZeRO and size of a group that shards
    state, in a fixed order."""
    return tuple(
        Configuration(*choices)
        for choices in product(
            range(len(graphs)), recompute, [(zero,) for zero in sorted(zeros)], shards
        )
    )


def task_of(
    name: str,
    weight: float,
    training: TrainingJob,
    constants: Constants,
    graphs: Sequence[RankGraph],
    recompute: Sequence[RecomputeChoice],
) -> ModelTask:
    """A model with every graph, recompute choice, stage of ZeRO and size of a group that shards
    state."""
    rank_graphs = tuple(graphs)
    configurations = configurations_of(
        rank_graphs, tuple(recompute), training.zeros, training.shards
    )
    prices = _prices(training.machine)
    return ModelTask(name, weight, training, constants, rank_graphs, configurations, prices)


def _prices(machine: Machine) -> NetworkPrices:
    return NetworkPrices(machine.cluster, machine.basis)


@dataclass(frozen=True, slots=True)
class SearchJob:
    """A search: everything that its answer depends on. ``hbm_bytes`` ascends; ``digest`` is over
    all of it, graphs included; ``baseline`` is the chip that the objective names, ``cluster`` where
    the job runs, ``rules`` the name of the setting that its study began from, for documents
    alone."""

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
    rules: RuleName = "icml24"

    def cluster_on(self, chip: Chip) -> Cluster | None:
        """The cluster of the answer; where links are an axis, its innermost level is as fast as the
        chip's own."""
        if self.cluster is None or not self.space.own_links:
            return self.cluster
        return with_links(self.cluster, chip.links.bandwidth_bytes_per_s, of_chip=True)

    def memories(self, counted: bool) -> list[int]:
        """The memories that chips are evaluated with: all where they count or a chip may not have
        each, else the most."""
        count = len(self.hbm_bytes)
        return list(range(count)) if counted or self.space.memory_limited else [count - 1]


def with_links(cluster: Cluster, link_bytes_per_s: float, of_chip: bool = False) -> Cluster:
    """The cluster with another innermost level."""
    level = replace(cluster.levels[0], bandwidth_bytes_per_s=link_bytes_per_s, of_chip=of_chip)
    return replace(cluster, levels=(level, *cluster.levels[1:]))


def on_cluster(task: ModelTask, cluster: Cluster, devices: int | None = None) -> ModelTask:
    """The task on another network, and on other devices if given."""
    return on_machine(task, replace(task.training.machine, cluster=cluster), devices)


def on_machine(task: ModelTask, machine: Machine, devices: int | None = None) -> ModelTask:
    """The task on another network or stack, and on other devices if given."""
    graphs = tuple(graph_on(graph, machine) for graph in task.graphs)
    training = replace(task.training, machine=machine, devices=devices or task.training.devices)
    return replace(
        task, training=training, graphs=graphs, prices=_prices(machine), memo=Memo(), shared=Memo()
    )


def at_link(task: ModelTask, link_bytes_per_s: float) -> ModelTask:
    """The task with another innermost level of its network."""
    if task.training.link_bytes_per_s == link_bytes_per_s:
        return task

    def linked() -> ModelTask:
        network = with_links(task.training.machine.cluster, link_bytes_per_s)
        return replace(on_cluster(task, network), shared=task.shared)

    return task.memo.take(("at link", link_bytes_per_s), linked)


def tasks_for(job: SearchJob, chip: Chip, own_links: bool = False) -> tuple[ModelTask, ...]:
    """The job's models as one chip runs them: on its own links where those are an axis of its
    space, else on the cluster's."""
    if not job.space.own_links and not own_links:
        return job.models
    return tuple(at_link(task, chip.links.bandwidth_bytes_per_s) for task in job.models)


@dataclass(frozen=True, slots=True)
class Networks:
    """The job's models on every link of the space: where links are an axis, they are the innermost
    level."""

    tasks: tuple[tuple[ModelTask, ...], ...]
    of: NDArray[np.int64]

    def tasks_of(self, chip: int) -> tuple[ModelTask, ...]:
        """The models on that chip's link."""
        return self.tasks[int(self.of[chip])]

    def groups(
        self, index: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], tuple[ModelTask, ...]]]:
        """The positions within ``index`` of the chips of each link, and the models on it."""
        for network, tasks in enumerate(self.tasks):
            positions = np.flatnonzero(self.of[index] == network)
            if len(positions):
                yield positions, tasks


def networks_of(
    models: tuple[ModelTask, ...], space: Space, links: NDArray[np.float64]
) -> Networks:
    """The networks of chips with these link bandwidths."""
    if not space.own_links:
        return Networks((models,), np.broadcast_to(np.int64(0), len(links)))
    values, of = np.unique(links, return_inverse=True)
    return Networks(
        tuple(tuple(at_link(task, float(link)) for task in models) for link in values),
        of.astype(np.int64),
    )
