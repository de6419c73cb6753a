"""Every command that answers a question is a function, and answers the same."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import phaze
from phaze import api
from phaze.cli.main import app
from phaze.errors import InputError
from tests.conftest import Ran
from tests.report.runs import SPACE, STUDY

# About the installation, or files to begin with: docs/python.md names them.
NO_FUNCTION = {"bench", "cache", "doctor", "kernels", "new", "schema", "study", "tensor-plan", "view"}
Phaze = Callable[..., Ran]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parity")
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    return folder / "study.toml"


@pytest.fixture(scope="module")
def run(study: Path) -> api.Searched:
    return api.search(study)


def _plain(value: api.Shown) -> Any:
    return json.loads(json.dumps(value.document))


def test_every_command_that_answers_is_a_function() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert {name for name in commands if name not in NO_FUNCTION} - set(phaze.__all__) == set()
    assert NO_FUNCTION - set(commands) <= {"tensor-plan"}


@pytest.mark.parametrize("name", ["models", "chips", "clusters", "stacks", "technologies"])
def test_what_is_bundled_is_listed_as_by_the_command(name: str, phaze: Phaze) -> None:
    function: Callable[..., api.Shown] = getattr(api, name)
    assert _plain(function()) == json.loads(phaze(name, "--json").out)


def test_functions_on_a_run_answer_as_the_commands(run: api.Searched, phaze: Phaze) -> None:
    checked = api.verify(run)
    assert checked["holds"] is True
    assert _plain(checked) == json.loads(phaze("verify", run.folder, "--json").out)
    why = api.explain(run, workers=1)
    assert _plain(why) == json.loads(phaze("explain", run.folder, "--workers", "1", "--json").out)
    table = api.export(run, to="csv")
    assert table["text"] == phaze("export", run.folder, "--to", "csv").out
    assert Path(api.report(run)["page"]).name == "report.html"


def test_errors_are_the_sentences_of_the_command(tmp_path: Path, phaze: Phaze) -> None:
    with pytest.raises(InputError) as fault:
        api.verify(tmp_path / "nothing")
    assert str(fault.value) in phaze("verify", tmp_path / "nothing").err


def test_the_best_of_a_space_is_the_answer_of_the_search(study: Path, run: api.Searched) -> None:
    space = api.Space(study)
    scores = {number: float(space.evaluate(number)["score"]) for number in space}
    best = min(scores, key=lambda number: scores[number])
    assert scores[best] == pytest.approx(run["objective"]["score"], rel=1e-9)
    assert scores[run.chip["number"]] == pytest.approx(scores[best], rel=1e-4)
    answer = space.evaluate(run.chip["number"])
    assert answer["models"][0]["plan"]["stages"] == run.models[0]["plan"]["stages"]
    assert f"chip {run.chip['number']:,}" in repr(answer)
    assert space.chip(best)["name"] == answer["chip"] or scores[best] < answer["score"]


def test_a_space_is_walked_by_number_and_by_axes(study: Path) -> None:
    space = api.Space(study)
    assert sorted(space.sample(10**6)) == list(space)
    assert space.sample(3, seed=4) == space.sample(3, seed=4)
    for number in space:
        values = space.axes_of(number)
        assert space.number(**values) == number
        assert all(value in space.axes[name] for name, value in values.items())
    assert len(space.frame()["chip"]) == len(space)
    with pytest.raises(InputError, match="is no chip"):
        space.evaluate(len(space))
    with pytest.raises(InputError, match="there is no axis 'wings'"):
        space.number(wings=2)
    first = space.axes_of(0)
    with pytest.raises(InputError, match="is missing"):
        space.number(**dict(list(first.items())[1:]))
    assert space.number(**dict.fromkeys(first, 10.0**9)) is None


def test_a_given_plan_is_never_faster_than_the_best() -> None:
    job: dict[str, Any] = {"devices": 8, "batch": 32, "sequence": 512}
    best = api.evaluate("bert-large", "a100-80gb", "selene", **job)
    split = {"tensor": 2, "pipeline": 2, "data": 2, "microbatch": 2}
    assert best.batch_s <= api.evaluate("bert-large", "a100-80gb", "selene", split, **job).batch_s


# Options that a function has by another name, or not at all, and why; what is not listed has the option's name.
SCREEN = "what is drawn: the value prints and draws itself"
FILES = "takes one at a time"
SEVERAL = "several of them: a list"
MODEL = "study takes models too"
OWN = "a phaze.Model states its own"
CLUSTER = "Ray is started by the command"
OTHERWISE: dict[str, dict[str, tuple[str | None, str]]] = {
    "plan": {
        "datasheet": ("basis", "a basis by name"),
        "fixed": (None, "phaze.price"),
        "html": (None, SCREEN),
        "perfetto": (None, SCREEN),
        "tp_plan": (None, OWN),
    },
    "compare": {
        "chip": ("chips", SEVERAL), "run": ("runs", SEVERAL), "chips": ("rows", "chip= is taken by names"),
        "model": ("study", MODEL), "set": ("settings", "set is a word of Python"),
    },
    "search": {
        "model": ("study", MODEL), "set": ("settings", "set is a word of Python"), "tp_plan": (None, OWN),
        "engine": (None, CLUSTER), "address": (None, CLUSTER),
    },
    "front": {"model": ("study", MODEL), "set": ("settings", "set is a word of Python")},
    "sweep": {
        "model": ("study", MODEL), "set": ("settings", "set is a word of Python"),
        "engine": (None, CLUSTER), "address": (None, CLUSTER),
    },
    "verify": {"all": (None, "every chip is checked anyway")},
    "validate": {"set": ("sets", SEVERAL)},
    "graph": {
        "gpt": ("sizes", "model names the family"), "llama": ("sizes", "model names the family"),
        "check": (None, "a test of the bundled graphs"), "show_plan": (None, SCREEN), "tp_plan": (None, OWN),
    },
    "estimate": {"graph": ("model", "a graph's file is a model")},
    "schedule": {
        "files": ("operators", FILES), "pass": ("pass_", "pass is a word of Python"), "perfetto": (None, SCREEN),
        "tp_plan": (None, OWN), "fresh": (None, "phaze.graph(fresh=True) traces again"),
    },
    "place": {"files": ("profile", FILES), "perfetto": (None, SCREEN)},
}  # fmt: skip
# Defaults that differ, and why.
DEFAULTS = {
    ("search", "workers"): "a process that Python starts runs the script that started it again",
    ("front", "workers"): "a process that Python starts runs the script that started it again",
    ("sweep", "workers"): "a process that Python starts runs the script that started it again",
    ("graph", "tensor"): "of a graph's file as it was traced", ("graph", "microbatch"): "of a graph's file",
    ("graph", "attention"): "of a graph's file", ("graph", "model"): "a family may stand in its place",
    ("estimate", "tensor"): "of a graph's file", ("estimate", "microbatch"): "of a graph's file",
    ("estimate", "attention"): "of a graph's file",
}  # fmt: skip
SHARED = ("json", "pretty", "help")
ANSWERING = sorted(name for name in get_command(app).commands if name in phaze.__all__)  # type: ignore[attr-defined]


def _options(name: str) -> dict[str, Any]:
    """The options of a command by name, with their defaults; a list that is empty or not given is none."""
    found = {}
    for option in get_command(app).commands[name].params:  # type: ignore[attr-defined]
        called = option.opts[0].lstrip("-").replace("-", "_")
        if called not in SHARED:
            found[called] = option.default
    return found


def _plain_default(value: Any) -> Any:
    if value in (None, (), [], "", False, inspect.Parameter.empty):
        return None
    return 0.06 if value == "6%" else value


@pytest.mark.parametrize("name", ANSWERING)
def test_every_option_is_a_parameter_of_the_same_name_and_default(name: str) -> None:
    options, parameters = _options(name), dict(inspect.signature(getattr(api, name)).parameters)
    told = OTHERWISE.get(name, {})
    assert set(told) <= set(options), "an option that is not there any more"
    for option, default in options.items():
        called, _ = told.get(option, (option, ""))
        if called is None:
            assert option not in parameters
            continue
        assert called in parameters, f"phaze {name} --{option}"
        if called == option and (name, option) not in DEFAULTS:
            assert _plain_default(default) == _plain_default(parameters[called].default), option
    named = {called for called, _ in (told.get(option, (option, "")) for option in options)}
    assert set(parameters) - named <= {"basis"}, "a parameter that is no option"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("plan", {"model": "llama9", "chip": "h100", "devices": 8, "batch": 8}),
        ("plan", {"model": "llama2-7b", "chip": "h900", "devices": 8, "batch": 8}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": "few"}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "sequence": "long"}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "zero": 7}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "cluster": "moon"}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "stack": "none-such"}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "precision": "fp1"}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "tokens": "lots"}),
        ("plan", {"model": "llama2-7b", "chip": "h100", "devices": 8, "batch": 8, "imbalance": 0.5}),
        ("plan", {"against": "nothing.sh", "chip": "h100"}),
        ("explain", {"run": "nothing"}),
        ("report", {"run": "nothing"}),
        ("export", {"run": "nothing", "to": "csv"}),
        ("export", {"run": "nothing", "to": "csw"}),
        ("calibrate", {"measurements": "nothing.csv", "chip": "h100"}),
        ("chips", {"name": "h900"}),
        ("clusters", {"name": "moon"}),
        ("stacks", {"name": "none-such"}),
        ("technologies", {"name": "n900"}),
        ("models", {"name": "llama9"}),
        ("estimate", {"collective": ("all_reduce", "64MiB", 8), "cluster": "moon"}),
        ("schedule", {"model": "llama9", "chip": "h100"}),
        ("graph", {"model": "llama9"}),
    ],
)
def test_a_bad_value_is_the_same_sentence(
    command: str, options: dict[str, Any], phaze: Phaze, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    positional = {"run", "measurements", "name"}
    words = [str(value) for key, value in options.items() if key in positional]
    for key, value in options.items():
        text = ":".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words += [] if key in positional else [f"--{key.replace('_', '-')}", text]
    with pytest.raises((InputError, OSError)) as fault:
        getattr(api, command)(**options)
    ran = phaze(command, *words)
    assert ran.code == 2
    sentence = " ".join(str(getattr(fault.value, "problem", "") or fault.value).split())
    assert sentence in " ".join(ran.err.split()) or isinstance(fault.value, OSError)


def test_former_names_of_parameters_work_with_a_note() -> None:
    job: dict[str, Any] = {"chip": "a100-80gb", "devices": 8, "batch": 32}
    with pytest.warns(DeprecationWarning, match="is called tensor= now"):
        before = api.plan("bert-large", widths=[1], microbatch=[2], **job)  # type: ignore[call-arg]
    assert before.document == api.plan("bert-large", tensor=[1], microbatch=[2], **job).document
    with pytest.raises(TypeError, match="both 'tensor' and 'widths'"):
        api.plan("bert-large", widths=[1], tensor=[1], **job)  # type: ignore[call-arg]


def test_a_launch_file_stands_beside_the_best_as_by_the_command(phaze: Phaze) -> None:
    launch = Path(__file__).parents[2] / "examples" / "run.json"
    answer = _plain(api.plan(against=launch, tensor=[1, 4], microbatch=[16]))
    ran = phaze("plan", "--against", launch, "--tensor", "1,4", "--microbatch", "16", "--json")
    assert answer == json.loads(ran.out)
    assert answer["against"]["differences"]
