"""Devices that are bought and do nothing: they count in every figure, and the answer says what
would use them."""

import pytest

import phaze
from phaze.report.page.plan_page import plan_page

JOBS = [
    ("llama3-8b", 72, 64),
    ("llama3-8b", 40, 33),
    ("bert-large", 48, 40),
    pytest.param("llama3-70b", 600, 500, marks=pytest.mark.slow),
    pytest.param("mixtral-8x7b", 80, 64, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("model", "devices", "batch"), JOBS)
def test_the_batch_that_is_proposed_does_use_the_idle_devices(
    model: str, devices: int, batch: int
) -> None:
    plan = phaze.plan(model, chip="h100", devices=devices, batch=batch)
    assert plan["devices_used"] < devices == plan["devices"]
    assert plan["idle"]["devices"] == devices - plan["devices_used"]
    proposed = plan["idle"]["batch"]
    assert proposed > batch
    filled = phaze.plan(model, chip="h100", devices=devices, batch=proposed)
    assert filled["devices_used"] == devices and "idle" not in filled.document


def test_idle_devices_are_in_every_denominator() -> None:
    plan = phaze.plan("llama3-8b", chip="h100", devices=72, batch=64, tokens="1T")
    rate = plan["tokens_per_s"]
    assert plan["devices_used"] == 64 and plan["tokens_per_s_per_device"] == pytest.approx(
        rate / 72
    )
    assert plan["mfu"] == pytest.approx(
        rate * plan["flops_per_token"] / (72 * plan["device_peak_flops"])
    )
    assert plan["hfu"] == pytest.approx(
        rate * plan["run_flops_per_token"] / (72 * plan["device_peak_flops"])
    )
    run = plan["training_run"]
    assert run["device_hours"] == pytest.approx(72 * 24 * run["days"])
    more = phaze.plan("llama3-8b", chip="h100", devices=64, batch=64)
    assert more["mfu"] == pytest.approx(plan["mfu"] * 72 / 64)


def test_the_answer_and_the_page_say_how_many_are_idle() -> None:
    plan = phaze.plan("llama3-8b", chip="h100", devices=72, batch=64)
    words = (
        "64 of 72 used, 8 idle; a batch of 72 sequences would use all of them with these degrees"
    )
    assert words in " ".join(repr(plan).split())
    assert words in plan_page(plan.document, "plan") and words in plan._repr_html_()


def test_where_no_batch_helps_none_is_proposed() -> None:
    plan = phaze.plan("llama3-8b", chip="h100", devices=9, batch=64, tensor=8)
    assert plan["idle"] == {"devices": 1, "batch": None}
    assert "no batch uses all of them" in " ".join(repr(plan).split())
