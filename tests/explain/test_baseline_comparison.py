"""An answer beside models that it was not searched for, chips that exist, and each model's own best
chip."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.explain.near_chips import AxisCounts, Span, near_words
from phaze.study.raw import default_study
from tests.conftest import Ran

SPACE = Path(__file__).parent.parent / "sweep" / "small-space.toml"
STUDY = {
    "space": str(SPACE),
    "training": {"microbatches": [1], "recompute": [False], "devices": 64, "batch": 256},
    "budget": {"area": "200 mm2", "power": "400 W"},
}


def _searched(where: Path, model: str) -> Path:
    """A finished search of a few chips for one model."""
    study, run = where / f"{model}.json", where / model
    study.write_text(json.dumps(default_study(model, "icml24") | STUDY), encoding="utf-8")
    assert exit_code_of(app, ["search", str(study), "--out", str(run), "--workers", "1"]) == 0
    return run


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("beside")


@pytest.fixture(scope="module")
def folder(where: Path) -> Path:
    return _searched(where, "bert-large")


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, Any]:
    """The explanation that was asked for everything, as the folder keeps it."""
    asked = ["--held-out", "opt-350m", "--regret", "--compare", "tpu-v4", "--workers", "1"]
    assert exit_code_of(app, ["explain", str(folder), *asked]) == 0
    document: dict[str, Any] = json.loads((folder / "explanation.json").read_text(encoding="utf-8"))
    return document


def test_a_held_out_model_loses_to_its_own_search_what_its_regret_says(
    said: dict[str, Any], where: Path
) -> None:
    own = json.loads((_searched(where, "opt-350m") / "result.json").read_text(encoding="utf-8"))
    (held,), alone = said["held_out"], {one["name"]: one for one in said["alone"]}
    (model,) = own["models"]
    regret = held["batch_s"] / model["batch_s"] - 1
    assert held["throughput_per_s"] == pytest.approx(256 / held["batch_s"], rel=1e-12)
    assert regret >= -own["certificate"]["gap"]
    assert alone["opt-350m"]["regret"] == pytest.approx(max(0.0, regret), abs=1e-4)
    if regret > 1e-3:
        assert alone["opt-350m"]["chip"] != said["chip"]
    assert alone["bert-large"]["chip"] == said["chip"] and alone["bert-large"]["regret"] <= 1e-4
    assert "DP" in held["plan"] and 0 < held["mfu"] < 1


def test_chips_that_exist_are_priced_as_a_comparison_prices_them(
    said: dict[str, Any], folder: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("compare", "--run", folder, "--chip", "tpu-v4", "--json")
    assert ran.code == 0, ran.err
    rows = {
        row["chip"]: row for row in json.loads(ran.out)["rows"] if row["placement"] == "searched"
    }
    assert [one["chip"] for one in said["beside"]] == ["tpu-v4-paper", "tpu-v4"]
    for one in said["beside"]:
        first, second = one["models"]
        assert (first["name"], second["name"]) == ("bert-large", "opt-350m")
        assert first["throughput_per_s"] == pytest.approx(
            rows[one["chip"]]["throughput_per_s"], rel=1e-12
        )
        assert sum(row["seconds"] for row in first["steps"]) == pytest.approx(
            256 / first["throughput_per_s"], rel=1e-9
        )


def test_what_was_asked_before_stays_beside_what_is_asked_next(
    said: dict[str, Any], folder: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("explain", folder, "--compare", "h100", "--workers", "1")
    assert ran.code == 0, ran.err
    kept = json.loads((folder / "explanation.json").read_text(encoding="utf-8"))
    assert [one["chip"] for one in kept["beside"]] == ["tpu-v4", "tpu-v4-paper", "h100"]
    assert kept["held_out"] == said["held_out"] and kept["alone"] == said["alone"]
    assert "Chips that exist" in ran.out and "h100" in ran.out


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (("--held-out", "bert-large"), "it was searched for"),
        (("--held-out", "bert-larg"), "bert-larg"),
        (("--held-out", "gone.py:build"), "gone.py"),
        (("--compare", "h1000"), "h1000"),
    ],
)
def test_what_cannot_be_held_against_it_is_refused(
    asked: tuple[str, str], word: str, folder: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("explain", folder, *asked, "--workers", "1")
    assert ran.code == 2 and word in ran.err, ran.err


def test_near_chips_are_told_by_what_they_share() -> None:
    axes = [
        AxisCounts("clusters", ((12.0, 41),), 3),
        AxisCounts("arrays", ((8.0, 31), (16.0, 10)), 5),
        AxisCounts("rows", ((16.0, 20), (32.0, 21)), 2),
        AxisCounts("registers", ((2.0**20, 40), (2.0**22, 1)), 2),
        AxisCounts("global_buffer", ((2.0**25, 41),), 4),
    ]
    spans = [
        Span("MACs", 4096.0, 4096.0),
        Span("area, mm2", 700.0, 790.0),
        Span("TDP, W", 700.0, 700.0),
    ]
    assert near_words(0.01, 41, axes, spans) == (
        "41 chips are within 1 %: all have 4,096 MACs, clusters 12 and global buffer 32 "
        "MiB; they differ in arrays "
        "8 to 16 (mostly 8) and registers 1 MiB to 4 MiB (mostly 1 MiB); any value will "
        "do of rows; 700 to 790 mm2 "
        "and 700 W."
    )
    assert near_words(0.02, 1, [], spans) == "No other chip is within 2 %."
