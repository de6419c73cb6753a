"""Exchanges of experts behind other work: never longer than exposed, never shorter than the network
is busy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phaze
from phaze.errors import InputError
from phaze.evaluate.exchange_overlap import ExchangeOverlap
from phaze.evaluate.parallel_rank import fullest_rows
from phaze.report.plan_text import exchange_rows

SECONDS = st.floats(0, 10)
MOE = {
    "hidden": 1024, "layers": 4, "heads": 16, "kv_heads": 4, "head_dim": 64, "vocabulary": 32000,
    "sequence": 1024,
    "experts": 16, "active": 4, "expert_mlp": 1024, "shared_mlp": 2048,
}  # fmt: skip


def _run(stack: dict[str, Any], expert: int = 16, **more: Any) -> dict[str, Any]:
    plan = {"tensor": 1, "pipeline": 1, "data": 16, "microbatch": 4, "expert": expert}
    run = {
        "schema": "phaze.run/1",
        "moe": MOE,
        "chip": "h100",
        "cluster": "dgx-h100",
        "devices": 16,
        "batch": 64,
    }
    return dict(phaze.price({**run, "plan": plan, **stack, **more}).document)


@given(
    st.lists(SECONDS, min_size=3, max_size=3),
    st.lists(SECONDS, min_size=2, max_size=2),
    st.floats(0, 1),
    SECONDS,
)
def test_what_is_hidden_is_bounded_and_more_work_never_takes_less(
    works: list[float], exchanges: list[float], share: float, more: float
) -> None:
    overlap = ExchangeOverlap(((3, (0,)), (4, ())), share)

    def device_s(values: list[float]) -> float:
        units = np.array(values)[:, None]
        return float(overlap.overlapped(units.sum(axis=0), units, {})[0])

    units = [*works, *exchanges]
    found = device_s(units)
    assert sum(exchanges) - 1e-9 <= found <= sum(units) + 1e-9
    assert found >= sum(works) - 1e-9
    for place in range(len(units)):
        longer = [value + (more if index == place else 0.0) for index, value in enumerate(units)]
        assert device_s(longer) >= found - 1e-9
    assert (
        ExchangeOverlap(overlap.beside, 0.0).overlapped(np.ones(1), np.zeros((5, 1)), {})[0] == 1.0
    )


def _stack(tmp_path: Any, text: str) -> dict[str, Any]:
    path = tmp_path / "stack.toml"
    path.write_text(f'schema = "phaze.stack/1"\nbase = "megatron-core"\n{text}\n', encoding="utf-8")
    return {"stack": str(path)}


def test_a_stack_hides_exchanges_and_its_answer_says_how_much(tmp_path: Any) -> None:
    exposed = _run({})
    # One microbatch has no other behind whose work its exchanges could run; of four three have.
    alone = _run(_stack(tmp_path, "hidden_exchange = 0.5"))
    assert alone["batch_s"] == pytest.approx(exposed["batch_s"], rel=1e-12)
    assert alone["exchange_hidden_s"] == 0
    half, four = (_run(own, batch=256) for own in (_stack(tmp_path, "hidden_exchange = 0.5"), {}))
    assert half["batch_s"] < four["batch_s"]
    assert half["exchange_hidden_s"] == pytest.approx(half["exchange_s"] / 2 * 3 / 4, rel=1e-6)
    assert exchange_rows(half)[0][1].endswith("hidden")
    assert "hidden" not in exchange_rows(exposed)[0][1]
    beside = _run(_stack(tmp_path, "overlaps_shared_experts = true"))
    assert exposed["batch_s"] > beside["batch_s"]
    assert 0 < beside["exchange_hidden_s"] <= beside["exchange_s"]
    once = _run(_stack(tmp_path, "deduplicated_exchange = true"))
    assert once["exchange_s"] < exposed["exchange_s"]
    grouped = _run(
        _stack(tmp_path, "grouped_share = { any = 0.5 }"), expert=8
    )  # two experts a rank are one product
    assert grouped["batch_s"] > _run({}, expert=8)["batch_s"]


def test_a_fuller_rank_takes_longer_and_a_capacity_bounds_it() -> None:
    balanced, fuller = _run({}), _run({}, imbalance=1.5)
    assert fuller["batch_s"] > balanced["batch_s"]
    assert fuller["stages"][0]["memory_bytes"] > balanced["stages"][0]["memory_bytes"]
    assert any("1.5 times the mean" in text for text in fuller["approximations"])
    assert _run({}, imbalance=1.5, capacity=1.2)["batch_s"] == _run({}, imbalance=1.2)["batch_s"]
    assert fullest_rows(None, None) == 1.0
    with pytest.raises(InputError, match="out of range"):
        _run({}, imbalance=0.5)
    with pytest.raises(InputError, match="never exceeds"):
        _run({}, capacity=1.2)


def test_a_plan_tells_what_an_imbalance_would_do() -> None:
    job: dict[str, Any] = {
        "chip": "h100",
        "devices": 16,
        "batch": 64,
        "stack": "megatron-core",
        "sequence": 1024,
    }
    found = phaze.plan("mixtral-8x7b", **job, tensor=[1], microbatch=[1], expert=[8]).document
    slower = [row["slower"] for row in found["imbalance_sensitivity"]]
    assert slower == sorted(slower)
    assert slower[0] > 0


def test_the_way_to_share_a_sequence_is_chosen_and_told() -> None:
    job: dict[str, Any] = {
        "chip": "h100",
        "devices": 8,
        "batch": 8,
        "stack": "megatron-core",
        "tensor": [1],
    }
    job |= {"context": [4], "microbatch": [1], "sequence": 8192}
    every = {
        way: phaze.plan("llama3-8b", **job, context_way=[way]).document
        for way in ("ring", "all_gather", "ulysses")
    }
    best = phaze.plan("llama3-8b", **job).document
    assert best["batch_s"] == min(document["batch_s"] for document in every.values())
    assert best["batch_s"] == every[best["context_way"]]["batch_s"]
    assert len({document["batch_s"] for document in every.values()}) == 3
