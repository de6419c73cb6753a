"""Which region made a tensor, and what another one sees of it.

Tensors are known by identity, so they are kept: as they are made (``claim``), as blocks hand them
out, and as they were cut off for a region that reads them.
"""

from contextlib import AbstractContextManager, nullcontext

import torch

from phaze.errors import InputError
from phaze.graph.torch.entry import enter
from phaze.graph.torch.follow import Sizes
from phaze.graph.torch.record import Recorder
from phaze.graph.torch.regions import Borders, TracedRegion


class TensorOwner:
    """The regions of a pass so far, the last of them running, and whose each tensor is."""

    def __init__(
        self, recorder: Recorder, borders: Borders | None, sizes: Sizes | None = None
    ) -> None:
        self.recorder, self.borders, self.sizes = recorder, borders, sizes
        self.regions: list[TracedRegion] = []
        self.paused = False
        self._owner: dict[int, tuple[torch.Tensor, int]] = {}
        self._leaves: dict[tuple[int, int], torch.Tensor] = {}
        self._seen: dict[int, tuple[torch.Tensor, int]] = {}
        self._handed: dict[int, tuple[TracedRegion, torch.Tensor]] = {}
        self._held: list[torch.Tensor] = []  # what is looked up by identity must not be freed

    def aside(self) -> AbstractContextManager[None]:
        """While what runs is not the model's code."""
        return nullcontext() if self.sizes is None else self.sizes.aside()

    @property
    def _shards(self) -> Borders | None:
        """The borders, if the sequence is cut there."""
        return self.borders if self.borders is not None and self.borders.shards else None

    @property
    def part(self) -> TracedRegion:
        """The region that is running: a part between blocks, or a block."""
        return self.regions[-1]

    def claim(self, tensor: torch.Tensor) -> None:
        """Note that the running region made ``tensor``."""
        if tensor.grad_fn is not None:
            self._owner.setdefault(id(tensor), (tensor, self.part.number))

    def inherit(self, tensor: torch.Tensor, source: torch.Tensor) -> None:
        """Note that ``tensor`` is a view of ``source``."""
        if tensor.grad_fn is not None and id(source) in self._owner:
            self._owner.setdefault(id(tensor), (tensor, self._owner[id(source)][1]))

    def foreign(self, tensor: torch.Tensor) -> bool:
        """Whether :meth:`local` has to be asked."""
        owner = self._owner.get(id(tensor))
        return self.part.module is None or (owner is not None and owner[1] != self.part.number)

    def local(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor`` as the running region sees it: cut off, if another one made it."""
        tensor = self._latest(tensor)
        maker = self._maker(tensor)
        self._use(tensor)
        if maker is None or maker is self.part or not tensor.requires_grad:
            return tensor
        key = id(tensor), self.part.number
        if key not in self._leaves:
            if maker.module is None or self._is_inner(tensor):
                self.give(tensor, maker)
            seen = self.cut(tensor, self.part)
            if self._shards and self.part.module is not None:
                raise InputError(
                    self.part.path,
                    "the block reads a tensor that it is not given",
                    "pass it as an argument",
                )
            if maker.module is not None and self._shards and self._shards.is_shard(seen):
                seen = self._shards.leave(seen)
                self.claim(seen)
            self._leaves[key] = seen
        return self._leaves[key]

    def cut(self, tensor: torch.Tensor, region: TracedRegion) -> torch.Tensor:
        """What ``region`` sees of ``tensor``, which another one made."""
        self.paused = True
        leaf = tensor.detach().requires_grad_(tensor.requires_grad)
        self.take(region, leaf)
        seen = enter(leaf, self.recorder)
        if leaf.requires_grad:
            self._owner[id(seen)] = seen, region.number
            self._seen[id(tensor)] = seen, seen._version
        self._held.append(tensor)
        self.paused = False
        return seen

    def _latest(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor``, or what a region saw of it and then changed in place."""
        while (seen := self._seen.get(id(tensor))) is not None and seen[0]._version != seen[1]:
            tensor = seen[0]
        return tensor

    def _maker(self, tensor: torch.Tensor) -> TracedRegion | None:
        """The region that made ``tensor``: as it was seen made, else (results of autograd
        functions) by storage."""
        if id(tensor) in self._owner:
            return self.regions[self._owner[id(tensor)][1]]
        number = self.recorder.log.made_in.get(self.recorder.number(tensor))
        inner = self.part.module is not None or (tensor.is_leaf and tensor.requires_grad)
        return None if number is None or inner else self.regions[number]

    def _use(self, tensor: torch.Tensor) -> None:
        """Somebody reads ``tensor``: if a block handed it out, it is a result of that block. Others
        are left out."""
        if id(tensor) in self._handed:
            region, value = self._handed[id(tensor)]
            self.give(value, region)

    def _is_inner(self, tensor: torch.Tensor) -> bool:
        """Whether a block made ``tensor`` and did not hand it out."""
        return id(tensor) in self._owner and id(tensor) not in self._handed

    def take(self, region: TracedRegion, leaf: torch.Tensor) -> None:
        region.takes.append(leaf)
        region.taken_values.append(self.recorder.value(leaf))
        region.inputs[self.recorder.value(leaf)] = leaf.requires_grad

    def give(self, tensor: torch.Tensor, region: TracedRegion | None = None) -> None:
        region = region or self.part
        if all(tensor is not other for other in region.gives):
            region.gives.append(tensor)
            region.outputs[self.recorder.value(tensor)] = tensor.requires_grad

    def admit(self, value: torch.Tensor) -> torch.Tensor:
        """What a block is given: made by the running part (then that part gives it), or by an
        earlier region."""
        value = self._latest(value)
        maker = self._maker(value)
        self._use(value)
        outside = maker is None or maker.module is None
        if self._shards and outside and value.requires_grad and self._shards.is_whole(value):
            key = id(value), -1
            if key not in self._leaves:
                self._leaves[key] = self._shards.enter(self.local(value))
                self.claim(self._leaves[key])
                self._held.append(value)
            value = self._leaves[key]
            maker = self._maker(value)
        if maker is not None and (maker.module is None or self._is_inner(value)):
            self.give(value, maker)
        return value

    def hand_out(self, value: torch.Tensor, region: TracedRegion) -> torch.Tensor:
        """A leaf for the rest of the model in the place of ``value``, a result of the block
        ``region``."""
        leaf = value.detach().requires_grad_(value.requires_grad)
        self._owner[id(leaf)] = leaf, region.number
        self._handed[id(leaf)] = region, value
        return leaf
