"""What is searched under rules ``cluster``: models as a software stack runs them, on a cluster of levels.

A graph is a trace of one rank at one width and microbatch, with or without sequence parallelism; its layers' operators
run under the stack's fusion and schedule rule (:mod:`phaze.evaluate.layer_times`), its collectives on the levels they
cross. A layer's seconds on a chip are a closed formula under rules serial and companions, so they are exact for all
chips at once (:func:`serial_times`); under others they are bounds, and an opened chip has its schedules.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from phaze.cost.memory import stack_state
from phaze.cost.parts import ChipArrays
from phaze.cost.table import Column, cost_works
from phaze.errors import InputError
from phaze.evaluate.fixed import SENT_BYTES, placed_layers
from phaze.evaluate.flow import Prepared, Training
from phaze.evaluate.layer_times import DeviceSeconds, RuledLayer, ruled_layer, several_layer_times
from phaze.evaluate.layers import LayerCost, Setting
from phaze.evaluate.passes import LayerPasses, Pass
from phaze.evaluate.prices import KnownPrices
from phaze.evaluate.ruled_pass import RuledPass
from phaze.evaluate.serial import Machine
from phaze.evaluate.shelf import Shelf
from phaze.evaluate.utilisation import model_flops
from phaze.graph.experts import notes_of
from phaze.graph.ir import Model
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import links_words, same_links
from phaze.hardware.stack import Precision
from phaze.placement.one.problem import Extra, Problem
from phaze.placement.one.rules import ONE_F_ONE_B
from phaze.placement.one.rules import Rules as PlacementRules
from phaze.placement.problem import Recompute
from phaze.schedule.problem import ROUNDING
from phaze.search.bound import LayerTimes
from phaze.search.task import ModelTask, Rules

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
CHUNK = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTraining(Training):
    """A job on a cluster: its network and software, precision and ZeRO; ``constants`` are those of the space's chips,
    ``headroom`` is the share of memory that a plan leaves free.

    ``link_bytes_per_s`` is the innermost level's, and nothing is computed from it.
    """

    machine: Machine
    precision: Precision
    zero: int
    constants: Constants
    headroom: float = 0.0

    def setting(self, chip: Chip) -> Setting:
        """A chip in this job, whose links a cluster that runs at a chip's links must know."""
        if self.machine.cluster.levels[0].of_chip and not same_links(chip, self.machine.cluster):
            words = links_words(chip, self.machine.cluster)
            raise InputError("training.cluster", f"{words}, the links of the space's chips", "compare chips of those")
        return Setting(chip, self.machine.cluster, self.machine.stack, self.machine.basis)


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialGraph(Prepared):
    """A traced rank as its stack runs it; ``serial`` has the passes of its distinct layers."""

    model: Model
    serial: tuple[RuledLayer, ...]

    @property
    def all_passes(self) -> tuple[RuledPass, ...]:
        """The passes of all layers, one after another."""
        return tuple(one for layer in self.serial for one in layer.passes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTask(ModelTask):
    """A model under rules ``cluster``; ``prices`` remember what collectives and transfers take, ``shelf`` shapes."""

    rules: ClassVar[Rules] = "cluster"
    prices: KnownPrices
    shelf: Shelf = field(default_factory=Shelf, compare=False)

    @property
    def job(self) -> ClusterTraining:
        """The training, as what it is here."""
        assert isinstance(self.training, ClusterTraining)
        return self.training

    def graph(self, at: int) -> SerialGraph:
        """A graph, as what it is here."""
        found = self.graphs[at]
        assert isinstance(found, SerialGraph)
        return found


def _pass(one: RuledPass) -> Pass:
    cores = tuple("none" if work.core == "network" else work.core for work in one.works)
    return Pass(one.works, cores, one.waits_s, ())


def _layer(own: RuledLayer) -> LayerPasses:
    sizes = (SENT_BYTES * own.parameters, float(own.saved_bytes), own.sharded)
    return LayerPasses(own.name, _pass(own.forward), _pass(own.backward), *sizes)


def serial_graph(model: Model, machine: Machine) -> SerialGraph:
    """A traced rank on a machine."""
    layers = tuple(ruled_layer(layer, machine) for layer in model.layers)
    return SerialGraph(
        model.tensor,
        model.microbatch,
        tuple(_layer(own) for own in layers),
        tuple(call.layer for call in model.calls),
        tuple((edge.source, edge.target, float(edge.bytes)) for edge in model.edges),
        model.attention,
        notes_of(model),
        model.sequence,
        model_flops(model),
        model=model,
        serial=layers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialTimes(LayerTimes):
    """Seconds of the distinct layers of one graph, [layers, chips], with those of what either mode of recomputing
    runs again, and by chip the HBM bandwidth that vector work reaches. ``dynamic_j`` are of both passes, on one device.
    """

    selective_s: Floats
    full_s: Floats
    hbm_bytes_per_s: Floats

    def taken(self, index: Integers) -> "SerialTimes":
        """Those of the chips of ``index``."""
        return SerialTimes(
            self.forward_s[:, index],
            self.backward_s[:, index],
            None if self.dynamic_j is None else self.dynamic_j[:, index],
            selective_s=self.selective_s[:, index],
            full_s=self.full_s[:, index],
            hbm_bytes_per_s=self.hbm_bytes_per_s[index],
        )

    def alike(self, other: "SerialTimes") -> bool:
        """Whether both have the same seconds up to rounding: schedules that are proved."""
        mine, theirs = ((t.forward_s, t.backward_s, t.selective_s, t.full_s) for t in (self, other))
        return all(np.allclose(a, b, rtol=2 * ROUNDING, atol=0.0) for a, b in zip(mine, theirs, strict=True))

    def costs(self, graph: SerialGraph, chip: int) -> tuple[LayerCost, ...]:
        """The layers on one of the chips."""
        return tuple(
            LayerCost(
                own.name,
                float(self.forward_s[kind, chip]),
                float(self.backward_s[kind, chip]),
                float(self.selective_s[kind, chip]),
                float(self.full_s[kind, chip]),
                *own.sizes,
            )
            for kind, own in enumerate(graph.serial)
        )


def costed(graph: SerialGraph, chips: ChipArrays, constants: Constants) -> Column:
    """Every operator of a graph on every chip, each on all cores."""
    return cost_works([work for one in graph.all_passes for work in one.works], chips, constants)


def serial_times(
    graph: SerialGraph, chips: ChipArrays, constants: Constants, device_s: DeviceSeconds = RuledPass.bound
) -> SerialTimes:
    """The seconds of all layers of a graph on every chip, a chunk of chips at a time.

    ``device_s`` gives those of a pass: what no schedule undercuts, unless told otherwise; exact where it is a formula.
    """
    found, count = np.empty((4, len(graph.serial), len(chips))), len(chips)
    for start in range(0, count, CHUNK):
        index = np.arange(start, min(start + CHUNK, count))
        some = chips if len(index) == count else chips.taken(index)
        for kind, own in enumerate(several_layer_times(graph.serial, some, constants, device_s)):
            for at, row in enumerate((own.forward_s, own.backward_s, own.selective_s, own.full_s)):
                found[at, kind, index] = row
    rates = chips.hbm_bytes_per_s * constants.vector_hbm_share
    return SerialTimes(found[0], found[1], selective_s=found[2], full_s=found[3], hbm_bytes_per_s=rates)


def problem_of(
    task: ClusterTask,
    graph: SerialGraph,
    choice: Recompute,
    hbm_bytes: float,
    costs: Sequence[LayerCost],
    hbm_bytes_per_s: float,
) -> Problem:
    """The placement problem of a graph whose layers' costs are known, on devices of so much memory."""
    training = task.job
    machine = training.machine
    stack = machine.stack
    placed, known = placed_layers(graph.model, costs)
    extras = tuple(Extra(e.selective_bytes, e.selective_s, e.full_s, e.tied, e.tied_bytes) for e in known)
    return Problem(
        rules=PlacementRules("cluster", (ONE_F_ONE_B,), hidden=stack.hidden_synchronisation),
        devices=training.devices,
        hbm_bytes=hbm_bytes,
        microbatches=training.microbatches(graph.microbatch),
        recompute=choice,
        state=stack_state(training.precision, training.optimizer, stack),
        cluster=machine.cluster,
        graphs=(placed,),
        extras=(extras,),
        zero=training.zero,
        sent_bytes=SENT_BYTES,
        hbm_bytes_per_s=hbm_bytes_per_s,
        optimizer_traffic_bytes=stack.optimizer_traffic_bytes,
        reserve_bytes=stack.reserve_bytes,
        scatter_gather=stack.scatter_gather,
        headroom=training.headroom,
    )
