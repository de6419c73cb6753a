"""Context parallelism on real tensors: two ranks equal the whole model, and need every gather and
every sum."""

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from phaze.graph.torch.context_rank import SharedContext, positions
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.ranks import Exchange, Lost, in_ranks
from phaze.graph.torch.replacements import KernelReplacement
from tests.graph.torch.ranks import double_precision, fill
from tests.graph.torch.small import small

LENGTH = 16
Gradients = dict[str, Any]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_hold_every_position_once_and_see_as_many_keys(ranks: int) -> None:
    held = [positions(LENGTH, ranks, rank) for rank in range(ranks)]
    assert sorted(int(p) for own in held for p in own) == list(range(LENGTH))
    assert len({int((own + 1).sum()) for own in held}) == 1


def _built(source: Source, weights: dict[str, Any] | None) -> TracedProgram:
    program = source.build(TensorShape(1, LENGTH, fused=True))
    fill(program, source.vocabulary)
    if weights is not None:
        program.module.load_state_dict(weights)
    program.module.eval()
    return program


def _outcome(
    program: TracedProgram, own: torch.Tensor, context: SharedContext
) -> tuple[torch.Tensor, Gradients]:
    """Logits, and gradients of their product with something that depends on their position."""
    inputs = program.inputs
    assert isinstance(inputs, dict)
    with KernelReplacement(False), context:
        result = program.module(
            input_ids=inputs["input_ids"][:, own], position_ids=own[None], use_cache=False
        )
        weight = torch.cos(own[:, None] * 0.7 + torch.arange(result.logits.shape[-1]) * 0.3)
        named = dict(program.module.named_parameters())
        found = torch.autograd.grad(
            (result.logits[0] * weight).sum(), list(named.values()), allow_unused=True
        )
    return result.logits.detach()[0], {
        n: g for n, g in zip(named, found, strict=True) if g is not None
    }


def _worst(source: Source, lost: Lost | None = None) -> tuple[float, dict[str, int]]:
    whole = _built(source, None)
    alone = in_ranks(
        1,
        lambda rank, mode: _outcome(whole, torch.arange(LENGTH), SharedContext(LENGTH, 1, 0, True)),
    )
    logits, target = alone[0]
    built = [_built(source, dict(whole.module.state_dict())) for _ in range(2)]

    def run(rank: int, mode: Exchange) -> tuple[torch.Tensor, Gradients, dict[str, int]]:
        own = positions(LENGTH, 2, rank)
        return (
            *_outcome(built[rank], own, SharedContext(LENGTH, 2, rank, True)),
            dict(mode.counts),
        )

    parts = in_ranks(2, run, lost)
    errors = []
    for rank, part in enumerate(parts):
        expected = logits[positions(LENGTH, 2, rank)]
        errors.append(float((part[0] - expected).abs().max() / expected.abs().max()))
    largest = max(float(g.abs().max()) for g in target.values())
    for name, expected in target.items():
        found = parts[0][1][name] + parts[1][1][name]
        scale = max(float(expected.abs().max()), 1e-3 * largest)
        errors.append(float((found - expected).abs().max()) / scale)
    return max(errors), parts[0][2]


@pytest.mark.parametrize("name", ["llama3-8b", "qwen3", "mixtral-8x7b", "deepseek_v2"])
def test_two_ranks_with_half_of_the_positions_train_like_the_whole_model(name: str) -> None:
    source = small(name)
    with double_precision():
        worst, counts = _worst(source)
        assert worst < 1e-5
        for number in (0, 1, counts["all_gather"] - 1):
            assert _worst(source, ("all_gather", number))[0] > 1e-3, number
        for number in (0, counts["sum"] - 1):
            assert _worst(source, ("sum", number))[0] > 1e-3, number
