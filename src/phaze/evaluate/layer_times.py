"""The times of a layer under its stack's schedule rule: what each pass takes, on one chip or on arrays of chips.

    forward     the forward pass
    backward    the backward pass as one schedule, and a N / HBM bandwidth to add the gradients of N parameters to those
                of earlier microbatches; apart from each other: the operators that lead to the gradient of the input,
                and all others (weight gradients, with the adding), as families that run them at different times need
    selective   what selective recomputing runs again, at most the forward pass
    full        what full recomputing runs again: the forward pass, or where the stack trims it what backward reads

with a the stack's bytes a parameter. Each is the soft maximum of the device's schedule and the host
(:mod:`phaze.evaluate.ruled_pass`). Under rules serial and companions the device's time is a formula; under others a
proved schedule on one chip (:func:`layer_times`), a bound on many (:meth:`phaze.evaluate.ruled_pass.RuledPass.bound`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.accumulation import KnownGradients, added_inside
from phaze.cost.chip_set import ChipSet
from phaze.cost.grouped import with_grouped
from phaze.cost.low_precision import low_precision
from phaze.cost.memory import sent_bytes
from phaze.cost.offload import exposed_copies_s
from phaze.cost.plain_softmax import plain_softmaxes
from phaze.cost.wide_precision import wide_layer
from phaze.evaluate.halves import split_backward
from phaze.evaluate.overlap import needed_again
from phaze.evaluate.pass_builder import PassBuilder
from phaze.evaluate.ruled_pass import RuledPass, Times, WorkTimes, work_times
from phaze.graph.ir import Layer, Model, OperatorGraph
from phaze.graph.saved.buffers import gradient_elements
from phaze.graph.saved.modes import JOIN, Keeping, Mode, Modes, offered
from phaze.hardware.calibration import Constants
from phaze.hardware.stack import Stack
from phaze.placement.machine import Machine
from phaze.schedule.rules import COMPANIONS, RULE, Rule
from phaze.schedule.solve import Known, Limits

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RuledMode:
    """A mode of recompute between selective and full: what runs again (None: the share ``part`` of a full recompute),
    bytes kept by every microbatch in flight, bytes beside them while the backward pass runs, and bytes that the host
    keeps, over a link of ``host_bytes_per_s`` behind the share ``hidden`` of the passes."""

    name: str
    rerun: RuledPass | None
    saved_bytes: int
    live_bytes: int
    part: float = 1.0
    host_bytes: int = 0
    host_bytes_per_s: float = float("inf")
    hidden: float = 1.0

    def with_copies(self, again_s: Floats, passes_s: Floats) -> Floats:
        """Seconds again with what is exposed of copies to the host and back."""
        if not self.host_bytes:
            return again_s
        return again_s + exposed_copies_s(self.host_bytes, self.host_bytes_per_s, passes_s + again_s, self.hidden)


@dataclass(frozen=True, slots=True)
class RuledLayer:
    """One distinct layer on no chip yet: its passes, what recomputing runs again, and its sizes on one device.

    ``full`` is None where a second forward pass is the first one again; ``halves`` are the backward pass apart;
    ``parameters`` are trained, those of experts among them, ``frozen`` are not, all and experts among them.
    """

    name: str
    forward: RuledPass
    backward: RuledPass
    selective: RuledPass
    full: RuledPass | None
    parameters: int
    saved_bytes: int
    selective_bytes: int
    kept_bytes: int
    sharded: bool
    halves: tuple[RuledPass, RuledPass] | None = None
    accumulation_bytes: float = 8.0
    logit_bytes: int = 0
    buffer_bytes: float = 0.0
    more: tuple[RuledMode, ...] = ()
    expert_parameters: int = 0
    sent_bytes: float = 2.0
    frozen: tuple[int, int] = (0, 0)

    @property
    def rule(self) -> Rule:
        """What may run at the same time."""
        return self.forward.rule

    @property
    def parameter_bytes(self) -> float:
        """Bytes of its weights in the precision of the job."""
        return self.sent_bytes * self.parameters

    @property
    def sizes(self) -> tuple[int, int, int, int, bool, int, float]:
        """Parameters, bytes saved without recomputing, selectively and fully, whether it is sharded, bytes of its
        logits and of its gradient buffers."""
        saved = self.saved_bytes, self.selective_bytes, self.kept_bytes
        return self.parameters, *saved, self.sharded, self.logit_bytes, self.buffer_bytes

    @property
    def passes(self) -> tuple[RuledPass, ...]:
        """All of them, in a fixed order."""
        own = (self.forward, self.backward, self.selective, *(() if self.full is None else (self.full,)))
        more = (mode.rerun for mode in self.more if mode.rerun is not None)
        return (*own, *more, *(self.halves or ()))


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds on every chip; the gradients of input and weights apart where the layer has them so."""

    forward_s: Floats
    backward_s: Floats
    selective_s: Floats
    full_s: Floats
    more_s: tuple[Floats, ...] = ()
    input_gradient_s: Floats | None = None
    weight_gradient_s: Floats | None = None

    @property
    def weight_s(self) -> Floats | None:
        """Of ``backward_s``, what gradients of weights take: its share of both apart, b w / (i + w).

        Where operators run one after another and the host is not seen that is w itself. Collectives that a stack runs
        behind weight gradients shorten both in proportion, though apart they would be seen.
        """
        if self.input_gradient_s is None or self.weight_gradient_s is None:
            return None
        both = self.input_gradient_s + self.weight_gradient_s
        share = np.divide(self.weight_gradient_s, both, out=np.zeros_like(both), where=both > 0)
        return np.asarray(self.backward_s * share)


