"""A user's function that returns a module and its inputs, as a source of a trace.

The function may take ``microbatch`` and ``sequence``; it is then called with what a trace asks for.
Where it takes no microbatch, the first dimension of its example inputs is one, and every input that
has it is resized; where it takes no sequence, the sequence is that of its example inputs, 1 where
these have none (images).
"""

import copy
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from phaze.errors import InputError, PhazeError
from phaze.graph.torch.fake import building, forget_values, without_weights
from phaze.graph.torch.faults import advice, of_model, quoted
from phaze.graph.torch.hf_plans import translate
from phaze.graph.torch.plans import ShardingPlan
from phaze.graph.torch.printed import Printed
from phaze.graph.torch.program import Source, TensorShape, TracedProgram

RETURNS = (
    "return (module, inputs) or (module, inputs, loss), inputs being a tensor, a tuple or a dict"
)
SIZES = ("microbatch", "sequence")
MICROBATCH = (
    "let the function take microbatch=1 and make its inputs, and what its loss compares "
    "with, from that"
)
# Dimensions of an input of features that has a sequence: batch, sequence, width.
SEQUENCES_OF_FEATURES = 3
# Where the function takes a sequence and names no usual one.
USUAL_SEQUENCE = 4096


@contextmanager
def printing_aside() -> Iterator[None]:
    """What a user's code prints goes to standard error: standard output is the answer's. Ranks run
    in threads, and whichever ends last leaves standard output as it was."""
    before = sys.stdout
    if before is sys.stderr or isinstance(before, Printed):
        yield
        return
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = before


