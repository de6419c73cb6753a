"""A model and its tensor-parallel ranks on real tensors: losses and gradients, to be compared."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from phaze.graph.torch.blocks import find_blocks
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.ranks import Exchange, Lost, in_ranks
from phaze.graph.torch.replacements import KernelReplacement
from phaze.graph.torch.shard import Sharding, shard_model


@dataclass(frozen=True, slots=True)
class Outcome:
    """Loss and gradients by parameter name, which of them are of blocks, how many sums over ranks
    were made, and of which weights the plan sums the gradients itself."""

    loss: float
    gradients: dict[str, Tensor]
    inside: frozenset[str]
    sums: int = 0
    whole: frozenset[str] = frozenset()


@contextmanager
def double_precision() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def fill(program: TracedProgram, vocabulary: int) -> None:
    """Random weights and inputs, the same whenever sizes are the same; experts one by one (the
    grouped product of this processor knows no double precision)."""
    for module in program.module.modules():
        config: Any = getattr(module, "config", None)
        if config is not None:
            config._experts_implementation = "eager"
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in program.module.parameters():
            parameter.normal_(0.0, 0.2, generator=dice)
        given = program.inputs.values() if isinstance(program.inputs, dict) else program.inputs
        for tensor in given:
            if tensor.is_floating_point():
                tensor.normal_(generator=dice)
            else:
                tensor.random_(0, vocabulary if tensor.dim() > 1 else 2, generator=dice)


def _outcome(program: TracedProgram, kernels: KernelReplacement) -> tuple[float, dict[str, Tensor]]:
    parameters = dict(program.module.named_parameters())
    with kernels:
        loss = program.step()
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    gradients = {n: g for n, g in zip(parameters, found, strict=True) if g is not None}
    return float(loss.detach()), gradients


def _inside(module: nn.Module) -> frozenset[str]:
    paths = tuple(f"{path}." for path in find_blocks(module))
    return frozenset(name for name, _ in module.named_parameters() if name.startswith(paths))


def _summed(source: Source, names: Iterable[str]) -> frozenset[str]:
    """Weights whose gradient every rank has in full, also where the sequence is sharded: the plan
    sums it, or all ranks do the same work (between maps whose outputs are gathered and maps that
    split their inputs)."""
    splits = () if source.plan is None else source.plan.splits
    patterns = [split.pattern for split in splits if split.style == "summed"]
    patterns += [
        split.pattern.rpartition(".")[0] + ".*_norm" for split in splits if split.style == "gather"
    ]
    return frozenset(
        n for n in names if any(fnmatchcase(n.rpartition(".")[0], p) for p in patterns)
    )


def whole(source: Source, shape: TensorShape) -> tuple[Outcome, dict[str, Tensor]]:
    """The unsharded model: its outcome and its weights."""
    program = source.build(shape)
    fill(program, source.vocabulary or 2)
    program.module.eval()
    loss, gradients = _outcome(program, KernelReplacement(False))
    return Outcome(loss, gradients, _inside(program.module)), dict(program.module.state_dict())


def _wrap_blocks(module: nn.Module, sharding: Sharding, hidden: int) -> None:
    """What a trace does at the borders of blocks, block by block."""
    borders = sharding.borders
    assert borders is not None

    def fits(value: Any) -> bool:
        return (
            isinstance(value, Tensor)
            and value.dim() == 3
            and value.shape[-1] == hidden
            and value.requires_grad
        )

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            with borders.region():
                if not borders.shards:
                    return original(*args, **kwargs)
                args, kwargs = tree_map(
                    lambda v: borders.enter(v) if fits(v) else v, (args, kwargs)
                )
                result = original(*args, **kwargs)
                return tree_map(lambda v: borders.leave(v) if fits(v) else v, result)

        return forward

    for block in find_blocks(module).values():
        block.forward = wrapped(block.forward)


def ranks(
    source: Source,
    shape: TensorShape,
    weights: dict[str, Tensor],
    sequence_parallel: bool,
    lost: Lost | None = None,
) -> list[Outcome]:
    """All ranks of the sharded model, each in a thread of its own."""
    built = [_rank(source, shape, weights, sequence_parallel, rank) for rank in range(2)]

    def run(rank: int, mode: Exchange) -> Outcome:
        program, sharding = built[rank]
        loss, gradients = _outcome(program, KernelReplacement(False, sharding.vocabulary))
        return Outcome(
            loss, gradients, _inside(program.module), mode.counts["sum"], _summed(source, gradients)
        )

    return in_ranks(2, run, lost)


def _rank(
    source: Source,
    shape: TensorShape,
    weights: dict[str, Tensor],
    sequence_parallel: bool,
    rank: int,
) -> tuple[TracedProgram, Sharding]:
    program = source.build(shape)
    fill(program, source.vocabulary or 2)
    program.module.load_state_dict(weights)
    program.module.eval()
    sharding = shard_model(
        program.module,
        source,
        width=2,
        sequence=shape.sequence,
        sequence_parallel=sequence_parallel,
        rank=rank,
    )
    _wrap_blocks(program.module, sharding, 32)
    return program, sharding


def gathered(name: str, model: Outcome, parts: list[Outcome], sequence_parallel: bool) -> Tensor:
    """The whole gradient of a parameter, from the ranks': pieces side by side, or what all hold
    alike."""
    pieces = [part.gradients[name] for part in parts]
    target = model.gradients[name]
    for dim in range(target.dim()):
        if pieces[0].shape[dim] != target.shape[dim]:
            return _joined(pieces, target, dim)
    if sequence_parallel and name in model.inside - parts[0].whole:
        return torch.stack(pieces).sum(0)
    return pieces[0]


def _joined(pieces: list[Tensor], target: Tensor, dim: int) -> Tensor:
    """Pieces side by side; packed matrices are cut one by one, so the order that fits the target is
    taken."""
    best = torch.cat(pieces, dim)
    for parts in (1, 2, 3):
        if target.shape[dim] % (parts * len(pieces)):
            continue
        stacked = [torch.stack([p.chunk(parts, dim)[i] for p in pieces]) for i in range(parts)]
        whole = torch.cat([torch.cat(list(each), dim) for each in stacked], dim)
        if (whole - target).abs().max() < (best - target).abs().max():
            best = whole
    return best


def worst(model: Outcome, parts: list[Outcome], sequence_parallel: bool) -> float:
    """The largest difference of loss and gradients, relative to the largest gradient of each
    parameter. A bias of keys has none, as softmax does not see it: what is left is rounding, and is
    measured against the model's largest."""
    errors = [abs(part.loss - model.loss) / abs(model.loss) for part in parts]
    largest = max(float(gradient.abs().max()) for gradient in model.gradients.values())
    for name, target in model.gradients.items():
        scale = max(float(target.abs().max()), 1e-3 * largest)
        errors.append(
            float((gathered(name, model, parts, sequence_parallel) - target).abs().max()) / scale
        )
    return max(errors)
