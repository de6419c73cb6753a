"""A graph file on a chip: layers, passes, collectives, and what residency changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from phaze.cost.layer import estimate_layers
from phaze.graph import store
from phaze.graph.ir import (
    Access,
    Call,
    Layer,
    Model,
    Operator,
    OperatorGraph,
    Parameter,
    Recompute,
    Tensor,
)
from phaze.hardware.library import load_chip, load_cluster


class Ran(Protocol):
    """What a command did; the fixture gives it."""

    code: int
    out: str
    err: str


def tiny_model() -> Model:
    """Three calls of one layer: a product, a GELU, an all-reduce; backward the two gradients."""
    n = 256
    size = 2 * n * n
    tensors = [
        Tensor(i, n * n, 2, "parameter" if i == 1 else "input" if i in (0, 6) else "intermediate")
        for i in range(9)
    ]
    a = [Access(i, size) for i in range(9)]
    shape = (("batch", 1), ("m", n), ("n", n), ("k", n))
    forward = (
        Operator(0, "product", "tensor", shape, (a[0], a[1]), (a[2],), "up"),
        Operator(1, "gelu", "vector", (("elements", n * n),), (a[2],), (a[3],), "act"),
        Operator(
            2, "all_reduce", "network", (("bytes", size), ("group", 4)), (a[3],), (a[4],), "up"
        ),
    )
    backward = (
        Operator(
            3, "gelu_backward", "vector", (("elements", n * n),), (a[6], a[2]), (a[5],), "act"
        ),
        Operator(4, "product", "tensor", shape, (a[5], a[1]), (a[7],), "up"),
        Operator(5, "product", "tensor", shape, (a[0], a[5]), (a[8],), "up"),
    )
    first = OperatorGraph(tuple(tensors[i] for i in (0, 1, 2, 3, 4)), forward, (0, 1), (2, 4))
    second = OperatorGraph(
        tuple(tensors[i] for i in (0, 1, 2, 5, 6, 7, 8)), backward, (0, 1, 2, 6), (7, 8)
    )
    nothing = OperatorGraph((), (), (), ())
    kept = Recompute((0, 2), 2 * size, nothing)
    weight = Parameter("up.weight", 1, n * n, 2, True, True)
    full = Recompute((0,), size, first)
    layer = Layer("block", first, second, (weight,), kept, kept, full, 0, size, size, True)
    calls = tuple(Call(0, f"blocks.{i}") for i in range(3))
    return Model("tiny", 4, 1, n, False, "eager", (layer,), calls, (), (), ())


def test_a_layer_sums_its_operators_and_collectives() -> None:
    (layer,) = estimate_layers(tiny_model(), load_chip("a100-80gb"), load_cluster("selene"))
    assert (layer.name, layer.count) == ("block", 3)
    assert layer.forward.time_s == pytest.approx(
        layer.forward.tensor_s + layer.forward.vector_s + layer.forward.network_s
    )
    assert layer.forward.network_s > 0 == layer.backward.network_s
    assert layer.forward.average_w is not None
    assert layer.forward.peak_w is not None
    assert layer.forward.average_w <= layer.forward.peak_w


def test_residency_saves_time_on_a_chip_that_waits_for_memory() -> None:
    with_, without = (
        estimate_layers(tiny_model(), load_chip("tpu-v4"), None, "ideal", flag)[0]
        for flag in (True, False)
    )
    assert with_.forward.time_s < without.forward.time_s
    assert with_.backward.time_s < without.backward.time_s


def test_a_graph_file_is_estimated(phaze: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    path.write_text(store.dumps(tiny_model()))
    ran = phaze("estimate", "--graph", path, "--chip", "a100-80gb", "--cluster", "selene", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["forward_s"] == pytest.approx(3 * found["layers"][0]["forward"]["time_s"])
    fused = json.loads(
        phaze("estimate", "--graph", path, "--chip", "a100-80gb", "--fusion", "full", "--json").out
    )
    assert fused["layers"][0]["forward"]["operators"] < found["layers"][0]["forward"]["operators"]
    assert (
        "unknown fusion 'ful'"
        in phaze("estimate", "--graph", path, "--chip", "tpu-v4", "--fusion", "ful").err
    )
    assert "block" in phaze("estimate", "--graph", path, "--chip", "tpu-v4", "--no-residency").out
