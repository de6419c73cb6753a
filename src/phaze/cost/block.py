"""A transformer block kernel by kernel, as a Megatron-style decoder runs with element-wise chains fused.

Costs are held against measured layers with it. Hidden h, sequence s, microbatch b, heads a, width t; T = s b tokens;
attention eager, 16-bit values, 1-byte dropout masks. The kernels and their bytes are those of the traced family ``gpt``
after element-wise fusion. Backward: for each product the gradients of both operands, and 8 bytes a parameter to add its
gradient to the 32-bit sum of the batch. Two all-reduces of 2 T h bytes in each pass; those of the backward pass run
beside the weight-gradient product that is ready before them.
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
    return (
        _kernel("layer_norm", whole, z.tokens, 7, (2, 2)),
        *_products(shapes["qkv"], shapes["scores"]),
        _kernel("softmax", scores, scores // z.sequence, 14, (2, 5)),
        *_products(shapes["context"]),
        _kernel("copy", share, 0, 0, (2, 2)),
        *_products(shapes["projection"]),
        *(reduced,) * (z.tensor > 1),
        _kernel("layer_norm", whole, z.tokens, 15, (4, 5)),
        *_products(shapes["up"]),
        _kernel("gelu", 4 * share, 0, 10, (2, 2)),
        *_products(shapes["down"]),
        *(reduced,) * (z.tensor > 1),
        _kernel("dropout", whole, 0, 8, (4, 3)),
    )


def _gradients(shape: tuple[int, int, int, int]) -> list[Work]:
    batch, m, n, k = shape
    return _products((batch, m, k, n), (batch, k, n, m))


def backward_works(z: BlockSizes) -> tuple[Work, ...]:
    """The kernels of the backward pass, in order; nothing is recomputed."""
    shapes, whole, share = _shapes(z), z.tokens * z.hidden, z.tokens * z.hidden // z.tensor
    scores = z.microbatch * z.heads // z.tensor * z.sequence**2
    reduced = Work("network", collective=CollectiveWork("all_reduce", 2 * whole, z.tensor))
    return (
        _kernel("dropout_backward", whole, 0, 3, (3, 2)),
        *_gradients(shapes["down"]),
        _kernel("gelu_backward", 4 * share, 0, 15, (4, 2)),
        *_gradients(shapes["up"]),
        *(reduced,) * (z.tensor > 1),
        _kernel("layer_norm_backward", whole, z.tokens, 15, (7, 4)),
        *_gradients(shapes["projection"]),
        *_gradients(shapes["context"]),
        _kernel("softmax_backward", scores, scores // z.sequence, 6, (5, 2)),
        *_gradients(shapes["scores"]),
        _kernel("copy", 3 * share, 0, 2, (2, 2)),
        *_gradients(shapes["qkv"]),
        *(reduced,) * (z.tensor > 1),
        _kernel("layer_norm_backward", whole, z.tokens, 12, (6, 2)),
        _kernel("add", 12 * z.hidden**2 // z.tensor, 0, 1, (4, 4)),
    )


def weight_gradients(works: Sequence[Work]) -> list[bool]:
    """Which works of :func:`backward_works` are weight gradients directly before an all-reduce, that can hide it."""
    return [
        work.core == "tensor" and i + 1 < len(works) and works[i + 1].core == "network" for i, work in enumerate(works)
    ]
