"""The code of a model sees the sizes of the whole model, and works on tensors of other sizes.

A first run notes what every function of torch was given and made. In a later run of the same code a
question for a size gets the answer of the first run, and a function that is told sizes (view,
split, expand, a norm) gets those of the tensors at hand instead. So a rank that holds a part of the
weights, or a copy with fewer features, runs the code as it is written, without a change of its
attributes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from phaze.graph.torch.plain_attention import NAME as ATTENTION
from phaze.graph.torch.plain_attention import plain_attention
from phaze.graph.torch.record import code_line, tensors_in
from phaze.graph.torch.reshaping import Shape, Unsplit, pieces, reshaped, sliced

Place = tuple[str, int]
VIEWS = frozenset({"view", "reshape", "unflatten", "flatten"})
SPLITS = frozenset({"split", "chunk", "split_with_sizes", "tensor_split"})
INDEXED = frozenset({"embedding", "cross_entropy"})
NORMS = frozenset({"layer_norm", "rms_norm"})
# Questions that tensors without memory answer by themselves, so that no first run sees them.
UNSEEN = frozenset({"get device"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: shapes of the tensors it was given and made, the ``answer`` if it is a size, and
    the shapes of the very first run, whose sizes the code knows."""

    name: str
    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]
    answer: Any
    first: tuple[Shape, ...]


Track = Mapping[Place, list[Seen]]


class FollowRules(Protocol):
    """What happens where tensors of this run are no longer those of the whole."""

    def run(self, sizes: "Sizes", call: "FollowedCall") -> Any:
        """The result of a call, with communication where it is needed."""
        ...


@dataclass(slots=True)
class FollowedCall:
    """A call under way: the function, what it is given, and what the run before saw at this
    place."""

    func: Any
    name: str
    args: tuple[Any, ...]
    named: dict[str, Any]
    seen: Seen
    local: tuple[Shape, ...]

    def run(self) -> Any:
        """Its result."""
        return self.func(*self.args, **self.named)

    def argument(self, place: int, name: str, usual: Any = None) -> Any:
        """An argument by place or name."""
        return self.args[place] if len(self.args) > place else self.named.get(name, usual)

    def tensors(self) -> list[Tensor]:
        """The tensors it is given."""
        return list(tensors_in((self.args, self.named)))


def shapes(values: Any) -> tuple[Shape, ...]:
    """The shapes of the tensors in ``values``."""
    return tuple(tuple(map(int, tensor.shape)) for tensor in tensors_in(values))


def function_name(func: Any) -> str:
    """The name of a function of torch; that of a property is ``get shape``."""
    name = getattr(func, "__name__", "")
    return f"get {getattr(func.__self__, '__name__', '')}" if name == "__get__" else name


def user_place() -> str:
    """Where in the model's code the running call stands, as ``file.py:12``."""
    return code_line().rpartition("/")[2]


def _is_size(value: Any) -> bool:
    if isinstance(value, torch.Size):
        return True
    return isinstance(value, int) and not isinstance(value, bool)


def _within_rows(call: FollowedCall) -> None:
    """Numbers of rows (of a table, of classes) that were chosen at random, as numbers of rows that
    there are."""
    place, rows = (
        (0, call.seen.operands[-1][0])
        if call.name == "embedding"
        else (1, call.seen.operands[0][1])
    )
    index = call.args[place]
    if len(call.args) > 1 and not index.is_floating_point():
        call.args = (*call.args[:place], index % rows, *call.args[place + 1 :])


