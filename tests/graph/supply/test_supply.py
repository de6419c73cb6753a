"""A user's own model, traced in processes of its own and kept: a second command needs no torch."""

import io
import json
import os
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.graph.store import document_of
from phaze.graph.supply import cache as caching
from phaze.graph.supply import import_path
from phaze.graph.supply import supply as supplying
from phaze.graph.supply.cache import GraphCache
from phaze.graph.supply.point import Facts, RankPoint
from phaze.graph.supply.supply import Bundled, SuppliedGraph, TracedSupply, supply_of
from phaze.graph.supply.tracing import EndedError, Workshop
from phaze.graph.torch.printed import Printed
from phaze.graph.torch.worker import TracingProcess, answer, own_files, plain_call
from phaze.graph.zoo import load_model

MODEL = """
import os, sys, time
import torch
from torch import nn
from torch.nn import functional as F
from widths import HIDDEN

print("a model that prints")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(HIDDEN, 100)

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def build(microbatch=1, sequence=32):
    os.write(1, b"also from below Python\\n")
    with torch.device("meta"):
        net = Net()
    tokens = torch.zeros(microbatch, sequence, dtype=torch.long, device="meta")
    return net, tokens, lambda logits: F.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def ends():
    sys.exit(3)


def dies():
    os._exit(4)


def hangs():
    time.sleep(3600)


def wrong():
    return Net(), torch.zeros(1, 8), None


def needy(size):
    return Net(), torch.zeros(1, 8, dtype=torch.long)


def asks():
    return input("which size? ")


def killed():
    os.kill(os.getpid(), 9)


def unbuilt():
    class Broken(Net):
        def forward(self, tokens):
            print("about to fail")
            raise RuntimeError("the kernel is not built: run make")

    return Broken(), torch.zeros(2, 8, dtype=torch.long)


def compiled():
    return torch.compile(Net()), torch.zeros(2, 8, dtype=torch.long)


def frozen():
    return Net().requires_grad_(False), torch.zeros(1, 8, dtype=torch.long)


def driven():
    return Net().cuda(), torch.zeros(1, 8, dtype=torch.long)


def captured():
    net, tokens = Net(), torch.zeros(1, 8, dtype=torch.long)
    return net, tokens, lambda logits: F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
"""


def test_why_a_model_has_no_graph_at_a_point_is_kept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, asked = GraphCache(tmp_path), list[int]()
    known = kept.remember("my.py:build", Facts("my.py:build", 32, None, False, (1, 2)), [])

    def refuse(
        shop: Workshop, points: Sequence[RankPoint], *rest: object
    ) -> dict[RankPoint, InputError]:
        asked.append(len(points))
        slow = EndedError("my.py:build", "its code did not end within 1 s")
        return {
            point: slow if point.tensor == 1 else InputError("my.py", "2 heads", "use 1")
            for point in points
        }

    monkeypatch.setattr(Workshop, "trace", refuse)
    monkeypatch.setattr(supplying, "need_torch", lambda *rest, **more: None)
    points = [RankPoint(width, 1, 32, "eager", False) for width in (1, 2)]
    for _ in range(2):
        failed = TracedSupply("my.py:build", kept, workers=1, cached=known).prepare(points)
        assert [str(failed[point]) for point in points][1] == "my.py: 2 heads; use 1."
    assert asked == [2, 1], "a process that was stopped is asked again, a refusal is not"


def test_a_kept_graph_is_read_as_it_was_written_and_checked_where_somebody_changed_it(
    tmp_path: Path,
) -> None:
    kept, point = GraphCache(tmp_path), RankPoint(1, 1, 128, "eager", False)
    known = kept.remember("my.py:build", Facts("my.py:build", 128, None, False, (1,)), [])
    graph = load_model("bert-large", 1, 1, 128)
    kept.save(known, point, document_of(graph))
    assert kept.load(known, point) == graph
    path = kept.path(known, point)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(',"calls":[[0,', ',"calls":[[99,', 1), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text and kept.load(known, point) is None
    path.with_suffix(".sum").unlink()
    path.write_text(text, encoding="utf-8")
    assert kept.load(known, point) == graph, "a graph without its digest is checked, and right"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "widths.py").write_text("HIDDEN = 64\n", encoding="utf-8")
    yield folder


