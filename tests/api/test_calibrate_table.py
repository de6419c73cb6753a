"""A machine's own table of operators: what it determines, and that plans use the files."""

import json
import tomllib
from pathlib import Path

import pytest

import phaze
from phaze.errors import PhazeError
from phaze.evaluate.layers import Setting
from phaze.hardware.attention import attention_rates
from phaze.hardware.library import load_chip, load_cluster, load_stack

TABLE = Path(__file__).parent / "b200_table.json"
RUN = {
    "schema": "phaze.run/1", "llama": {
        "hidden": 8192, "layers": 4, "heads": 64, "kv_heads": 8, "mlp": 28672,
        "vocabulary": 128256, "sequence": 4096,
    },
    "devices": 8, "batch": 16, "attention": "fused",
    "plan": {
        "tensor": 2, "pipeline": 1, "data": 4, "microbatch": 1, "chunks": 1, "recompute": "none",
        "sequence_parallel": True, "zero": 1,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("machine") / "mine"
    answer = phaze.calibrate(
        TABLE, chip="b200", cluster="dgx-b200", stack="megatron-core", out=out
    ).document
    files: dict[str, str] = answer["files"]
    return files


def test_every_part_of_the_table_is_in_a_file(fitted: dict[str, str]) -> None:
    chip, cluster, stack = (
        tomllib.loads(Path(fitted[kind]).read_text(encoding="utf-8"))
        for kind in ("chip", "cluster", "stack")
    )
    assert stack["software_share"]["b200-fitted"] == pytest.approx(0.63, abs=0.05)
    assert 0.8 <= stack["grouped_share"]["b200-fitted"] <= 1
    assert 0 <= stack["expert_start"]["b200-fitted"] <= 5e-6
    assert {(row["pass"], row["head"]) for row in chip["measured"]["kernels"]} == {
        ("forward", 128), ("backward", 128)
    }  # fmt: skip
    assert 0 < cluster["levels"][0]["share"] < 1


def test_the_chips_own_kernels_count_instead_of_its_familys(fitted: dict[str, str]) -> None:
    chip = load_chip(fitted["chip"])
    setting = Setting(chip, load_cluster(fitted["cluster"], chip=chip), load_stack(fitted["stack"]))
    rates, family = setting.constants.attention, attention_rates("blackwell", "cudnn")
    assert rates is not None and family is not None and chip.measured.kernels is not None
    own = {row.pass_: row.share for row in chip.measured.kernels}
    assert rates.rate(False, 128).share == own["forward"]
    assert rates.rate(True, 128).share == own["backward"]
    assert own["forward"] == pytest.approx(family.rate(False, 128).share, rel=0.1)


def test_a_run_is_priced_with_the_files_and_near_what_all_public_rows_give(
    fitted: dict[str, str],
) -> None:
    bundled = {"chip": "b200", "cluster": "dgx-b200", "stack": "megatron-core"}
    ours, theirs = (phaze.price({**RUN, **machine})["batch_s"] for machine in (fitted, bundled))
    assert ours != theirs and ours == pytest.approx(theirs, rel=0.15)


def test_slower_products_make_the_run_slower(fitted: dict[str, str], tmp_path: Path) -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    for rows in table["products"]:
        rows["rows"] = [[*row[:4], 2 * row[4]] for row in rows["rows"]]
    slow = tmp_path / "slow.json"
    slow.write_text(json.dumps(table), encoding="utf-8")
    files = phaze.calibrate(
        slow, chip="b200", cluster="dgx-b200", stack="megatron-core", out=tmp_path / "slow"
    )["files"]
    assert phaze.price({**RUN, **files})["batch_s"] > phaze.price({**RUN, **fitted})["batch_s"]


def test_a_csv_says_nothing_of_clusters_and_stacks(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("operator,batch,m,n,k,elements,rows,seconds\n", encoding="utf-8")
    with pytest.raises(PhazeError, match="cluster"):
        phaze.calibrate(rows, chip="b200", cluster="dgx-b200")
    with pytest.raises(PhazeError, match="chip of cores"):
        phaze.calibrate(TABLE, chip="tpu-v2", cluster="dgx-b200", out=tmp_path / "x")
