"""The paper's experiment: the searched placement and the found chip never lose, and the page says what is measured."""

import re
from pathlib import Path

import pytest
from examples.paper.cases import EXPERTS, MODELS, Found, one_model, rows, searched
from examples.paper.reproduce import ABLATIONS, PAGE, REAL
from examples.paper.sheets import Ablation, Line, ablation_table, chip_table, put, ratio_table

from phaze.errors import InputError
from phaze.hardware.library import load_chip

STAND_IN = load_chip("tpu-v4-paper")
SMALL = ["search.gap=0.01", "training.microbatches=[1]", 'hbm=["32 GiB"]', "training.recompute=[false]"]


def test_every_model_has_an_experts_split() -> None:
    assert set(EXPERTS) == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_the_experts_split_never_beats_the_searched_one_and_the_page_says_by_how_much(model: str) -> None:
    found = rows(model, [STAND_IN])
    experts, best = (found[STAND_IN.name, kind].throughput_per_s for kind in ("experts", "searched"))
    assert experts is not None
    assert best is not None
    assert experts <= best * (1 + 1e-9)
    line = re.search(rf"^\| {model} \| (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    shown = [cell.strip() for cell in line[1].split("|")]
    assert shown[:2] == [f"{experts:,.4g}", f"{best / experts:.2f}"]


@pytest.mark.parametrize("model", ["bert-large", "gpt2-xl", "llama2-7b"])
def test_on_the_real_chip_and_its_torus_too(model: str) -> None:
    real = load_chip("tpu-v4")
    found = rows(model, [real], REAL)
    experts, best = (found[real.name, kind].throughput_per_s for kind in ("experts", "searched"))
    assert best is not None
    assert experts is None or experts <= best * (1 + 1e-9)
    part = PAGE.read_text(encoding="utf-8").split("<!-- paper: real-ratios -->")[1].split("<!-- end -->")[0]
    line = re.search(rf"^\| {model} \| (.+)$", part, re.MULTILINE)
    assert line is not None
    shown = [cell.strip() for cell in line[1].split("|")]
    if experts is None:
        assert shown[0] == "does not fit"
    else:
        assert shown[:2] == [f"{experts:,.4g}", f"{best / experts:.2f}"]


def _never_below(model: str, folder: Path, settings: list[str]) -> Found:
    found = searched(folder, "model.toml", [one_model(model), *settings])
    base = rows(model, [STAND_IN], settings)[STAND_IN.name, "searched"].throughput_per_s
    assert base is not None
    assert found.document["models"][0]["throughput_per_s"] >= base * (1 - found.document["certificate"]["gap"])
    return found


def test_the_best_chip_is_never_below_the_stand_in_and_a_finished_search_is_read(tmp_path: Path) -> None:
    first = _never_below("bert-large", tmp_path, SMALL)
    again = searched(tmp_path, "model.toml", [one_model("bert-large"), *SMALL])
    assert again == first


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_best_chip_of_the_whole_space_is_never_below_the_stand_in(model: str, tmp_path: Path) -> None:
    _never_below(model, tmp_path, [])


def test_a_block_is_searched_alone(tmp_path: Path) -> None:
    found = searched(tmp_path, "block.toml", ["search.gap=0.05"])
    assert [layer["count"] for layer in found.document["models"][0]["layers"]] == [1]
    assert found.document["models"][0]["plan"]["pipeline"] == 1


def test_every_ablation_changes_the_study() -> None:
    assert len({settings for _, settings in ABLATIONS} | {()}) == len(ABLATIONS) + 1


def test_tables_hold_ratios_means_and_what_does_not_fit() -> None:
    table = ratio_table([Line("a", (2.0, 4.0, None, 8.0, 2.0, 6.0, 6.0)), Line("b", (1.0,) * 7)], "base")
    assert "| a | 2 | 2.00 | does not fit | 4.00 | 1.00 | 3.00 | 3.00 |" in table
    assert "| **geometric mean** | 1 | **1.41** | **1.00 (of 1)** | **2.00** |" in table
    assert "| all | 2.00 | 1.00 (of 1) |" in ablation_table([Ablation("all", ((1.0, 4.0), (None, 1.0)))], ("x", "y"))
    assert chip_table({}).count("\n") == 2


def test_a_page_takes_its_tables_and_refuses_unknown_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- paper: x -->\nold\n<!-- end -->\n<!-- paper: y -->\n<!-- end -->\n", encoding="utf-8")
    put(page, {"x": "| 1 |\n"})
    put(page, {"x": "| 2 \\1 |\n"})
    said = page.read_text(encoding="utf-8")
    assert said == "a\n<!-- paper: x -->\n| 2 \\1 |\n<!-- end -->\n<!-- paper: y -->\n<!-- end -->\n"
    with pytest.raises(InputError, match="table z has 0 markers"):
        put(page, {"z": ""})
