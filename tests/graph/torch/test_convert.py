"""From what PyTorch dispatches to operators: bytes, aliases, in-place changes, dead code."""

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

from phaze.graph.ir import Layer, Operator
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.trace import trace_model


class Given(nn.Module):
    """A function of a (4, 8) input and a (8, 8) weight, as a module."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.empty(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight)


def layer(function: Callable[[Tensor, Tensor], Tensor]) -> Layer:
    def build(shape: TensorShape) -> TracedProgram:
        module, x = Given(function), torch.zeros(4, 8)
        return TracedProgram(module, x, lambda: module(x).sum())

    return trace_model(Source("given", build, 1, 1, True, None)).layers[0]


def first(kind: str, found: Layer) -> Operator:
    return next(op for op in found.forward.operators if op.kind == kind)


def test_a_linear_map_reads_input_weight_and_writes_output() -> None:
    found = first("product", layer(lambda x, w: x @ w))
    assert dict(found.sizes) == {"batch": 1, "m": 4, "n": 8, "k": 8}
    assert [access.bytes for access in (*found.reads, *found.writes)] == [64, 128, 64]


def test_views_are_no_operators_and_a_slice_touches_its_part() -> None:
    found = layer(lambda x, w: (x @ w).view(2, 16).t()[:4].exp())
    assert [op.kind for op in found.forward.operators] == ["product", "exp", "reduce"]
    product, exp, _ = found.forward.operators
    assert exp.reads[0].tensor == product.writes[0].tensor
    assert exp.reads[0].bytes == 16


def test_an_expanded_operand_is_read_once() -> None:
    found = first("multiply", layer(lambda x, w: (x @ w) * w[:1]))
    assert [access.bytes for access in found.reads] == [64, 16]


def test_a_change_in_place_writes_a_new_value() -> None:
    def function(x: Tensor, w: Tensor) -> Tensor:
        y = x @ w
        y.mul_(2.0)
        return y.exp()

    product, multiply, exp = layer(function).forward.operators[:3]
    assert multiply.reads[0].tensor == product.writes[0].tensor
    assert multiply.writes[0].tensor != product.writes[0].tensor
    assert exp.reads[0].tensor == multiply.writes[0].tensor


def test_what_nothing_depends_on_is_left_out() -> None:
    def function(x: Tensor, w: Tensor) -> Tensor:
        torch.rand(1000).exp()
        return x @ w

    assert [op.kind for op in layer(function).forward.operators] == ["product", "reduce"]


def test_a_look_up_reads_the_rows_it_takes() -> None:
    found = layer(lambda x, w: nn.functional.embedding(torch.zeros(3, dtype=torch.long), w))
    assert [access.bytes for access in first("embedding", found).reads] == [3 * 8 * 2, 3 * 8]
    back = next(op for op in found.backward.operators if op.kind == "embedding_backward")
    assert back.writes[0].bytes == 8 * 8 * 2


def test_a_transpose_that_must_be_made_contiguous_is_a_copy() -> None:
    found = first("copy", layer(lambda x, w: (x @ w).t().contiguous().exp()))
    assert dict(found.sizes) == {"elements": 32}


def test_saved_bytes_count_a_storage_once() -> None:
    found = layer(lambda x, w: torch.cat([part.exp() for part in (x @ w).chunk(2, -1)], -1))
    assert found.none.saved_bytes == 2 * 32
    assert found.shared_bytes == 64


def test_a_grouped_convolution_is_a_batch_of_products() -> None:
    def function(x: Tensor, w: Tensor) -> Tensor:
        image = (x @ w).view(1, 8, 2, 2)
        return nn.functional.conv2d(image, w.view(8, 2, 2, 2), groups=4, padding=1)

    found = [op for op in layer(function).forward.operators if op.kind == "product"][1]
    assert dict(found.sizes) == {"batch": 4, "m": 9, "n": 2, "k": 8}
