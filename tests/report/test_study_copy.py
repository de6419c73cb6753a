"""The study on a page: copied into an empty folder it gives the same answer, to the byte."""

import shutil
import tomllib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from phaze.study.complete import complete_text
from phaze.study.load import study_of
from tests.cli.fuzz_own import CODE, traced_here
from tests.conftest import Ran
from tests.few_chips import few_chips

PRESETS = Path(__file__).parents[2] / "src" / "phaze" / "hardware" / "presets"
SPACE = few_chips("base.toml", "a few chips, '''quoted'''")
HEAD = """schema = "phaze.study/1"
name = "copied"
space = "own/space.toml"
hbm = ["32 GiB"]
"""
ICML24 = """rules = "icml24"
models = ["bert-large"]
[training]
devices = 8
batch = 32
sequence = 64
microbatches = [1]
[cluster]
link_bytes_per_s = 1e10
"""
CLUSTER = """rules = "cluster"
models = [{name = "own", graphs = ["own/one.json", "own/two.json"], weight = 2}, {name = "bert-large", sequence = 64}]
[training]
cluster = "own/cluster.toml"
stack = "own/stack.toml"
tokens = "1T"
terms = "own/terms.toml"
devices = 8
batch = 32
microbatches = [1]
[objective]
baseline = "base.toml"
"""


class Copied(HTMLParser):
    """The text that a page's button copies."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.text = False, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "pre" and ("aria-label", "study.toml") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        self.text += data if self.inside else ""


def _written(folder: Path, study: str, phaze: Callable[..., Ran]) -> None:
    own = folder / "own"
    own.mkdir()
    texts = {"space.toml": SPACE, "terms.toml": (PRESETS / "ownership/default.toml").read_text()}
    cluster = (PRESETS / "clusters/selene.toml").read_text()
    stack = (PRESETS / "stacks/megatron-core.toml").read_text()
    for name, text in {**texts, "cluster.toml": cluster, "stack.toml": stack}.items():
        (own / name).write_text(text, encoding="utf-8")
    chip = (PRESETS / "chips/tpu-v4-paper.toml").read_text()
    links = chip if "rules" not in study else (PRESETS / "chips/a100-80gb.toml").read_text()
    (folder / "base.toml").write_text(links, encoding="utf-8")
    sizes = "hidden=256,layers=4,heads=4,vocabulary=512,sequence=64"
    for name, tensor in (("one", 1), ("two", 2)):
        graph = phaze("graph", "--gpt", sizes, "--tensor", tensor, "--attention", "fused", "--json")
        (own / f"{name}.json").write_text(graph.out, encoding="utf-8")
    (folder / "study.toml").write_text(HEAD + study, encoding="utf-8")


def _copied_and_searched(
    page: Path, empty: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> str:
    """What the page's study gives in an empty folder; the text that was copied."""
    parser = Copied()
    parser.feed(page.read_text(encoding="utf-8"))
    empty.mkdir()
    monkeypatch.chdir(empty)
    Path("study.toml").write_text(parser.text, encoding="utf-8")
    ran = phaze("search", "study.toml", "--out", "run", "--workers", 1)
    assert ran.code == 0, ran.err
    return parser.text


@pytest.mark.parametrize(
    "study",
    [
        pytest.param(ICML24, id="icml24", marks=pytest.mark.slow),
        pytest.param(CLUSTER, id="cluster"),
    ],
)
def test_the_study_of_a_page_asks_the_same_in_an_empty_folder(
    study: str, tmp_path: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _written(tmp_path, study, phaze)
    ran = phaze("search", "study.toml", "--out", "run", "--workers", 1)
    assert ran.code == 0, ran.err
    page = tmp_path / "page.html"
    shutil.move(tmp_path / "run" / "report.html", page)
    for path in ("own", "base.toml", "study.toml"):
        shutil.rmtree(tmp_path / path) if (tmp_path / path).is_dir() else (tmp_path / path).unlink()
    text = _copied_and_searched(page, tmp_path / "empty", phaze, monkeypatch)
    assert "base.toml" in text and str(tmp_path) not in text
    result = Path("run/result.json").read_bytes()
    assert result == (tmp_path / "run" / "result.json").read_bytes()
    assert phaze("verify", "run").code == 0
    again = phaze("search", tmp_path / "run" / "study.toml", "--out", "again", "--workers", 1)
    assert again.code == 0 and Path("again/result.json").read_bytes() == result, (
        "nor does a run's own study need more"
    )


@pytest.mark.slow
def test_the_study_of_an_own_models_page_needs_no_code(
    tmp_path: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    _written(
        tmp_path,
        ICML24.replace('"bert-large"', '{model = "own.py:build", widths = [1, 2]}, "bert-large"'),
        phaze,
    )
    (tmp_path / "study.toml").write_text(
        (tmp_path / "study.toml").read_text().replace("sequence = 64\n", "")
    )
    (tmp_path / "own.py").write_text(CODE, encoding="utf-8")
    with traced_here():
        ran = phaze("search", "study.toml", "--allow-code", "--out", "run", "--workers", 1)
        assert ran.code == 0, ran.err
    shutil.rmtree(tmp_path / "cache")
    text = _copied_and_searched(
        tmp_path / "run/report.html", tmp_path / "empty", phaze, monkeypatch
    )
    assert "own-build-1.graph.json" in text and str(tmp_path) not in text
    assert Path("run/result.json").read_bytes() == (tmp_path / "run" / "result.json").read_bytes()


def test_any_text_of_a_file_comes_back_as_it_was() -> None:
    texts = {
        "a b.toml": "x = 'y'",
        "c": "'''\n\x7f\x01\\u00e9é\t",
        "": "",
        "d": "\n\nlast\n",
        "e": 'say "no"\\',
    }
    found = tomllib.loads(
        complete_text('schema = "phaze.study/1"\nname = "s"\nmodels = ["bert-large"]\n', texts)
    )
    assert found["files"] == texts
    del found["files"][""]
    assert study_of(found, "study").files == {path: text for path, text in texts.items() if path}
