"""Bytes that a device holds for training: weights, gradients, optimizer state and activations.

For one parameter (:func:`state_of`), bytes by precision and optimizer:

    precision   weight                     gradient   optimizer: sgd, adam (two moments)
    fp32        4                          4          0, 8
    bf16        2                          4          4, 12     a master weight of 4 beside the
                moments
    a recipe    2 and what products read   4          4, 12
                :meth:`phaze.hardware.formats.Recipe.weight_bytes`

ZeRO over d replicas shares out, by stage: 1 the optimizer state, 2 also the gradients, 3 also the
weights:

    held = weight / (d if zero >= 3) + gradient / (d if zero >= 2) + optimizer / (d if zero >= 1)   (:func:`held_bytes`)

A software stack that says how many bytes it holds for a parameter (``state_bytes``) replaces the
sum at its own precision and optimizer (:func:`stack_state`): the difference is the optimizer's. One
that says it by part (``state``: weight, main weight, gradient, two moments) replaces all of it, and
an update moves the difference more (:func:`update_bytes`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from phaze.errors import InputError
from phaze.hardware.formats import PLAIN, RECIPES, WIDE, Precision
from phaze.hardware.stack import Optimizer, Stack, StateBytes


@dataclass(frozen=True, slots=True)
class ParameterState:
    """Bytes held for one parameter."""

    weight: float
    gradient: float
    optimizer: float

    @property
    def total(self) -> float:
        return self.weight + self.gradient + self.optimizer


# The norm of the gradients reads each in 32 bits.
NORM_BYTES = 4.0
STATES: Mapping[tuple[Precision, Optimizer], ParameterState] = MappingProxyType(
    {
        ("fp32", "sgd"): ParameterState(4.0, 4.0, 0.0),
        ("fp32", "adam"): ParameterState(4.0, 4.0, 8.0),
        ("bf16", "sgd"): ParameterState(2.0, 4.0, 4.0),
        ("bf16", "adam"): ParameterState(2.0, 4.0, 12.0),
        # Of a profile, which names no recipe: 16 bits and 8.
        ("fp8", "sgd"): ParameterState(3.0, 4.0, 4.0),
        ("fp8", "adam"): ParameterState(3.0, 4.0, 12.0),
    }
)


def state_of(
    precision: Precision,
    optimizer: Optimizer,
    state_bytes: float | None = None,
    gradient_bytes: float | None = None,
) -> ParameterState:
    """Bytes for one parameter; ``state_bytes``, if given, is the sum that a software stack holds.

    ``gradient_bytes``, if given, are those of the gradient among them.
    """
    usual = STATES[precision, optimizer]
    if gradient_bytes is not None:
        usual = ParameterState(usual.weight, gradient_bytes, usual.optimizer)
    if state_bytes is None or state_bytes == usual.total:
        return usual
    if state_bytes >= usual.weight + usual.gradient:
        return ParameterState(
            usual.weight, usual.gradient, state_bytes - usual.weight - usual.gradient
        )
    if state_bytes < usual.weight:
        raise InputError(
            "state_bytes",
            f"{state_bytes} do not hold a weight",
            f"give at least {usual.weight:.0f}",
        )
    return ParameterState(usual.weight, state_bytes - usual.weight, 0.0)


def stack_state(precision: Precision, optimizer: Optimizer, stack: Stack) -> ParameterState:
    """Bytes for one parameter under a stack; what it says it holds is at its own precision and
    optimizer."""
    recipe = RECIPES.get(precision)
    if recipe is not None:
        plain = stack_state(PLAIN, optimizer, stack)
        return ParameterState(
            recipe.weight_bytes(stack.low_precision_weights), plain.gradient, plain.optimizer
        )
    own = (precision, optimizer) == (stack.precision, stack.optimizer)
    if stack.state is not None and (precision, optimizer) == (PLAIN, "adam"):
        return ParameterState(stack.state.weight, stack.state.gradient, stack.state.optimizer)
    if not own:
        return state_of(precision, optimizer)
    return state_of(precision, optimizer, stack.state_bytes or None, stack.gradient_bytes or None)


def sent_bytes(precision: Precision) -> float:
    """Bytes of a parameter that is sent as it is."""
    return 4.0 if precision == WIDE else 2.0


def update_bytes(stack: Stack, precision: Precision, optimizer: Optimizer) -> float:
    """HBM bytes of an update of one parameter: the stack's, and those that the norm of all gradients
    reads; less a 16-bit weight in fp32, more or less what its state differs by, and in low precision
    the cast of the weight, once a step."""
    moved, recipe = stack.optimizer_traffic_bytes, RECIPES.get(precision)
    norm = NORM_BYTES if stack.clips_gradients else 0.0
    if precision == WIDE:
        return max(0.0, moved - 2.0) + norm
    if stack.state is not None and optimizer == "adam" and moved:
        moved = max(0.0, moved + stack.state.update - StateBytes().update)
    return moved + norm + (0.0 if recipe is None else recipe.weight_cast_bytes)


def held_bytes(parameters: float, state: ParameterState, zero: int = 0, replicas: int = 1) -> float:
    """Bytes of weights, gradients and optimizer state on one device."""
    if zero not in (0, 1, 2, 3):
        raise InputError("zero", f"{zero} is not a stage", "give 0, 1, 2 or 3")
    if replicas < 1:
        raise InputError("data", f"{replicas} is out of range", "it must be at least 1")
    parts = (state.optimizer, state.gradient, state.weight)
    return parameters * sum(
        part / (replicas if zero > stage else 1) for stage, part in enumerate(parts)
    )
