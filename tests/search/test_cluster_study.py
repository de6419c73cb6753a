"""Studies under rules ``cluster`` from the command line: searched, verified, shown, compared,
exported, refused."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from phaze.search.baseline import scale_for
from phaze.search.chips import enumerate_space
from phaze.search.reference_path import reference_path_of
from phaze.search.view_check import check_text, regenerated
from phaze.study.load import question_in
from tests.conftest import Ran
from tests.search.test_study import SPACE
from tests.search.test_verify import changed_documents, finished

STUDY = """schema = "phaze.study/1"
name = "tiny"
rules = "cluster"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 64, widths = [1, 2]}}]
[training]
cluster = "selene"
devices = 16
batch = 32
microbatches = [1, 2]
sequence_parallel = "best"
[search]
gap = 0.0001
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return finished(tmp_path_factory.mktemp("tiny"), STUDY)


def test_a_good_run_holds_and_says_what_it_is(run: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("verify", run, "--all", "--json")
    assert ran.code == 0, ran.out
    result = json.loads((run / "result.json").read_text())
    model = result["models"][0]
    assert model["plan"]["rules"] == "cluster" and model["plan"]["order"] in ("pipeline", "data")
    assert sum(model["plan"]["breakdown"].values()) == pytest.approx(model["batch_s"], rel=1e-9)
    assert sum(model["energy"].values()) == pytest.approx(model["energy_j"], rel=1e-9)
    assert result["certificate"]["gap"] <= 1e-4
    assert "recompute none" in " ".join(
        phaze("search", run.parent / "study.toml", "--out", run).out.split()
    )
    assert "Times under rules cluster" in (run / "report.html").read_text()


def test_any_change_of_the_result_is_seen(run: Path) -> None:
    good, job = json.loads((run / "result.json").read_text()), question_in(run).job
    true = regenerated(reference_path_of(job, scale_for(job), enumerate_space(job.space)), good)
    assert (
        isinstance(true, dict)
        and check_text((run / "result.json").read_text(), good, good | true, "result.json") == []
    )
    for path, bad in list(changed_documents(good["models"][0]))[::7]:
        whole = {**good, "models": [bad]}
        assert check_text(json.dumps(whole, indent=2) + "\n", whole, good | true, "result.json"), (
            path
        )


def test_the_plan_is_that_of_phaze_plan(phaze: Callable[..., Ran], tmp_path: Path) -> None:
    one = SPACE.replace("rows = [32, 128]", "rows = [128]")
    (tmp_path / "space.toml").write_text(one)
    study = STUDY.format(folder=tmp_path).replace("selene", "paper-flat")
    (tmp_path / "study.toml").write_text(study)
    # A space of cores compares with the chip of cores of that name; a plan takes the one of
    # clusters, but for a file.
    own = (files("phaze.hardware") / "presets" / "chips" / "tpu-v4.toml").read_text(
        encoding="utf-8"
    )
    assert '\nbandwidth = "270 GB/s"' in own
    (tmp_path / "own.toml").write_text(
        own.replace('\nbandwidth = "270 GB/s"', '\nbandwidth = "4 GiB/s"')
    )
    ran = phaze("compare", tmp_path / "study.toml", "--chip", "tpu-v4", "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    searched = next(
        row for row in rows if row["placement"] == "searched" and row["chip"] == "tpu-v4"
    )
    chip = tmp_path / "own.toml"
    arguments = [
        "--model",
        "bert-large",
        "--chip",
        chip,
        "--cluster",
        "paper-flat",
        "--devices",
        "16",
    ]
    arguments += ["--batch", "32", "--sequence", "64", "--tensor", "1,2", "--microbatch", "1,2"]
    plan = json.loads(phaze("plan", *arguments, "--json").out)
    assert searched["throughput_per_s"] == pytest.approx(32 / plan["batch_s"], rel=1e-12)
    for row in rows:
        if row["throughput_per_s"] is not None and row["chip"] == "tpu-v4":
            assert row["throughput_per_s"] <= searched["throughput_per_s"] * (1 + 1e-9)


def test_a_run_is_exported(run: Path, phaze: Callable[..., Ran]) -> None:
    flags = phaze("export", run, "--to", "megatron")
    assert flags.code == 0 and "--tensor-model-parallel-size" in flags.out, flags.err


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("cost.residency=false", ""),
        ("cluster.link_bytes_per_s=1e9", "selene has 2 levels, each with its own bandwidth"),
        ('models=[{name="bert-large", part="block"}]', ""),
        ("training.stack=megatrn", "did you mean"),
        ("training.zero=4", "training.zero"),
        ("training.zero=best", ""),
        ("training.chunks=[2, 4]", ""),
        ("training.chunks=[0]", "training.chunks"),
        ("training.cluster=tpu-v4-pod", ""),
    ],
)
def test_what_the_rules_do_not_know_is_refused(
    run: Path, phaze: Callable[..., Ran], setting: str, said: str
) -> None:
    ran = phaze("study", "check", run.parent / "study.toml", "--set", setting)
    assert (ran.code == 2 and said in ran.err) if said else ran.code == 0, ran.err


