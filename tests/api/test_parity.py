"""Every command that answers a question is a function, and answers the same."""

import ast
import inspect
import json
from collections.abc import Callable
from importlib import import_module
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
NO_FUNCTION = {"cache", "doctor", "kernels", "new", "schema", "study", "tensor-plan", "view"}
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
    with pytest.raises(InputError, match="is not a chip"):
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


# Options whose parameter has another name, and why; every other has the option's name.
OTHERWISE: dict[str, dict[str, tuple[str, str]]] = {
    "compare": {
        "--chip": ("chips", "several of them"), "--run": ("runs", "several of them"),
        "--chips": ("rows", "chips= are names"), "--set": ("settings", "set is a type of Python"),
    },
    "search": {"--set": ("settings", "set is a type of Python")},
    "front": {"--set": ("settings", "set is a type of Python")},
    "sweep": {"--set": ("settings", "set is a type of Python")},
    "verify": {"--all": ("all_", "all is a function of Python")},
    "schedule": {"--pass": ("pass_", "pass is a word of Python")},
    "validate": {"--set": ("sets", "several of them"), "--rows": ("every", "rows= is the file")},
}  # fmt: skip
# Defaults that are the command's own, and why.
ONE_PROCESS = "a process that Python starts runs the script that started it again"
FOLDER = "a value of Python keeps its folder as long as it lives"
DEFAULTS = {
    ("search", "workers"): ONE_PROCESS, ("front", "workers"): ONE_PROCESS, ("sweep", "workers"): ONE_PROCESS,
    ("search", "out"): FOLDER, ("front", "out"): FOLDER, ("sweep", "out"): FOLDER,
}  # fmt: skip
# Parameters that are no option, and why.
NO_OPTION = {("search", "page"), ("front", "page"), ("sweep", "page")}  # a command always writes its page
ANSWERING = sorted(name for name in get_command(app).commands if name in phaze.__all__)  # type: ignore[attr-defined]


def _options(name: str) -> dict[str, tuple[str, Any]]:
    """The options of a command by name, each with its parameter and its default; an empty list is none."""
    found = {}
    for option in get_command(app).commands[name].params:  # type: ignore[attr-defined]
        called = next(one for one in option.opts if not one.startswith("-") or one.startswith("--"))
        if option.name not in ("as_json", "pretty", "help"):
            found[called] = (option.name, option.default)
    return found


def _plain_default(value: Any) -> Any:
    return None if value in (None, (), [], "", False, inspect.Parameter.empty) else value


@pytest.mark.parametrize("name", ANSWERING)
def test_a_command_asks_the_function_of_its_name_and_has_no_code(name: str) -> None:
    command = getattr(import_module(f"phaze.cli.{name}"), name)
    assert command.asks is getattr(api, name)
    (body,) = ast.parse(inspect.cleandoc(inspect.getsource(inspect.unwrap(command)))).body
    assert isinstance(body, ast.FunctionDef)
    assert len(body.body) == 1 and isinstance(body.body[0], ast.Expr), "more than its help"


@pytest.mark.parametrize("name", ANSWERING)
def test_every_option_is_a_parameter_of_the_same_name_and_default(name: str) -> None:
    options, parameters = _options(name), dict(inspect.signature(getattr(api, name)).parameters)
    told = OTHERWISE.get(name, {})
    assert set(told) <= set(options), "an option that is not there any more"
    for option, (parameter, default) in options.items():
        assert parameter == told.get(option, (option.lstrip("-").replace("-", "_"), ""))[0], option
        if (name, parameter) not in DEFAULTS:
            assert _plain_default(default) == _plain_default(parameters[parameter].default), option
        else:
            assert default != parameters[parameter].default, "no longer an exception"
    named = {parameter for parameter, _ in options.values()}
    assert {(name, parameter) for parameter in set(parameters) - named} <= NO_OPTION, (
        "a parameter that is not an option"
    )


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
