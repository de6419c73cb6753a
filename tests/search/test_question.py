"""A run's folder holds its whole question: other files are another question, and lost files do not
matter."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.graph import store
from phaze.graph.zoo import load_model
from phaze.hardware.bundled import preset_names
from tests.conftest import Ran
from tests.search.test_study import SPACE

PRESETS = Path(__file__).parents[2] / "src" / "phaze" / "hardware" / "presets"
STUDY = """schema = "phaze.study/1"
name = "tiny"
rules = "{rules}"
space = "space.toml"
models = [{{name = "tiny", graphs = ["g.json"]}}, {{name = "bert-large", sequence = 64}}]
[training]
cluster = "cluster.toml"
devices = 8
batch = 16
microbatches = [1]
{stack}
[objective]
kind = "throughput_per_usd"
baseline = "baseline.toml"
"""


def _preset(kind: str, name: str) -> str:
    assert name in preset_names(kind)
    return (PRESETS / kind / f"{name}.toml").read_text()


def _written(folder: Path, rules: str = "icml24") -> Path:
    """A study whose every reference is a relative path, one behind the other."""
    chip = _preset("chips", "tpu-v4-paper").replace(
        'technology = "paper-22nm"', 'technology = "technology.toml"'
    )
    assert "technology.toml" in chip
    texts = {
        "space.toml": SPACE.replace('base = "tpu-v4-paper"', 'base = "base.toml"').replace(
            'area_of = "tpu-v4-paper"', 'area_of = "area.toml"'
        ),
        "base.toml": chip,
        "area.toml": chip,
        "baseline.toml": chip,
        "technology.toml": _preset("technologies", "paper-22nm"),
        "cluster.toml": _preset("clusters", "paper-flat").replace(
            'stack = "ideal"', 'stack = "stack.toml"'
        ),
        "stack.toml": _preset("stacks", "ideal"),
        "g.json": store.dumps(load_model("bert-large", sequence=32)),
        "study.toml": STUDY.format(
            rules=rules, stack='stack = "stack.toml"' if rules == "cluster" else ""
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


FILES = (
    "space.toml",
    "base.toml",
    "area.toml",
    "baseline.toml",
    "technology.toml",
    "cluster.toml",
    "g.json",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of such a study, in ``run`` beside its files."""
    from phaze.cli.answer import exit_code_of
    from phaze.cli.main import app

    folder, before = _written(tmp_path_factory.mktemp("question")), Path.cwd()
    os.chdir(folder)
    try:
        assert exit_code_of(app, ["search", "study.toml", "--out", "run", "--workers", "1"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all of it, and we are in it."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def test_a_run_needs_nothing_outside_its_folder(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Ran]
) -> None:
    for name in (*FILES, "study.toml", "stack.toml"):
        (copy / name).unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = copy / "run"
    for arguments in (
        ("verify", run, "--all"),
        ("report", run),
        ("export", run, "--to", "csv"),
        ("export", run, "--to", "perfetto"),
        ("explain", run),
        ("compare", "--model", "bert-large", "--run", run),
    ):
        ran = phaze(*arguments)
        assert ran.code == 0, (arguments, ran.err, ran.out)


def test_the_same_command_goes_on_and_says_the_same(copy: Path, phaze: Callable[..., Ran]) -> None:
    before = {
        path.name: path.read_bytes() for path in (copy / "run").iterdir() if path.suffix == ".json"
    }
    assert set(before) == {"problem.json", "graphs.json", "certificate.json", "result.json"}
    assert phaze("search", "study.toml", "--out", "run").code == 0
    assert {
        path.name: path.read_bytes() for path in (copy / "run").iterdir() if path.suffix == ".json"
    } == before


@pytest.mark.parametrize("name", FILES)
def test_a_change_of_any_file_that_a_study_names_is_another_question(
    copy: Path, name: str, phaze: Callable[..., Ran]
) -> None:
    path = copy / name
    if name == "g.json":
        path.write_text(store.dumps(load_model("bert-large", sequence=48)))
    else:
        path.write_text(_other(path))
    if name == "cluster.toml":  # the links of a chip agree with the cluster's
        for chip in ("base.toml", "baseline.toml"):
            (copy / chip).write_text((copy / chip).read_text().replace('"4 GiB/s"', '"14 GiB/s"'))
    result = (copy / "run" / "result.json").read_bytes()
    ran = phaze("search", "study.toml", "--out", "run")
    assert ran.code == 2, ran.out
    assert "another study" in ran.err and " and was " in ran.err and "give another --out" in ran.err
    assert (copy / "run" / "result.json").read_bytes() == result


def _other(path: Path) -> str:
    """The file with its first number of a kind that matters changed."""
    text = path.read_text()
    changes = {
        "space.toml": ("rows = [32, 128]", "rows = [32, 64]"),
        "technology.toml": ("wafer_usd = ", "wafer_usd = 1"),
        "cluster.toml": ('bandwidth = "', 'bandwidth = "1'),
    }
    old, new = changes.get(path.name, ('clock = "1.05', 'clock = "1.15'))
    assert old in text, text
    return text.replace(old, new)


def test_the_same_values_from_other_files_are_the_same_question(
    copy: Path, phaze: Callable[..., Ran]
) -> None:
    """Where a file lies, and what it says of its sources, changes no answer."""
    (copy / "moved").mkdir()
    text = (copy / "study.toml").read_text()
    for name in ("space.toml", "g.json", "cluster.toml"):
        shutil.copy(copy / name, copy / "moved" / name)
        text = text.replace(f'"{name}"', f'"{copy}/moved/{name}"')
    (copy / "study.toml").write_text(text)
    ran = phaze("search", "study.toml", "--out", "run")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    "name", ["problem.json", "graphs.json", "files/names.json", "files/1-space.toml"]
)
def test_a_changed_or_missing_part_of_the_question_is_seen(
    copy: Path, name: str, phaze: Callable[..., Ran]
) -> None:
    path = copy / "run" / name
    text = path.read_text()
    if name.endswith("s.json") or name == "problem.json":
        path.write_text(text.replace("3", "4", 1) if name != "files/names.json" else "{}")
        assert phaze("verify", "run").code in (1, 2)
    path.unlink()
    assert phaze("verify", "run").code in (1, 2)


def test_a_copy_that_leads_out_of_the_folder_is_not_read(
    copy: Path, phaze: Callable[..., Ran]
) -> None:
    names = json.loads((copy / "run" / "files" / "names.json").read_text())
    for lead in ("../study.toml", str(copy / "space.toml"), 3):
        (copy / "run" / "files" / "names.json").write_text(
            json.dumps({**names, "space.toml": lead})
        )
        ran = phaze("verify", "run")
        assert ran.code == 2 and "keeps no copy" in ran.err


def test_under_rules_cluster_the_cluster_and_stack_are_part_of_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Ran]
) -> None:
    monkeypatch.chdir(_written(tmp_path, "cluster"))
    assert phaze("search", "study.toml", "--out", "run", "--workers", "1").code == 0
    stack = (tmp_path / "stack.toml").read_text()
    (tmp_path / "stack.toml").write_text(stack.replace("host_time = 0.0", "host_time = 1e-6"))
    ran = phaze("search", "study.toml", "--out", "run")
    assert ran.code == 2 and "stack" in ran.err, ran.err
    (tmp_path / "stack.toml").unlink()
    (tmp_path / "cluster.toml").unlink()
    assert phaze("verify", "run").code == 0
