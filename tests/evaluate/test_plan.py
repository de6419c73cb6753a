"""Plans found by us: never beaten by the plans we can write down, and an answer when nothing fits."""

from dataclasses import replace
from itertools import product

import pytest

from phaze.errors import InputError
from phaze.evaluate.fixed import even_cuts
from phaze.evaluate.plan import Request, candidates, closest, rule_of_thumb
from phaze.evaluate.prices import LevelPrices
from phaze.evaluate.request import Asked, request_of
from phaze.hardware.cluster import grown
from phaze.hardware.library import load_cluster
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import fits, price

SIZES = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 1024}


def request(**changes: object) -> Request:
    asked = Asked("gpt", SIZES, "a100-80gb", devices=8, batch=32, microbatches=(1, 4), widths=(1, 2))
    return request_of(replace(asked, **changes))  # type: ignore[arg-type]


def test_no_even_split_beats_the_plan() -> None:
    job = request()
    found = list(candidates(job))
    best = min(c.plan.batch_s for c in found if c.plan is not None)
    prices = LevelPrices(job.setting.cluster, job.setting.basis)
    for candidate in found:
        for stages, data, mode in product((1, 2, 4), (1, 2, 4, 8), ("none", "selective", "full")):
            if candidate.model.tensor * stages * data > job.devices:
                continue
            cuts = even_cuts(candidate.model, stages, mode)
            problem = replace(candidate.problem, recompute=mode)  # type: ignore[arg-type]
            plan = price(problem, Shape(candidate.model.tensor, stages, data, "data"), cuts, prices)
            assert not fits(problem, plan) or plan.batch_s >= best * (1 - 1e-9)


def test_the_rule_of_thumb_is_a_plan_that_fits() -> None:
    job = request()
    found = list(candidates(job))
    thumb = rule_of_thumb(job, found)
    assert thumb is not None
    assert thumb.tensor == 2
    assert thumb.batch_s >= min(c.plan.batch_s for c in found if c.plan is not None) * (1 - 1e-9)


def test_more_devices_never_slow_the_plan() -> None:
    times = [min(c.plan.batch_s for c in candidates(request(devices=n)) if c.plan is not None) for n in (4, 8, 16)]
    assert times == sorted(times, reverse=True)


def test_nothing_fits_is_an_answer_with_levers() -> None:
    job = request(devices=1, widths=(1,), microbatches=(1,))
    chip = replace(job.setting.chip, hbm=replace(job.setting.chip.hbm, size_bytes=2**30))
    small = replace(job, setting=replace(job.setting, chip=chip))
    found = list(candidates(small))
    assert all(candidate.plan is None for candidate in found)
    shortage = closest(small, found)
    assert shortage.tightest is not None
    assert shortage.tightest.memory.total_bytes > 2**30
    assert shortage.levers.hbm_bytes is not None
    assert shortage.levers.hbm_bytes > 2**30


def test_a_switched_cluster_grows_and_a_torus_does_not() -> None:
    assert grown(load_cluster("dgx-h100"), 4096, "--devices").levels[-1].size == 512
    with pytest.raises(InputError, match="at most as many"):
        grown(load_cluster("tpu-v4-pod"), 5000, "--devices")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"devices": 0}, "--devices"),
        ({"batch": -1}, "--batch"),
        ({"zero": 4}, "--zero"),
        ({"chip": "tpu-v2", "cluster": None}, "names no usual cluster"),
        ({"widths": (16,)}, "none of"),
        ({"model": "bert-larg", "sizes": None, "widths": None}, "did you mean 'bert-large'"),
    ],
)
def test_a_wrong_request_is_one_sentence(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        list(candidates(request(**changes)))
    assert said in str(caught.value)
