"""Compiled kernels of an older version of the sources: seen, removed, and said in a sentence."""

import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

from phaze.cli import answer
from phaze.cli.stale import is_stale, remove_caches

SOURCE = "from numba import njit\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"


class Gone:
    """A class that a cache names, renamed afterwards."""


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kept_kernel", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def _fault_of_an_old_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Exception:
    """What reading a cache raises whose pickles name a class that is gone."""
    path = folder / "kept_kernel.py"
    path.write_text(SOURCE)
    assert _loaded(path).twice(2) == 4
    (index,) = (folder / "__pycache__").glob("*.nbi")
    with index.open("rb") as file:
        version = pickle.load(file)  # noqa: S301  (written by the line above)
        stamp, _ = pickle.load(file)  # noqa: S301
    with index.open("wb") as file:
        pickle.dump(version, file)
        pickle.dump((stamp, pickle.dumps({Gone: "old.nbc"})), file)
    monkeypatch.delattr(sys.modules[__name__], "Gone")
    with pytest.raises(AttributeError) as raised:
        _loaded(path).twice(2)
    return raised.value


def test_a_cache_that_names_what_is_gone_is_seen_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = _fault_of_an_old_cache(tmp_path, monkeypatch)
    assert is_stale(fault)
    assert remove_caches(tmp_path) == 2
    assert _loaded(tmp_path / "kept_kernel.py").twice(3) == 6
    assert not is_stale(AttributeError("of something else"))
    assert not is_stale(ValueError("of something else"))


def test_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = _fault_of_an_old_cache(tmp_path, monkeypatch)
    monkeypatch.setattr(answer, "__file__", str(tmp_path / "cli" / "answer.py"))
    assert answer._code_of(fault, False) == 1
    assert "run the command again" in capsys.readouterr().err
    assert list((tmp_path / "__pycache__").glob("*.nb*")) == []
