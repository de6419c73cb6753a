"""Looking at processes, caches and the installation."""

import json
from pathlib import Path
from typing import Any

import pytest

from phaze.cli import doctor
from phaze.graph.supply.cache import GraphCache
from phaze.graph.supply.point import Facts
from tests.cli.test_commands import Phaze


def test_every_technology_is_listed_and_shown_with_its_sources(phaze: Phaze) -> None:
    listed = json.loads(phaze("technologies", "--json").out)["technologies"]
    assert {"n5", "n7", "paper-22nm"} <= {one["name"] for one in listed}
    kinds = [(one["name"], one["schema"]) for one in listed]
    assert len(set(kinds)) == len(kinds)
    shown_as = set()
    for name in sorted({one["name"] for one in listed}):
        document = json.loads(phaze("technologies", name, "--json").out)
        # A name of both versions: that of chips of cores, and that of chips of clusters within it.
        for whole in (
            document,
            *([document.pop("of_clusters")] if "of_clusters" in document else []),
        ):
            assert whole.pop("sources") and isinstance(whole.pop("notes"), str)
            assert whole in listed
            shown_as.add((whole["name"], whole["schema"]))
    assert shown_as == set(kinds)
    shown = phaze("technologies", "n5")
    assert shown.code == 0 and "pJ a byte" in shown.out and "Sources" in shown.out
    assert phaze("technologies", "n6").code == 2


def test_the_cache_is_shown_and_cleared(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path))
    assert "nothing is kept yet" in phaze("cache").out
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "a.json").write_text('{"name": "mine.py:build"}', encoding="utf-8")
    (tmp_path / "graphs" / "notes.txt").write_text("not ours", encoding="utf-8")
    found = json.loads(phaze("cache", "--json").out)
    assert found["folder"] == str(tmp_path) and found["models"][0]["model"] == "mine.py:build"
    assert json.loads(phaze("cache", "--clear", "--json").out)["removed_files"] == 1
    assert (tmp_path / "graphs" / "notes.txt").exists()


def test_what_is_missing_is_named_with_what_needs_it(
    phaze: Phaze, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(phaze("doctor", "--json").out)
    assert all(one["version"] for one in found["packages"] if one["extra"] is None)
    installed = doctor._installed
    monkeypatch.setattr(
        doctor, "_installed", lambda name: None if name == "torch" else installed(name)
    )
    shown = phaze("doctor")
    assert shown.code == 0 and ".[torch]" in shown.out and "tracing your own model" in shown.out


def test_what_is_no_file_of_the_cache_is_neither_read_nor_removed(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path))
    (tmp_path / "graphs" / "folder.json").mkdir(parents=True)
    (tmp_path / "graphs" / "gone.json").symlink_to("nowhere")
    (tmp_path / "graphs" / "odd.json").write_text('{"name": "\\u001b[31mred"}', encoding="utf-8")
    shown = phaze("cache")
    assert shown.code == 0 and "\x1b" not in shown.out
    assert phaze("doctor").code == 0
    assert json.loads(phaze("cache", "--clear", "--json").out)["removed_files"] == 1
    assert (tmp_path / "graphs" / "folder.json").is_dir() and (
        tmp_path / "graphs" / "gone.json"
    ).is_symlink()


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"/dev/zero": "0" * 64}},
        {"facts": {"sequence": 0}},
        {"facts": {"sequence": 1e300}},
        {"facts": {"widths": []}},
        {"facts": {"widths": [0]}},
        {"facts": {"longest": -1}},
        {"facts": []},
    ],
    ids=str,
)
def test_a_cached_model_that_cannot_be_one_is_traced_anew(
    change: dict[str, Any], tmp_path: Path
) -> None:
    kept, place = GraphCache(tmp_path), str(tmp_path / "own.py:build")
    (tmp_path / "own.py").write_text("")
    kept.remember(place, Facts(place, 16, 32, False, (1, 2)), [str(tmp_path / "own.py")])
    assert kept.cached_model(place) is not None
    (path,) = (tmp_path / "models").iterdir()
    good = json.loads(path.read_text(encoding="utf-8"))
    changed = {
        key: {**good[key], **value} if isinstance(value, dict) else value
        for key, value in change.items()
    }
    path.write_text(json.dumps({**good, **changed}), encoding="utf-8")
    assert kept.cached_model(place) is None
