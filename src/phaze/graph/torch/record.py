"""The log of operators that PyTorch dispatches: names, shapes, and which storage each operand lives
in.

A value is a storage at a version. Views share their storage, so aliases need no schema: an operator
whose results all live in storages of its arguments, and that mutates none, moved nothing and is
marked ``view``. An operator that mutates an argument reads (storage, version) and writes (storage,
version + 1).
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

from phaze.errors import InputError
from phaze.graph import opset

FROM_PARAMETERS, FROM_DATA, FROM_CHANCE = 1, 2, 4
RESHAPES = frozenset(
    f"aten.{name}_" for name in ("as_strided", "t", "transpose", "squeeze", "unsqueeze", "detach")
)
"""Operators that change how a tensor is seen and none of its values, though they count as changing
it."""
_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an operator saw it: its value, shape, the distinct elements it touches, bytes of
    an element, and whether that is its whole storage."""

    storage: int
    version: int
    shape: tuple[int, ...]
    touched: int
    element_bytes: int
    whole: bool

    @property
    def value(self) -> tuple[int, int]:
        return self.storage, self.version


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One dispatched operator. ``module`` and ``line`` say where in the model it came from; in
    backward they are those of the forward operator it differentiates."""

    name: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    settings: tuple[Any, ...]
    view: bool
    module: str
    line: str


@dataclass(slots=True)
class Log:
    """Everything one pass dispatched, by region, and what is known of its storages."""

    forward: dict[int, list[RecordedStep]] = field(default_factory=dict)
    backward: dict[int, list[RecordedStep]] = field(default_factory=dict)
    bytes_of: dict[int, int] = field(default_factory=dict)
    origin: dict[int, int] = field(default_factory=dict)
    version: dict[int, int] = field(default_factory=dict)
    made_in: dict[int, int] = field(default_factory=dict)
    arguments: set[int] = field(default_factory=set)


def _touched(tensor: torch.Tensor) -> int:
    """Distinct elements behind a view: an expanded dimension (stride 0) is read once."""
    count = math.prod(
        size
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        if stride != 0 or size == 0
    )
    return int(min(count, tensor.untyped_storage().nbytes() // max(1, tensor.element_size())))


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested arguments, in order."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors_in(value)
    elif isinstance(values, Mapping):
        for value in values.values():
            yield from tensors_in(value)


def _settings(values: Any) -> Any:
    """Arguments that are not tensors, hashable; a tensor leaves its place."""
    if isinstance(values, torch.Tensor):
        return "tensor"
    if isinstance(values, list | tuple):
        return tuple(_settings(value) for value in values)
    if isinstance(values, Mapping):
        return tuple((key, _settings(value)) for key, value in values.items())
    return values if isinstance(values, bool | int | float | str | type(None)) else str(values)


def code_line() -> str:
    """The innermost frame outside torch and this folder: where the model's author wrote the
    operator."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_TORCH, _HERE, "<")):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _changed(
    func: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[torch.Tensor, ...]:
    """The arguments that an operator writes to, by its schema."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable or str(func).rsplit(".", 1)[0] in RESHAPES:
        return ()
    written: list[torch.Tensor] = []
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.extend(
                tensors_in(args[place] if place < len(args) else named.get(argument.name))
            )
    return tuple(written)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Logs what is dispatched under it; regions (blocks and what lies between) are set by whoever
    drives it."""

    def __init__(self, most_runs: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.log, self._most_runs = Log(), most_runs
        self._runs: Counter[tuple[int, str, str]] = Counter()
        self.region, self.backward, self._unseen = 0, False, False
        self.path: list[str] = [""]
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._forward_places: dict[int, tuple[str, str]] = {}

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What runs meanwhile is no part of the model."""
        self._unseen = True
        try:
            yield
        finally:
            self._unseen = False

    def number(self, tensor: torch.Tensor) -> int:
        """The number of the tensor's storage; the storage is kept alive, so that its address stays
        its own."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._alive.append(storage)
            self.log.bytes_of[self._numbers[key]] = storage.nbytes()
        return self._numbers[key]

    def mark(self, tensor: torch.Tensor, origin: int) -> None:
        """Say that a tensor is a parameter (FROM_PARAMETERS) or an input of the model
        (FROM_DATA)."""
        self.log.origin[self.number(tensor)] = origin
        if origin == FROM_DATA:
            self.log.arguments.add(self.number(tensor))

    def value(self, tensor: torch.Tensor) -> tuple[int, int]:
        storage = self.number(tensor)
        return storage, self.log.version.get(storage, 0)

    def origin(self, tensor: torch.Tensor) -> int:
        return self.log.origin.get(self.number(tensor), 0)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        name = str(func)
        if self._unseen:
            return func(*args, **named)
        if name == "aten._local_scalar_dense.default":
            return self._scalar(args[0])
        if name.startswith(("prim.", "prims.", "profiler.")):
            return func(*args, **named)
        inputs = (*tensors_in(args), *tensors_in(named))
        reads = tuple(map(self._operand, inputs))
        result = func(*args, **named)
        if getattr(func, "is_view", False) and inputs:
            self._same_storage(inputs[0], tuple(tensors_in(result)))
        changed = _changed(func, args, named)
        self._note(
            name, reads, changed, tuple(tensors_in(result)), (_settings(args), _settings(named))
        )
        return result

    def _same_storage(self, base: torch.Tensor, views: tuple[torch.Tensor, ...]) -> None:
        """Views of a tensor with values (one that the loss closes over) lie in storages of their
        own: the tensor is replaced by one without values at every use. They count as the storage
        that they are views of."""
        for view in views:
            storage = view.untyped_storage()
            if storage._cdata not in self._numbers:
                self._numbers[storage._cdata] = self.number(base)
                self._alive.append(storage)

    def _operand(self, tensor: torch.Tensor) -> Operand:
        storage, version = self.value(tensor)
        touched, size = _touched(tensor), tensor.element_size()
        whole = touched * size >= self.log.bytes_of[storage]
        return Operand(storage, version, tuple(map(int, tensor.shape)), touched, size, whole)

    def _note(
        self,
        name: str,
        reads: tuple[Operand, ...],
        changed: tuple[torch.Tensor, ...],
        results: tuple[torch.Tensor, ...],
        settings: tuple[Any, ...],
    ) -> None:
        read_storages = {operand.storage for operand in reads}
        mutated = {self.number(tensor) for tensor in changed}
        for storage in mutated:
            self.log.version[storage] = self.log.version.get(storage, 0) + 1
        returned = {self.number(tensor) for tensor in results}
        outputs = (*results, *(tensor for tensor in changed if self.number(tensor) not in returned))
        writes = tuple(map(self._operand, outputs))
        fresh = tuple(
            operand
            for operand in writes
            if operand.storage not in read_storages or operand.storage in mutated
        )
        origin = FROM_CHANCE if opset.kind_of(name) == "random" else 0
        for operand in reads:
            origin |= self.log.origin.get(operand.storage, 0)
        for operand in fresh:
            self.log.made_in.setdefault(operand.storage, self.region)
            self.log.origin[operand.storage] = self.log.origin.get(operand.storage, 0) | origin
        module, line = self._place()
        if self._most_runs and not self.backward:
            self._count(name, line)
        passes = self.log.backward if self.backward else self.log.forward
        passes.setdefault(self.region, []).append(
            RecordedStep(name, reads, fresh, settings, not fresh, module, line)
        )

    def _count(self, name: str, line: str) -> None:
        """Refuse a line that runs in one block as often as a sequence has tokens: its trace would
        have that many operators."""
        self._runs[self.region, name, line] += 1
        if self._runs[self.region, name, line] >= self._most_runs:
            raise InputError(
                "the model",
                (
                    f"a loop over the sequence runs {name} {self._most_runs} times at "
                    f"{line.rpartition('/')[2]}"
                ),
                "a recurrent scan is not one operator yet, and token by token it is not traced",
            )

    def _place(self) -> tuple[str, str]:
        """Module and line of what is running; a backward operator has those of the forward one of
        its number: the first that was dispatched once autograd had given that number out."""
        if self.backward:
            node = torch._C._current_autograd_node()
            number = -1 if node is None else node._sequence_nr()
            return self._forward_places.get(number, (self.path[-1], ""))
        place = self.path[-1], code_line()
        self._forward_places.setdefault(torch._C._autograd._get_sequence_nr() - 1, place)
        return place

    def _scalar(self, tensor: torch.Tensor) -> Any:
        """A number asked of a tensor without values. Chance (layer drop) and questions about
        constants get an answer, data does not."""
        value = tensor.constant if isinstance(tensor, FakeTensor) else tensor
        if value is not None:
            with unset_fake_temporarily():
                return value.item()
        origin = self.origin(tensor)
        answered = origin == FROM_CHANCE or (origin == 0 and tensor.dtype == torch.bool)
        if not answered:
            module, line = self._place()
            raise InputError(
                module or "the model",
                f"the code asks for the value of a tensor at {line}, and a trace has shapes only",
                "choose the branch without looking at data, for example by a constructor argument",
            )
        return False if tensor.dtype == torch.bool else 1


def hooks(recorder: Recorder, names: Mapping[int, str]) -> Callable[[], None]:
    """Keep ``recorder.path`` at the module that is running; returns what removes the hooks."""

    def enter(module: torch.nn.Module, _: Any) -> None:
        recorder.path.append(names.get(id(module), recorder.path[-1]))

    def leave(module: torch.nn.Module, _: Any, __: Any) -> None:
        recorder.path.pop()

    before = torch.nn.modules.module.register_module_forward_pre_hook(enter)
    after = torch.nn.modules.module.register_module_forward_hook(leave, always_call=True)

    def remove() -> None:
        before.remove()
        after.remove()

    return remove
