"""A wrong value of any parameter is refused by the function with the very sentence that the command
prints."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from typer.main import get_command

from phaze import api
from phaze.cli.main import app
from phaze.errors import PhazeError
from phaze.options.arguments import number, numbers, shards, share, whole
from phaze.options.option import Parameter
from tests.conftest import Ran
from tests.report.runs import SPACE, STUDY

Phaze = Callable[..., Ran]
ROOT = Path(__file__).parents[2]
JOB = {
    "model": "llama2-7b",
    "chip": "h100",
    "devices": 8,
    "batch": 8,
    "tensor": "1",
    "microbatch": "1",
}
FIXED = {"fixed": f"{ROOT}/examples/run.json"}
GPT = "hidden=1024,layers=2,heads=16,vocabulary=512,sequence=64"
PRODUCT = {"gemm": "64x64x64", "chip": "h100"}
LAYER = {"model": "bert-large", "chip": "tpu-v4"}
QUESTION = {"study": "study.toml"}
# What an option of a name cannot be, whichever command has it.
BY_NAME: dict[str, Any] = {
    "model": "llama9", "chip": "h900", "cluster": "moon", "stack": "none-such", "batch": "few",
    "sequence": "long", "tensor": "0", "microbatch": "0", "context": "0", "shard": "0", "zero": "7",
    "recompute": "what", "family": "what", "context_way": "what", "imbalance": "0.5",
    "precision": "fp1", "tokens": "lots", "terms": "none-such", "rules": "law", "gpt": "hidden",
    "tp_plan": "x.toml", "study": "nothing.toml", "settings": ["training.batch"], "out": "file",
    "workers": "-1", "engine": "moon", "address": "here", "basis": "what", "run": "nothing",
    "html": "file/page.html", "perfetto": "file/x.json", "sets": ["none-such"],
    "measurements": "nothing.csv", "profile": "nothing.json", "rows": "nothing.csv",
}  # fmt: skip
# Of parameters a value that cannot be used, where none follows from its type or its name: beside what else
# is given, or a dict of all that is given.
USUAL: dict[str, Mapping[str, Any]] = {
    "plan": JOB, "search": QUESTION, "front": {**QUESTION, "of": "throughput,area"},
    "sweep": {**QUESTION, "over": "training.devices=32,64"}, "compare": QUESTION,
    "explain": {"run": "run"},
    "verify": {"run": "run"}, "report": {"run": "run"}, "export": {"run": "run", "to": "csv"},
    "estimate": PRODUCT, "schedule": LAYER, "graph": {"model": "bert-large"},
    "place": {"profile": f"{ROOT}/examples/profile.json"},
    "calibrate": {"measurements": "measured.csv", "chip": "a100-80gb"},
}  # fmt: skip
SEVERAL = {"model": ["bert-larg"]}
WRONG: dict[str, dict[str, Any]] = {
    "plan": {
        "gpt": {**JOB, "gpt": GPT},
        "llama": {"llama": "hidden", "chip": "h100", "devices": 8, "batch": 8},
        "terms": "default", "against": "nothing.sh", "over": ["wings=1"],
        "certificate": {**FIXED, "certificate": "x"}, "fixed": {"fixed": "nothing.json"},
        "html": {**FIXED, "html": "file/page.html"},
        "perfetto": {**FIXED, "perfetto": "file/trace.json"},
    },
    "search": {
        "model": SEVERAL, "terms": {**QUESTION, "tokens": "1T", "terms": "none-such"},
        "tp_plan": {"model": ["bert-large"], "tp_plan": "x.toml"},
    },
    "front": {"model": SEVERAL, "of": "throughput,wings", "within": ["power"]},
    "sweep": {
        "model": SEVERAL, "over": "x=1",
        "points": {**QUESTION, "over": "training.devices=32..64", "points": "0"},
    },
    "compare": {
        "model": SEVERAL, "chips": ["h900"], "runs": ["nothing"],
        "html": {**QUESTION, "chips": ["tpu-v4-paper"], "html": "file/page.html"},
    },
    "explain": {
        "instead": ["wings=2"], "flatness": "x", "error": "2", "held_out": ["llama9"],
        "compare": ["h900"],
    },
    "verify": {"space": "moon", "gap": "0.1"},
    "report": {"out": "file/page.html", "design": "1"},
    "export": {
        "to": "csw", "out": "file/x.csv", "model": {"run": "run", "to": "megatron", "model": "x"},
    },
    "validate": {"html": {"sets": ["korthikanti"], "html": "file/page.html"}},
    "calibrate": {
        "out": "file/x.toml", "trace": {"trace": ["nothing.json"]}, "run": {"run": "nothing.json"},
    },
    "models": {"name": "llama9"},
    "chips": {"name": "h900", "space": {"space": "moon", "count": True}},
    "clusters": {"name": "moon"},
    "stacks": {"name": "none-such"},
    "technologies": {"name": "n900"},
    "graph": {"gpt": {"gpt": "hidden"}, "llama": {"llama": GPT}},
    "estimate": {
        "tensor": {**LAYER, "tensor": "0"},
        "gemm": "8x8", "vector": {"chip": "h100", "vector": "softmax"},
        "collective": {"collective": "all_reduce:8", "cluster": "selene"},
        "graph": {"chip": "h100", "graph": "nothing.json"},
        "model": {"chip": "h100", "model": "llama9"},
        "microbatch": {**LAYER, "microbatch": "0"}, "sequence": {**LAYER, "sequence": "long"},
    },
    "schedule": {"operators": {"operators": "nothing.json"}, "layer": "none"},
    "place": {},
}  # fmt: skip
# What no option of a type takes, by what reads it: the table states the type.
UNREADABLE: dict[Any, str] = {whole: "x", number: "none", numbers: "1,x", shards: "x", share: "99%"}


def _unreadable(parameter: Parameter) -> str | None:
    """What an option cannot be by its type alone; None where any text may be one."""
    kinds = (
        get_args(parameter.type) if get_origin(parameter.type) is not Literal else (parameter.type,)
    )
    if any(get_origin(kind) is Literal for kind in kinds):
        return "what"
    return UNREADABLE.get(parameter.reader)


for name, told in WRONG.items():
    parameters = getattr(api, name).parameters
    derived = {one.name: BY_NAME.get(one.name, _unreadable(one)) for one in parameters}
    WRONG[name] = {key: text for key, text in derived.items() if text is not None} | told
CASES = [(name, parameter) for name, told in WRONG.items() for parameter in told]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study, its run, measurements, and a file that is no folder."""
    place = tmp_path_factory.mktemp("errors")
    (place / "space.toml").write_text(SPACE)
    (place / "study.toml").write_text(STUDY)
    (place / "file").write_text("")
    rows = [f"gemm,1,{n},{n},{n},,,{2 * n**3 / 200e12 + 1e-5}" for n in (512, 1024, 2048, 4096)]
    (place / "measured.csv").write_text(
        "\n".join(["operator,batch,m,n,k,elements,rows,seconds", *rows])
    )
    api.search(place / "study.toml", out=place / "run")
    return place