def _point(microbatch: int = 1, sequence: int = 32) -> RankPoint:
    return RankPoint(1, microbatch, sequence, "eager", False)


def test_an_own_model_is_traced_at_every_point_and_then_needs_no_torch(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place, kept = f"{own / 'model.py'}:build", GraphCache(tmp_path)
    seen: list[tuple[int, int]] = []
    first = TracedSupply(place, kept, workers=1)
    points = [_point(1), _point(2), _point(2, 16)]
    first.prepare(points, lambda done, total, what: seen.append((done, total)))
    first.close()
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert (
        first.facts.sequence == 32 and not first.facts.fixed and first.facts.widths == (1, 2, 4, 8)
    )
    assert [first.model(point).microbatch for point in points] == [1, 2, 2]
    assert first.model(points[2]).sequence == 16 and len(first.model(points[0]).calls) == 5
    assert capfd.readouterr().out == ""

    monkeypatch.setattr(caching, "versions", lambda: {"torch": None, "transformers": None})
    monkeypatch.setattr(Workshop, "open", lambda self: pytest.fail("a second command traced again"))
    again = TracedSupply(place, kept, workers=1)
    again.prepare(points)
    assert [again.model(point) for point in points] == [first.model(point) for point in points]

    monkeypatch.setattr(caching, "versions", lambda: {"torch": "1.0", "transformers": None})
    assert kept.cached_model(place) is None
    monkeypatch.undo()
    assert kept.cached_model(place) is not None
    (own / "widths.py").write_text("HIDDEN = 32\n", encoding="utf-8")
    assert kept.cached_model(place) is None, "a file that the model's file imports has changed"
    (own / "widths.py").write_text("HIDDEN = 64\n", encoding="utf-8")
    assert kept.cached_model(place) is not None

    assert [(one.graphs > 0, one.bytes > 0) for one in kept.entries()] == [(True, True)]
    for file in (tmp_path / "graphs").iterdir():
        file.write_text("{", encoding="utf-8")
    known = kept.cached_model(place)
    assert known is not None and kept.load(known, points[0]) is None, (
        "what cannot be read is traced anew"
    )
    assert kept.clear() == 1 + 2 * 3 and not kept.entries(), (
        "the model's file, three graphs and their digests"
    )


@pytest.mark.parametrize("way", ["another PYTHONPATH", "another folder", "another environment"])
def test_the_cache_tells_two_packages_of_one_name_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A package is what Python would import here: the file is a part of its name in the cache."""
    for folder in ("first", "second"):
        (tmp_path / folder / "netbuilder").mkdir(parents=True)
        (tmp_path / folder / "netbuilder" / "__init__.py").write_text(
            "raise SystemExit('this code ran')\n", "utf-8"
        )
        (tmp_path / folder / "netbuilder" / "net.py").write_text(
            f"WHERE = '{folder}'\n", encoding="utf-8"
        )

    def goes_to(folder: str) -> None:
        if way == "another PYTHONPATH":
            monkeypatch.setenv("PYTHONPATH", str(tmp_path / folder))
        elif way == "another folder":
            monkeypatch.chdir(tmp_path / folder)
        else:
            monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / folder))

    kept, place = GraphCache(tmp_path / "cache"), "netbuilder.net:build"
    goes_to("first")
    assert import_path.module_file("netbuilder.net") == str(
        tmp_path / "first" / "netbuilder" / "net.py"
    )
    kept.remember(
        place,
        Facts(place, 32, None, False, (1,)),
        [str(tmp_path / "first" / "netbuilder" / "net.py")],
    )
    assert kept.cached_model(place) is not None
    goes_to("second")
    assert kept.cached_model(place) is None, "the answer would be another package's model"
    goes_to("first")
    assert kept.cached_model(place) is not None


def test_the_code_of_a_package_that_is_installed_is_watched_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "installed_net.py").write_text("def build(): ...\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    import importlib

    importlib.import_module("installed_net")
    assert str(folder / "installed_net.py") in own_files("installed_net:build")
    assert str(folder / "installed_net.py") not in own_files(f"{__file__}:build"), (
        "what is not its own"
    )


@pytest.mark.parametrize(
    ("function", "microbatch", "said"),
    [
        ("ends", 1, "the function raised SystemExit: 3 (model.py:43)"),
        ("needy", 1, "the function must be given 'size'"),
        ("captured", 2, "to match target batch_size (8). (model.py:"),
        ("frozen", 1, "its result depends on no parameter that is trained"),
        ("driven", 1, "cuda"),
        (
            "unbuilt",
            1,
            "the model raised RuntimeError: the kernel is not built: run make (model.py:74)",
        ),
    ],
)
def test_code_that_fails_keeps_its_message_and_its_line(
    own: Path, function: str, microbatch: int, said: str
) -> None:
    bench, place = TracingProcess(), f"{own / 'model.py'}:{function}"
    found = answer(bench, {"open": place})
    if "facts" in found:
        found = answer(bench, _point(microbatch, 8).document())
    assert said in found["problem"]
    assert function != "captured" or found["remedy"].startswith(
        "let the function take microbatch=1"
    )
    assert function != "unbuilt" or found["remedy"] == "", "another microbatch would not help"
    assert function != "driven" or "a trace needs no GPU" in found["remedy"]
    assert found["where"] == place


def test_a_compiled_model_is_traced_as_it_was_written(own: Path) -> None:
    bench = TracingProcess()
    assert "facts" in answer(bench, {"open": f"{own / 'model.py'}:compiled"})
    graph = answer(bench, _point(1, 8).document())["graph"]
    assert [call[1] for call in graph["calls"]] == [
        "prologue",
        "blocks.0",
        "blocks.1",
        "blocks.2",
        "epilogue",
    ]


def test_a_checkpoint_in_the_code_is_a_plain_call() -> None:
    assert plain_call(lambda x, scale: x * scale, 3, use_reentrant=False, scale=2) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("dies", "the function raised SystemExit: os._exit(4) (model.py:47)"),
        ("killed", "the process that traces it ended (exit code -9)"),
        ("hangs", "its code did not end within 8 s (it is in model.py:51)"),
        ("asks", "the function raised EOFError: EOF when reading a line (model.py:63)"),
    ],
)
def test_code_that_dies_or_hangs_is_one_sentence(
    own: Path, tmp_path: Path, function: str, said: str
) -> None:
    place = f"{own / 'model.py'}:{function}"
    supply = TracedSupply(place, GraphCache(tmp_path), workers=1)
    supply.workshop = Workshop(place, 1, limit_s=8.0 if function == "hangs" else 100.0)
    with pytest.raises(InputError) as fault:
        supply.model(_point())
    supply.close()
    assert said in str(fault.value) and "\n" not in str(fault.value)


def test_every_place_of_a_model_that_prints_is_shown_once_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "talks.py"
    file.write_text(
        "def talk(out, words):\n    print(words, file=out)\n    print(1, 2, file=out)\n",
        encoding="utf-8",
    )
    talks: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), talks)
    shown = io.StringIO()
    out = Printed(shown)
    for words in ("first", "second"):
        talks["talk"](out, words)
    assert shown.getvalue().splitlines() == ["talks.py:2 prints: first", "talks.py:3 prints: 1 2"]


def test_what_is_named_decides_where_a_model_comes_from(tmp_path: Path) -> None:
    from phaze.graph import store

    assert supply_of("bert-large") == Bundled("bert-large")
    file = tmp_path / "g.json"
    graph = load_model("bert-large", microbatch=2)
    file.write_text(json.dumps(store.document_of(graph)), encoding="utf-8")
    found = supply_of(str(file))
    assert isinstance(found, SuppliedGraph) and found.facts.widths == (1,)
    assert found.model(RankPoint(1, 2, 512, "eager", False)) == graph
    with pytest.raises(InputError, match="this graph is of tensor 1, microbatch 2"):
        found.model(RankPoint(1, 1, 512, "eager", False))
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert isinstance(supply_of(str(tmp_path)), TracedSupply)
    assert isinstance(supply_of("some.module:function", allow_code=True), TracedSupply)
    with pytest.raises(InputError, match="did you mean 'bert-large'"):
        supply_of("bert-larg")


def test_the_cache_lies_where_the_user_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path))
    assert caching.cache_folder() == tmp_path
    monkeypatch.delenv("PHAZE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert caching.cache_folder() == tmp_path / "phaze"
    assert os.environ.get("PHAZE_CACHE") is None
