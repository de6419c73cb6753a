"""A notebook in a real kernel: values show as tables, frames go into pandas and polars."""

from pathlib import Path
from typing import Any

import pytest

from phaze import api
from phaze.api.notebook import columns, facts, shown_pair, table
from tests.report.runs import HOSTILE, small_run

nbclient = pytest.importorskip(
    "nbclient", reason="no Jupyter here: the notebook was NOT RUN; pip install nbclient ipykernel"
)
pytest.importorskip(
    "ipykernel", reason="no Jupyter kernel here: the notebook was NOT RUN; pip install ipykernel"
)
nbformat: Any = pytest.importorskip("nbformat")

CELLS = (
    "import phaze, pandas, polars\nrun = phaze.load({run!r})\nrun",
    "pandas.DataFrame(run.frame()).sort_values('score').head(3)",
    "polars.DataFrame(run.frame()).sort('score').head(3)",
    (
        "plan = phaze.plan('bert-large', chip='a100-80gb', devices=8, batch=64, "
        "microbatch=[4], tensor=[1])\nplan"
    ),
    "polars.DataFrame(plan.frame())",
    "phaze.estimate(chip='tpu-v4', gemm=(1, 1024, 1024, 1024))",
    "print(run)",
)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The cells, executed from first to last by a kernel."""
    run = small_run(tmp_path_factory.mktemp("notebook"))
    cells = [nbformat.v4.new_code_cell(cell.format(run=str(run))) for cell in CELLS]
    made = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(made, timeout=120, kernel_name="python3").execute()
    return made


def html_of(cell: Any) -> str:
    (shown,) = [output for output in cell.outputs if output.output_type == "execute_result"]
    return str(shown.data["text/html"])


@pytest.mark.parametrize("at", range(6))
def test_every_value_is_a_table_in_a_notebook(at: int, notebook: Any) -> None:
    assert "<table" in html_of(notebook.cells[at])


def test_a_notebook_tells_the_chip_the_plan_and_the_proof(notebook: Any) -> None:
    shown = html_of(notebook.cells[0])
    assert "sequences/s" in shown
    assert "certificate" in shown
    assert "memory" in html_of(notebook.cells[3])
    (printed,) = [output for output in notebook.cells[6].outputs if output.output_type == "stream"]
    assert "Certificate" in printed.text


def test_both_tables_have_the_answer_first(notebook: Any) -> None:
    for cell in notebook.cells[1:3]:
        shown = html_of(cell)
        assert "is_answer" in shown
        assert "design_power_w" in shown
        assert "true" in shown.lower()


def test_the_notebook_of_a_researcher_runs_to_its_end() -> None:
    pytest.importorskip("torch", reason="no PyTorch here: the notebook of a researcher was NOT RUN")
    made = nbformat.read(Path(__file__).parents[2] / "examples" / "researcher.ipynb", as_version=4)
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    assert "certificate" in html_of(code[1])
    printed = [
        "".join(one.text for one in cell.outputs if one.get("name") == "stdout") for cell in code
    ]
    assert "holds" in printed[2]
    assert "times the certified optimum" in printed[3]
    assert "is_answer" in html_of(code[4])
    assert any("image/png" in one.get("data", {}) for one in code[5].outputs)


def test_names_in_tables_stay_text() -> None:
    for text in (table({HOSTILE: HOSTILE}, HOSTILE), columns([{HOSTILE: HOSTILE}], HOSTILE)):
        assert "<script>" not in text


def test_a_key_says_the_unit_of_its_value() -> None:
    assert shown_pair("batch_s", 0.25) == ("batch", "250 ms")
    assert shown_pair("memory_bytes", 2**30) == ("memory", "1 GiB")
    assert shown_pair("devices", 1024) == ("devices", "1,024")
    assert shown_pair("feasible", True) == ("feasible", "yes")
    assert shown_pair("stages", []) is None
    assert facts({"schema": "phaze.plan/1", "tensor": 2}) == {"tensor": "2"}


def test_a_frame_goes_into_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    run = api.load(small_run(tmp_path))
    found = polars.DataFrame(run.frame())
    assert isinstance(run, api.Searched)
    assert found.height == run["certificate"]["chips"]
    best = found.filter(polars.col("is_answer"))
    assert best["area_mm2"].item() == run.chip["area_mm2"]
    assert best["score"].item() == run["objective"]["score"]
    assert found["closed_by"].dtype == polars.String
