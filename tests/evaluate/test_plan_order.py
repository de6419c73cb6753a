"""The order of plans: the five best choices are those of solving every choice, and its bounds are
bounds."""

import random
from typing import Any

import numpy as np
import pytest

from phaze.evaluate.costed_layers import CostedLayers
from phaze.evaluate.layers import model_table
from phaze.evaluate.plan import ALTERNATIVES_SHOWN, ALTERNATIVES_WITHIN, Candidate, PlanRequest
from phaze.evaluate.plan_order import passes_bound, planned, ranks_of
from phaze.evaluate.request import Job, request_of
from phaze.values import replace
from tests.evaluate.every_choice import every_choice

GPT = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 1024}
MOE = {
    "hidden": 512, "layers": 4, "heads": 8, "kv_heads": 4, "head_dim": 64, "vocabulary": 32000,
    "sequence": 1024,
    "experts": 4, "active": 2, "expert_mlp": 1024,
}  # fmt: skip


def _random_request(seed: int) -> PlanRequest:
    """A small job with some of all axes, in plenty of memory or hardly any."""
    rng = random.Random(seed)
    family = rng.choice(["gpt", "moe"])
    more: dict[str, Any] = {}
    if family == "moe" and rng.random() < 0.8:
        more["expert"] = rng.choice([(1, 2), (1, 2, 4), (4,)])
    stack = rng.choice(
        [
            "megatron-core",
            "torchtitan-eager",
            "torchtitan",
            *(["megatron-2021"] * (family == "gpt")),
        ]
    )
    if stack != "megatron-2021" and rng.random() < 0.5:
        more["context"] = (1, 2)
        more["context_way"] = rng.choice([None, ("ring",), ("ring", "ulysses")])
    if rng.random() < 0.3:
        more["zero"] = rng.randrange(4)
    elif "expert" not in more and rng.random() < 0.3:
        more["shard"] = (2, 4)
    asked = Job(
        family,
        GPT if family == "gpt" else MOE,
        rng.choice(["a100-80gb", "h100"]),
        devices=rng.choice([4, 6, 8, 16]),
        batch=rng.choice([16, 24, 32]),
        stack=stack,
        tensor=rng.choice([(1,), (1, 2), (2, 4)]),
        microbatch=rng.choice([(1,), (1, 2), (2, 4, 8)]),
        recompute=rng.choice(["best", "best", "none", "full"]),
        headroom=0.0,
        **more,
    )
    request = request_of(asked)
    size = rng.choice([None, 1.2, 2.0, 4.0])
    if size is None:
        return request
    chip = replace(
        request.setting.chip, hbm=replace(request.setting.chip.hbm, size_bytes=int(size * 2**30))
    )
    return replace(request, setting=replace(request.setting, chip=chip))


def _shown(candidate: Candidate) -> tuple[Any, ...]:
    """What an answer says of a choice; where it has two plans that take as long either may be
    told."""
    model = candidate.model
    degrees = (
        model.context,
        model.context_way,
        model.expert,
        model.expert_tensor,
        candidate.problem.sharing.shard,
    )
    return candidate.rank[1:], degrees


def _require_as_exhaustive(request: PlanRequest) -> int:
    """The five best are those of all that are near the best; how many there are."""
    found, every = planned(request), every_choice(request)
    fitting = [own for own in every if own.plan is not None]
    near_s = ALTERNATIVES_WITHIN * min((own.rank[0] for own in fitting), default=0.0)
    fitting = [own for own in fitting if own.rank[0] <= near_s]
    told = [own for own in found.candidates if own.plan is not None]
    assert found.solved <= found.bounded
    assert len(told) >= min(ALTERNATIVES_SHOWN, len(fitting))
    for one, other in zip(told[:ALTERNATIVES_SHOWN], fitting[:ALTERNATIVES_SHOWN], strict=True):
        assert one.rank[0] == pytest.approx(other.rank[0], rel=1e-12)
        assert one.plan is not None and one.plan.lower_bound_s == one.plan.batch_s
    times = [own.rank[0] for own in fitting]
    if times == sorted(set(times)):  # ties may be told in another order of summing
        assert [_shown(own) for own in told[:ALTERNATIVES_SHOWN]] == [
            _shown(own) for own in fitting[:ALTERNATIVES_SHOWN]
        ]
    if not fitting:
        assert len(found.candidates) == len(every)
    return len(fitting)


@pytest.mark.parametrize("seed", range(1, 8))
def test_the_best_choices_are_those_of_solving_every_choice(seed: int) -> None:
    _require_as_exhaustive(_random_request(seed))


@pytest.mark.slow
def test_the_best_choices_of_many_jobs_are_those_of_solving_every_choice() -> None:
    feasible = sum(_require_as_exhaustive(_random_request(seed)) > 0 for seed in range(100, 300))
    assert feasible > 100


@pytest.mark.parametrize("seed", range(20, 24))
def test_what_passes_take_bounds_every_plan_and_layers_cost_what_they_cost_alone(seed: int) -> None:
    request = _random_request(seed)
    costed, every = CostedLayers(request.setting), every_choice(request)
    for own in every:
        bound_s = passes_bound(request, own.model, costed)
        assert bound_s <= own.rank[0]
        together, alone = costed.table(own.model), model_table(own.model, request.setting)
        for name in ("forward_s", "backward_s", "again_s", "hbm_bytes_per_s"):
            assert np.array_equal(getattr(together, name), getattr(alone, name)), name
    assert {id(model) for _, models in ranks_of(request) for model in models}
