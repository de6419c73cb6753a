"""What ships is what PyTorch runs: fresh traces at random sizes, and files that are rebuilt byte
for byte."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools.graphs.rebuild import DATA, difference, files, fit_case, rebuild

from phaze.graph import sources, store, zoo
from phaze.graph.fit import FitError
from phaze.graph.ir import Attention
from phaze.graph.sources import ModelRequest
from phaze.graph.supply.point import Rank
from phaze.graph.torch.named import NAMED
from phaze.graph.torch.source import named_source
from phaze.graph.torch.trace import trace_model

ATTENTIONS: tuple[Attention, ...] = ("eager", "fused")


def random_request(seed: int) -> ModelRequest:
    """A small family of any kind at a width that divides it."""
    rng = random.Random(seed)
    family = ("gpt", "llama")[seed % 2]
    width = rng.choice((1, 2, 3, 4, 8))
    keys = width * rng.randint(1, 3)
    heads = keys * rng.randint(1, 3)
    sequence = width * rng.randint(2, 40)
    sizes: dict[str, Any] = {
        "hidden": heads * rng.randint(2, 30),
        "layers": rng.randint(2, 5),
        "heads": heads,
        "vocabulary": width * rng.randint(200, 900),
        "sequence": sequence + rng.randint(0, 50),
    }
    if family == "llama":
        sizes |= {
            "kv_heads": keys,
            "head_dim": 2 * rng.randint(1, 40),
            "mlp": width * rng.randint(1, 300),
        }
        sizes["tied"] = rng.random() < 0.5
    return ModelRequest(
        family=family,
        sizes=sizes,
        rank=Rank(width, rng.randint(1, 5), sequence, rng.choice(ATTENTIONS), rng.random() < 0.5),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_family_at_random_sizes_is_its_trace(seed: int) -> None:
    asked = random_request(seed)
    shipped = sources.load(asked)
    fresh = sources.load(ModelRequest(**{**_fields(asked), "fresh": True}))
    assert shipped == fresh, difference(shipped, fresh)


def _fields(request: ModelRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ModelRequest.__slots__}


@pytest.mark.parametrize(
    ("name", "width", "micro"), [("llama2-7b", 4, 3), ("vit-large", 1, 1), ("gpt2-xl", 1, 2)]
)
def test_a_named_model_is_its_trace(name: str, width: int, micro: int) -> None:
    shipped = zoo.load_model(name, width, micro)
    fresh = trace_model(named_source(name), tensor=width, microbatch=micro)
    assert shipped == fresh, difference(shipped, fresh)
    assert store.dumps(shipped) == store.dumps(fresh)


def _is_its_trace(name: str, attention: Attention, width: int, micro: int, sequence: int) -> None:
    shipped = zoo.load_model(name, width, micro, sequence, attention=attention)
    made = {"tensor": width, "microbatch": micro, "sequence": sequence, "attention": attention}
    fresh = trace_model(named_source(name), **made)  # type: ignore[arg-type]
    fresh = (
        replace(fresh, approximations=shipped.approximations)
        if not NAMED[name].architecture
        else fresh
    )
    assert shipped == fresh, difference(shipped, fresh)
    assert store.dumps(shipped) == store.dumps(fresh)


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "opt-350m"])
def test_a_mixture_and_a_decoder_are_their_traces_in_every_field(name: str) -> None:
    _is_its_trace(name, "fused", 1, 2, 512)


@pytest.mark.parametrize("name", ["llama3-8b", "gemma-2-27b"])
def test_a_bundled_graph_with_extended_positions_is_its_trace(name: str) -> None:
    _is_its_trace(name, "fused", 1, 1, 2 * (zoo.ZOO[name].positions or 0))


@pytest.mark.slow
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", zoo.ZOO)
def test_every_bundled_graph_is_a_fresh_trace_of_its_configuration(
    name: str, attention: Attention
) -> None:
    entry = zoo.ZOO[name]
    for width in (1, entry.shipped[-1]):
        _is_its_trace(
            name, attention, width, 2, entry.sequence if entry.fixed else entry.sequence // 2
        )


def test_every_file_of_the_folder_is_one_that_is_rebuilt() -> None:
    assert sorted(path.name for path in Path(DATA).iterdir()) == sorted(
        f"{name}.json" for name in files()
    )
    # About 200 kB a model on average, so that a wheel stays small.
    assert sum(path.stat().st_size for path in Path(DATA).iterdir()) < 2.5e5 * len(files())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2-xl", "vit-large", "bert-large"])
def test_a_rebuilt_file_has_the_same_bytes(name: str) -> None:
    assert rebuild(name) == (DATA / f"{name}.json").read_text(encoding="utf-8")


def test_models_of_different_structure_are_not_fitted() -> None:
    sizes = {"hidden": 32, "layers": 2, "heads": 4, "vocabulary": 64, "sequence": 16}
    eager, fused = (zoo.load_family("gpt", sizes, attention=attention) for attention in ATTENTIONS)
    with pytest.raises((FitError, ValueError)):
        fit_case([{"b": 1}, {"b": 2}], [eager, fused], ("b",))
