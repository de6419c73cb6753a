"""One rank's part of the weights that a plan cuts, in place of the whole ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from phaze.errors import InputError
from phaze.graph.torch.plans import ShardCut
from phaze.graph.torch.vocabulary import Vocabulary

Slice = Callable[[Tensor], Tensor]


@dataclass(slots=True)
class Parts:
    """What was cut: identities of the parts, how each is taken from the whole, how many matrices
    are stacked in it, and the vocabulary if that was cut. Parts are kept: they are known by
    identity. ``shapes`` are those of parts without memory, by their cut and their whole."""

    slices: dict[int, Slice] = field(default_factory=dict)
    stacked: dict[int, int] = field(default_factory=dict)
    parameters: list[nn.Parameter] = field(default_factory=list)
    vocabulary: Vocabulary | None = None
    notes: tuple[str, ...] = ()
    shapes: dict[Any, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

    @property
    def split(self) -> frozenset[int]:
        """The identities of the parts."""
        return frozenset(self.slices)


def fits(path: str, pattern: str) -> bool:
    """Whether a path is like ``pattern``, in which ``*`` stands for one step."""
    steps, wanted = path.split("."), pattern.split(".")
    return len(steps) == len(wanted) and all(
        w in ("*", s) for s, w in zip(steps, wanted, strict=True)
    )


def _slice(path: str, whole: Tensor, cut: ShardCut, width: int, rank: int) -> Slice:
    """How this rank's part is taken: of each stacked matrix its share of the units."""
    if cut.dim >= whole.dim():
        raise InputError(
            path, f"it has {whole.dim()} dimensions, and the plan cuts dimension {cut.dim}"
        )
    sizes = cut.parts or (whole.shape[cut.dim],)
    if sum(sizes) != whole.shape[cut.dim]:
        raise InputError(
            path,
            (
                f"its dimension {cut.dim} has {whole.shape[cut.dim]} elements, the plan's "
                f"parts {sizes}"
            ),
        )
    for size in sizes:
        units = size // cut.unit
        if size % cut.unit or units % width:
            what = "elements" if cut.unit == 1 else f"pieces (heads) of {cut.unit}"
            widths = ", ".join(str(w) for w in range(1, min(units, 64) + 1) if units % w == 0)
            raise InputError(
                path,
                f"{size / cut.unit:g} {what} do not divide by {width}",
                f"TP degrees: {widths}",
            )

    def part(tensor: Tensor) -> Tensor:
        pieces = [
            piece.narrow(cut.dim, rank * (size // width), size // width)
            for piece, size in zip(torch.split(tensor, list(sizes), cut.dim), sizes, strict=True)
        ]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, cut.dim)

    return part


def cut_weights(model: nn.Module, cuts: Sequence[ShardCut], width: int, rank: int) -> Parts:
    """Replace every parameter that a cut names by this rank's part; what was tied stays tied."""
    done, replaced = Parts(), dict[int, nn.Parameter]()
    unused = {cut.pattern for cut in cuts}
    for path, module in model.named_modules():
        for name, whole in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            weight_path = f"{path}.{name}" if path else name
            cut = next((cut for cut in cuts if fits(weight_path, cut.pattern)), None)
            if cut is None and id(whole) not in replaced:
                continue
            if id(whole) not in replaced:
                assert cut is not None
                replaced[id(whole)] = _part(weight_path, whole, cut, width, rank, done)
            if cut is not None:
                unused.discard(cut.pattern)
            setattr(module, name, replaced[id(whole)])
    if unused:
        raise InputError(
            "the tensor-parallel plan", f"no weight of the model has a path like {min(unused)}"
        )
    return done


def _part(
    path: str, whole: nn.Parameter, cut: ShardCut, width: int, rank: int, done: Parts
) -> nn.Parameter:
    if cut.tokens:
        vocabulary = Vocabulary(whole.shape[0], width, rank)
        done.vocabulary = vocabulary
        if vocabulary.size % width:
            padded = vocabulary.local * width
            done.notes = (f"the vocabulary's {vocabulary.size} tokens are padded to {padded}",)

        def rows(tensor: Tensor) -> Tensor:
            return tensor.narrow(0, vocabulary.first, vocabulary.owned)

        take: Slice = rows
    else:
        take = _slice(path, whole, cut, width, rank)
    with torch.no_grad():
        part = nn.Parameter(_part_of(whole, cut, take, done), requires_grad=whole.requires_grad)
    done.slices[id(part)] = take
    done.stacked[id(part)] = max(1, len(cut.parts)) if len(set(cut.parts)) == 1 else 1
    done.parameters.extend((part, whole))
    return part


def _part_of(whole: nn.Parameter, cut: ShardCut, take: Slice, done: Parts) -> Tensor:
    """This rank's part of a weight. Without memory it is told by its shape, which all blocks
    share."""
    key = cut.pattern, tuple(whole.shape), whole.stride(), whole.dtype
    if key not in done.shapes:
        part = take(whole.detach()).clone()
        if isinstance(part, FakeTensor):
            done.shapes[key] = tuple(part.shape), part.stride()
        return part
    shape, stride = done.shapes[key]
    return torch.empty_strided(shape, stride, dtype=whole.dtype)
