"""The passes of a layer under its stack's schedule rule, on no chip yet: forward, backward, and
what recomputing runs again; where families run the halves of a backward pass at different times,
also the operators that lead to the gradient of the input, and all others.
:mod:`phaze.evaluate.layer_table` has their seconds on chips.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.memory import sent_bytes
from phaze.cost.offload import exposed_copies_s
from phaze.evaluate.lowered_pass import LoweredPass
from phaze.evaluate.pass_builder import PassBuilder
from phaze.graph.ir import Layer, Model, OperatorGraph
from phaze.graph.recompute import needed_again
from phaze.graph.rewrites import run_layer
from phaze.graph.rewrites.split_backward import split_backward
from phaze.graph.saved.buffers import gradient_elements
from phaze.graph.saved.modes import JOIN, Keeping, Mode, Modes, modes_to_try
from phaze.hardware.stack import Stack
from phaze.placement.machine import Machine
from phaze.schedule.rules import COMPANIONS, RULE, Rule

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LoweredMode:
    """A mode of recompute: what runs again (None: of full, the forward pass as it is; of others,
    the share ``part`` of a full recompute), bytes kept by every microbatch in flight, bytes beside
    them while the backward pass runs, and bytes that the host keeps, over a link of
    ``host_bytes_per_s`` behind the share ``hidden`` of the passes."""

    name: str
    rerun: LoweredPass | None
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
        return again_s + exposed_copies_s(
            self.host_bytes, self.host_bytes_per_s, passes_s + again_s, self.hidden
        )


@dataclass(frozen=True, slots=True)
class LoweredLayer:
    """One distinct layer on no chip yet: its passes, what recomputing runs again, and its sizes on
    one device.

    ``modes`` of recompute are selective, those between, and full; ``halves`` are the backward pass
    apart; ``parameters`` are trained, those of experts among them, ``frozen`` are not, all and
    experts among them.
    """

    name: str
    forward: LoweredPass
    backward: LoweredPass
    modes: tuple[LoweredMode, ...]
    parameters: int
    saved_bytes: int
    sharded: bool
    halves: tuple[LoweredPass, LoweredPass] | None = None
    accumulation_bytes: float = 8.0
    logit_bytes: int = 0
    buffer_bytes: float = 0.0
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
    def passes(self) -> tuple[LoweredPass, ...]:
        """All of them, in a fixed order: of modes, selective and full come first."""
        selective, *between, full = self.modes
        reruns = (mode.rerun for mode in (selective, full, *between) if mode.rerun is not None)
        return (self.forward, self.backward, *reruns, *(self.halves or ()))


def rule_of(stack: Stack) -> Rule:
    """The schedule rule of a stack; older files say ``serial`` and that tensor collectives are
    hidden."""
    rule = RULE[stack.schedule]
    return COMPANIONS if rule.one_queue and stack.hides_tensor_collectives else rule


def keeping_of(stack: Stack, hosted: bool = False) -> Keeping:
    """How a stack keeps activations; ``hosted``: the chip can copy them to the memory of its
    host."""
    modules, named = stack.recompute_modules, stack.recompute_named
    offload = hosted and stack.hidden_offload is not None
    return Keeping(stack.saves, stack.logit_bytes, stack.selective, modules, named, offload)


def lower_layers(model: Model, machine: Machine) -> tuple[LoweredLayer, ...]:
    """The distinct layers of a model as a stack runs them, all with the same modes of recompute."""
    counted = [(layer, model.count(kind)) for kind, layer in enumerate(model.layers)]
    names = modes_to_try(counted, keeping_of(machine.stack, machine.host_bytes_per_s is not None))
    apart, builder = machine.stack.splits_backward, PassBuilder(machine, rule_of(machine.stack))
    return tuple(
        lower_layer(layer, machine, apart=apart, names=names, passes=run_passes(layer, builder))
        for layer in model.layers
    )


def _lower_mode(mode: Mode, builder: PassBuilder) -> LoweredMode:
    machine = builder.machine
    whole = mode.part < 1 or "full" in mode.name.split(JOIN)
    rerun = None if whole else builder.run(mode.rerun)
    hidden, host = machine.stack.hidden_offload or 0.0, machine.host_bytes_per_s or float("inf")
    sizes = (mode.saved_bytes, mode.live_bytes, mode.part, mode.host_bytes)
    return LoweredMode(mode.name, rerun, *sizes, host, hidden)


@dataclass(frozen=True, slots=True)
class RunPasses:
    """A traced layer in the precision of a job, its fused backward pass, both passes as a stack
    runs them, and their builder."""

    builder: PassBuilder
    layer: Layer
    fused_backward: OperatorGraph
    forward: LoweredPass
    backward: LoweredPass


def run_passes(layer: Layer, builder: PassBuilder) -> RunPasses:
    """The two passes of a traced layer."""
    layer = run_layer(layer, builder.machine.stack, builder.machine.precision, builder.gradients)
    backward = builder.fused(layer.backward)
    return RunPasses(
        builder, layer, backward, builder.run(layer.forward), builder.lower(backward, backward=True)
    )


def lower_layer(
    layer: Layer,
    machine: Machine,
    rule: Rule | None = None,
    apart: bool = False,
    names: Sequence[str] = (),
    passes: RunPasses | None = None,
    modes: Modes | None = None,
) -> LoweredLayer:
    """A traced layer as a stack runs it, under its rule or another, with the modes of recompute of
    some names; ``apart``: also the halves of its backward pass; ``passes`` and their ``modes``
    where they are known."""
    stack = machine.stack
    passes = (
        run_passes(layer, PassBuilder(machine, rule or rule_of(stack)))
        if passes is None
        else passes
    )
    layer, builder = passes.layer, passes.builder
    modes = Modes(layer, keeping_of(stack)) if modes is None else modes
    selective, full, halves = modes.selective(), modes.full(), None
    trimmed = builder.run(needed_again(layer)) if stack.trims_recompute else None
    if apart:
        first, rest = split_backward(layer, passes.fused_backward)
        halves = builder.lower(first, backward=True), builder.lower(rest, backward=True)
    return LoweredLayer(
        name=layer.name,
        forward=passes.forward,
        backward=passes.backward,
        modes=(
            LoweredMode(
                "selective",
                builder.run(selective.rerun),
                selective.saved_bytes,
                selective.live_bytes,
            ),
            *(_lower_mode(modes.of(name), builder) for name in names),
            LoweredMode("full", trimmed, full.saved_bytes, full.live_bytes),
        ),
        parameters=layer.elements(trained=True),
        saved_bytes=modes.none().saved_bytes,
        sharded=layer.sharded,
        halves=halves,
        accumulation_bytes=stack.accumulation_apart,
        logit_bytes=modes.logit_bytes,
        buffer_bytes=stack.gradient_buffer_bytes * gradient_elements(layer)
        if stack.gradient_buffer_bytes
        else 0.0,
        expert_parameters=layer.elements(trained=True, experts=True),
        sent_bytes=sent_bytes(machine.precision),
        frozen=(layer.elements(trained=False), layer.elements(trained=False, experts=True)),
    )


def on_network(layer: LoweredLayer, machine: Machine) -> LoweredLayer:
    """The layer on another network: its collectives priced anew."""
    half = layer.halves
    halves = None if half is None else (half[0].on_network(machine), half[1].on_network(machine))
    modes = tuple(
        replace(mode, rerun=None if mode.rerun is None else mode.rerun.on_network(machine))
        for mode in layer.modes
    )
    forward, backward = layer.forward.on_network(machine), layer.backward.on_network(machine)
    return replace(layer, forward=forward, backward=backward, halves=halves, modes=modes)
