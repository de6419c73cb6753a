"""``phaze new``: every file that it writes goes through its command as it is, within the goal that
was stated."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from phaze.hardware.bundled import preset_names
from tests.cli.test_commands import Phaze

GOALS = [("n3", 800, 1000), ("n5", 800, 700), ("n7", 600, 400), ("paper-22nm", 300, 300)]


def made(phaze: Phaze, *arguments: object) -> str:
    """Write a file; the command that it is to be tried with."""
    found = phaze("new", *arguments, "--json")
    assert found.code == 0, found.err
    return str(json.loads(found.out)["try"])


@pytest.mark.parametrize("kind", ["space", "cluster", "stack", "chip"])
def test_a_new_file_goes_through_its_command(
    phaze: Phaze, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for node, area, power in GOALS:
        tried = made(
            phaze,
            kind,
            "--node",
            node,
            "--area",
            area,
            "--power",
            f"{power} W",
            "--out",
            f"{node}.toml",
        )
        found = phaze(*shlex.split(tried)[1:], "--json")
        assert found.code == 0, found.err
        if kind == "chip":
            chip = json.loads(found.out)
            assert (
                0.5 * area < chip["area_mm2"] <= area
                or 0.5 * power < chip["design_power_w"] <= power
            )
            assert chip["area_mm2"] <= area and chip["design_power_w"] <= power


def test_a_new_study_and_the_space_beside_it_are_good(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for node, area, power in GOALS:
        file = f"{node}.toml"
        made(
            phaze,
            "study",
            "--node",
            node,
            "--area",
            area,
            "--power",
            power,
            "--model",
            "bert-large",
            "--out",
            file,
        )
        checked = phaze("study", "check", file, "--json")
        assert checked.code == 0 and json.loads(checked.out)["chips"] > 0, checked.err
        space = tomllib.loads(Path(f"{node}-space.toml").read_text(encoding="utf-8"))
        # Today's nodes have chips of clusters; the paper's has its own template.
        assert space["schema"] == ("phaze.space/1" if node == "paper-22nm" else "phaze.space/2")


def test_a_new_space_has_dies_of_at_most_a_reticle(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = phaze("new", "space", "--area", 900)
    assert found.code == 2 and "858 mm2" in found.err and not Path("my-space.toml").exists()


def test_a_new_study_keeps_every_model_that_is_named(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["llama2-7b", "bert-large", "gpt2-xl"]
    made(phaze, "study", *(word for name in names for word in ("--model", name)))
    assert tomllib.loads(Path("my-study.toml").read_text(encoding="utf-8"))["models"] == names
    again = phaze("new", "study", "--model", "gpt2-xl", "--model", "gpt2-xl", "--out", "twice.toml")
    assert again.code == 2 and "named twice" in again.err and not Path("twice.toml").exists()


def test_every_bundled_process_of_clusters_can_be_started_from(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for space in preset_names("silicon/spaces"):
        node = space.removesuffix("-reticle")
        made(phaze, "study", "--node", node, "--out", f"{node}.toml")
        assert phaze("study", "check", f"{node}.toml").code == 0


@pytest.mark.slow
def test_a_new_study_is_searched_as_it_is(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for node, area, power in GOALS:
        tried = made(
            phaze,
            "study",
            "--node",
            node,
            "--area",
            area,
            "--power",
            power,
            "--out",
            f"{node}.toml",
        )
        found = phaze(*shlex.split(tried)[1:], "--json")
        assert found.code == 0, found.err
        chip = json.loads(found.out)["chip"]
        assert chip["area_mm2"] <= area and chip["design_power_w"] <= power


@pytest.mark.slow
def test_a_new_model_is_traced(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    found = phaze(*shlex.split(made(phaze, "model"))[1:], "--json")
    assert found.code == 0 and json.loads(found.out)["sequence"] == 2048, found.err


def test_nothing_is_overwritten_and_a_wrong_goal_is_one_sentence(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my-stack.toml").write_text("mine", encoding="utf-8")
    refused = phaze("new", "stack")
    assert refused.code == 2 and "already exists" in refused.err
    assert Path("my-stack.toml").read_text(encoding="utf-8") == "mine"
    for arguments in (
        ("ship",),
        ("chip", "--node", "n4"),
        ("chip", "--area", "big"),
        ("chip", "--out", "chip.py"),
    ):
        found = phaze("new", *arguments)
        assert found.code == 2 and found.err.count("\n") == 1, arguments
    small = phaze("new", "chip", "--area", 5)
    assert small.code == 3 and "hold no chip" in small.err


@pytest.mark.parametrize(
    "file",
    [
        "chäp.toml",
        f"{'a' * 80}.toml",
        "two words.toml",
        "-first.toml",
        'it\'s "mine".toml',
        "UPPER.v2.toml",
    ],
)
def test_whatever_a_file_is_called_it_runs_with_what_it_names(
    phaze: Phaze, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in ("stack", "study"):
        tried = made(phaze, kind, "--model", "bert-large", "--out", file)
        check = shlex.split(tried.replace("phaze search", "phaze study check"))[1:]
        text = Path(file).read_text(encoding="utf-8")
        assert tried.removeprefix("phaze ") in text, "the comment names the same command"
        assert phaze(*check).code == 0, phaze(*check).err
        Path(file).unlink()


def test_a_new_study_is_for_a_model_that_there_is(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for model in ("bert", 'a"b', "a\nb"):
        found = phaze("new", "study", "--model", model)
        assert (
            found.code == 2 and found.err.count("\n") == 1 and not Path("my-study.toml").exists()
        ), found.err
    assert phaze("new", "study", "--model", 'my "own".py:build').code == 0
    assert tomllib.loads(Path("my-study.toml").read_text(encoding="utf-8"))["models"] == [
        'my "own".py:build'
    ]