def rule_of(stack: Stack) -> Rule:
    """The schedule rule of a stack; older files say ``serial`` and that tensor collectives are hidden."""
    rule = RULE[stack.schedule]
    return COMPANIONS if rule.one_queue and stack.hides_tensor_collectives else rule


def keeping_of(stack: Stack, hosted: bool = False) -> Keeping:
    """How a stack keeps activations; ``hosted``: the chip can copy them to the memory of its host."""
    modules, named = stack.recompute_modules, stack.recompute_named
    offload = hosted and stack.hidden_offload is not None
    return Keeping(stack.saves, stack.logit_bytes, stack.selective, modules, named, offload)


def ruled_layers(model: Model, machine: Machine) -> tuple[RuledLayer, ...]:
    """The distinct layers of a model as a stack runs them, all with the same modes of recompute."""
    counted = [(layer, model.count(kind)) for kind, layer in enumerate(model.layers)]
    names = offered(counted, keeping_of(machine.stack, machine.host_bytes_per_s is not None))
    apart, builder = machine.stack.splits_backward, PassBuilder(machine, rule_of(machine.stack))
    return tuple(
        ruled_layer(layer, machine, apart=apart, names=names, passes=run_passes(layer, builder))
        for layer in model.layers
    )


def _ruled_mode(mode: Mode, builder: PassBuilder) -> RuledMode:
    machine = builder.machine
    whole = mode.part < 1 or "full" in mode.name.split(JOIN)
    rerun = None if whole else builder.run(mode.rerun)
    hidden, host = machine.stack.hidden_offload or 0.0, machine.host_bytes_per_s or float("inf")
    sizes = (mode.saved_bytes, mode.live_bytes, mode.part, mode.host_bytes)
    return RuledMode(mode.name, rerun, *sizes, host, hidden)


def run_layer(layer: Layer, machine: Machine, known: KnownGradients | None = None) -> Layer:
    """A traced layer in the precision of a job, gradients of weights added and softmaxes run as its stack does;
    ``known`` keeps operators that layers have in common."""
    layer, inside = plain_softmaxes(layer, machine.stack.softmax_matrices), machine.stack.accumulation_inside
    if machine.wide:
        return added_inside(wide_layer(layer), max(inside, sent_bytes(machine.precision)))
    layer = low_precision(added_inside(layer, inside, known), machine.recipe)
    return with_grouped(layer) if machine.stack.grouped_share else layer


@dataclass(frozen=True, slots=True)
class RunPasses:
    """A traced layer in the precision of a job, its fused backward pass, both passes as a stack runs them, and their
    builder."""

    builder: PassBuilder
    layer: Layer
    fused_backward: OperatorGraph
    forward: RuledPass
    backward: RuledPass


def run_passes(layer: Layer, builder: PassBuilder) -> RunPasses:
    """The two passes of a traced layer."""
    layer = run_layer(layer, builder.machine, builder.gradients)
    backward = builder.fused(layer.backward)
    return RunPasses(builder, layer, backward, builder.run(layer.forward), builder.ruled(backward, backward=True))