class Sizes(TorchFunctionMode):
    """Notes calls in ``track``; with a ``reference``, the track of an earlier run, it follows that
    one."""

    def __init__(
        self,
        reference: Track | None = None,
        rules: FollowRules | None = None,
        real: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__()
        self.reference, self.rules, self.real = reference, rules, real
        self.track: dict[Place, list[Seen]] = {}
        self._calls: Counter[str] = Counter()
        self._outer: dict[int, tuple[Tensor, dict[int, int]]] = {}
        self._weights: dict[int, Tensor] = {}
        self._paused = False
        self._place: Place = ("", 0)
        self._next = 0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What runs meanwhile is not the model's code."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    @contextmanager
    def within(self, path: str) -> Iterator[None]:
        """While the code of the block at ``path`` runs."""
        before = self._place, self._next, self._paused
        self._place, self._next, self._paused = (path, self._calls[path]), 0, False
        self._calls[path] += 1
        try:
            yield
        finally:
            self._place, self._next, self._paused = before

    def results(self, path: str, handed_out: Any) -> None:
        """Note what a block handed out; following, it must be what the whole block hands out."""
        place, result_shapes = (f"{path} results", self._calls[path]), shapes(handed_out)
        self.track[place] = [Seen("", (), result_shapes, None, ())]
        expected = None if self.reference is None else self.reference.get(place)
        if self.rules is not None and expected and expected[0].results != result_shapes:
            raise Unsplit("what the block hands out stays split")

    def outer(self, tensor: Tensor) -> dict[int, int]:
        """By axis, how many stacked parts come before a cut, where that is not 1."""
        return self._outer[id(tensor)][1] if id(tensor) in self._outer else {}

    @property
    def inside(self) -> bool:
        """Whether the code of a block runs."""
        return self._place[0] != ""

    def is_weight(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` is a parameter, or made from parameters alone."""
        return isinstance(tensor, nn.Parameter) or id(tensor) in self._weights

    def stack(self, tensor: Tensor, outer: dict[int, int]) -> None:
        """Note stacked parts of a tensor."""
        if outer:
            self._outer[id(tensor)] = tensor, outer

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        name = function_name(func)
        if self._paused or name in UNSEEN:
            return func(*args, **named)
        if name == ATTENTION:
            with self:
                return plain_attention(*args, **named)
        if self.reference is None:
            result = func(*args, **named)
            operand_shapes = shapes((args, named))
            self._note(
                Seen(
                    name,
                    operand_shapes,
                    shapes(result),
                    result if _is_size(result) else None,
                    operand_shapes,
                )
            )
            return result
        seen = self._expected(name)
        if seen.answer is not None:
            self._note(seen)
            return seen.answer
        if self.real is not None:
            args, named = self.real((args, named))
        call = FollowedCall(func, name, args, named, seen, shapes((args, named)))
        result = self._follow(call)
        self._inherit(call, result)
        self._note(Seen(name, call.local, shapes(result), None, seen.first))
        return result

    def _note(self, seen: Seen) -> None:
        self.track.setdefault(self._place, []).append(seen)

    def _expected(self, name: str) -> Seen:
        assert self.reference is not None
        calls = self.reference.get(self._place, [])
        if self._next >= len(calls) or calls[self._next].name != name:
            raise Unsplit(
                f"the code takes another branch on a part of the model, at {name} ({user_place()})"
            )
        self._next += 1
        return calls[self._next - 1]

    def _follow(self, call: FollowedCall) -> Any:
        name, seen = call.name, call.seen
        if len(call.local) != len(seen.operands):
            raise Unsplit(f"{name} is given other tensors on a part of the model ({user_place()})")
        if name in VIEWS and not any(isinstance(value, torch.dtype) for value in call.args):
            return self._view(call)
        if name in SPLITS:
            return self._split(call)
        if name == "expand":
            return self._expand(call)
        if self.real is not None and name in INDEXED:
            _within_rows(call)
        if self.real is not None and name == "dropout":
            return call.args[0]
        if name in NORMS:
            self._normalized(call)
        elif name == "__getitem__" and call.local[0] != seen.first[0]:
            call.args = (
                call.args[0],
                sliced(call.args[1], seen.first[0], call.local[0]),
                *call.args[2:],
            )
        if self.rules is None or call.local == seen.operands:
            return call.run()
        return self.rules.run(self, call)

    def _view(self, call: FollowedCall) -> Tensor:
        seen, x = call.seen, call.args[0]
        shape, outer = reshaped(seen.operands[0], seen.results[0], call.local[0], self.outer(x))
        result: Tensor = x.view(shape) if call.name == "view" else x.reshape(shape)
        self.stack(result, outer)
        return result

    def _split(self, call: FollowedCall) -> Any:
        x, axis = call.args[0], int(call.argument(2, "dim", 0)) % len(call.local[0])
        parts = self.outer(x).get(axis, 1)
        if parts not in (1, len(call.seen.results)):
            raise Unsplit(
                f"{parts} stacked parts are split into {len(call.seen.results)} ({user_place()})"
            )
        return torch.split(
            x, pieces(call.seen.operands[0], call.seen.results, call.local[0], axis), axis
        )

    def _expand(self, call: FollowedCall) -> Tensor:
        whole, target, part = call.seen.operands[0], list(call.seen.results[0]), call.local[0]
        shift = len(target) - len(whole)
        for axis, size in enumerate(part):
            if size != whole[axis] or whole[axis] > 1:
                target[axis + shift] = size
        result: Tensor = call.args[0].expand(target)
        return result

    def _normalized(self, call: FollowedCall) -> None:
        """A norm is told the sizes of the last axes."""
        count = len(call.argument(1, "normalized_shape"))
        size = list(call.local[0][-count:])
        if "normalized_shape" in call.named:
            call.named["normalized_shape"] = size
        else:
            call.args = (call.args[0], size, *call.args[2:])

    def _inherit(self, call: FollowedCall, result: Any) -> None:
        """What is made from weights alone is a weight; a function that keeps a shape keeps its
        stacked parts."""
        if call.local and all(map(self.is_weight, call.tensors())):
            self._weights |= {id(tensor): tensor for tensor in tensors_in(result)}
        if not isinstance(result, Tensor) or id(result) in self._outer or not self._outer:
            return
        for tensor, shape in zip(call.tensors(), call.seen.operands, strict=True):
            if id(tensor) in self._outer and shape == call.seen.results[0]:
                self.stack(result, self.outer(tensor))
