"""One training step of a model under the recorder, cut at its blocks.

The model runs forward once. Each call of a block is a region; what runs before, between and after
the blocks are regions too. Autograd is cut at every border: a block gets leaves instead of its
arguments and hands out leaves instead of its results, so one ``autograd.grad`` a region gives that
region's backward pass and nothing else. What one region makes and a later one reads without being
given it (a skip connection around blocks, a tensor that a module keeps) is cut the same way.

    region r:   grad(results_r, leaves into r + parameters read in r, a gradient of the shape of
                each result)

A result that n regions read gets n gradients: their sum, n - 1 times ``accumulate``, belongs to the
region that made the result, as autograd does it there.

Without ``classes`` every block runs, forward only: that is how equal blocks are found. With them
only the first call of every class runs, forward and backward; the others hand out empty results of
the same shapes, unless ``entire`` says that all must run. ``sizes`` lets the code of the model see
the sizes of the whole; without a reference it notes them, forward only.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from phaze.errors import InputError
from phaze.graph.torch.cut import Cut
from phaze.graph.torch.entry import hand_back
from phaze.graph.torch.follow import Sizes
from phaze.graph.torch.record import FROM_DATA, FROM_PARAMETERS, Recorder, hooks, tensors_in
from phaze.graph.torch.regions import Argument, Borders, TracedRegion, Value, same_view
from phaze.graph.torch.sums import accumulate
from phaze.graph.torch.tensor_owner import TensorOwner


class PassWalk(TensorOwner):
    """Drives one pass; afterwards ``regions`` and ``recorder.log`` hold it."""

    def __init__(
        self,
        model: nn.Module,
        blocks: Mapping[str, nn.Module],
        classes: Sequence[int] | None = None,
        borders: Borders | None = None,
        entire: bool = False,
        sizes: Sizes | None = None,
        most_runs: int = 0,
    ) -> None:
        super().__init__(Recorder(most_runs), borders, sizes)
        self.model, self.blocks, self.classes = model, dict(blocks), classes
        self.backward, self.entire = (
            classes is not None and (sizes is None or sizes.reference is not None),
            entire,
        )
        self.parameters: dict[int, nn.Parameter] = {}
        self._first_of: dict[int, TracedRegion] = {}
        self._calls = 0

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
            with self.recorder, self.sizes or nullcontext(), Cut(self), torch.enable_grad():
                self._begin_part()
                outcome = step()
            with self.recorder, Cut(self), torch.enable_grad():
                results = tuple(tensors_in(tree_flatten(outcome)[0]))
                if not any(tensor.requires_grad for tensor in results):
                    raise InputError(
                        "the model", "its result depends on no parameter that is trained"
                    )
                for tensor in results:
                    local = self.local(tensor)
                    if local.grad_fn is not None:
                        self.give(local)
                for region in reversed(self.regions):
                    self._differentiate(region)
        finally:
            remove()
            for module in self.blocks.values():
                del module.forward

    def _begin_part(self) -> None:
        self.regions.append(TracedRegion(len(self.regions), "", None))
        self.recorder.region = self.part.number

    def _stand_in(
        self, path: str, module: nn.Module, original: Callable[..., Any]
    ) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            if self.paused or self.part.module is not None:
                return original(*args, **kwargs)
            with self.aside():
                return self._call(path, module, original, args, kwargs)

        return forward

    def _call(
        self,
        path: str,
        module: nn.Module,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        values, shape = tree_flatten((args, kwargs))
        entering = {
            i: self.admit(value)
            for i, value in enumerate(values)
            if isinstance(value, torch.Tensor)
        }
        region = TracedRegion(len(self.regions), path, module)
        seen: dict[int, torch.Tensor] = {}
        for value in entering.values():
            if id(value) not in seen:
                seen[id(value)] = self.cut(value, region)
                region.arguments.append(value)
        self.regions.append(region)
        arguments = [seen[id(entering[i])] if i in entering else v for i, v in enumerate(values)]
        inner = tree_unflatten(arguments, shape)
        number = self._calls
        self._calls += 1
        region.folds = None if self.classes is None else self.classes[number]
        first = None if region.folds is None else self._first_of.get(region.folds)
        if first is None or self.entire:
            results = self._run_block(region, original, *inner)
            hand_back((args, kwargs), inner, set(map(id, arguments)))
            if region.folds is not None:
                self._first_of.setdefault(region.folds, region)
        else:
            results = self._repeat(region, first)
        self._begin_part()
        self.paused = True
        handed = self._hand_out(region, results)
        self.paused = False
        return handed

    def _run_block(
        self,
        region: TracedRegion,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        self.recorder.region = region.number
        sizes = nullcontext() if self.sizes is None else self.sizes.within(region.path)
        with nullcontext() if self.borders is None else self.borders.region(), sizes:
            results = original(*args, **kwargs)
        values, shape = tree_flatten(results)
        region.pattern = shape, [self._blank(value, region) for value in values]
        region.results = {
            self.recorder.value(value) for value in values if isinstance(value, torch.Tensor)
        }
        return results

    def _blank(self, value: Any, region: TracedRegion) -> Any:
        """How a repeat makes this result again: the place of the argument it is (unchanged), or its
        shape."""
        if not isinstance(value, torch.Tensor):
            return value
        if self.recorder.value(value) in region.inputs:
            for place, leaf in enumerate(region.takes[: len(region.arguments)]):
                if same_view(leaf, value):
                    return Argument(place)
        return value

    def _repeat(self, region: TracedRegion, first: TracedRegion) -> Any:
        assert first.pattern is not None
        shape, values = first.pattern
        self.recorder.region, self.paused = region.number, True
        leaves: list[Any] = []
        for value in values:
            if isinstance(value, Argument):
                leaves.append(region.takes[value.place])
            elif isinstance(value, torch.Tensor):
                with torch.no_grad():
                    fresh = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                self.recorder.log.origin[self.recorder.number(fresh)] = self.recorder.origin(value)
                leaves.append(fresh.requires_grad_(value.requires_grad))
            else:
                leaves.append(value)
        return tree_unflatten(leaves, shape)

    def _hand_out(self, region: TracedRegion, results: Any) -> Any:
        """Leaves for the rest of the model; a result that is an argument is handed back as it
        came."""
        values, shape = tree_flatten(results)
        handed: list[Any] = []
        for value in values:
            if not isinstance(value, torch.Tensor):
                handed.append(value)
            elif isinstance(argument := self._blank(value, region), Argument):
                handed.append(region.arguments[argument.place])
            else:
                handed.append(self.hand_out(value, region))
        return tree_unflatten(handed, shape)

    def readers(self, result: torch.Tensor, maker: TracedRegion) -> list[TracedRegion]:
        """The regions that read a result of ``maker`` and send a gradient for it."""
        later = self.regions[maker.number + 1 :]

        def reads(leaf: torch.Tensor, value: Value) -> bool:
            return leaf.requires_grad and value in maker.outputs and same_view(leaf, result)

        return [region for region in later if any(map(reads, region.takes, region.taken_values))]

    def _arriving(self, result: torch.Tensor, region: TracedRegion) -> torch.Tensor:
        """The gradient of a result of ``region``: what its readers send, summed."""
        if result.dim() == 0:
            arrived = [torch.ones_like(result)]
        else:
            arrived = [
                torch.empty_like(result) for _ in range(max(1, len(self.readers(result, region))))
            ]
        region.output_gradients.extend(self.recorder.value(tensor) for tensor in arrived)
        total = arrived[0]
        for gradient in arrived[1:]:
            total = accumulate(total, gradient)
        return total

    def _differentiate(self, region: TracedRegion) -> None:
        """Run the region's backward pass under the recorder."""
        results = [
            tensor for tensor in region.gives if tensor.requires_grad and tensor.grad_fn is not None
        ]
        read = {
            o.storage for s in self.recorder.log.forward.get(region.number, ()) for o in s.reads
        }
        weights = [self.parameters[n] for n in sorted(read & self.parameters.keys())]
        wanted = [leaf for leaf in (*region.takes, *weights) if leaf.requires_grad]
        if not results or not wanted or not self.backward:
            return
        self.paused, self.recorder.backward, self.recorder.region = True, True, region.number
        try:
            output_gradients = [self._arriving(result, region) for result in results]
            gradients = torch.autograd.grad(results, wanted, output_gradients, allow_unused=True)
            region.gradients = [
                self.recorder.value(tensor) for tensor in gradients if tensor is not None
            ]
        finally:
            self.paused, self.recorder.backward = False, False