def ruled_layer(
    layer: Layer,
    machine: Machine,
    rule: Rule | None = None,
    apart: bool = False,
    names: Sequence[str] = (),
    passes: RunPasses | None = None,
    modes: Modes | None = None,
) -> RuledLayer:
    """A traced layer as a stack runs it, under its rule or another, with the modes of recompute of some names;
    ``apart``: also the halves of its backward pass; ``passes`` and their ``modes`` where they are known."""
    stack = machine.stack
    passes = run_passes(layer, PassBuilder(machine, rule or rule_of(stack))) if passes is None else passes
    layer, builder = passes.layer, passes.builder
    modes = Modes(layer, keeping_of(stack)) if modes is None else modes
    none, selective, whole = modes.none(), modes.selective(), modes.full()
    full, halves = None, None
    if stack.trims_recompute:
        full = builder.run(needed_again(layer))
    if apart:
        first, rest = split_backward(layer, passes.fused_backward)
        halves = builder.ruled(first, backward=True), builder.ruled(rest, backward=True)
    return RuledLayer(
        name=layer.name,
        forward=passes.forward,
        backward=passes.backward,
        selective=builder.run(selective.rerun),
        full=full,
        parameters=layer.elements(trained=True),
        saved_bytes=none.saved_bytes,
        selective_bytes=selective.saved_bytes,
        kept_bytes=whole.saved_bytes,
        sharded=layer.sharded,
        halves=halves,
        accumulation_bytes=stack.accumulation_apart,
        logit_bytes=modes.logit_bytes,
        buffer_bytes=stack.gradient_buffer_bytes * gradient_elements(layer) if stack.gradient_buffer_bytes else 0.0,
        more=tuple(_ruled_mode(modes.of(name), builder) for name in names),
        expert_parameters=layer.elements(trained=True, experts=True),
        sent_bytes=sent_bytes(machine.precision),
        frozen=(layer.elements(trained=False), layer.elements(trained=False, experts=True)),
    )


def on_network(layer: RuledLayer, machine: Machine) -> RuledLayer:
    """The layer on another network: its collectives priced anew."""
    own = {name: getattr(layer, name).on_network(machine) for name in ("forward", "backward", "selective")}
    full = None if layer.full is None else layer.full.on_network(machine)
    half = layer.halves
    halves = None if half is None else (half[0].on_network(machine), half[1].on_network(machine))
    more = tuple(
        replace(mode, rerun=None if mode.rerun is None else mode.rerun.on_network(machine)) for mode in layer.more
    )
    return replace(layer, **own, full=full, halves=halves, more=more)


def _assembled(layer: RuledLayer, found: Sequence[Floats], hbm_bytes_per_s: Floats) -> LayerTimes:
    forward, backward, selective = found[:3]
    adding = layer.accumulation_bytes * layer.parameters / hbm_bytes_per_s
    full = forward if layer.full is None else np.minimum(forward, found[3])
    inputs, weights = (None, None) if layer.halves is None else (found[-2], found[-1] + adding)
    more, place = [], 3 + (layer.full is not None)
    for mode in layer.more:
        again = mode.part * full if mode.rerun is None else np.minimum(forward, found[place])
        more.append(mode.with_copies(again, forward + backward))
        place += mode.rerun is not None
    selective = np.minimum(forward, selective)
    return LayerTimes(forward, backward + adding, selective, full, tuple(more), inputs, weights)


DeviceSeconds = Callable[[RuledPass, Times], Floats]


def layer_works(layers: Sequence[RuledLayer], chips: ChipSet, constants: Constants) -> WorkTimes:
    """What the works of some layers of one rule take on every chip, whatever network joins them."""
    works = [work for layer in layers for one in layer.passes for work in one.works]
    if not works:
        nothing = np.zeros((0, len(chips)))
        return WorkTimes(nothing, nothing, nothing)
    return work_times(works, chips, constants, layers[0].rule)


def several_layer_times(
    layers: Sequence[RuledLayer],
    chips: ChipSet,
    constants: Constants,
    device_s: DeviceSeconds,
    costs: WorkTimes | None = None,
) -> tuple[LayerTimes, ...]:
    """The times of some layers of one rule on every chip, each distinct work costed once; ``costs`` are those of
    :func:`layer_works` where they are known."""
    if not any(one.works for layer in layers for one in layer.passes):
        nothing = np.zeros(len(chips))
        return tuple(LayerTimes(nothing, nothing, nothing, nothing, (nothing,) * len(la.more)) for la in layers)
    costs, first, found = layer_works(layers, chips, constants) if costs is None else costs, 0, []
    for layer in layers:
        own = []
        for one in layer.passes:
            device = device_s(one, one.times(costs, first, chips)) if one.works else np.zeros(len(chips))
            own.append(one.with_host(device))
            first += len(one.works)
        found.append(_assembled(layer, own, chips.hbm_bytes_per_s * constants.vector_hbm_share))
    return tuple(found)


def layer_times(
    layer: RuledLayer,
    chips: ChipSet,
    constants: Constants,
    limits: Limits | None = None,
    known: Known | None = None,
) -> LayerTimes:
    """Exact times on every chip of ``chips``; where no formula gives them, a schedule for each pass and chip."""
    return several_layer_times([layer], chips, constants, lambda one, times: one.device_s(times, limits, known))[0]
