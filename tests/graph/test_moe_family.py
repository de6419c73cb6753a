"""The family ``moe`` by its sizes: the same work, weights and collectives as the named models of
those sizes."""

from typing import Any

import pytest

from phaze.errors import InputError
from phaze.graph.ir import Model
from phaze.graph.summary import summary
from phaze.graph.zoo import load_family, load_model

MIXTRAL: dict[str, Any] = {
    "hidden": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocabulary": 32000,
    "sequence": 4096,
    "experts": 8, "active": 2, "expert_mlp": 14336,
}  # fmt: skip


def _family(**changes: Any) -> Model:
    at = {key: changes.pop(key) for key in ("tensor", "sequence_parallel") if key in changes}
    return load_family("moe", {**MIXTRAL, **changes}, microbatch=2, attention="fused", **at)


@pytest.mark.parametrize(("tensor", "spread"), [(1, False), (4, False), (8, True)])
def test_a_mixtral_by_its_sizes_has_the_work_weights_and_collectives_of_mixtral(
    tensor: int, spread: bool
) -> None:
    named = load_model("mixtral-8x7b", tensor, 2, 4096, attention="fused", sequence_parallel=spread)
    ours, theirs = summary(_family(tensor=tensor, sequence_parallel=spread)), summary(named)
    for key in ("parameters", "forward_flops", "backward_flops"):
        assert ours[key] == theirs[key]

    def many(found: dict[str, Any]) -> list[tuple[Any, ...]]:
        # Weights of routed tokens may be of 16 or 32 bits: a few kB.
        rows = [
            (row["kind"], row["pass"], row["count"], row["bytes"]) for row in found["collectives"]
        ]
        return sorted((*row, size if size > 1e6 else 0) for *row, size in rows)

    assert many(ours) == many(theirs)


def test_the_first_layers_may_have_a_perceptron_and_all_a_shared_expert() -> None:
    plain, dense = _family(), _family(dense_layers=3, mlp=8192)
    assert len(dense.calls) == len(plain.calls)
    assert dense.count(len(dense.layers) - 1) == 3
    expert = 3 * 4096 * 14336
    router = 4096 * 8
    assert plain.parameters - dense.parameters == 3 * (8 * expert + router - 3 * 4096 * 8192)
    assert _family(shared_mlp=2048).parameters - plain.parameters == 32 * 3 * 4096 * 2048


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"active": 9}, "9 of 8 experts"),
        ({"active": 1}, "active 1"),
        ({"kv_heads": 32}, "kv_heads 32"),
        ({"tied": True}, "tied True"),
        ({"dense_layers": 32, "mlp": 8}, "32 of 32 layers"),
        ({"dense_layers": 1}, "mlp"),
        ({"experts": 0}, "experts"),
        ({"tensor": 3}, "TP degrees"),
    ],
)
def test_sizes_that_are_not_bundled_are_refused_in_a_sentence(
    changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        _family(**changes)


def test_eager_attention_is_refused() -> None:
    with pytest.raises(InputError, match="fused attention"):
        load_family("moe", MIXTRAL, attention="eager")
