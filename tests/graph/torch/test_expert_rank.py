"""Expert parallelism on real tensors: two ranks equal the whole, need every exchange, and trace as
they are split."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from phaze.graph.ir import Layer
from phaze.graph.split_experts import expert_split
from phaze.graph.torch.expert_rank import spread_experts
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.ranks import Exchange, Lost, in_ranks
from phaze.graph.torch.replacements import KernelReplacement
from phaze.graph.torch.trace import trace_model
from tests.graph.torch.ranks import double_precision, fill
from tests.graph.torch.small import small

MIXTURES = ("mixtral-8x7b", "deepseek_v2")
LENGTH = 8
Gradients = dict[str, Any]


def _built(source: Source, weights: dict[str, Any] | None, sequences: slice) -> TracedProgram:
    program = source.build(TensorShape(2, LENGTH))
    fill(program, source.vocabulary)
    if weights is not None:
        program.module.load_state_dict(weights)
    program.module.eval()
    inputs = program.inputs
    assert isinstance(inputs, dict)
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and value.shape[0] == 2:
            inputs[name] = value[sequences]
    return program


def _outcome(program: TracedProgram) -> tuple[float, Gradients]:
    with KernelReplacement(False):
        loss = program.module(**program.inputs).loss
        named = dict(program.module.named_parameters())
        found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return float(loss.detach()), {n: g for n, g in zip(named, found, strict=True) if g is not None}


def _worst(source: Source, lost: Lost | None = None) -> tuple[float, int]:
    """The largest relative error of loss and gradients of two ranks with a sequence each, and how
    many exchanges."""
    whole = _built(source, None, slice(0, 2))
    weights = dict(whole.module.state_dict())
    loss, target = _outcome(whole)
    built = [_built(source, weights, slice(rank, rank + 1)) for rank in range(2)]
    owned = [
        spread_experts(program.module, 2, rank, grouped=False) for rank, program in enumerate(built)
    ]
    assert owned[0]

    def run(rank: int, mode: Exchange) -> tuple[float, Gradients, int]:
        return (*_outcome(built[rank]), mode.counts["exchange"])

    parts = in_ranks(2, run, lost)
    errors = [abs(sum(part[0] for part in parts) / 2 - loss) / abs(loss)]
    largest = max(float(g.abs().max()) for g in target.values())
    for name, expected in target.items():
        pieces = [part[1][name] for part in parts]
        found = torch.cat(pieces) / 2 if name in owned[0] else (pieces[0] + pieces[1]) / 2
        scale = max(float(expected.abs().max()), 1e-3 * largest)
        errors.append(float((found - expected).abs().max()) / scale)
    return max(errors), parts[0][2]


@pytest.mark.parametrize("name", MIXTURES)
def test_two_ranks_with_half_of_the_experts_train_like_the_whole_model_and_need_every_exchange(
    name: str,
) -> None:
    source = small(name)
    with double_precision():
        worst, exchanges = _worst(source)
        assert worst < 1e-5
        for number in (0, 1, exchanges - 2, exchanges - 1):
            assert _worst(source, ("exchange", number))[0] > 1e-3, number


def _signature(layer: Layer) -> dict[str, list[tuple[Any, ...]]]:
    """Grouped products and exchanges of both passes, and the elements of the parameters."""
    found: dict[str, list[tuple[Any, ...]]] = {
        "parameters": sorted((p.name, p.elements) for p in layer.parameters)
    }
    for name, graph in (("forward", layer.forward), ("backward", layer.backward)):
        found[name] = sorted(
            (op.kind, *op.sizes) for op in graph.operators if op.kind in ("all_to_all", "product")
        )
    return found


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("microbatch", [1, 2])
def test_a_layer_split_by_its_graph_is_the_traced_layer_of_a_rank(
    name: str, microbatch: int
) -> None:
    source = small(name)

    def build(shape: TensorShape) -> TracedProgram:
        program = source.build(shape)
        spread_experts(program.module, 2)
        return program

    shape = {"microbatch": microbatch, "sequence": 16, "attention": "eager"}
    whole = trace_model(source, **shape)  # type: ignore[arg-type]
    rank = trace_model(replace(source, build=build), **shape)  # type: ignore[arg-type]
    tokens = microbatch * 16
    compared = 0
    for own, traced in zip(whole.layers, rank.layers, strict=True):
        split = expert_split(own, 2, tokens=tokens)
        assert _signature(split) == _signature(traced)
        compared += split is not own
    assert compared
