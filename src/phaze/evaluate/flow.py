"""READ FIRST. The whole flow: a model, a chip and a job become the fastest plan, under the ICML 2024 paper's rules.

    model at width t, microbatch b  ->  fused operators  ->  L and P of each on the chip        (prepare, cost)
      ->  least makespan of every distinct layer, forward and backward apart, with its bound      (layer_seconds)
      ->  layers, bytes and edges as a placement problem  ->  the fastest plan, proved             (plan_on)

Everything here is for one chip, one step after the other, with no bound and no cache: a search does the same with
arrays over all chips and asks this path only about chips that may still win. Throughput is sequences / batch time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phaze.cost.parts import chip_arrays
from phaze.evaluate.passes import LayerPasses, Pass, passes_of, problem_on, table_of, times_on
from phaze.evaluate.serial import Machine
from phaze.graph.experts import notes_of
from phaze.graph.fuse import fuse
from phaze.graph.ir import Attention, Model
from phaze.hardware.chip import Chip
from phaze.hardware.stack import Precision
from phaze.placement.one.problem import Choice, Problem
from phaze.placement.one.rules import Family
from phaze.placement.one.settings import PlacedLayers, families_of, icml24_problem, stack_problem
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Layer, LayerGraph, Optimizer, Plan, Recompute, layer_graph
from phaze.schedule.problem import Schedule
from phaze.schedule.solve import Limits, Scheduler, solve


@dataclass(frozen=True, slots=True)
class PlacementJob:
    """What a placement problem asks for beside its layers and the devices' memory.

    ``chunks`` that interleaving may use beside 1; None: all that divide the blocks. ``headroom``: the share of memory
    that a plan leaves free.
    """

    machine: Machine
    devices: int
    batch: int
    precision: Precision
    optimizer: Optimizer
    zero: int = 0
    recompute: Choice = "best"
    chunks: tuple[int, ...] | None = None
    headroom: float = 0.0


def placement_problem(
    job: PlacementJob,
    microbatch: int,
    placed: Sequence[PlacedLayers],
    hbm_bytes: float,
    hbm_bytes_per_s: float | None,
    families: tuple[Family, ...] | None = None,
) -> Problem:
    """The placement problem of layers (:func:`phaze.evaluate.fixed.placed_layers`) at one or more widths.

    ``families``: what a given plan runs; if None all that the blocks allow."""
    return stack_problem(
        placed,
        job.machine.stack,
        job.machine.cluster,
        families=families_of(placed, job.chunks) if families is None else families,
        devices=job.devices,
        microbatches=-(-job.batch // microbatch),
        hbm_bytes=hbm_bytes,
        hbm_bytes_per_s=hbm_bytes_per_s,
        precision=job.precision,
        optimizer=job.optimizer,
        zero=job.zero,
        recompute=job.recompute,
        headroom=job.headroom,
    )


@dataclass(frozen=True, slots=True)
class Training:
    """The job around a model: how many devices on which link, and how many sequences make a batch."""

    devices: int
    batch: int
    link_bytes_per_s: float
    optimizer: Optimizer = "sgd"

    def microbatches(self, microbatch: int) -> int:
        return -(-self.batch // microbatch)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model at one width and microbatch, fused: its distinct layers, which of them each call runs, and the edges;
    how its attention runs, and what an answer must say beside its numbers."""

    width: int
    microbatch: int
    layers: tuple[LayerPasses, ...]
    calls: tuple[int, ...]
    edges: tuple[tuple[int, int, float], ...]
    attention: Attention = "eager"
    notes: tuple[str, ...] = ()

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Forward and backward of every distinct layer, in turn."""
        return tuple(one for layer in self.layers for one in (layer.forward, layer.backward))


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """What the two schedules of a layer take, or no schedule can undercut."""

    forward_s: float
    backward_s: float


def prepare(model: Model, link_bytes_per_s: float, residency: bool = True) -> Prepared:
    """Fuse a model fully and read off what scheduling and placing it takes."""
    return prepare_fused(fuse(model, "full"), link_bytes_per_s, residency)


def prepare_fused(fused: Model, link_bytes_per_s: float, residency: bool = True) -> Prepared:
    """What scheduling and placing a fused model takes."""
    layers = tuple(passes_of(layer, link_bytes_per_s, residency=residency) for layer in fused.layers)
    edges = tuple((edge.source, edge.target, float(edge.bytes)) for edge in fused.edges)
    calls = tuple(call.layer for call in fused.calls)
    return Prepared(fused.tensor, fused.microbatch, layers, calls, edges, fused.attention, notes_of(fused))


def block_of(model: Prepared) -> Prepared:
    """The most repeated layer of a model as a model of its own, called once; the first of equals."""
    kind = max(range(len(model.layers)), key=lambda at: (model.calls.count(at), -at))
    return replace(model, layers=(model.layers[kind],), calls=(0,), edges=())


def layer_schedules(
    model: Prepared, chip: Chip, limits: Limits | None = None, scheduler: Scheduler = "exact"
) -> tuple[Schedule, ...]:
    """The best schedule of every pass on one chip, in the order of ``model.passes``."""
    table, first, found = table_of(model.passes, chip_arrays([chip])), 0, []
    for one in model.passes:
        singles, spreads = times_on(one, table, first)
        # Cores beyond the number of operators make no difference.
        cores = (min(chip.tensor_cores, len(one.works)), min(chip.vector_cores, len(one.works)))
        problem = problem_on(one, singles[:, 0].tolist(), spreads[:, 0].tolist(), cores)
        found.append(solve(problem, scheduler, limits))
        first += len(one.works)
    return tuple(found)


def seconds_of(schedules: Sequence[Schedule], proved: bool = False) -> tuple[LayerSeconds, ...]:
    """Makespans, or with ``proved`` their lower bounds, by layer."""
    times = [s.lower_bound_s if proved else s.makespan_s for s in schedules]
    return tuple(LayerSeconds(*pair) for pair in zip(times[::2], times[1::2], strict=True))


def graph_of(model: Prepared, seconds: Sequence[LayerSeconds]) -> LayerGraph:
    """The layers of one width as a placement asks for them."""
    layers = [
        Layer(
            place,
            seconds[kind].forward_s,
            seconds[kind].backward_s,
            model.layers[kind].parameter_bytes,
            model.layers[kind].activation_bytes,
            model.layers[kind].sharded,
        )
        for place, kind in enumerate(model.calls)
    ]
    return layer_graph(model.width, layers, model.edges)


def placement_of(
    graphs: Sequence[LayerGraph], microbatch: int, recompute: Recompute, hbm_bytes: float, training: Training
) -> Problem:
    """The placement problem of a model whose layers' times are known, at all its widths."""
    return icml24_problem(
        graphs,
        devices=training.devices,
        microbatches=training.microbatches(microbatch),
        hbm_bytes=hbm_bytes,
        link_bytes_per_s=training.link_bytes_per_s,
        optimizer=training.optimizer,
        recompute=recompute,
    )


def plan_on(widths: Sequence[Prepared], chip: Chip, recompute: Recompute, training: Training) -> Plan | None:
    """The fastest plan of a model on a chip over its widths, at one microbatch, or None when nothing fits."""
    graphs = [graph_of(model, seconds_of(layer_schedules(model, chip))) for model in widths]
    return fastest_plan(placement_of(graphs, widths[0].microbatch, recompute, chip.hbm.size_bytes, training))
