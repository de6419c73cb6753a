"""``phaze graph`` and ``phaze models`` as a person meets them."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from phaze.graph import store
from phaze.graph.zoo import ZOO, load_model


class Ran(Protocol):
    """What a command did; the fixture gives it."""

    code: int
    out: str
    err: str


Phaze = Callable[..., Ran]
FOUR = ("--tensor", 4, "--microbatch", 2)
GPT = "hidden=4096,layers=36,heads=32,vocabulary=51200"


def test_a_named_model_as_a_document(phaze: Phaze) -> None:
    ran = phaze("graph", "--model", "llama2-7b", *FOUR, "--json")
    assert ran.code == 0
    assert ran.out == store.dumps(load_model("llama2-7b", 4, 2)) + "\n"
    assert json.loads(ran.out)["summary"]["layers"][1]["count"] == 32


def test_a_named_model_as_a_table(phaze: Phaze) -> None:
    out = phaze(
        "graph", "--model", "llama2-7b", *FOUR, "--attention", "fused", "--sequence-parallel"
    ).out
    assert "TP 4, microbatch 2, sequence 4096, fused attention, sequence parallel" in " ".join(
        out.split()
    )
    assert "model.layers.0" in out
    assert "64 x reduce-scatter of 64 MiB" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_fusion_leaves_fewer_operators_and_the_same_work(phaze: Phaze) -> None:
    summaries = [
        json.loads(phaze("graph", "--model", "bert-large", "--fusion", level, "--json").out)[
            "summary"
        ]
        for level in ("none", "elementwise", "full")
    ]
    counts = [found["layers"][1]["backward_operators"] for found in summaries]
    assert counts[0] > counts[1] > counts[2]
    assert len({found["backward_flops"] for found in summaries}) == 1


def test_a_family_by_its_sizes(phaze: Phaze) -> None:
    ran = phaze("graph", "--gpt", GPT, "--sequence", 2048, "--tensor", 4, "--json")
    summary = json.loads(ran.out)["summary"]
    assert summary["layers"][1]["count"] == 36
    sizes = "hidden=4096,layers=32,heads=32,vocabulary=32000,mlp=11008,sequence=4096"
    llama = json.loads(phaze("graph", "--llama", sizes, "--json").out)
    assert llama["summary"]["parameters"] == load_model("llama2-7b").parameters


def test_a_graph_file_is_shown_again(phaze: Phaze, tmp_path: Path) -> None:
    text = phaze("graph", "--model", "vit-large", "--json").out
    (tmp_path / "vit.json").write_text(text)
    assert phaze("graph", "--model", tmp_path / "vit.json", "--json").out == text


WRONG: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("no model is given", ()),
    ("--model and --gpt are given together", ("--model", "gpt3-175b", "--gpt", GPT)),
    ("unknown model 'bert-lage'; did you mean 'bert-large'", ("--model", "bert-lage")),
    (
        "bert-large has 512 positions, 1024 were requested",
        ("--model", "bert-large", "--sequence", 1024),
    ),
    ("gpt: sequence: this size is missing", ("--gpt", GPT)),
    ("--gpt: 'hidden' is not a size", ("--gpt", "hidden")),
    ("did you mean 'heads'", ("--gpt", GPT.replace("heads", "head"), "--sequence", 64)),
    ("hidden: 'many' is not", ("--gpt", GPT.replace("4096", "many"), "--sequence", 64)),
    ("heads 32 of gpt does not divide by 3", ("--gpt", GPT, "--sequence", 64, "--tensor", 3)),
    ("there is no such file", ("--model", "none.json")),
    (
        "--attention: unknown attention 'flash'; allowed: eager, fused",
        ("--model", "bert-large", "--attention", "flash"),
    ),
    (
        "--fusion: unknown fusion 'all'; allowed: chains, elementwise, full, none",
        ("--model", "bert-large", "--fusion", "all"),
    ),
)


@pytest.mark.parametrize(("sentence", "arguments"), WRONG)
def test_bad_input_is_one_sentence(phaze: Phaze, sentence: str, arguments: tuple[Any, ...]) -> None:
    ran = phaze("graph", *arguments, "--json")
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
    assert json.loads(ran.out) == {"error": ran.err.removeprefix("phaze: ").rstrip("\n")}


def test_without_torch_a_trace_is_refused_and_says_how_to_get_it(
    phaze: Phaze, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "torch" else real(name)
    )
    ran = phaze("graph", "--model", "gpt2-xl", "--tensor", 2)
    assert ran.code == 2
    assert "pip install -e '.[torch]'" in ran.err
    assert phaze("graph", "--model", "gpt2-xl", "--json").code == 0


def test_the_help_says_that_code_is_run_only_when_named(phaze: Phaze) -> None:
    assert "run only when you name it" in " ".join(
        phaze("graph", "--help").out.replace("│", " ").split()
    )


def test_unknown_operators_are_listed_at_once(phaze: Phaze, tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        "import torch\n"
        "class Odd(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.w = torch.nn.Linear(4, 4)\n"
        "    def forward(self, x):\n"
        "        return torch.special.bessel_j0(self.w(x).detach()).sum() + "
        "torch.digamma(self.w(x)).sum()\n"
        "def build():\n"
        "    return Odd(), torch.ones(2, 4)\n"
    )
    ran = phaze("graph", "--model", f"{file}:build", "--check", "--json")
    names = [row["operator"] for row in json.loads(ran.out)["unknown"]]
    assert ran.code == 2
    assert any("bessel_j0" in name for name in names)
    assert any("digamma" in name for name in names)
    shown = phaze("graph", "--model", f"{file}:build", "--check").out
    assert "opset.py" in shown


def test_a_known_model_has_no_unknown_operator(phaze: Phaze) -> None:
    ran = phaze("graph", "--gpt", "hidden=64,layers=2,heads=4,vocabulary=99,sequence=16", "--check")
    assert (ran.code, ran.out) == (0, "every operator of this model is known\n")


def test_the_models_are_listed(phaze: Phaze) -> None:
    rows = json.loads(phaze("models", "--json").out)["models"]
    assert [row["name"] for row in rows] == list(ZOO)
    assert rows[0]["experts"] == {"pipeline": 8, "data": 128, "tensor": 1}
    shown = phaze("models").out
    assert all(name in shown for name in ZOO)
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_one_model(phaze: Phaze) -> None:
    row = json.loads(phaze("models", "gpt3-175b", "--json").out)
    assert (row["layers"], row["hidden"], row["widths"], row["sequence"]) == (
        96,
        12288,
        [4, 8],
        2048,
    )
    assert "pipeline 32, data 8, tensor 4" in phaze("models", "gpt3-175b").out
    assert "197, always" in phaze("models", "vit-large").out
    wrong = phaze("models", "gpt4")
    assert wrong.code == 2
    assert "unknown model 'gpt4'" in wrong.err
