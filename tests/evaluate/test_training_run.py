"""Units that people use: batches in tokens, MFU by its definition, and what a whole training run
takes."""

import json
from pathlib import Path

import pytest

from phaze.evaluate.training_run import Budget, Pace, training_run
from phaze.hardware.bundled import bundled, preset_names
from phaze.hardware.library import load_chip
from phaze.hardware.ownership import load_terms
from phaze.report.plan_cards import run_cost
from tests.cli.test_commands import Phaze
from tests.keys.small import run, written

LLAMA = (
    "hidden=1024,layers=8,heads=16,kv_heads=16,head_dim=64,mlp=4096,vocabulary=32000,sequence=2048"
)
SMALL = (
    "plan",
    "--llama",
    LLAMA,
    "--chip",
    "h100",
    "--devices",
    8,
    "--microbatch",
    "1",
    "--tensor",
    "1",
)


def test_a_batch_in_tokens_is_the_batch_in_sequences_that_it_rounds_to(phaze: Phaze) -> None:
    in_tokens = json.loads(phaze(*SMALL, "--batch", "125k-tokens", "--json").out)
    assert in_tokens["batch"] == 64 and in_tokens["requested_batch_tokens"] == 125_000
    in_sequences = json.loads(phaze(*SMALL, "--batch", 64, "--json").out)
    assert in_tokens["batch_s"] == in_sequences["batch_s"]
    assert "rounded" in phaze(*SMALL, "--batch", "125k-tokens").out


def test_model_flop_of_a_decoder_are_six_a_parameter_and_twelve_l_h_s(phaze: Phaze) -> None:
    found = json.loads(phaze(*SMALL, "--batch", 64, "--json").out)
    block = 4 * 1024**2 + 3 * 1024 * 4096
    in_products = 8 * block + 32000 * 1024
    assert found["full_flops_per_token"] == 6 * in_products + 12 * 8 * 1024 * 2048
    assert found["flops_per_token"] == 6 * in_products + 6 * 8 * 1024 * 2049
    reached = (
        found["tokens_per_s"]
        * found["flops_per_token"]
        / (found["devices"] * load_chip("h100").peak_flops)
    )
    assert (
        found["mfu"] == pytest.approx(reached, rel=1e-9) and found["share_of_peak"] == found["mfu"]
    )


def test_recomputing_raises_hfu_and_never_the_count_behind_mfu(phaze: Phaze) -> None:
    eager = (*SMALL, "--batch", 64, "--attention", "eager", "--json")
    found = {mode: json.loads(phaze(*eager, "--recompute", mode).out) for mode in ("none", "full")}
    assert found["none"]["flops_per_token"] == found["full"]["flops_per_token"]
    assert found["none"]["hfu"] == pytest.approx(found["none"]["mfu"], rel=1e-12)
    blocks = 2 * 8 * (4 * 1024**2 + 3 * 1024 * 4096) + 4 * 8 * 1024 * 2048
    again = found["full"]["run_flops_per_token"] - found["full"]["flops_per_token"]
    assert again == pytest.approx(blocks, rel=1e-9)


def test_fused_attention_counts_the_scores_that_it_makes_again_as_hardware_flop_only(
    phaze: Phaze,
) -> None:
    fused = json.loads(
        phaze(*SMALL, "--batch", 64, "--attention", "fused", "--recompute", "none", "--json").out
    )
    assert fused["run_flops_per_token"] - fused["flops_per_token"] == pytest.approx(8 * 1024 * 2049)


def test_a_run_takes_whole_batches_and_is_priced_by_the_terms() -> None:
    terms = load_terms()
    found = training_run(Budget(10_000_001, terms), Pace(1_000_000, 36.0, 100), load_chip("h100"))
    assert found["batches"] == 11 and found["days"] == pytest.approx(11 * 36 / 86400)
    assert found["device_hours"] == pytest.approx(11.0)
    assert found["usd"] == pytest.approx(11 * terms.device_usd_per_hour["h100"])
    assert found["kwh"] == pytest.approx(11 * 0.7 * 0.7 * 1.1)
    operational = found["kwh"] * terms.grid_kgco2e_per_kwh
    assert found["kgco2e"] == pytest.approx(operational + found["embodied_kgco2e"])
    known = training_run(
        Budget(10_000_001, terms), Pace(1_000_000, 36.0, 100, 1000.0), load_chip("h100")
    )
    assert known["kwh"] == pytest.approx(11 * 1.1)


@pytest.mark.parametrize("chip", sorted({*preset_names("chips"), *preset_names("silicon/chips")}))
def test_dollars_of_a_run_are_a_rent_with_a_source_or_unknown(chip: str) -> None:
    terms = load_terms()
    found = training_run(Budget(10**9, terms), Pace(10**6, 36.0, 100), load_chip(chip))
    price = terms.device_usd_per_hour.get(chip)
    if price is None:
        assert (
            found["usd"] is None
            and "device_usd_per_hour" in found["usd_basis"]
            and chip in found["usd_basis"]
        )
        assert "USD unknown" in run_cost(found, 100).notes[0]
        return
    assert found["usd"] == pytest.approx(found["device_hours"] * price)
    sources = bundled("presets/ownership/default.toml")["sources"]
    assert sources[f"device_usd_per_hour.{chip}"].startswith("https://")


def test_a_chip_that_nobody_rents_out_is_not_a_twentieth_of_one_that_is_rented() -> None:
    pace, budget = Pace(10**6, 36.0, 100), Budget(10**9, load_terms())
    found = {
        chip: training_run(budget, pace, load_chip(chip))["usd"]
        for chip in ("h100", "mi300x", "gaudi3")
    }
    assert found["gaudi3"] is None and 0.3 < found["mi300x"] / found["h100"] < 3


def test_what_a_run_takes_is_printed_with_three_digits() -> None:
    found = training_run(
        Budget(15 * 10**12, load_terms()), Pace(4_194_304, 6.03, 64), load_chip("h100")
    )
    for _, number in run_cost(found, 64).figures:
        assert len(number.replace(",", "").replace(".", "").strip("0")) <= 3, number


def test_tokens_give_days_hours_money_energy_and_carbon_on_every_answer(
    phaze: Phaze, tmp_path: Path
) -> None:
    asked = (*SMALL, "--batch", 64, "--tokens", "300B")
    shown = phaze(*asked, "--html", tmp_path / "plan.html").out
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    for text, energy in ((shown, "kWh"), (page, "MWh")):
        for word in (
            "300B tokens",
            "days",
            "device hours",
            "USD",
            energy,
            "kg CO2e",
            "HFU",
            "6 N + 12 L h s",
        ):
            assert word in text, word
    fixed = written(tmp_path, "run.json", run(tokens="300B"))
    assert (
        json.loads(phaze("plan", "--fixed", fixed, "--json").out)["training_run"]["tokens"]
        == 300 * 10**9
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--batch", "4M"), "--batch: '4M' cannot be used; give sequences"),
        (("--batch", "1k-tokens"), "less than one sequence"),
        (("--batch", "8", "--sequence", "3q"), "k = 1024"),
        (("--batch", "8", "--tokens", "lots"), "--tokens: 'lots'"),
        (("--batch", "8", "--terms", "default"), "add --tokens"),
    ],
)
def test_a_wrong_quantity_is_one_sentence(
    phaze: Phaze, options: tuple[str, ...], said: str
) -> None:
    found = phaze(*SMALL, *options)
    assert found.code == 2 and said in found.err and found.err.count("\n") == 1