def test_chunks_beside_a_stack_that_does_not_interleave_are_refused(
    run: Path, phaze: Callable[..., Ran]
) -> None:
    given = (
        "study",
        "check",
        run.parent / "study.toml",
        "--set",
        "training.stack=nanotron",
        "--set",
    )
    ran = phaze(*given, "training.chunks=[2]")
    assert (
        ran.code == 2
        and "training.chunks: [2] are stated and the stack nanotron does not interleave" in ran.err
    )
    assert phaze(*given, "training.chunks=[1]").code == 0


def test_links_as_an_axis_are_the_innermost_level(run: Path, phaze: Callable[..., Ran]) -> None:
    space = run.parent / "links.toml"
    space.write_text(SPACE.replace("[axes]", '[axes]\nlinks = ["1 GB/s", "100 GB/s"]'))
    ran = phaze("study", "check", run.parent / "study.toml", "--set", f"space={space}")
    assert ran.code == 0, ran.err


def test_nothing_that_fits_says_what_is_short(run: Path, phaze: Callable[..., Ran]) -> None:
    study = run.parent / "study.toml"
    ran = phaze("search", study, "--set", 'hbm=["64 MiB"]', "--out", run.parent / "small", "--json")
    assert ran.code == 3 and json.loads(ran.out)["feasible"] is False
    assert json.loads(ran.out)["needed_bytes"] > 64 * 2**20


def test_the_rules_are_also_an_option(run: Path, phaze: Callable[..., Ran]) -> None:
    study = run.parent / "study.toml"
    same = phaze("search", study, "--rules", "cluster", "--out", run, "--json")
    assert same.code == 0 and json.loads(same.out)["models"][0]["plan"]["rules"] == "cluster"
    wrong = phaze("search", study, "--rules", "icml42")
    assert wrong.code == 2 and "rules" in wrong.err


@pytest.mark.slow
def test_a_search_tries_both_kinds_of_attention_and_leaves_its_headroom_free(
    tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    # With 30 % of 8 GiB a device holds less of the model than it would with all of it.
    study = STUDY.replace(
        "[training]", 'hbm = ["8 GiB"]\n[training]\nattention = "best"\nheadroom = "70%"'
    )
    study = study.replace("widths = [1, 2]", "widths = [1]").replace(
        "microbatches = [1, 2]", "microbatches = [1]"
    )
    folder = finished(tmp_path, study)
    model = json.loads((folder / "result.json").read_text())["models"][0]
    assert model["attention"] == "fused"
    assert model["memory_left"]["headroom"] == 0.7
    assert model["memory_left"]["left_share"] >= 0.7
    assert phaze("verify", folder, "--all").code == 0
    again = ("--headroom", "0", "--out", tmp_path / "loose", "--workers", "1", "--json")
    loose = phaze("search", tmp_path / "study.toml", *again)
    assert loose.code == 0, loose.err
    free = json.loads(loose.out)["models"][0]
    assert free["memory_left"]["left_share"] < 0.7
    assert free["batch_s"] < model["batch_s"]
