"""Modes of recompute that a study names: searched as ``phaze plan --recompute`` plans them, or
refused."""

from typing import Any

import pytest

from phaze.errors import InputError
from phaze.search.task import ModelTask
from phaze.study.load import question_of, study_of

JOB: dict[str, Any] = {"devices": 64, "batch": 256, "microbatches": [1]}


def task(rules: str = "cluster", **training: Any) -> ModelTask:
    raw = {
        "schema": "phaze.study/1",
        "name": "modes",
        "models": ["opt-350m"],
        "rules": rules,
        "training": training,
    }
    return question_of(study_of(raw, "study")).job.models[0]


def test_named_modes_are_configurations() -> None:
    found = task(**JOB, recompute=["selective", ["mlp", "layernorm"], "mlp", True])
    assert {one.recompute for one in found.configurations} == {
        "selective",
        "layernorm+mlp",
        "mlp",
        "full",
    }
    names = [mode.name for mode in found.graphs[0].layers[1].modes[1:-1]]
    assert names == ["layernorm+mlp", "mlp"]


def test_without_a_name_the_modes_of_the_stack_are_as_they_were() -> None:
    assert {one.recompute for one in task(**JOB).configurations} == {"best"}
    assert len(task(**JOB, recompute=[False]).graphs[0].layers[1].modes[1:-1]) > 0


@pytest.mark.parametrize(
    ("rules", "recompute", "seen"),
    [
        ("cluster", ["best", "mlp"], "training.recompute: 'best' and mlp"),
        ("cluster", ["alternate"], "the stack megatron-core cannot recompute 'alternate'"),
        ("cluster", ["some"], "recompute"),
        ("cluster", ["offload"], r"'offload' and n5-reticle-base has no \[host\] bandwidth"),
        ("icml24", ["selective"], "the stack icml24 recomputes all or nothing"),
    ],
)
def test_modes_that_cannot_be_are_refused(rules: str, recompute: list[Any], seen: str) -> None:
    with pytest.raises(InputError, match=seen):
        task(rules, **JOB, recompute=recompute)
