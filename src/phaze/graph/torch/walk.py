"""One training step of a model under the recorder, cut at its blocks.

The model runs forward once. Each call of a block is a region; what runs before, between and after the blocks are
regions too. Autograd is cut at every border: a block gets leaves instead of its arguments and hands out leaves
instead of its results, so one ``autograd.grad`` a region gives that region's backward pass and nothing else. What
one part between blocks makes and a later one reads (a skip connection around blocks) is cut the same way.

    region r:   grad(results_r, leaves into r + parameters read in r, a gradient of the shape of each result)

A result that n regions read gets n gradients: their sum, n - 1 times ``accumulate``, belongs to the region that made
the result, as autograd does it there.

Without ``classes`` every block runs, forward only: that is how equal blocks are found. With them only the first
call of every class runs, forward and backward; the others hand out empty results of the same shapes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from phaze.errors import InputError
from phaze.graph.torch.cut import Cut
from phaze.graph.torch.record import FROM_DATA, FROM_PARAMETERS, Recorder, hooks, tensors_in
from phaze.graph.torch.regions import Argument, Borders, Region, same_view
from phaze.graph.torch.sums import accumulate


class Walk:
    """Drives one pass; afterwards ``regions`` and ``recorder.log`` hold it."""

    def __init__(
        self,
        model: nn.Module,
        blocks: Mapping[str, nn.Module],
        classes: Sequence[int] | None = None,
        borders: Borders | None = None,
    ) -> None:
        self.model, self.blocks, self.classes, self.borders = model, dict(blocks), classes, borders
        self.backward = classes is not None
        self.recorder = Recorder()
        self.regions: list[Region] = []
        self.parameters: dict[int, nn.Parameter] = {}
        self.inside = False
        self._owner: dict[int, tuple[torch.Tensor, int]] = {}
        self._leaves: dict[tuple[int, int], torch.Tensor] = {}
        self._handed: dict[int, tuple[Region, torch.Tensor]] = {}
        self._held: list[torch.Tensor] = []  # what is looked up by identity must not be freed
        self._first_of: dict[int, Region] = {}
        self._calls = 0

    @property
    def _shards(self) -> Borders | None:
        """The borders, if the sequence is cut there."""
        return self.borders if self.borders is not None and self.borders.shards else None

    @property
    def part(self) -> Region:
        """The part between blocks that is running."""
        return self.regions[-1]

    def run(self, step: Callable[[], Any], inputs: Any) -> None:
        """Run ``step`` (the model on its inputs, and the loss) forward and backward."""
        names = {id(module): name for name, module in self.model.named_modules()}
        for parameter in self.model.parameters():
            self.recorder.mark(parameter, FROM_PARAMETERS)
            self.parameters[self.recorder.number(parameter)] = parameter
        for tensor in tensors_in(inputs):
            self.recorder.mark(tensor, FROM_DATA)
        originals = {path: module.forward for path, module in self.blocks.items()}
        remove = hooks(self.recorder, names)
        try:
            for path, module in self.blocks.items():
                module.forward = self._stand_in(path, module, originals[path])
            with self.recorder, Cut(self), torch.enable_grad():
                self._begin_part()
                results = tuple(tensors_in(tree_flatten(step())[0]))
                if not any(tensor.requires_grad for tensor in results):
                    raise InputError("the model", "its result depends on no parameter that is trained")
                for tensor in results:
                    local = self.local(tensor)
                    if local.grad_fn is not None:
                        self._give(local)
                for region in reversed(self.regions):
                    self._differentiate(region)
        finally:
            remove()
            for module in self.blocks.values():
                del module.forward

    def own(self, tensor: torch.Tensor) -> None:
        """Note that the running part made ``tensor``."""
        if tensor.grad_fn is not None:
            self._owner.setdefault(id(tensor), (tensor, self.part.number))

    def local(self, tensor: torch.Tensor) -> torch.Tensor:
        """``tensor`` as the running part sees it: a leaf, if an earlier region made it."""
        maker = self._maker(tensor)
        self._use(tensor)
        if maker is None or maker is self.part or not tensor.requires_grad:
            return tensor
        key = id(tensor), self.part.number
        if key not in self._leaves:
            if maker.module is None:
                self._give(tensor, maker)
            self.inside = True
            leaf = tensor.detach().requires_grad_()
            self.inside = False
            self._take(self.part, leaf)
            if maker.module is not None and self._shards and self._shards.is_shard(leaf):
                leaf = self._shards.leave(leaf)
                self.own(leaf)
            self._leaves[key] = leaf
            self._held.append(tensor)
        return self._leaves[key]

    def _maker(self, tensor: torch.Tensor) -> Region | None:
        """The region that made ``tensor``: as it was seen made, else (results of autograd functions) by storage."""
        if id(tensor) in self._owner:
            return self.regions[self._owner[id(tensor)][1]]
        number = self.recorder.log.made_in.get(self.recorder.number(tensor))
        return None if number is None or (tensor.is_leaf and tensor.requires_grad) else self.regions[number]

    def _use(self, tensor: torch.Tensor) -> None:
        """Somebody reads ``tensor``: if a block handed it out, it is a result of that block. Others are left out."""
        if id(tensor) in self._handed:
            region, value = self._handed[id(tensor)]
            self._give(value, region)

    def _begin_part(self) -> None:
        self.regions.append(Region(len(self.regions), "", None))
        self.recorder.region = self.part.number

    def _take(self, region: Region, leaf: torch.Tensor) -> None:
        region.takes.append(leaf)
        region.inputs[self.recorder.value(leaf)] = leaf.requires_grad

    def _give(self, tensor: torch.Tensor, region: Region | None = None) -> None:
        region = region or self.part
        if all(tensor is not other for other in region.gives):
            region.gives.append(tensor)
            region.outputs[self.recorder.value(tensor)] = tensor.requires_grad

    def _stand_in(self, path: str, module: nn.Module, original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if self.inside:
                return original(*args, **kwargs)
            return self._call(path, module, original, args, kwargs)

        return forward

    def _call(
        self, path: str, module: nn.Module, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        values, shape = tree_flatten((args, kwargs))
        entering = {i: self._enter(value) for i, value in enumerate(values) if isinstance(value, torch.Tensor)}
        region = Region(len(self.regions), path, module)
        self.inside = True
        leaves: dict[int, torch.Tensor] = {}
        for value in entering.values():
            if id(value) not in leaves:
                leaf = value.detach().requires_grad_(value.requires_grad)
                leaves[id(value)] = leaf
                self._take(region, leaf)
        self.regions.append(region)
        args, kwargs = tree_unflatten(
            [leaves[id(entering[i])] if i in entering else v for i, v in enumerate(values)], shape
        )
        number = self._calls
        self._calls += 1
        region.folds = None if self.classes is None else self.classes[number]
        first = None if region.folds is None else self._first_of.get(region.folds)
        if first is None:
            results = self._run_block(region, original, args, kwargs)
            if region.folds is not None:
                self._first_of[region.folds] = region
        else:
            results = self._repeat(region, first)
        sources = list({id(value): value for value in entering.values()}.values())
        self._begin_part()
        handed = self._hand_out(region, results, sources)
        self.inside = False
        return handed

    def _enter(self, value: torch.Tensor) -> torch.Tensor:
        """What a block is given: made by the running part (then that part gives it), or by an earlier region."""
        maker = self._maker(value)
        self._use(value)
        outside = maker is None or maker.module is None
        if self._shards and outside and value.requires_grad and self._shards.is_whole(value):
            key = id(value), -1
            if key not in self._leaves:
                self._leaves[key] = self._shards.enter(self.local(value))
                self.own(self._leaves[key])
                self._held.append(value)
            value = self._leaves[key]
            maker = self._maker(value)
        if maker is not None and maker.module is None:
            self._give(value, maker)
        return value

    def _run_block(
        self, region: Region, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.recorder.region = region.number
        with nullcontext() if self.borders is None else self.borders.region():
            results = original(*args, **kwargs)
        values, shape = tree_flatten(results)
        region.pattern = shape, [self._blank(value, region) for value in values]
        return results

    def _blank(self, value: Any, region: Region) -> Any:
        """How a repeat makes this result again: the place of the argument it is (unchanged), or its shape."""
        if not isinstance(value, torch.Tensor):
            return value
        if self.recorder.value(value) in region.inputs:
            for place, leaf in enumerate(region.takes):
                if same_view(leaf, value):
                    return Argument(place)
        return value

    def _repeat(self, region: Region, first: Region) -> Any:
        assert first.pattern is not None
        shape, values = first.pattern
        self.recorder.region = region.number
        made: list[Any] = []
        for value in values:
            if isinstance(value, Argument):
                made.append(region.takes[value.place])
            elif isinstance(value, torch.Tensor):
                with torch.no_grad():
                    fresh = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                self.recorder.log.origin[self.recorder.number(fresh)] = self.recorder.origin(value)
                made.append(fresh.requires_grad_(value.requires_grad))
            else:
                made.append(value)
        return tree_unflatten(made, shape)

    def _hand_out(self, region: Region, results: Any, sources: Sequence[torch.Tensor]) -> Any:
        """Leaves for the rest of the model; a result that is an argument is handed back as it came."""
        values, shape = tree_flatten(results)
        handed: list[Any] = []
        for value in values:
            if not isinstance(value, torch.Tensor):
                handed.append(value)
            elif isinstance(argument := self._blank(value, region), Argument):
                handed.append(sources[argument.place])
            else:
                leaf = value.detach().requires_grad_(value.requires_grad)
                self._owner[id(leaf)] = leaf, region.number
                self._handed[id(leaf)] = region, value
                handed.append(leaf)
        return tree_unflatten(handed, shape)

    def readers(self, result: torch.Tensor, maker: Region) -> list[Region]:
        """The regions that read a result of ``maker`` and send a gradient for it."""
        later = self.regions[maker.number + 1 :]
        return [r for r in later if any(leaf.requires_grad and same_view(leaf, result) for leaf in r.takes)]

    def _arriving(self, result: torch.Tensor, region: Region) -> torch.Tensor:
        """The gradient of a result of ``region``: what its readers send, summed."""
        if result.dim() == 0:
            arrived = [torch.ones_like(result)]
        else:
            arrived = [torch.empty_like(result) for _ in range(max(1, len(self.readers(result, region))))]
        region.output_gradients.extend(self.recorder.value(tensor) for tensor in arrived)
        total = arrived[0]
        for gradient in arrived[1:]:
            total = accumulate(total, gradient)
        return total

    def _differentiate(self, region: Region) -> None:
        """Run the region's backward pass under the recorder."""
        results = [tensor for tensor in region.gives if tensor.requires_grad and tensor.grad_fn is not None]
        read = {o.storage for s in self.recorder.log.forward.get(region.number, ()) for o in s.reads}
        weights = [self.parameters[n] for n in sorted(read & self.parameters.keys())]
        wanted = [leaf for leaf in (*region.takes, *weights) if leaf.requires_grad]
        if not results or not wanted or not self.backward:
            return
        inside = self.inside
        self.inside, self.recorder.backward, self.recorder.region = True, True, region.number
        try:
            given = [self._arriving(result, region) for result in results]
            found = torch.autograd.grad(results, wanted, given, allow_unused=True)
            region.gradients = [self.recorder.value(tensor) for tensor in found if tensor is not None]
        finally:
            self.inside, self.recorder.backward = inside, False
