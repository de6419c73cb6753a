"""More devices than a cluster has, and chips whose links are not the cluster's: told, obeyed or
refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InfeasibleError
from phaze.hardware.bundled import preset_names
from phaze.hardware.cluster import grown, same_links
from phaze.hardware.library import load_chip, load_cluster
from phaze.values import replace
from tests.conftest import Ran
from tests.keys.small import graph, preset, run, written
from tests.search.test_study import SPACE

Phaze = Callable[..., Ran]
JOB = (
    "--gpt", "hidden=64,layers=4,heads=4,vocabulary=512,sequence=32", "--batch", "4096",
    "--tensor", "1", "--microbatch", "1", "--zero", "0", "--chunks", "1",
)  # fmt: skip
STUDY = """schema = "phaze.study/1"
name = "tiny"
rules = "{rules}"
space = "{folder}/space.toml"
models = [{{name = "tiny", graphs = ["{folder}/graph-1-1.json"]}}]
[training]
cluster = "{cluster}"
devices = {devices}
batch = 8
microbatches = [1]
"""


def own_cluster(folder: Path, **changes: Any) -> str:
    return written(folder, "cluster.json", preset("clusters", "dgx-h100") | changes)


def own_chip(folder: Path, bandwidth: Any = "900 GB/s") -> str:
    chip = preset("chips", "h100") | {
        "name": "mine",
        "links": {"count": 18, "bandwidth": bandwidth},
    }
    return written(folder, "chip.json", chip)


def study(folder: Path, rules: str, cluster: str, devices: int, space: str = SPACE) -> Path:
    few = space.replace("rows = [32, 128]", "rows = [128]")
    (folder / "space.toml").write_text(few)
    path = folder / "study.toml"
    graph(folder)
    path.write_text(STUDY.format(rules=rules, folder=folder, cluster=cluster, devices=devices))
    return path


@pytest.mark.parametrize(
    ("cluster", "devices", "label"),
    [
        ("dgx-h100", 2048, "dgx-h100, enlarged to 256 nodes"),
        ("dgx-h100", 2049, "dgx-h100, enlarged to 257 nodes"),
        ("paper-flat", 2048, "paper-flat, enlarged to 2,048 devices"),
        ("tpu-v5e-pod", 512, "tpu-v5e-pod, enlarged to 2 pods"),
        ("dgx-h100", 1024, "dgx-h100"),
    ],
)
def test_a_bundled_cluster_grows_by_its_outermost_level_and_says_so(
    cluster: str, devices: int, label: str
) -> None:
    assert grown(load_cluster(cluster), devices, "devices").label == label


def test_a_torus_is_a_limit() -> None:
    pod = load_cluster("tpu-v4-pod")
    with pytest.raises(
        InfeasibleError, match=r"5,000 devices are requested and tpu-v4-pod has 4,096"
    ) as short:
        grown(replace(pod, levels=pod.levels[:1]), 5000, "--devices")
    assert short.value.document["shortage"]["levers"] == {
        "devices": 4096,
        "level": None,
        "level_size": None,
    }


def test_a_plan_on_an_enlarged_cluster_says_so_in_terminal_json_and_page(
    phaze: Phaze, tmp_path: Path
) -> None:
    job = ("plan", *JOB, "--chip", "h100", "--devices", "2048")
    ran = phaze(*job, "--json", "--html", tmp_path / "plan.html")
    label = "dgx-h100, enlarged to 256 nodes"
    assert json.loads(ran.out)["cluster"]["label"] == label
    assert label in (tmp_path / "plan.html").read_text()
    assert label in phaze(*job).out


def test_a_given_plan_on_an_enlarged_cluster_says_so(phaze: Phaze, tmp_path: Path) -> None:
    path = written(tmp_path, "run.json", run(devices=4096))
    assert (
        json.loads(phaze("plan", "--fixed", path, "--json").out)["cluster"]["enlarged_from"] == 3072
    )
    assert "selene, enlarged to 512 nodes" in phaze("plan", "--fixed", path).out


def test_a_cluster_file_of_the_users_own_is_a_limit_with_levers(
    phaze: Phaze, tmp_path: Path
) -> None:
    own = own_cluster(tmp_path)
    ran = phaze("plan", *JOB, "--chip", "h100", "--cluster", own, "--devices", "2048", "--json")
    assert ran.code == 3
    short = json.loads(ran.out)["shortage"]
    assert (short["short_of"], short["needed_devices"], short["available_devices"]) == (
        "devices",
        2048,
        1024,
    )
    assert short["levers"] == {"devices": 1024, "level": "fabric", "level_size": 256}
    larger = own_cluster(tmp_path, devices=2048)
    raw = json.loads(Path(larger).read_text())
    raw["levels"][1]["size"] = 256
    Path(larger).write_text(json.dumps(raw))
    assert phaze("plan", *JOB, "--chip", "h100", "--cluster", larger, "--devices", "2048").code == 0
    path = written(
        tmp_path, "run.json", run(chip="h100", cluster=own_cluster(tmp_path), devices=2048)
    )
    assert phaze("plan", "--fixed", path).code == 3


@pytest.mark.parametrize("rules", ["icml24", "cluster"])
def test_searches_comparisons_and_sweeps_beyond_a_bundled_cluster_say_so(
    phaze: Phaze, tmp_path: Path, rules: str
) -> None:
    path = study(tmp_path, rules, "paper-flat", 2048)
    label = "paper-flat, enlarged to 2,048 devices"
    ran = phaze("search", path, "--out", tmp_path / "run", "--workers", "1", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["cluster"]["label"] == label
    assert label in (tmp_path / "run" / "report.html").read_text()
    assert label in phaze("search", path, "--out", tmp_path / "run", "--workers", "1").out
    assert phaze("verify", tmp_path / "run").code == 0
    assert json.loads(phaze("compare", path, "--json").out)["cluster"] == label
    assert label in phaze("compare", path).out
    swept = (
        "sweep",
        path,
        "--over",
        "training.devices=1024,2048",
        "--out",
        tmp_path / "sweep",
        "--workers",
        "1",
    )
    points = json.loads(phaze(*swept, "--json").out)["points"]
    assert [point["cluster"] for point in points] == ["paper-flat", label]
    assert label in phaze(*swept).out and label in (tmp_path / "sweep" / "sweep.html").read_text()


@pytest.mark.parametrize("rules", ["icml24", "cluster"])
def test_a_study_beyond_a_cluster_file_of_the_users_own_is_nothing_feasible(
    phaze: Phaze, tmp_path: Path, rules: str
) -> None:
    own = written(tmp_path, "flat.json", preset("clusters", "paper-flat"))
    ran = phaze("study", "check", study(tmp_path, rules, own, 2048), "--json")
    assert ran.code == 3
    assert json.loads(ran.out)["shortage"]["levers"]["level_size"] == 2048


@pytest.mark.parametrize(
    "name", [name for name in preset_names("chips") if load_chip(name).cluster]
)
def test_a_bundled_chip_has_the_links_of_its_usual_cluster(name: str) -> None:
    chip = load_chip(name)
    assert same_links(chip, load_cluster(str(chip.cluster)))


def test_a_bundled_chip_on_another_cluster_is_told_whose_links_count(phaze: Phaze) -> None:
    job = ("plan", *JOB, "--chip", "mi300x", "--cluster", "dgx-h100", "--devices", "64")
    said = json.loads(phaze(*job, "--json").out)["cluster"]
    assert said["link_bytes_per_s"] == 450e9 and said["links"] is None
    said = json.loads(
        phaze(
            "plan", *JOB, "--chip", "gaudi3", "--cluster", "dgx-h100", "--devices", "64", "--json"
        ).out
    )
    assert said["cluster"]["links"] == (
        "the links of gaudi3 have 600 GB/s and level node of dgx-h100 runs at 450 GB/s: "
        "times are of the level"
    )


def test_an_own_chip_whose_links_contradict_the_cluster_is_refused(
    phaze: Phaze, tmp_path: Path
) -> None:
    chip = own_chip(tmp_path)
    ran = phaze("plan", *JOB, "--chip", chip, "--cluster", "dgx-h100", "--devices", "64")
    assert ran.code == 2
    assert (
        "links.bandwidth: the links of mine have 900 GB/s and level node of dgx-h100 "
        "runs at 450 GB/s"
    ) in ran.err
    path = written(tmp_path, "run.json", run(chip=chip, cluster="dgx-h100"))
    assert phaze("plan", "--fixed", path).code == 2
    own = SPACE.replace('base = "tpu-v4-paper"', 'base = "chip.json"')
    assert own != SPACE
    for rules in ("icml24", "cluster"):
        ran = phaze(
            "study",
            "check",
            study(tmp_path, rules, "paper-flat", 64, SPACE),
            "--set",
            f"objective.baseline={chip}",
        )
        assert ran.code == 2 and "objective.baseline" in ran.err


def test_a_level_of_bandwidth_chip_runs_at_the_chips_own_links(
    phaze: Phaze, tmp_path: Path
) -> None:
    levels = preset("clusters", "dgx-h100")["levels"]
    cluster = own_cluster(tmp_path, levels=[levels[0] | {"bandwidth": "chip"}, levels[1]])
    times = []
    for bandwidth in ("450 GB/s", "45 GB/s"):
        path = written(
            tmp_path, "run.json", run(chip=own_chip(tmp_path, bandwidth), cluster=cluster)
        )
        ran = phaze("plan", "--fixed", path, "--json")
        assert ran.code == 0, ran.err
        times.append(json.loads(ran.out)["batch_s"])
    assert times[1] > times[0]
    path = written(
        tmp_path, "run.json", run(chip=own_chip(tmp_path, "450 GB/s"), cluster="dgx-h100")
    )
    assert json.loads(phaze("plan", "--fixed", path, "--json").out)["batch_s"] == times[0]


def test_only_the_innermost_level_may_be_of_the_chip(phaze: Phaze, tmp_path: Path) -> None:
    levels = preset("clusters", "dgx-h100")["levels"]
    ran = phaze(
        "clusters", own_cluster(tmp_path, levels=[levels[0], levels[1] | {"bandwidth": "chip"}])
    )
    assert ran.code == 2 and "innermost" in ran.err
    free = preset("clusters", "dgx-h100")
    del free["chip"]
    path = written(
        tmp_path, "cluster.json", free | {"levels": [levels[0] | {"bandwidth": "chip"}, levels[1]]}
    )
    ran = phaze("clusters", path)
    assert ran.code == 2 and "'chip' and no chip is named" in ran.err
