"""Bands from held-back runs: the formula on synthetic errors, what is held back, that the bundled
ones are current."""

import json
from importlib.resources import files
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.fits.bands import (
    MANY_RUNS,
    Speaking,
    bands_document,
    bands_text,
    counts,
    quantile,
    rows_digest,
)
from tools.fits.held_back import HeldBack, bundled_rows, held_back, held_back_stack
from tools.fits.share_curves import curves_of
from tools.fits.share_fit import Fits
from tools.fits.sources import left_out, source_of

from phaze.errors import InputError
from phaze.evaluate.bands import MOST, SHARE, BandKind, BandsFile, bundled_bands
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import job_of
from phaze.hardware.library import load_stack
from phaze.validate.sets import rows_of, set_named

ERRORS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2)), min_size=1, max_size=40)


def speaking(pairs: list[tuple[str, float]]) -> list[Speaking]:
    return [Speaking(source, error) for source, error in pairs]


def run(
    source: str, job: int, time: float, memory: float = 1.0, kind: BandKind | None = None
) -> HeldBack:
    return HeldBack(
        f"{source}{job}",
        source,
        (job,),
        kind or BandKind("measured", "data", "16", "s"),
        "trace",
        time,
        memory,
        None,
    )


@given(ERRORS, st.floats(0.01, 0.99))
def test_a_quantile_is_an_error_that_the_share_of_the_weight_does_not_exceed(
    pairs: list[tuple[str, float]], share: float
) -> None:
    found = quantile(speaking(pairs), share)
    sizes = {source: sum(1 for own, _ in pairs if own == source) for source, _ in pairs}
    weight = {source: sizes[source] ** -0.5 for source in sizes}
    total = sum(weight[source] for source, _ in pairs)
    assert found in [error for _, error in pairs]
    assert sum(weight[source] for source, error in pairs if error <= found) / total >= share - 1e-9
    assert sum(weight[source] for source, error in pairs if error < found) / total < share + 1e-9


def test_a_source_of_many_runs_does_not_outvote_the_others() -> None:
    many, few = [("sweep", 0.01)] * 100, [("a", 0.5)] * 4 + [("b", 0.5)] * 4 + [("c", 0.5)] * 4
    assert quantile(speaking([*many, *few]), 0.8) == 0.5
    assert not counts(speaking(many))


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_eight_of_ten_runs_of_like_laboratories_lie_inside(seed: int) -> None:
    random = Random(seed)
    rows = [run(lab, i, 1 + random.gauss(0, 0.1)) for lab in "abcdef" for i in range(40)]
    document = bands_document([], rows)
    (entry,) = (one for one in document["time"] if one.get("layout") == "data" and "stack" in one)
    assert entry["inside"] / entry["held_back"] >= SHARE
    assert 0.1 < entry["band"] < 0.2  # 1.28 standard deviations, and what a level above 0.8 adds


def test_a_laboratory_that_is_far_off_widens_the_band() -> None:
    near = [run(lab, i, 1.02) for lab in "abc" for i in range(10)]
    far = [run("d", i, 1.6) for i in range(10)]
    bands = [bands_document([], rows)["time"][0]["band"] for rows in (near, near + far)]
    assert bands[0] == pytest.approx(0.02) and bands[1] == pytest.approx(0.6)


def test_without_runs_there_is_no_band() -> None:
    with pytest.raises(InputError, match="no run determines"):
        bands_document([], [])


def test_a_share_that_was_fitted_on_runs_is_held_back_and_an_assumed_one_is_not() -> None:
    memo = Memo()
    fits = Fits(curves_of(memo, family="megatron-202"))
    (fitted, *_), (kernels, *_) = rows_of(set_named("sc21")), rows_of(set_named("megatron-b200"))
    own = job_of(dict(fitted.run), fitted.where, memo)
    assert source_of(fitted) == "Narayanan"
    held = held_back_stack(own, fits, source_of(fitted), memo)
    # Korthikanti's runs, the only others here, have another share on that generation.
    assert dict(held.software_share)["n7"] == dict(load_stack("megatron-2022").software_share)["n7"]
    other = job_of(dict(kernels.run), kernels.where, memo)
    assert held_back_stack(other, fits, source_of(kernels), memo) == other.stack


def test_times_over_the_network_that_broke_down_and_open_choices_do_not_speak() -> None:
    said = {left_out(row) for row in rows_of(set_named("nanotron-h100"))}
    assert said == {"", "its network broke down"}
    assert {left_out(row) for row in rows_of(set_named("mt-nlg"))} == {"it leaves choices open"}


def test_eight_of_ten_runs_held_back_lie_inside_the_bundled_bands() -> None:
    """Held back by source, of kinds of few sources by job; memory also by job."""
    bands = bundled_bands()
    for entry in bands.time:
        few = entry.rows < MANY_RUNS
        assert entry.inside / entry.held_back >= SHARE or entry.band == MOST or few, entry
        assert entry.band <= MOST
    for memory in bands.memory:
        assert memory.inside_by_job / memory.rows >= SHARE
        assert memory.inside / memory.held_back >= SHARE
        assert memory.band_elsewhere >= memory.band


def test_few_laboratories_are_held_back_by_job_and_many_by_source() -> None:
    """One laboratory that is off moves a kind of two to its errors; of five it is left outside."""
    for labs, band in (("ab", 0.5), ("abcde", 0.1)):
        rows = [
            run(lab, i, 1.5 if lab == "a" else 1.1, kind=BandKind("measured", "experts", "16"))
            for lab in labs
            for i in range(5)
        ]
        found = [one for one in bands_document([], rows)["time"] if one.get("layout") == "experts"]
        assert [one["band"] for one in found] == pytest.approx([band] * len(found))


def test_no_band_is_wider_than_what_is_said_at_most() -> None:
    rows = [run(lab, i, 3.0) for lab in "abcd" for i in range(5)]
    assert {one["band"] for one in bands_document([], rows)["time"]} == {MOST}


def test_the_bundled_bands_are_of_the_bundled_runs() -> None:
    """Otherwise run ``python -m tools.fits bands --write src/phaze/evaluate/data/bands.json``."""
    assert bundled_bands().rows_digest == rows_digest(bundled_rows())


@pytest.mark.slow
def test_the_bundled_bands_are_current() -> None:
    """Otherwise run ``python -m tools.fits bands --write src/phaze/evaluate/data/bands.json``."""
    rows, memo = bundled_rows(), Memo()
    fits = Fits(curves_of(memo))
    document = bands_document(rows, [one for row in rows for one in held_back(row, fits, memo)])
    text = bands_text(document)
    assert BandsFile.model_validate(json.loads(text)) == BandsFile.model_validate(document)
    assert text == (files("phaze.evaluate") / "data" / "bands.json").read_text(encoding="utf-8")
