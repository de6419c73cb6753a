"""Software shares from measured runs: the rule on made-up runs, what is held back, and that bundled
files follow it."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fits.marks import (
    MARKS,
    bundled_constants,
    by_weight,
    fitted_stacks,
    held_back_error,
    reached,
)
from tools.fits.share_curves import SHARES, Curve, curve_of, curves_of, speaks
from tools.fits.share_fit import BEFORE, Fits
from tools.fits.sources import share_is_fitted

from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import job_of
from phaze.hardware.bundled import preset_names
from phaze.hardware.library import load_stack
from phaze.validate.rows import read_rows
from phaze.validate.sets import SETS, rows_of, set_named
from phaze.values import FrozenTable, replace
from tests.validate.test_rows import changed


def curve(
    stack: str, share: float, group: str = "m", off: float = 0.0, generation: str = "n5"
) -> Curve:
    """A run that is met at a share: a fifth of its time does not depend on it."""
    host = load_stack(stack).host_s
    table = tuple(0.2 + 0.8 * share / each for each in SHARES)
    return Curve(
        f"{stack}{group}",
        "set",
        stack,
        generation,
        ("lab", group),
        "16",
        1.0 + off,
        (host,),
        (table,),
    )


@settings(max_examples=30)
@given(st.integers(52, 99), st.integers(1, 9))
def test_the_share_that_runs_were_made_with_is_found(hundredths: int, runs: int) -> None:
    share = hundredths / 100
    found = Fits([curve("torchtitan-24.12", share, str(run)) for run in range(runs)]).of(
        ("torchtitan-24.12", "n5")
    )
    assert found is not None and found.share == share and found.models == runs


def test_one_run_far_off_does_not_move_the_share_of_many() -> None:
    rows = [curve("nanotron", 0.7, str(at)) for at in range(5)]
    found = Fits([*rows, curve("nanotron", 0.7, "far", off=2.0)]).of(("nanotron", "n5"))
    assert found is not None and found.share == 0.7


def test_a_release_of_one_model_stays_near_the_one_before() -> None:
    older = [curve("megatron-core-24.11", 0.7, name) for name in "abc"]
    newer = [curve("megatron-core-25.02", 0.9, "a")]
    fits = Fits([*older, *newer])
    found = fits.of(("megatron-core-25.02", "n5"))
    assert found is not None and found.own == 0.9
    assert found.share == pytest.approx((0.9 * 0.7**BEFORE) ** (1 / (1 + BEFORE)), abs=0.005)
    first = fits.of(("megatron-core-24.11", "n5"))
    assert first is not None and first.share == 0.7
    alone = Fits([*older, *newer], before=0.0).of(("megatron-core-25.02", "n5"))
    assert alone is not None and alone.share == 0.9


def test_a_run_held_back_does_not_help_itself() -> None:
    rows = [curve("nanotron", 0.6, "a"), curve("nanotron", 0.8, "b")]
    fits = Fits(rows)
    assert held_back_error(rows[0], fits) == pytest.approx(rows[0].seconds_at(0.8) - 1)
    assert held_back_error(rows[1], fits) == pytest.approx(rows[1].seconds_at(0.6) - 1)
    only = curve("paxml", 0.55, "c")
    other = Fits([*rows, only]).held_back(("paxml", "n5"), frozenset([only.group]))
    assert other.share in (0.6, 0.7, 0.8)  # that of another family on the same generation


def test_seconds_between_the_shares_that_were_priced_are_those_of_a_price() -> None:
    memo, random = Memo(), Random(3)
    for name in ("korthikanti", "maxtext-v5p", "torchtitan"):
        row = random.choice(rows_of(set_named(name)))
        own, job = curve_of(name, row, memo), job_of(dict(row.run), row.where, memo)
        assert own is not None
        for share in (0.55, 0.68, 0.83, 0.97):
            shares = FrozenTable({**job.stack.software_share, own.generation: share})
            priced = fixed_plan(replace(job, stack=replace(job.stack, software_share=shares)))[
                1
            ].batch_s
            assert own.seconds_at(share) == pytest.approx(priced, rel=3e-3)


def test_runs_that_speak_for_no_stack() -> None:
    (dense,) = read_rows(changed(), "mine.csv")
    assert speaks("mine", dense) and not speaks("vtrain-multi", dense)
    (long,) = read_rows(changed(sequence="65536"), "mine.csv")
    assert not speaks("mine", long)
    said = {one.name: sum(speaks(one.name, row) for row in rows_of(one)) for one in SETS}
    for name in (
        "grok-h100",
        "grok-h100-fp8",
        "bridge-experts-h100-fp8",
        "finetune-h100",
        "vtrain-multi",
    ):
        assert said[name] == 0, name
    assert said["nanotron-h100"] == 56  # over a network that held


@pytest.mark.parametrize("family", ["megatron-202", "megatron-core-26", "torchtitan-eager"])
def test_files_of_stacks_have_what_their_runs_give(family: str) -> None:
    fits = Fits(curves_of(Memo(), family=family), before=0.0)
    for key, (share, _) in bundled_constants(fits).items():
        found = fits.of(key)
        assert found is not None
        assert (found.own if "26.02" in key[0] else found.share) == (
            0.99 if "26.02" in key[0] else share
        )


@pytest.mark.parametrize(("plain", "newest"), [
    ("megatron-core", "megatron-core-26.02"), ("torchtitan", "torchtitan-25.06"),
    ("maxtext", "maxtext-25.02"),
])  # fmt: skip
def test_a_plain_name_is_the_newest_release(plain: str, newest: str) -> None:
    dated = [
        name for name in preset_names("stacks") if name.startswith(f"{plain}-2") and "." in name
    ]
    assert max(dated) == newest
    same = {"name": plain, "title": ""}
    # But for the width of gradients, which the configurations of Megatron-Bridge say.
    read = [load_stack(name).with_gradients("fp32").as_read() for name in (newest, plain)]
    assert {**read[0], **same} == {**read[1], **same}


@pytest.mark.slow
def test_every_fitted_share_is_that_of_the_rule_and_aims_hold_held_back_too() -> None:
    """Otherwise ``python -m tools.fits stacks`` shows what to put into the files."""
    memo = Memo()
    curves = curves_of(memo)
    fits = Fits(curves)
    bundled = bundled_constants(fits)
    for one in fitted_stacks(fits, bundled):
        assert one.constants.share == one.bundled, one
        assert one.constants.host_s == pytest.approx(one.bundled_host_s), one
    every = {
        (name, on) for name in preset_names("stacks") for on in load_stack(name).software_share
    }
    stated = {key for key in every if share_is_fitted(*key)}
    assert {key for key in stated if key in fits.speaking} == set(fits.speaking)
    found = {one.mark.name: one for one in reached(fits, bundled, memo)}
    assert {mark.name for mark in MARKS} == set(found)
    missed = {
        name
        for name, one in found.items()
        if getattr(one.fitted, one.mark.statistic) > one.mark.target
    }
    assert missed == {"MPT on H100"}
    held = {
        name
        for name, one in found.items()
        if getattr(one.held_back, one.mark.statistic) > one.mark.target
    }
    assert held <= {"MPT on H100", "MaxText on v5e", "MaxText on v5p", "Korthikanti, Table 5",
    "Megatron-LM, SC 2021",
                    "torchtitan"}  # fmt: skip
    assert abs(found["all in BF16"].fitted.bias) < 0.02
    weights = by_weight(curves, "megatron-core", (0.0, 1.0, 4.0))
    assert weights[1.0] < weights[0.0] + 0.002 < weights[4.0]
