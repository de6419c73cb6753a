"""A chip has one price: ``phaze compare`` of a run's own chip says what the run says, for every
kind of study."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.graph import store
from phaze.graph.zoo import load_family
from tests.conftest import Ran
from tests.search.made_cluster import MODELS
from tests.search.test_study import SPACE

STUDY = """schema = "phaze.study/1"
name = "tiny"
space = "{folder}/space.toml"
models = [{models}]
{top}
[training]
devices = 16
batch = 16
microbatches = [1, 2]
{training}
"""
BERT = '{name = "bert-large", sequence = 64, widths = [1, 2]}'
LONG = '{name = "bert-large", widths = [1]}'
BLOCK = '{name = "bert-large", sequence = 64, widths = [1, 2], part = "block"}'
OWN = '{{name = "gpt", graphs = ["{folder}/gpt-1.json", "{folder}/gpt-2.json"]}}'
BOTH = OWN + (
    ', {{name = "llama", weight = 2.0, graphs = ["{folder}/llama-1.json", '
    '"{folder}/llama-2.json"]}}'
)
ONE = SPACE.replace("rows = [32, 128]", "rows = [128]").replace('"2 MiB", ', "")
LINKS = ONE.replace("[core_buffers]", 'links = ["25 GB/s", "100 GB/s"]\n[core_buffers]')
MEASURED = (
    ONE.replace('base = "tpu-v4-paper"', 'base = "a100-80gb"')
    .replace("area_of", "smaller_with_one_core")
    .replace('"tpu-v4-paper"', 'true\nmost_area = "800 mm2"')
)
CLUSTER = 'cluster = "selene"'
KINDS: dict[str, dict[str, str]] = {
    "icml24": {"models": BERT},
    "links are an axis": {"space": LINKS},
    "links are an axis, several models": {"space": LINKS, "models": BOTH},
    "energy": {"top": 'objective = {kind = "throughput_per_watt"}'},
    "energy and links": {"space": LINKS, "top": 'objective = {kind = "energy_delay"}'},
    "money": {"top": 'objective = {kind = "throughput_per_usd"}'},
    "several models, arithmetic": {"models": BOTH, "top": 'objective = {mean = "arithmetic"}'},
    "several models, least regret": {"models": BOTH, "top": 'objective = {mean = "regret"}'},
    "a block": {"models": BLOCK},
    "graphs of one's own": {},
    "another baseline": {"models": BOTH, "top": 'objective = {baseline = "a100-80gb"}'},
    "cluster": {"models": BERT, "top": 'rules = "cluster"', "training": CLUSTER},
    "cluster, several models": {"models": BOTH, "top": 'rules = "cluster"', "training": CLUSTER},
    "cluster, graphs of one's own": {"top": 'rules = "cluster"', "training": CLUSTER},
    "cluster, energy": {
        "top": 'rules = "cluster"\nobjective = {kind = "throughput_per_watt"}',
        "training": CLUSTER,
    },
    "cluster, a measured base and another baseline": {
        "models": BOTH,
        "space": MEASURED,
        "top": 'rules = "cluster"\nobjective = {baseline = "h100"}',
        "training": CLUSTER,
    },
}


def _searched(folder: Path, phaze: Callable[..., Ran], kind: dict[str, str]) -> dict[str, Any]:
    (folder / "space.toml").write_text(kind.get("space", ONE))
    for name, (family, sizes) in MODELS.items():
        for width in (1, 2):
            model = load_family(family, sizes, tensor=width)
            (folder / f"{name}-{width}.json").write_text(store.dumps(model))
    models = (
        kind.get("models", OWN)
        .replace("{folder}", str(folder))
        .replace("{{", "{")
        .replace("}}", "}")
    )
    top, training = kind.get("top", ""), kind.get("training", "")
    top = top if "rules" in top else f'rules = "icml24"\n{top}'
    (folder / "study.toml").write_text(
        STUDY.format(folder=folder, models=models, top=top, training=training)
    )
    ran = phaze(
        "search", folder / "study.toml", "--out", folder / "run", "--workers", "1", "--json"
    )
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def _compared(phaze: Callable[..., Ran], *arguments: str | Path) -> dict[str, Any]:
    ran = phaze("compare", *arguments, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


# Everyday tests have one of each price: flat link, own links, joules, a block, graphs of one's own,
# both rules.
SLOW = {
    "money",
    "energy and links",
    "several models, arithmetic",
    "several models, least regret",
    "another baseline",
}
SLOW |= {"cluster, several models", "cluster, energy", "icml24"}
CASES = [
    pytest.param(kind, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name, kind in KINDS.items()
]


@pytest.mark.parametrize("kind", CASES)
def test_the_chip_of_a_run_is_worth_what_the_run_says(
    kind: dict[str, str], phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    result = _searched(tmp_path, phaze, kind)
    rows = [
        row
        for row in _compared(phaze, "--run", tmp_path / "run")["rows"]
        if row["placement"] == "searched"
    ]
    of_run = {row["model"]: row for row in rows if row["chip"] == result["chip"]["name"]}
    for model in result["models"]:
        row = of_run[model["name"]]
        assert row["throughput_per_s"] == pytest.approx(model["throughput_per_s"], rel=1e-9)
        assert (row["pipeline"], row["data"], row["tensor"], row["microbatch"]) == (
            *(model["plan"][name] for name in ("pipeline", "data", "tensor")),
            model["microbatch"],
        )
    objective = result["objective"]
    if "baseline" in objective and "baseline_values" in objective:
        base = [row["value"] for row in rows if row["chip"] == objective["baseline"]]
        assert base == pytest.approx(objective["baseline_values"], rel=1e-9)
    if len(of_run) == 1:
        assert next(iter(of_run.values()))["value"] == pytest.approx(objective["score"], rel=1e-9)


def test_a_chip_keeps_the_links_that_it_was_found_with_in_a_study_without_them(
    phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    result = _searched(tmp_path, phaze, KINDS["links are an axis"])
    (tmp_path / "space.toml").write_text(ONE)
    row = _compared(phaze, tmp_path / "study.toml", "--run", tmp_path / "run")["rows"][-1]
    assert row["link_bytes_per_s"] == result["chip"]["link_bytes_per_s"]
    assert row["throughput_per_s"] == pytest.approx(
        result["models"][0]["throughput_per_s"], rel=1e-9
    )


def test_a_measured_chip_and_a_searched_one_have_the_same_constants(
    phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    top, training = (
        'rules = "cluster"\nobjective = {baseline = "h100"}',
        CLUSTER + '\nstack = "ideal"',
    )
    kind = {"models": LONG, "top": top, "training": training}
    _searched(tmp_path, phaze, kind)
    run = ("--run", tmp_path / "run")

    def bases(document: dict[str, Any]) -> dict[str, tuple[str, str, float]]:
        return {
            row["chip"]: (row["basis"], row["constants_of"], row["band"])
            for row in document["rows"]
        }

    same, own = _compared(phaze, *run), _compared(phaze, *run, "--basis", "own")
    assert set(bases(same).values()) == {("datasheet", "tpu-v4-paper", 0.2)}
    basis, constants_of, band = bases(own)["h100"]
    assert (basis, constants_of) == ("fitted", "h100"), "one product and one fit are no calibration"
    assert 0.05 < band < 0.2, "the band of held-back runs on measured chips"
    faster = [
        a["throughput_per_s"] / b["throughput_per_s"]
        for a, b in zip(same["rows"], own["rows"], strict=True)
    ]
    assert max(faster) > 1.05 and min(faster) == 1.0, (
        "the data sheet promises the H100 more than it reached"
    )
    of_h100 = _compared(phaze, *run, "--basis", "baseline")
    assert {basis[:2] for basis in bases(of_h100).values()} == {("fitted", "h100")}
    assert {basis[2] for name, basis in bases(of_h100).items() if name != "h100"} == {0.2}, (
        "borrowed constants"
    )
    assert {basis[0] for basis in bases(_compared(phaze, *run, "--basis", "ideal")).values()} == {
        "ideal"
    }
    ran = phaze("compare", *run, "--basis", "own")
    assert "the basis is unequal" in " ".join(ran.out.split()) and f"± {band:.0%}" in ran.out
    assert phaze("compare", *run, "--basis", "mine").code == 2


def test_rules_icml24_know_ideal_constants_only(phaze: Callable[..., Ran]) -> None:
    small = (
        "--rules",
        "icml24",
        "--set",
        "training.microbatches=[8]",
        "--set",
        "training.devices=8",
    )
    ran = phaze("compare", "--model", "bert-large", *small, "--basis", "own")
    assert ran.code == 2 and "--basis" in ran.err
