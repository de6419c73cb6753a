"""The paper's experiment: the searched placement and the found chip never lose, and the page says
what is measured."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from examples.paper.cases import EXPERTS, MODELS, Found, _job, one_model, rows, searched
from examples.paper.reproduce import ABLATIONS, PAGE, REAL
from examples.paper.sheets import Ablation, Line, ablation_table, chip_table, put, ratio_table
from examples.paper.steps import STEPS, steps

from phaze.errors import InputError
from phaze.hardware.library import load_chip
from phaze.search.answer import best_of
from phaze.search.baseline import scale_for
from phaze.search.run import search
from tests.conftest import Ran
from tests.search.test_study import SPACE

STAND_IN = load_chip("tpu-v4-paper", form="cores")
SMALL = [
    "search.gap=0.01",
    "training.microbatches=[1]",
    'hbm=["32 GiB"]',
    "training.recompute=[false]",
]


def test_every_model_has_an_experts_split() -> None:
    assert set(EXPERTS) == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_the_experts_split_never_beats_the_searched_one_and_the_page_says_by_how_much(
    model: str,
) -> None:
    found = rows(model, [STAND_IN])
    experts, best = (
        found[STAND_IN.name, kind].throughput_per_s for kind in ("experts", "searched")
    )
    assert experts is not None
    assert best is not None
    assert experts <= best * (1 + 1e-9)
    line = re.search(rf"^\| {model} \| (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    shown = [cell.strip() for cell in line[1].split("|")]
    assert shown[:2] == [f"{experts:,.4g}", f"{best / experts:.2f}"]


@pytest.mark.parametrize("model", MODELS)
def test_on_the_real_chip_and_its_torus_too(model: str) -> None:
    real = load_chip("tpu-v4", form="cores")
    found = rows(model, [real], REAL)
    experts, best = (found[real.name, kind].throughput_per_s for kind in ("experts", "searched"))
    assert best is not None
    assert experts is None or experts <= best * (1 + 1e-9)
    part = (
        PAGE.read_text(encoding="utf-8")
        .split("<!-- paper: real-ratios -->")[1]
        .split("<!-- end -->")[0]
    )
    line = re.search(rf"^\| {model} \| (.+)$", part, re.MULTILINE)
    assert line is not None
    shown = [cell.strip() for cell in line[1].split("|")]
    if experts is None:
        assert shown[0] == "does not fit"
    else:
        assert shown[:2] == [f"{experts:,.4g}", f"{best / experts:.2f}"]


def test_the_page_names_the_stack_of_the_real_chip_and_how_many_models_stay_whole() -> None:
    part = (
        PAGE.read_text(encoding="utf-8")
        .partition("## Against the real chip")[2]
        .partition("\n## ")[0]
    )
    job, _ = _job("model.toml", REAL)
    machine = job.models[0].training.machine
    assert (
        f"the stack that this cluster names, `{machine.stack.name.partition(' with ')[0]}`" in part
    )
    assert machine.stack.name == f"{machine.cluster.stack} with other families"
    chips = part.partition("<!-- paper: real-chips -->")[2].partition("<!-- end -->")[0]
    assert chips.count("| 1 x 1024 x 1 |") == 5 and "five of the eight models" in part
    means = re.search(r"^\| \*\*geometric mean\*\* \| 1 \| (.+)$", part, re.MULTILINE)
    assert means is not None
    searched_mean, own_mean = [means[1].replace("*", "").split(" | ")[at].strip() for at in (0, 4)]
    assert f"{searched_mean} alone, {own_mean} with a chip of its own" in part


def _never_below(model: str, folder: Path, settings: list[str]) -> Found:
    found = searched(folder, "model.toml", [one_model(model), *settings])
    base = rows(model, [STAND_IN], settings)[STAND_IN.name, "searched"].throughput_per_s
    assert base is not None
    assert found.document["models"][0]["throughput_per_s"] >= base * (
        1 - found.document["certificate"]["gap"]
    )
    return found


def test_the_best_chip_is_never_below_the_stand_in_and_a_finished_search_is_read(
    tmp_path: Path,
) -> None:
    first = _never_below("bert-large", tmp_path, SMALL)
    again = searched(tmp_path, "model.toml", [one_model("bert-large"), *SMALL])
    assert again == first


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_best_chip_of_the_whole_space_is_never_below_the_stand_in(
    model: str, tmp_path: Path
) -> None:
    _never_below(model, tmp_path, [])


def test_a_block_is_searched_alone(tmp_path: Path) -> None:
    found = searched(tmp_path, "block.toml", ["search.gap=0.05"])
    assert [layer["count"] for layer in found.document["models"][0]["layers"]] == [1]
    assert found.document["models"][0]["plan"]["pipeline"] == 1


def test_every_ablation_changes_the_study() -> None:
    assert len({settings for _, settings in ABLATIONS} | {()}) == len(ABLATIONS) + 1


def test_tables_hold_ratios_means_and_what_does_not_fit() -> None:
    table = ratio_table(
        [Line("a", (2.0, 4.0, None, 8.0, 2.0, 6.0, 6.0)), Line("b", (1.0,) * 7)], "base"
    )
    assert "| a | 2 | 2.00 | does not fit | 4.00 | 1.00 | 3.00 | 3.00 |" in table
    assert "| **geometric mean** | 1 | **1.41** | **1.00 (of 1)** | **2.00** |" in table
    assert "| all | 2.00 | 1.00 (of 1) |" in ablation_table(
        [Ablation("all", ((1.0, 4.0), (None, 1.0)))], ("x", "y")
    )
    assert chip_table({}).count("\n") == 2


def test_a_page_takes_its_tables_and_refuses_unknown_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "a\n<!-- paper: x -->\nold\n<!-- end -->\n<!-- paper: y -->\n<!-- end -->\n",
        encoding="utf-8",
    )
    put(page, {"x": "| 1 |\n"})
    put(page, {"x": "| 2 \\1 |\n"})
    said = page.read_text(encoding="utf-8")
    assert (
        said == "a\n<!-- paper: x -->\n| 2 \\1 |\n<!-- end -->\n<!-- paper: y -->\n<!-- end -->\n"
    )
    with pytest.raises(InputError, match="table z has 0 markers"):
        put(page, {"z": ""})


def _key(setting: str) -> str:
    return setting.partition("=")[0]


def test_every_step_to_today_s_hardware_changes_one_rule_of_the_one_before(
    phaze: Callable[..., Ran],
) -> None:
    first, *rest = [settings for _, settings in steps()]
    assert first == ()
    keys = [_key(setting) for _, own in STEPS for setting in own]
    assert len(set(keys)) == len(keys)
    assert [len(own) for _, own in STEPS].count(1) == len(STEPS) - 1
    # Network levels alone are refused: the stages of the paper lie on one flat link.
    levels, stages = STEPS[0][1]
    study = Path(PAGE.parent.parent / "examples" / "paper" / "model.toml")
    assert phaze("study", "check", study, "--set", levels).code == 2
    assert phaze("study", "check", study, "--set", stages).code == 0
    assert phaze("study", "check", study, "--set", levels, "--set", stages).code == 0
    assert rest[-1] == tuple(setting for _, own in STEPS for setting in own)


SEEN = [
    "search.gap=0.1",
    "training.devices=16",
    "training.batch=64",
    "training.microbatches=[1]",
    'hbm=["32 GiB"]',
]


def test_a_search_runs_under_every_step(tmp_path: Path) -> None:
    """Each changes what the block of a model takes, or is of what a single device has none of."""
    (tmp_path / "space.toml").write_text(SPACE)
    block = 'models=[{name="bert-large", part="block", widths=[2], sequence=128}]'
    rates = []
    for _, settings in steps():
        job, _ = _job("model.toml", [block, f'space="{tmp_path / "space.toml"}"', *SEEN, *settings])
        best = best_of(search(job, scale_for(job)))
        assert best is not None and job.rules == "icml24"
        rates.append(1 / best.ran[0].batch_s)
    pairs = dict(zip([name for name, _ in STEPS], pairwise(rates), strict=True))
    assert pairs["network levels"][1] > pairs["network levels"][0]
    for name in ("its step through HBM", "host time", "80 % of every peak"):
        assert pairs[name][1] < pairs[name][0]
    assert pairs["fused attention"][1] > pairs["fused attention"][0]