def _import(place: str) -> ModuleType:
    """A module from a path that ends in .py, or by its dotted name."""
    if not place.endswith(".py"):
        try:
            with printing_aside():
                return importlib.import_module(place)
        except BaseException as fault:
            raise InputError(place, f"the module cannot be imported ({quoted(fault)})") from None
    path = Path(place)
    if not path.is_file():
        raise InputError(place, "there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        with printing_aside():
            spec.loader.exec_module(module)
    except BaseException as fault:
        raise InputError(place, f"the file raised {quoted(fault)}") from None
    finally:
        sys.path.remove(folder)
    return module


@dataclass(frozen=True, slots=True)
class UserFunction:
    """The function that was named, which of ``microbatch`` and ``sequence`` it takes, and its usual
    sequence."""

    text: str
    call: Callable[..., Any]
    takes: frozenset[str]
    sequence: int

    def at(self, microbatch: int, sequence: int) -> Any:
        """What it returns for a microbatch and sequence, as far as it takes them."""
        sizes = {"microbatch": microbatch, "sequence": sequence}
        return self.call(**{name: size for name, size in sizes.items() if name in self.takes})


def _function(text: str) -> UserFunction:
    place, _, name = text.rpartition(":")
    function = getattr(_import(place), name, None)
    if not callable(function):
        raise InputError(place, f"there is no function '{name}'", RETURNS)
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    for parameter in parameters.values():
        must = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if must and (parameter.name not in SIZES or parameter.kind is parameter.POSITIONAL_ONLY):
            raise InputError(
                text,
                f"the function must be given '{parameter.name}'",
                "it may take microbatch and sequence, no more",
            )
    usual = parameters["sequence"].default if "sequence" in parameters else USUAL_SEQUENCE
    length = usual if isinstance(usual, int) and usual > 0 else USUAL_SEQUENCE
    return UserFunction(
        text, function, frozenset(name for name in SIZES if name in parameters), length
    )


def _called(
    function: UserFunction, microbatch: int, sequence: int
) -> tuple[nn.Module, Any, Any, Any]:
    """What the function returns, checked: module, inputs, loss or None, plan or None."""
    text = function.text
    try:
        with building(), printing_aside():
            returned = function.at(microbatch, sequence)
    except PhazeError:
        raise
    except BaseException as fault:
        reason = quoted(fault)
        raise InputError(text, f"the function raised {reason}", advice(reason)) from None
    if not isinstance(returned, tuple) or not 2 <= len(returned) <= 4:
        raise InputError(text, f"the function returned {type(returned).__name__}", RETURNS)
    module, inputs, loss, plan = (*returned, None, None)[:4]
    module = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    if not isinstance(module, nn.Module):
        raise InputError(
            text, f"the first thing returned is {type(module).__name__}, not an nn.Module", RETURNS
        )
    forget_values(module)
    if not any(isinstance(value, torch.Tensor) for value in tree_flatten(inputs)[0]):
        raise InputError(text, "the inputs hold no tensor", RETURNS)
    if loss is not None and not callable(loss):
        raise InputError(text, f"the loss is {type(loss).__name__}, no function", RETURNS)
    if plan is not None and not isinstance(plan, Mapping):
        raise InputError(
            text, f"the tensor-parallel plan is {type(plan).__name__}", "give a dict of styles"
        )
    return module, inputs, loss, plan


def _run(text: str, module: nn.Module, inputs: Any, loss: Any) -> Any:
    """One step; what the user's code prints goes to standard error, as standard output is the
    answer's."""
    with printing_aside():
        return _step(text, module, inputs, loss)


def _step(text: str, module: nn.Module, inputs: Any, loss: Any) -> Any:
    if isinstance(inputs, Mapping):
        result = module(**inputs)
    elif isinstance(inputs, torch.Tensor):
        result = module(inputs)
    else:
        result = module(*inputs)
    if loss is None:
        return (
            getattr(result, "loss", None) if getattr(result, "loss", None) is not None else result
        )
    value = loss(result)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        seen = (
            f"a tensor of shape {tuple(value.shape)}"
            if isinstance(value, torch.Tensor)
            else type(value).__name__
        )
        raise InputError(
            text, f"the loss is {seen}, not a scalar", "reduce it, for example by .mean()"
        )
    return value


def _batched(inputs: Any, microbatch: int, size: int) -> Any:
    """Inputs for another microbatch: every tensor whose first dimension is the example's batch is
    resized."""
    if isinstance(inputs, torch.Tensor):
        if inputs.dim() == 0 or inputs.shape[0] != size:
            return inputs
        return inputs.new_empty((microbatch, *inputs.shape[1:]))
    if isinstance(inputs, Mapping):
        return {key: _batched(value, microbatch, size) for key, value in inputs.items()}
    return tuple(_batched(value, microbatch, size) for value in inputs)


def sequence_of(first: torch.Tensor) -> int:
    """The length of the sequences of a model's first input: of tokens (batch, sequence), or of
    features (batch, sequence, width). Images, latents and rows of features are samples, each of
    them one: what is their second dimension is no sequence."""
    tokens = first.dim() > 1 and not first.is_floating_point()
    return int(first.shape[1]) if tokens or first.dim() == SEQUENCES_OF_FEATURES else 1


def user_source(text: str) -> Source:
    """A source from ``path.py:function`` or ``package.module:function``; the code is run."""
    function = _function(text)
    with without_weights():
        _, inputs, _, styles = _called(function, 1, function.sequence)
    first = next(value for value in tree_flatten(inputs)[0] if isinstance(value, torch.Tensor))
    batch = int(first.shape[0]) if first.dim() else 1
    free = "sequence" in function.takes
    length = function.sequence if free else sequence_of(first)
    plan: ShardingPlan | None = None if styles is None else translate(styles, text)

    def build(shape: TensorShape) -> TracedProgram:
        module, inputs_given, loss, _ = _called(function, shape.microbatch, shape.sequence)
        batched = (
            inputs_given
            if "microbatch" in function.takes
            else _batched(inputs_given, shape.microbatch, batch)
        )
        remedy = "" if "microbatch" in function.takes or shape.microbatch == batch else MICROBATCH

        def step() -> Any:
            with of_model(text, remedy):
                return _run(text, module, batched, loss)

        return TracedProgram(module, batched, step)

    return Source(text, build, length, None if free else length, not free, plan)


def _bare(module: nn.Module) -> nn.Module:
    """A copy of a module whose tensors have shapes and no memory, floating ones in 16 bit."""
    copies: dict[int, Any] = {}
    for tensor in (*module.parameters(), *module.buffers()):
        dtype = torch.get_default_dtype() if tensor.dtype.is_floating_point else tensor.dtype
        fresh = torch.empty(tensor.shape, dtype=dtype)
        is_parameter = isinstance(tensor, nn.Parameter)
        copies[id(tensor)] = nn.Parameter(fresh, tensor.requires_grad) if is_parameter else fresh
    return copy.deepcopy(module, copies)


def _like(inputs: Any) -> Any:
    """Example inputs without memory."""
    if isinstance(inputs, torch.Tensor):
        return torch.zeros(inputs.shape, dtype=inputs.dtype)
    if isinstance(inputs, Mapping):
        return {key: _like(value) for key, value in inputs.items()}
    return tuple(_like(value) for value in inputs) if isinstance(inputs, list | tuple) else inputs


def module_source(name: str, module: Any, inputs: Any, loss: Any) -> Source:
    """A source from a module that is there already; it is copied, never changed."""
    if not isinstance(module, nn.Module):
        raise InputError(
            name,
            f"this is {type(module).__name__}, not an nn.Module",
            "give phaze.Model(module, inputs)",
        )
    tensors = [value for value in tree_flatten(inputs)[0] if isinstance(value, torch.Tensor)]
    if not tensors:
        raise InputError(
            name, "the inputs hold no tensor", "give a tensor, a tuple or a dict of arguments"
        )
    first = tensors[0]
    batch, length = (int(first.shape[0]) if first.dim() else 1), sequence_of(first)

    def build(shape: TensorShape) -> TracedProgram:
        bare, batched = _bare(module), _batched(_like(inputs), shape.microbatch, batch)

        def step() -> Any:
            with of_model(name):
                return _run(name, bare, batched, loss)

        return TracedProgram(bare, batched, step)

    return Source(name, build, length, length, True, None)
