"""Offload as a mode of plans: memory against copies, on the front of modes, refused where it cannot
be."""

from types import SimpleNamespace
from typing import Any

import pytest

import phaze
from phaze.cost.network_prices import NetworkPrices
from phaze.documents import check
from phaze.errors import InputError
from phaze.evaluate.efficient_modes import efficient
from phaze.evaluate.flow import placed_layers, placement_problem
from phaze.evaluate.layer_table import LayerTable, empty_table
from phaze.evaluate.layers import Setting, model_table
from phaze.evaluate.lowered_layer import LoweredLayer, LoweredMode
from phaze.graph.zoo import load_family
from phaze.hardware.chip_parts import Host
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.placement.job import TrainingJob
from phaze.placement.solve import fastest_plan
from phaze.values import replace

SIZES = {
    "hidden": 2048, "layers": 8, "heads": 16, "kv_heads": 8, "head_dim": 128, "mlp": 5632,
    "vocabulary": 8192,
    "sequence": 4096,
}  # fmt: skip
PLAN: dict[str, Any] = {"tensor": 1, "pipeline": 4, "data": 2, "microbatch": 4, "recompute": "none"}


def _run(**plan: Any) -> dict[str, Any]:
    return {
        "schema": "phaze.run/1", "llama": SIZES, "chip": "h100", "cluster": "dgx-h100",
        "stack": "megatron-core",
        "devices": 8, "batch": 64, "plan": {**PLAN, **plan},
    }  # fmt: skip


def _priced(**plan: Any) -> dict[str, Any]:
    return dict(phaze.price(_run(**plan)).document)


def test_offloading_frees_memory_and_never_takes_less_time() -> None:
    plain, hosted = _priced(), _priced(offload=True)
    assert hosted["stages"][0]["recompute"] == "offload"
    assert hosted["stages"][0]["memory_bytes"] < plain["stages"][0]["memory_bytes"]
    assert hosted["batch_s"] >= plain["batch_s"]
    again = _priced(recompute="full", offload=True)
    assert again["stages"][0]["recompute"] == "full+offload"
    assert (
        again["stages"][0]["memory"]["in_flight"]
        < _priced(recompute="full")["stages"][0]["memory"]["in_flight"]
    )
    assert _priced(recompute=["mlp", "offload"]) == _priced(recompute=["mlp"], offload=True)


def test_a_slow_link_to_the_host_is_seen() -> None:
    model = load_family("llama", SIZES, tensor=1, microbatch=4, attention="fused")
    chip, cluster = load_chip("h100"), load_cluster("dgx-h100")
    stack = replace(load_stack("megatron-core"), recompute_modules=(), recompute_named=("offload",))
    again = []
    for rate in (1e9, 64e9, 1e15):
        host = check(Host, {"bandwidth": rate}, "host")
        setting = Setting(replace(chip, host=host), cluster, stack)
        again.append(float(model_table(model, setting).again_s[1, 1, 0]))
    assert again[0] > again[1] >= again[2] == 0


def test_offloading_is_refused_where_stack_or_chip_cannot() -> None:
    with pytest.raises(
        InputError, match=r"plan\.offload: the stack torchtitan cannot offload activations"
    ):
        phaze.price(_run(offload=True) | {"stack": "torchtitan"})
    with pytest.raises(InputError, match=r"'offload' and tpu-v5p has no \[host\] bandwidth"):
        phaze.price(_run(offload=True) | {"chip": "tpu-v5p", "cluster": "tpu-v5p-pod"})


def test_more_memory_never_slows_the_plan_of_all_modes_and_the_front_loses_none() -> None:
    model = load_family("llama", SIZES, tensor=1, microbatch=4, attention="fused")
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), load_stack("megatron-core"))
    table, prices = model_table(model, setting), NetworkPrices(setting.cluster, "calibrated")
    assert "offload" in {mode.name for mode in table.layers[1].modes}
    assert efficient(table).again_s.shape[0] <= table.again_s.shape[0]
    job = TrainingJob(setting.machine, 8, 64, "adam", (1,), chunks=())
    before, modes = float("inf"), set()
    for gib in (6, 8, 9, 10, 12, 14, 18, 24, 40, 80):
        found = []
        for some in (table, efficient(table)):
            placed = placed_layers(model, some)
            plan = fastest_plan(placement_problem(job, 4, [placed], gib * 2.0**30, 3e12), prices)
            found.append(float("inf") if plan is None else plan.batch_s)
            modes |= set() if plan is None else {stage.recompute for stage in plan.stages}
        assert found[0] == pytest.approx(found[1], rel=1e-12)
        assert found[0] <= before * (1 + 1e-12)
        before = found[0]
    assert "none" in modes and len(modes) > 2


Option = tuple[str, float, int, int]


def _table(*layers: tuple[Option, ...]) -> LayerTable:
    """Blocks with modes of recompute by name, seconds again, bytes kept and bytes beside them."""
    nothing: Any = None
    one: Any = SimpleNamespace(alone=None)
    made = []
    for options in layers:
        between = (LoweredMode(name, None, kept, live) for name, _, kept, live in options)
        modes = (
            LoweredMode("selective", nothing, 60, 40),
            *between,
            LoweredMode("full", None, 10, 90),
        )
        made.append(LoweredLayer("block", one, one, modes, 10, 100, False))
    table = empty_table(made, 1)
    for kind, options in enumerate(layers):
        table.again_s[:, kind, 0] = [0.5, *(seconds for _, seconds, _, _ in options), 2.0]
    return table


def test_a_mode_that_another_undercuts_is_dropped_and_of_equals_the_first_stays() -> None:
    good, worse = ("a", 0.2, 50, 50), ("b", 0.3, 55, 50)
    same, less = ("c", 0.2, 50, 50), ("d", 1.0, 20, 80)
    table = efficient(_table((good, worse, same, less)))
    assert [mode.name for mode in table.layers[0].modes[1:-1]] == ["a", "d"]
    assert table.again_s[:, 0, 0].tolist() == [0.5, 0.2, 1.0, 2.0]
    kept = efficient(_table((good, worse), (("a", 0.9, 50, 50), worse)))
    assert [mode.name for mode in kept.layers[0].modes[1:-1]] == ["a", "b"]
