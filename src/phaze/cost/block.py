"""A transformer block as Megatron-LM of 2021-22 runs it, kernel by kernel, to hold costs against measured layers.

Hidden h, sequence s, microbatch b, heads a, width t; T = s b tokens. Fused kernels as in its training script (bias +
GELU, scale + mask + softmax, bias + dropout + residual), attention eager, 16-bit values, 1-byte dropout masks.
Backward: for each product the gradients of both operands. Two all-reduces of 2 T h bytes in each pass; those of the
backward pass run beside the weight-gradient products that follow them where the stack hides them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from phaze.cost.mapping import product
from phaze.cost.vector import PASSES, Moved, VectorWork
from phaze.cost.work import CollectiveWork, Work


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """The sizes of a decoder block and of the run."""

    hidden: int
    heads: int
    sequence: int
    microbatch: int
    tensor: int

    @property
    def tokens(self) -> int:
        return self.sequence * self.microbatch


def _kernel(kind: str, elements: int, rows: int, operations: float, moved: tuple[float, float]) -> Work:
    """A vector kernel that reads and writes ``moved`` bytes an element."""
    reads, writes = (Moved(elements * bytes_each) for bytes_each in moved)
    return Work("vector", vector=VectorWork(elements, rows, operations, PASSES.get(kind, 1), (reads,), (writes,)))


def _products(*shapes: tuple[int, int, int, int]) -> list[Work]:
    return [Work("tensor", (product(*shape),)) for shape in shapes]


def _shapes(z: BlockSizes) -> dict[str, tuple[int, int, int, int]]:
    share, groups = z.hidden // z.tensor, z.microbatch * z.heads // z.tensor
    s, width = z.sequence, z.hidden // z.heads
    return {
        "qkv": (1, z.tokens, 3 * share, z.hidden),
        "scores": (groups, s, s, width),
        "context": (groups, s, width, s),
        "projection": (1, z.tokens, z.hidden, share),
        "up": (1, z.tokens, 4 * share, z.hidden),
        "down": (1, z.tokens, z.hidden, 4 * share),
    }


def forward_works(z: BlockSizes) -> tuple[Work, ...]:
    """The kernels of the forward pass, in order."""
    shapes, whole, share = _shapes(z), z.tokens * z.hidden, z.tokens * z.hidden // z.tensor
    scores = z.microbatch * z.heads // z.tensor * z.sequence**2
    reduced = Work("network", collective=CollectiveWork("all_reduce", 2 * whole, z.tensor))
    norm = _kernel("layer_norm", whole, z.tokens, 7, (2, 2))
    joined = _kernel("dropout", whole, 0, 8, (4, 3))
    return (
        norm,
        *_products(shapes["qkv"]),
        _kernel("copy", 3 * share, 0, 1, (2, 2)),
        *_products(shapes["scores"]),
        _kernel("softmax", scores, scores // z.sequence, 10, (2, 2)),
        _kernel("dropout", scores, 0, 6, (2, 3)),
        *_products(shapes["context"]),
        _kernel("copy", share, 0, 1, (2, 2)),
        *_products(shapes["projection"]),
        *(reduced,) * (z.tensor > 1),
        joined,
        norm,
        *_products(shapes["up"]),
        _kernel("gelu", 4 * share, 0, 11, (2, 2)),
        *_products(shapes["down"]),
        *(reduced,) * (z.tensor > 1),
        joined,
    )


def _gradients(shape: tuple[int, int, int, int]) -> list[Work]:
    batch, m, n, k = shape
    return _products((batch, m, k, n), (batch, k, n, m))


def backward_works(z: BlockSizes) -> tuple[Work, ...]:
    """The kernels of the backward pass, in order; nothing is recomputed."""
    shapes, whole, share = _shapes(z), z.tokens * z.hidden, z.tokens * z.hidden // z.tensor
    scores = z.microbatch * z.heads // z.tensor * z.sequence**2
    reduced = Work("network", collective=CollectiveWork("all_reduce", 2 * whole, z.tensor))
    norm = _kernel("layer_norm_backward", whole, z.tokens, 11, (6, 4))
    joined = _kernel("dropout_backward", whole, 0, 3, (3, 2))
    summed = _kernel("add", whole, 0, 1, (4, 2))
    half: list[Work] = [joined, *_gradients(shapes["down"]), _kernel("gelu_backward", 4 * share, 0, 16, (4, 4))]
    return (
        *half,
        *_gradients(shapes["up"]),
        *(reduced,) * (z.tensor > 1),
        norm,
        summed,
        joined,
        *_gradients(shapes["projection"]),
        _kernel("copy", share, 0, 1, (2, 2)),
        *_gradients(shapes["context"]),
        _kernel("dropout_backward", scores, 0, 2, (3, 2)),
        _kernel("softmax_backward", scores, scores // z.sequence, 6, (4, 2)),
        *_gradients(shapes["scores"]),
        _kernel("copy", 3 * share, 0, 1, (2, 2)),
        *_gradients(shapes["qkv"]),
        *(reduced,) * (z.tensor > 1),
        norm,
        summed,
    )


def weight_gradients(works: Sequence[Work]) -> list[bool]:
    """Which works of :func:`backward_works` are weight gradients directly before an all-reduce, that can hide it."""
    return [
        work.core == "tensor" and i + 1 < len(works) and works[i + 1].core == "network" for i, work in enumerate(works)
    ]
