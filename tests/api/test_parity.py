"""Every command that answers a question is a function, and answers the same."""

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


def _plain(value: api.Answer) -> Any:
    return json.loads(json.dumps(value.document))


def test_every_command_that_answers_is_a_function() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert {name for name in commands if name not in NO_FUNCTION} - set(phaze.__all__) == set()
    assert NO_FUNCTION - set(commands) <= {"tensor-plan"}


@pytest.mark.parametrize("name", ["models", "chips", "clusters", "stacks", "technologies"])
def test_what_is_bundled_is_listed_as_by_the_command(name: str, phaze: Phaze) -> None:
    function: Callable[..., api.Answer] = getattr(api, name)
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
