"""Plans over expert and context degrees: the best of all, in words, and what is refused."""

from typing import Any

import pytest

import phaze
from phaze.errors import InputError
from phaze.evaluate.parallel_rank import usual_context_degrees, usual_expert_degrees
from phaze.graph.experts import NO_EXPERT_PARALLELISM
from phaze.report.plan_text import exchange_rows


def _plan(**more: Any) -> dict[str, Any]:
    job: dict[str, Any] = {
        "chip": "h100",
        "devices": 16,
        "batch": 64,
        "stack": "megatron-core",
        "sequence": 1024,
    }
    found = phaze.plan("mixtral-8x7b", **job, tensor=[1, 2], microbatch=[1], **more)
    return dict(found.document)


def test_the_best_over_all_degrees_is_the_best_of_each() -> None:
    both = _plan(expert=[1, 8], context=[1, 2])
    alone = [_plan(expert=[e], context=[c])["batch_s"] for e in (1, 8) for c in (1, 2)]
    assert both["batch_s"] == min(alone)
    assert both["proved"]
    assert both["lower_bound_s"] == both["batch_s"]
    assert both["expert"] == 8
    assert (
        both["tensor"] * both.get("context", 1) * both["pipeline"] * both["data"]
        == both["devices_used"]
    )


def test_an_answer_says_what_was_planned_of_experts() -> None:
    shared, whole = _plan(expert=[8]), _plan(expert=[1])
    assert NO_EXPERT_PARALLELISM not in shared["approximations"]
    assert NO_EXPERT_PARALLELISM in whole["approximations"]
    assert 0 < shared["exchange_s"] < shared["batch_s"]
    assert "exchange_s" not in whole
    row, imbalance = exchange_rows(shared)
    assert imbalance[0] == "imbalance" and "at 1.1" in imbalance[1]
    assert row[1].startswith("EP 8 inside a node; exchange ")
    assert exchange_rows(whole) == []
    assert NO_EXPERT_PARALLELISM not in _plan(expert=[1, 8])["approximations"]


def test_experts_across_nodes_say_so() -> None:
    job: dict[str, Any] = {
        "chip": "h100",
        "devices": 32,
        "batch": 64,
        "stack": "megatron-core",
        "sequence": 1024,
    }
    found = phaze.plan("mixtral-8x7b", **job, tensor=[4], microbatch=[1], expert=[8])
    document = dict(found.document)
    wide = document.get("expert_tensor", 1)
    assert document["expert_nodes"] == max(1, 8 * wide // 8)


def test_degrees_that_no_choice_can_have_are_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match="8 experts do not divide by 3"):
        _plan(expert=[1, 3])
    with pytest.raises(InputError, match="no experts"):
        phaze.plan(
            "llama3-8b", chip="h100", devices=8, batch=8, tensor=[1], microbatch=[1], expert=[2]
        )
    with pytest.raises(InputError, match="6 chunks"):
        _plan(context=[3])


def test_experts_are_shared_out_where_nothing_is_said_and_long_sequences_too() -> None:
    usual = _plan()
    assert usual["batch_s"] == _plan(expert=[1, 2, 4, 8])["batch_s"]
    assert usual["expert"] > 1
    assert "context" not in usual
    assert usual_expert_degrees(0, 64) == (1,)
    assert usual_expert_degrees(8, 64) == (1, 2, 4, 8)
    assert usual_expert_degrees(8, 4) == (1, 2, 4)
    assert usual_expert_degrees(60, 64) == (1, 2, 4)
    assert usual_context_degrees(8192, 64) == (1,)
    assert usual_context_degrees(131_072, 4) == (1, 2, 4)
