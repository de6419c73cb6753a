"""phaze estimate, calibrate and validate --operators as a person meets them."""

import csv
import io
import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Protocol

import pytest

from phaze.cost.estimate import estimate_product
from phaze.cost.mapping import product
from phaze.hardware.library import load_chip


class Ran(Protocol):
    """What a command did; the fixture gives it."""

    code: int
    out: str
    err: str


Phaze = Callable[..., Ran]


def test_a_product_says_time_bound_mapping_traffic_and_energy(phaze: Phaze) -> None:
    ran = phaze("estimate", "--gemm", "1x4096x4096x4096", "--chip", "tpu-v4", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert (
        found["time_s"]
        == estimate_product(product(1, 4096, 4096, 4096), load_chip("tpu-v4")).time_s
    )
    assert (found["bound"], found["basis"], found["band"]) == ("array", "held", 0.2)
    assert 0.9 < found["share_of_peak"] < 0.95
    assert set(found["traffic_bytes"]) == {"core buffer", "global buffer", "hbm"}
    assert found["mapping"]["flow"] in ("os-mn", "os-nm", "ws", "is")
    assert found["energy_j"]["tensor_arrays"] > 0
    assert found["time_s"] == pytest.approx(found["start_up_s"] + max(found["waits_s"].values()))


def test_a_product_is_drawn(phaze: Phaze) -> None:
    ran = phaze("estimate", "--gemm", "4096x4096x4096", "--chip", "tpu-v4")
    assert ran.code == 0
    assert "waits for: array" in ran.out
    assert "a letter for each cluster of the first wave" in ran.out and "A · · ·" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_three_bases_from_best_to_plainest(phaze: Phaze) -> None:
    asked = ("estimate", "--gemm", "1x8192x8192x8192", "--chip", "a100-80gb", "--json")
    times = {
        basis: json.loads(phaze(*asked, "--basis", basis).out)
        for basis in ("calibrated", "datasheet", "ideal")
    }
    assert times["calibrated"]["basis"] == "calibrated"
    training = json.loads(phaze(*asked, "--load", "training").out)
    assert times["ideal"]["time_s"] < min(training["time_s"], times["datasheet"]["time_s"])
    assert training["time_s"] > times["calibrated"]["time_s"], "a chip alone holds a higher clock"
    assert 2 * 8192**3 / training["time_s"] == pytest.approx(257e12, rel=0.002), (
        "the rate that was measured"
    )


def test_a_chip_measured_in_part_says_so(phaze: Phaze) -> None:
    ran = phaze("estimate", "--gemm", "8x1024x1024x1024", "--chip", "gaudi3")
    assert "± 15%: one share measured, the rest data sheet" in ran.out


def test_a_vector_operator_and_a_collective(phaze: Phaze) -> None:
    found = json.loads(
        phaze("estimate", "--vector", "softmax:16777216:4096", "--chip", "a100-80gb", "--json").out
    )
    assert found["bound"] == "hbm"
    assert found["time_s"] == pytest.approx(82e-6, rel=0.2)
    ran = phaze("estimate", "--collective", "all_reduce:64MiB:8", "--cluster", "selene", "--json")
    assert json.loads(ran.out)["time_s"] == pytest.approx(579.6e-6, rel=0.1)
    assert json.loads(ran.out)["way"] == "ring"
    assert (
        phaze("estimate", "--collective", "all_to_all:1048576:16", "--cluster", "tpu-v4-pod").code
        == 0
    )
    assert phaze("estimate", "--vector", "gelu:1048576", "--chip", "tpu-v4").code == 0


@pytest.mark.parametrize(
    "shape", ["0x4x4x4", "1x1x1x1", "1x99991x1x31", "1x100000x100000x100000", "7x1x0x5"]
)
@pytest.mark.parametrize("chip", ["tpu-v4", "a100-80gb", "tpu-v4-paper"])
def test_odd_sizes_have_an_answer(phaze: Phaze, shape: str, chip: str) -> None:
    for arguments in (["--json"], []):
        assert phaze("estimate", "--gemm", shape, "--chip", chip, *arguments).code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing is requested; give one of --gemm"),
        (["--gemm", "1x2x3x4"], "--gemm: there is no chip; add --chip tpu-v4"),
        (["--gemm", "1x2", "--chip", "tpu-v4"], "'1x2' has 2 sizes; give BATCHxMxNxK"),
        (["--gemm", "1x2x3xq", "--chip", "tpu-v4"], "'q' is not a whole number"),
        (["--gemm", "1x2x3x4", "--chip", "tpu-v44"], "did you mean 'tpu-v4'"),
        (
            ["--gemm", "1x2x3x4", "--vector", "gelu:3", "--chip", "tpu-v4"],
            "--gemm and --vector is requested",
        ),
        (["--vector", "gelu", "--chip", "tpu-v4"], "'gelu' is not an operator"),
        (["--collective", "all_reduce:1MiB:8"], "there is no cluster; add --cluster selene"),
        (["--collective", "all_reduce:1:x:y", "--cluster", "selene"], "is not a collective"),
        (["--collective", "all_reduce:1Mib:8", "--cluster", "selene"], "'1Mib' is not a size"),
        (
            ["--collective", "all_reduce:1MiB:80000", "--cluster", "selene"],
            "selene has 1 to 3072 devices",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(phaze: Phaze, arguments: list[str], sentence: str) -> None:
    ran = phaze("estimate", *arguments)
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_measured_rows_are_validated(phaze: Phaze) -> None:
    ran = phaze("validate", "--operators", "--json")
    rows = json.loads(ran.out)["rows"]
    assert {row["group"].split(",")[0] for row in rows} == {
        "gemm",
        "softmax",
        "greatest product rate",
        "all_reduce",
        "layer of 22B",
    }
    assert "median error" in phaze("validate", "--operators").out


def measurements(scale: float) -> str:
    """Products on a tpu-v4 that is ``scale`` as fast in its arrays as the data sheet says, 10 us to
    start."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["operator", "batch", "m", "n", "k", "elements", "rows", "seconds"])
    for size in (512, 1024, 2048, 3072, 4096, 6144, 8192):
        seconds = 2 * size**3 / (275e12 * scale) + 10e-6
        writer.writerow(["gemm", 1, size, size, size, "", "", seconds])
    return text.getvalue()


def core_chip(folder: Path, name: str) -> Path:
    """The path of a bundled chip of cores."""
    path = folder / f"{name}-of-cores.toml"
    path.write_text(
        (files("phaze.hardware") / "presets" / "chips" / f"{name}.toml").read_text(encoding="utf-8")
    )
    return path


def test_a_chip_is_calibrated_from_measurements_and_its_file_used(
    phaze: Phaze, tmp_path: Path
) -> None:
    source, target = tmp_path / "rows.csv", tmp_path / "mine.toml"
    source.write_text(measurements(0.6))
    ran = phaze(
        "calibrate", source, "--chip", core_chip(tmp_path, "tpu-v4"), "--out", target, "--json"
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["calibration"]["matrix_share"] == pytest.approx(0.6, rel=0.05)
    assert found["median_error"]["cross_validated"] < 0.1 < found["median_error"]["before"]
    document = json.loads(phaze("chips", target, "--json").out)
    assert document["calibration"]["matrix_share"] == found["calibration"]["matrix_share"]
    assert "rows of" in document["sources"]["calibration.matrix_share"]
    used = json.loads(
        phaze("estimate", "--gemm", "1x8192x8192x8192", "--chip", target, "--json").out
    )
    assert used["basis"] == "calibrated"
    assert used["time_s"] == pytest.approx(2 * 8192**3 / (275e12 * 0.6), rel=0.05)


def test_a_chip_of_clusters_is_calibrated_by_its_clock(phaze: Phaze, tmp_path: Path) -> None:
    source, target = tmp_path / "rows.csv", tmp_path / "mine.toml"
    source.write_text(measurements(0.6))
    ran = phaze("calibrate", source, "--chip", "tpu-v4", "--out", target, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    # The measurements are of arrays at 0.6 of their peak, and these hold 0.95 of theirs at any
    # clock.
    assert found["calibration"]["clock_hz"] == pytest.approx(1.05e9 * 0.6 / 0.95, rel=0.05)
    assert found["median_error"]["cross_validated"] < 0.1 < found["median_error"]["before"]
    document = json.loads(phaze("chips", target, "--json").out)
    assert document["measured"]["clock_hz"] == found["calibration"]["clock_hz"]
    assert "rows of" in document["sources"]["measured.clock"]
    used = json.loads(
        phaze("estimate", "--gemm", "1x8192x8192x8192", "--chip", target, "--json").out
    )
    assert used["time_s"] == pytest.approx(2 * 8192**3 / (275e12 * 0.6), rel=0.05)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "the column 'batch' is missing"),
        (
            "operator,batch,m,n,k,elements,rows,seconds\ngemm,1,2,3,x,,,1\n",
            "line 2: k: 'x' is not a whole number",
        ),
        (
            "operator,batch,m,n,k,elements,rows,seconds\ngemm,1,2,3,4,,,0\n",
            "line 2: seconds: 0.0 is out of range",
        ),
        (
            "operator,batch,m,n,k,elements,rows,seconds\ngemm,1,2,3,4,,,\n",
            "line 2: seconds: '' is not a number",
        ),
        (
            "operator,batch,m,n,k,elements,rows,seconds\nsoftmx,,,,,8,2,1\n",
            "did you mean 'softmax'",
        ),
        ("operator,batch,m,n,k,elements,rows,seconds\ngemm,1,2,3,4,,,1\n", "give 4 rows of a kind"),
    ],
)
def test_bad_measurements_are_one_sentence(
    phaze: Phaze, tmp_path: Path, text: str, sentence: str
) -> None:
    source = tmp_path / "rows.csv"
    source.write_text(text)
    ran = phaze("calibrate", source, "--chip", "tpu-v4", "--out", tmp_path / "x.toml")
    assert ran.code == 2
    assert sentence in ran.err


def test_a_model_by_name_is_costed_as_its_graph_is(phaze: Phaze, tmp_path: Path) -> None:
    graph = phaze("graph", "--model", "bert-large", "--sequence", "128", "--json").out
    (tmp_path / "graph.json").write_text(graph, encoding="utf-8")
    by_file = phaze("estimate", "--graph", tmp_path / "graph.json", "--chip", "tpu-v4", "--json")
    by_name = phaze(
        "estimate", "--model", "bert-large", "--sequence", "128", "--chip", "tpu-v4", "--json"
    )
    assert by_file.code == by_name.code == 0 and by_file.out == by_name.out
    assert (
        phaze("estimate", "--model", "bert-large", "--microbatch", "0", "--chip", "tpu-v4").code
        == 2
    )
