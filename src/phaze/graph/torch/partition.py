"""What one tensor-parallel rank does where its tensors are parts of the whole: communication, as
Megatron has it.

A call is given tensors that are whole on every rank or split along an axis. By what it does:

    linear map, split by outputs        its input passes f (or is gathered along the sequence), the
                                        result is split
    sum over a split axis of a weight   partial results are summed over the ranks (g), then a bias
                                        is added
    split with whole, element-wise      the whole tensor passes f, and this rank takes its part of
                                        it
    norm, softmax, sum over a split axis    cannot be split

With sequence parallelism nothing in a block passes f: gradients of what every rank holds whole are
summed once a step.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch import Tensor
from torch.nn import functional

from phaze.graph.torch.collectives import reduce_from
from phaze.graph.torch.follow import FollowedCall, Sizes, user_place
from phaze.graph.torch.parallel import RankGroup
from phaze.graph.torch.reshaping import Shape, Unsplit, broadcast_axes
from phaze.graph.torch.vocabulary import Vocabulary, lookup

PRODUCTS = frozenset({"matmul", "__matmul__", "mm", "bmm"})
JOINS = frozenset({"cat", "concat", "concatenate"})
# Functions that mix the elements along an axis.
NORMS = (
    "softmax",
    "log_softmax",
    "logsumexp",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "normalize",
    "norm",
)
SUMS = (
    "mean",
    "sum",
    "var",
    "std",
    "var_mean",
    "prod",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "median",
)
MIXES = frozenset(
    (
        *NORMS,
        *SUMS,
        "vector_norm",
        "all",
        "any",
        "topk",
        "sort",
        "cumsum",
        "cumprod",
        "flip",
        "roll",
    )
)
# Where a mixing function is told its axis, if not second.
AXIS_PLACE = MappingProxyType({"norm": 2, "vector_norm": 2, "topk": 2, "normalize": 2, "roll": 2})


class Partition:
    """The rules of one rank; ``stacked`` says of a split weight how many stacked parts it has."""

    def __init__(
        self, group: RankGroup, vocabulary: Vocabulary | None, stacked: Mapping[int, int]
    ) -> None:
        self.group, self.vocabulary, self.stacked = group, vocabulary, stacked
        self._shards = False

    def run(self, sizes: Sizes, call: FollowedCall) -> Any:
        """The result of a call, with communication where it is needed."""
        name = call.name
        self._shards = self.group.sequence_parallel and sizes.inside
        with sizes.aside():
            if name == "linear":
                return self._linear(sizes, call)
            if name in PRODUCTS:
                return self._product(sizes, call)
            if name == "addmm":
                bias, left, right = call.args[:3]
                return self._sum(
                    sizes, call, left, right, call.local[1:3], call.seen.operands[1:3], bias
                )
            if name == "einsum":
                return self._einsum(sizes, call)
            if (
                name == "embedding"
                and self.vocabulary is not None
                and call.local[-1] != call.seen.operands[-1]
            ):
                padding = call.argument(2, "padding_idx")
                return lookup(self.vocabulary, call.args[0], call.args[1], self._padding(padding))
            if name == "cross_entropy":
                return call.run()
            self._check_mixing(call)
            return self._meet(call)

    def _padding(self, place: int | None) -> int | None:
        assert self.vocabulary is not None
        local = -1 if place is None else place - self.vocabulary.first
        return local if 0 <= local < self.vocabulary.owned else None

    def _is_tokens(self, x: Tensor, whole: Shape) -> bool:
        """Whether ``x`` is split along the sequence and not otherwise."""
        dim = x.dim() - 2 if self.group.dim else 0
        rest = [a for a in range(x.dim()) if a != dim]
        return (
            self._shards
            and self.group.is_shard(x)
            and whole[dim] == self.group.length
            and all(x.shape[a] == whole[a] for a in rest)
        )

    def _enter(self, x: Tensor, whole: Shape) -> Tensor:
        """What every rank holds alike, where it meets what is split: f, or gathered along the
        sequence."""
        if self._is_tokens(x, whole):
            return self.group.gather(x)
        if self._shards or not x.requires_grad or tuple(x.shape) != whole:
            return x
        return self.group.copy(x)

    def _reduce(self, x: Tensor) -> Tensor:
        """The sum over ranks; where tokens are split, each rank gets those of its part."""
        if not self._shards:
            return reduce_from(x, self.group.width)
        if not self.group.is_whole(x):
            raise Unsplit(f"a sum over ranks does not lie along the sequence ({user_place()})")
        return self.group.reduce(x)

    def _part(self, x: Tensor, axis: int, size: int) -> Tensor:
        """This rank's part of ``x``, which all hold alike."""
        return x.narrow(axis, min(self.group.rank * size, x.shape[axis] - size), size)

    def _linear(self, sizes: Sizes, call: FollowedCall) -> Any:
        x, weight, bias = call.args[0], call.argument(1, "weight"), call.argument(2, "bias")
        whole_x, whole_w = call.seen.operands[0], call.seen.operands[1]
        split_out, split_in = weight.shape[0] != whole_w[0], weight.shape[1] != whole_w[1]
        if split_in and x.shape[-1] == weight.shape[1]:
            summed = self._reduce(functional.linear(x, weight))
            return summed if bias is None else summed + bias
        if split_in or x.shape[-1] != whole_x[-1]:
            raise Unsplit(
                f"a linear map reads what is split, and is not split itself ({user_place()})"
            )
        if not split_out:
            others = [] if bias is None else [bias]
            return self._whole_weights(call, x, [weight, *others])
        if bias is not None and bias.shape[0] != weight.shape[0]:
            bias = self._part(self._enter(bias, tuple(bias.shape)), 0, weight.shape[0])
        result = functional.linear(self._enter(x, whole_x), weight, bias)
        if self.stacked.get(id(weight), 1) > 1:
            sizes.stack(result, {result.dim() - 1: self.stacked[id(weight)]})
        return result

    def _whole_weights(self, call: FollowedCall, x: Tensor, weights: list[Tensor]) -> Any:
        """A map that every rank holds whole, of what is split along another axis (its heads, its
        tokens)."""
        if self._is_tokens(x, call.seen.operands[0]):
            return call.run()
        return functional.linear(
            x, *[self._enter(weight, tuple(weight.shape)) for weight in weights]
        )

    def _product(self, sizes: Sizes, call: FollowedCall) -> Any:
        left, right = call.args[0], call.argument(1, "other" if "other" in call.named else "mat2")
        return self._sum(sizes, call, left, right, call.local, call.seen.operands, None)

    def _sum(
        self,
        sizes: Sizes,
        call: FollowedCall,
        left: Tensor,
        right: Tensor,
        parts: Sequence[Shape],
        whole: Sequence[Shape],
        bias: Any,
    ) -> Any:
        """A matrix product, batches aligned."""
        if left.dim() < 2 or right.dim() < 2:
            raise Unsplit(f"{call.name} of a vector that is split ({user_place()})")
        summed_left, summed_right = parts[0][-1] != whole[0][-1], parts[1][-2] != whole[1][-2]
        if summed_left != summed_right:
            raise Unsplit(f"{call.name} sums over what is split on one side only ({user_place()})")
        left, right = self._batches(left, right, whole)
        if summed_left:
            if sizes.is_weight(left) == sizes.is_weight(right):
                raise Unsplit(f"{call.name} sums over what is split ({user_place()})")
            result = self._reduce(left @ right)
            return result if bias is None else result + bias
        result = self._enter(left, whole[0]) @ self._enter(right, whole[1])
        if bias is None:
            return result
        if bias.shape[-1] not in (1, result.shape[-1]):
            bias = self._part(
                self._enter(bias, tuple(bias.shape)), bias.dim() - 1, result.shape[-1]
            )
        return result + bias

    def _batches(
        self, left: Tensor, right: Tensor, whole: Sequence[Shape]
    ) -> tuple[Tensor, Tensor]:
        """Both operands with this rank's batches, where one of them has all."""
        pair = [left, right]
        for back in range(3, min(left.dim(), right.dim()) + 1):
            a, b = left.shape[-back], right.shape[-back]
            if whole[0][-back] == whole[1][-back] and a != b:
                place = 0 if a > b else 1
                pair[place] = self._part(
                    self._enter(pair[place], whole[place]), pair[place].dim() - back, min(a, b)
                )
        return pair[0], pair[1]

    def _einsum(self, sizes: Sizes, call: FollowedCall) -> Any:
        text = str(call.args[0]).replace(" ", "")
        operands_whole = call.args[1:] if isinstance(call.args[1], Tensor) else tuple(call.args[1])
        inputs, arrow, output = text.partition("->")
        terms = inputs.split(",")
        if "." in text or not arrow:
            raise Unsplit(f"einsum '{text}' with split operands ({user_place()})")
        split: dict[str, int] = {}
        for term, local, whole in zip(terms, call.local, call.seen.operands, strict=True):
            split |= {letter: local[a] for a, letter in enumerate(term) if local[a] != whole[a]}
        operands = []
        for x, term, whole in zip(operands_whole, terms, call.seen.operands, strict=True):
            is_whole = tuple(x.shape) == whole
            part = self._enter(x, whole) if is_whole or self._is_tokens(x, whole) else x
            for axis, letter in enumerate(term):
                if letter in split and part.shape[axis] == whole[axis] and is_whole:
                    part = self._part(part, axis, split[letter])
            operands.append(part)
        result = call.func(text, *operands)
        if all(letter in output for letter in split):
            return result
        if not any(map(sizes.is_weight, operands_whole)):
            raise Unsplit(f"einsum '{text}' sums over what is split ({user_place()})")
        return self._reduce(result)

    def _check_mixing(self, call: FollowedCall) -> None:
        """Refuse a function that runs over an axis that is split."""
        if call.name not in MIXES or not call.local:
            return
        part, whole = call.local[0], call.seen.operands[0]
        split = {axis for axis in range(len(part)) if part[axis] != whole[axis]}
        if call.name in ("layer_norm", "rms_norm"):
            count = len(call.argument(1, "normalized_shape"))
            axes = set(range(len(part) - count, len(part)))
        else:
            stated_axes = call.argument(AXIS_PLACE.get(call.name, 1), "dim", call.named.get("axis"))
            stated_axes = (
                -1
                if stated_axes is None and call.name in ("topk", "sort", "normalize")
                else stated_axes
            )
            listed = (
                [stated_axes]
                if isinstance(stated_axes, int)
                else stated_axes
                if isinstance(stated_axes, list | tuple)
                else range(len(part))
            )
            axes = {axis % len(part) for axis in listed}
        if split & axes:
            raise Unsplit(f"{call.name.strip('_')} runs over what would be split ({user_place()})")

    def _meet(self, call: FollowedCall) -> Any:
        """Any other function: what is whole takes part in it with this rank's part."""
        tensors, whole = call.tensors(), call.seen.operands
        if len(tensors) < 2:
            return call.run()
        axes = self._axes(call)
        sizes: dict[int, int] = {}
        for local, shape, places in zip(call.local, whole, axes, strict=True):
            for axis, place in enumerate(places or ()):
                if place is not None and local[axis] != shape[axis]:
                    sizes[place] = local[axis]
        split = any(part != shape for part, shape in zip(call.local, whole, strict=True))
        operands: list[Tensor] = []
        for x, shape, places in zip(tensors, whole, axes, strict=True):
            part = x
            if tuple(x.shape) == shape and split:
                part = self._enter(x, shape)
                for axis, place in enumerate(places or ()):
                    if place in sizes and shape[axis] > 1:
                        part = self._part(part, axis, sizes[place])
            elif any(
                place in sizes and shape[a] > 1 and x.shape[a] == shape[a]
                for a, place in enumerate(places or ())
            ):
                raise Unsplit(
                    f"{call.name.strip('_')} meets two tensors that are split "
                    f"differently ({user_place()})"
                )
            operands.append(part)
        rest = iter(operands)
        args, named = _replaced((call.args, call.named), rest)
        return call.func(*args, **named)

    def _axes(self, call: FollowedCall) -> list[list[int | None] | None]:
        """By tensor and axis, the axis of the result that it goes along with."""
        whole, results = call.seen.operands, call.seen.results
        if not results:
            return [None for _ in whole]
        if call.name in JOINS:
            joined = int(call.argument(1, "dim", 0)) % len(results[0])
            return [[a if a != joined else None for a in range(len(shape))] for shape in whole]
        if call.name == "scaled_dot_product_attention":
            return [
                [a if a < len(shape) - 2 else None for a in range(len(shape))] for shape in whole
            ]
        if call.name == "stack":
            return [list(range(len(shape))) for shape in whole]
        result_axes = [broadcast_axes(shape, results[0]) for shape in whole]
        return [None if axes is None else list(axes) for axes in result_axes]


def _replaced(values: Any, tensors: Any) -> Any:
    """``values`` with its tensors, in order, taken from ``tensors``."""
    if isinstance(values, Tensor):
        return next(tensors)
    if isinstance(values, list | tuple):
        return type(values)([_replaced(value, tensors) for value in values])
    if isinstance(values, Mapping):
        return {key: _replaced(value, tensors) for key, value in values.items()}
    return values
