"""Studies: defaults, settings, graph files, refusals with their path, and the command end to end on
a small space."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import phaze as phaze_package
from phaze.errors import InputError
from phaze.graph import store
from phaze.graph.zoo import load_model
from phaze.search.task import SearchJob
from phaze.study.load import job_of, study_of
from phaze.study.raw import default_study, with_settings
from tests.conftest import Ran

SPACE = """
schema = "phaze.space/1"
name = "few"
title = "a few chips"
base = "tpu-v4-paper"
[axes]
tensor_cores = [1, 8]
rows = [32, 128]
columns = [128]
vector_cores = [1, 4]
lanes = "columns"
global_buffer = ["2 MiB", "32 MiB"]
[core_buffers]
least = "1 KiB"
bytes_per_unit = 16
[keep]
area_of = "tpu-v4-paper"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of a graph in a file, on a few chips."""
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "graph.json").write_text(store.dumps(load_model("bert-large", sequence=64)))
    raw = f"""schema = "phaze.study/1"
rules = "icml24"
name = "tiny"
space = "{tmp_path}/space.toml"
models = [{{name = "tiny", graphs = ["{tmp_path}/graph.json"]}}]
[training]
devices = 8
batch = 16
"""
    (tmp_path / "study.toml").write_text(raw)
    return tmp_path / "study.toml"


def test_a_search_writes_its_folder_and_says_the_same_again(
    study: Path, phaze: Callable[..., Ran]
) -> None:
    first = phaze("search", study, "--out", study.parent / "run", "--json")
    assert first.code == 0, first.err
    result = json.loads(first.out)
    assert result["schema"] == "phaze.result/1"
    closed = result["certificate"]["closed"]
    assert sum(closed.values()) - closed["area"] == result["certificate"]["chips"]
    assert result["certificate"]["gap"] <= 1e-4
    again = phaze("search", study, "--out", study.parent / "run", "--json")
    assert again.out == first.out
    shown = phaze("search", study, "--out", study.parent / "run")
    assert shown.code == 0 and "Certificate" in shown.out


def test_a_space_with_every_rule_is_searched_shown_and_verified(
    study: Path, phaze: Callable[..., Ran]
) -> None:
    (study.parent / "space.toml").write_text(SPACE + "most_power = 100\nmost_usd = 800\n")
    ran = phaze(
        "search",
        study,
        "--out",
        study.parent / "run",
        "--set",
        "objective.kind=throughput_per_usd",
        "--json",
    )
    assert ran.code == 0, ran.err
    closed = json.loads(ran.out)["certificate"]["closed"]
    assert closed["power"] > 0 and closed["power"] + closed["cost"] + closed["area"] < 16
    assert "TDP" in (study.parent / "run" / "report.html").read_text()
    assert phaze("verify", study.parent / "run", "--all").code == 0
    assert phaze("search", study, "--out", study.parent / "fast").code == 0
    assert phaze("verify", study.parent / "fast", "--all").code == 0


def test_another_study_in_the_folder_is_refused(study: Path, phaze: Callable[..., Ran]) -> None:
    assert phaze("search", study, "--out", study.parent / "run").code == 0
    other = phaze("search", study, "--out", study.parent / "run", "--set", "training.batch=8")
    assert other.code == 2 and "another study" in other.err


def test_a_check_counts_what_would_be_searched(study: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("study", "check", study, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["chips"] == 16
    assert "good study" in phaze("study", "check", study).out


@pytest.mark.parametrize(
    ("setting", "path"),
    [
        ("training.bach=3", "training: unknown key"),
        ("search.gap=2", "search.gap"),
        ("objective.kind=speed", "objective.kind"),
        (
            "training.cluster=dgx-h100",
            "training.cluster: dgx-h100 has 2 levels and the stack icml24 has stages",
        ),
        ("training.precision=fp8", "training.precision"),
        ("stack.hosttime=1", "stack: unknown key"),
        ("stack.schedule=companions", "stack: schedule"),
        (
            "training.chunks=[2]",
            "training.chunks: [2] are stated and the stack icml24 does not interleave",
        ),
        ("name.x=1", "name"),
        ("nothing", "nothing"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_path(
    study: Path, phaze: Callable[..., Ran], setting: str, path: str
) -> None:
    ran = phaze("study", "check", study, "--set", setting)
    assert ran.code == 2 and path in ran.err


@pytest.mark.parametrize(
    "setting",
    [
        "training.zero=2",
        "cost.basis=calibrated",
        'training.headroom="6%"',
        "training.attention=best",
        "training.sequence_parallel=best",
        'training.recompute=["best"]',
        "training.stack=megatron-core",
        "stack.schedule=links",
        'cluster.levels.flat.latency="5 us"',
    ],
)
def test_the_paper_s_setting_names_defaults_that_a_study_may_change(
    study: Path, phaze: Callable[..., Ran], setting: str
) -> None:
    ran = phaze("study", "check", study, "--set", setting)
    assert ran.code == 0, ran.err


def test_the_paper_s_network_may_have_levels_where_stages_need_no_single_link(
    study: Path, phaze: Callable[..., Ran]
) -> None:
    levels = ("--set", "training.cluster=dgx-h100")
    ran = phaze("study", "check", study, *levels)
    assert ran.code == 2 and "stages = 'layers'" in ran.err
    assert phaze("study", "check", study, *levels, "--set", "stack.stages=layers").code == 0


def test_settings_are_toml_values() -> None:
    raw: dict[str, Any] = {"training": {"batch": 1}}
    found = with_settings(
        raw, ["training.batch=2", "hbm=[1, 2]", "objective.kind=throughput", "search.gap=1e-3"]
    )
    assert found == {
        "training": {"batch": 2}, "hbm": [1, 2], "objective": {"kind": "throughput"},
        "search": {"gap": 1e-3}
    }  # fmt: skip
    assert raw == {"training": {"batch": 1}}


def test_a_search_of_many_models_has_a_short_name() -> None:
    from phaze.api.load_study import traced_study

    names = [f"a-model-with-a-long-name-{number}" for number in range(8)]
    raw, _ = traced_study(None, names, [])
    assert raw["name"] == "8-models" and raw["models"] == names
    assert traced_study(None, ["a", "b"], [])[0]["name"] == "a-b"


def test_the_default_question_is_a_reticle_of_today_and_icml24_what_the_paper_asked() -> None:
    def asked(job: SearchJob) -> tuple[Any, ...]:
        task = job.models[0]
        training, microbatches = task.training, {graph.microbatch for graph in task.graphs}
        machine, recompute = (
            training.machine,
            {configuration.recompute for configuration in task.configurations},
        )
        assert microbatches == {1, 2, 4, 8} and job.baseline is not None
        named = (
            job.space.name,
            machine.cluster.name,
            machine.stack.name,
            job.baseline.name,
            training.optimizer,
        )
        gibs = tuple(size >> 30 for size in job.hbm_bytes)
        return *named, training.devices, training.batch, training.headroom, recompute, job.gap, gibs

    today = job_of(study_of(default_study("bert-large"), ""))
    assert today.space.own_links and today.rules == "cluster"
    assert asked(today) == (
        "n5-reticle", "dgx-h100", "megatron-core", "h100", "adam", 1024, 1024, 0.06, {"best"}, 1e-3,
        (64, 80, 96)
    )  # fmt: skip
    paper = job_of(study_of(default_study("bert-large", "icml24"), ""))
    assert asked(paper) == (
        "paper", "paper-flat", "icml24", "tpu-v4-paper", "sgd", 1024, 4096, 0.0, {"none", "full"},
        1e-4, (32, 64, 80)
    )  # fmt: skip


def test_a_cluster_that_a_study_names_has_its_own_devices() -> None:
    study = default_study("bert-large") | {"training": {"cluster": "nvl72"}}
    job = job_of(study_of(study, ""))
    assert job.cluster is not None and job.models[0].training.devices == job.cluster.devices != 1024


def test_an_unknown_model_is_refused(phaze: Callable[..., Ran]) -> None:
    with pytest.raises(InputError, match="bert-larg"):
        job_of(study_of(default_study("bert-larg"), ""))
    assert phaze("search").code == 2


def test_without_residency_a_large_buffer_is_worth_nothing(
    study: Path, phaze: Callable[..., Ran]
) -> None:
    def best(*setting: str) -> Any:
        out = study.parent / f"run{len(setting)}"
        ran = phaze("search", study, "--out", out, *setting, "--json")
        assert ran.code == 0, ran.err
        return json.loads(ran.out)

    kept, sent = best(), best("--set", "cost.residency=false")
    assert kept["chip"]["global_buffer_bytes"] > sent["chip"]["global_buffer_bytes"]
    assert kept["models"][0]["throughput_per_s"] > sent["models"][0]["throughput_per_s"]
    refused = phaze("study", "check", study, "--set", "cost.residency=maybe")
    assert refused.code == 2 and "cost.residency" in refused.err


def test_nothing_asks_for_the_name_of_a_setting_but_the_reader_of_profiles() -> None:
    """``rules`` names defaults; what the paper did is values of a stack and of a placement
    problem."""
    asked = re.compile(r"""\brules(["']\]|["']\))? *(==|!=|in) *["'(]""")
    source = Path(phaze_package.__file__).parent
    named = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if asked.search(path.read_text("utf-8"))
    }
    assert named == {"placement/profile.py"}