def test_every_parameter_has_a_value_that_cannot_be_used() -> None:
    """But for switches, which a command line cannot give wrongly."""
    for name, told in WRONG.items():
        parameters = inspect.signature(getattr(api, name)).parameters
        switches = {key for key, one in parameters.items() if one.annotation is bool}
        assert set(told) == set(parameters) - switches, name
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert set(WRONG) == {name for name in commands if hasattr(api, name)}


def _words(name: str, options: Mapping[str, Any]) -> list[str]:
    """The command line of a call."""
    spelled = {one.name: one.opts[-1] for one in get_command(app).commands[name].params}  # type: ignore[attr-defined]
    words: list[str] = []
    for parameter, value in options.items():
        option = spelled[parameter]
        for one in value if isinstance(value, list) else [value]:
            words += (
                [option]
                if one is True
                else [option, str(one)]
                if option.startswith("--")
                else [str(one)]
            )
    return words


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_wrong_value_is_the_sentence_of_the_command(
    name: str, parameter: str, folder: Path, phaze: Phaze, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    wrong = WRONG[name][parameter]
    options = dict(wrong) if isinstance(wrong, dict) else {**USUAL.get(name, {}), parameter: wrong}
    if options.keys() == {"model"}:  # what a command of a study cannot be without
        options |= {
            key: value for key, value in USUAL.get(name, {}).items() if key in ("of", "over")
        }
    with pytest.raises(PhazeError) as fault:
        getattr(api, name)(**options)
    ran = phaze(name, *_words(name, options))
    assert (ran.code, fault.value.exit_code) == (2, 2)
    assert ran.err.splitlines()[-1] == f"phaze: {' '.join(str(fault.value).split())}"
