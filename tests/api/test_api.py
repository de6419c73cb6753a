"""The Python API: what the commands do, as values that print, show and export."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import phaze
from phaze import api
from phaze.errors import InfeasibleError, InputError
from tests.report.runs import PLAN, SPACE, STUDY

ROOT = Path(__file__).parent.parent.parent
GPT = {"hidden": 1024, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 512}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> api.Searched:
    """A small search."""
    folder = tmp_path_factory.mktemp("api")
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    return api.search(folder / "study.toml")


def test_a_function_is_not_hidden_by_the_package_of_its_name() -> None:
    from phaze.search import space

    assert space.__name__ == "phaze.search.space"
    with pytest.raises(InputError, match="there is no such file"):
        phaze.search("nothing.toml")
    assert phaze.graph("bert-large").model.name == "bert-large"
    assert phaze.schedule(ROOT / "tests/api/operators.json").makespan_s > 0


def test_importing_phaze_imports_nothing_heavy() -> None:
    code = (
        "import sys, phaze; print([m for m in ('numpy', 'numba', 'rich', 'pydantic', "
        "'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_search_prints_as_its_command_does(run: api.Searched, phaze: Callable[..., Any]) -> None:
    ran = phaze("search", run.folder / "study.toml", "--out", run.folder)
    assert [line.rstrip() for line in ran.out.splitlines()][:8] == repr(run).splitlines()[:8]
    assert run["chip"] == run.chip
    assert run.gap <= 1e-4
    assert all(len(line) <= 80 for line in repr(run).splitlines()[:-1])


def test_a_frame_goes_into_pandas(run: api.Searched) -> None:
    table = pandas.DataFrame(run.frame())
    assert len(table) == run["certificate"]["chips"]
    (answer,) = np.flatnonzero(table["is_answer"])
    assert table["area_mm2"][answer] == run.chip["area_mm2"]
    assert (table["score_bound"].dropna() >= run["certificate"]["lower_bound"]).all()


def test_a_run_loads_again_from_its_folder(run: api.Searched, tmp_path: Path) -> None:
    again = api.load(run.folder)
    assert isinstance(again, api.Searched)
    assert again.document == run.document
    assert again.page(tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_results_are_tables_in_a_notebook(run: api.Searched) -> None:
    assert run._repr_html_().startswith("<table>")
    planned = api.plan(
        gpt=GPT, chip="a100-80gb", devices=8, batch=32, microbatch=[2], tensor=[1, 2]
    )
    assert "<table>" in planned._repr_html_()
    assert "tokens a second" in planned._repr_html_()
    assert "<pre>" in api.estimate(chip="tpu-v4", gemm=(1024, 1024, 1024))._repr_html_()


def test_a_plan_is_that_of_the_command(phaze: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(phaze(*PLAN.split(), "--json").out)
    told = json.loads((tmp_path / "plan.json").read_text())
    planned = api.plan(
        gpt=GPT, chip="a100-80gb", devices=8, batch=32, microbatch=[2], tensor=[1, 2]
    )
    assert json.loads(json.dumps(planned.document)) == told
    again = api.load(tmp_path / "plan.json")
    assert isinstance(again, api.Planned)
    assert repr(again) == repr(planned)
    assert "--tensor-model-parallel-size" in planned.export("megatron")
    assert planned.export("csv").startswith("stage,")
    assert planned.frame()["stage"].tolist() == list(range(told["pipeline"]))


def test_what_does_not_fit_or_is_wrong_is_an_error_with_its_sentence() -> None:
    with pytest.raises(InfeasibleError):
        api.plan("gpt3-175b", chip="a100-40gb", devices=8, batch=8, microbatch=[1])
    with pytest.raises(InputError, match="bert-large"):
        api.search("bert-larg")
    with pytest.raises(InputError):
        api.estimate(chip="tpu-v4")


def test_the_other_verbs_answer() -> None:
    assert api.estimate(chip="tpu-v4", gemm=(1, 1024, 1024, 1024)).time_s > 0
    assert api.estimate(chip="tpu-v4", vector=("softmax", 1 << 20, 1024)).time_s > 0
    assert api.place(ROOT / "examples" / "profile.json").batch_s > 0
    assert api.price(ROOT / "examples" / "run.json")["feasible"]
    assert api.schedule(
        json.loads((ROOT / "tests/api/operators.json").read_text())
    ).makespan_s == pytest.approx(2.0)
    block = api.schedule(model="bert-large", chip="tpu-v4", rules="overlap")
    assert 0 < block.makespan_s < api.estimate(
        model="bert-large", chip="tpu-v4"
    ).time_s and "bert-large" in repr(block)
    assert api.chip("tpu-v4-paper", tensor_cores=16).chip.tensor_cores == 16
    small = api.chip("h100", clusters={"count": 66}, silicon={"clusters": (72, 66)})
    assert small["peak_flops"] == pytest.approx(989.4e12 / 2, rel=1e-3)
    assert small["area_mm2"] < api.chip("h100")["area_mm2"]
    with pytest.raises(InputError, match="h100: unknown key 'tensor_cores'"):
        api.chip("h100", tensor_cores=16)
    assert "area" in repr(api.chip("tpu-v4"))
    assert "operators" in repr(api.graph(gpt=GPT)) or "layer" in repr(api.graph(gpt=GPT))


def test_unknown_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = phaze.nothing
    assert "search" in dir(phaze)
