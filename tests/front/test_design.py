"""One design of a front, opened again from the front's folder alone."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.errors import InputError
from phaze.front.design import design_in
from tests.conftest import Ran
from tests.report.runs import SPACE, STUDY


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small front."""
    folder = tmp_path_factory.mktemp("front")
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    made = [
        "front",
        str(folder / "study.toml"),
        "--of",
        "throughput,area",
        "--out",
        str(folder / "f"),
        "--workers",
        "1",
    ]
    assert exit_code_of(app, made) == 0
    return folder / "f"


def test_every_design_is_found_again_with_its_plans(front: Path) -> None:
    document = json.loads((front / "front.json").read_text())
    for at, point in enumerate(document["points"]):
        design = design_in(front, at)
        assert design.result["chip"]["name"] == point["chip"]["name"]
        assert design.result["models"][0]["batch_s"] == pytest.approx(
            point["models"][0]["batch_s"], rel=1e-9
        )
        assert ("training.devices", "64", "the study") in design.settings


def test_a_design_has_its_own_page(front: Path, phaze: Callable[..., Ran]) -> None:
    done = phaze("report", str(front), "--design", "0")
    assert done.code == 0 and (front / "design-0.html").is_file()
    text = (front / "design-0.html").read_text(encoding="utf-8")
    assert "On the front" in text and "design 0 of" in text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda point: point["models"][0].update(batch_s=1.0), "takes 1 s in it"),
        (lambda point: point["models"][0].update(microbatch=64), "not studied at this width"),
        (lambda point: point["models"][0].update(name="other"), "not those of the study"),
        (lambda point: point["chip"].update(number=10**9), "no such chip"),
        (lambda point: point["chip"].update(name="other"), "no such chip"),
    ],
)
def test_a_changed_design_is_refused(
    changed: Callable[[dict[str, object]], None], said: str, front: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(front, tmp_path / "copy"))
    document = json.loads((copy / "front.json").read_text())
    changed(document["points"][0])
    (copy / "front.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said):
        design_in(copy, 0)


def test_other_numbers_and_other_folders_are_one_sentence(
    front: Path, phaze: Callable[..., Ran]
) -> None:
    count = len(json.loads((front / "front.json").read_text())["points"])
    done = phaze("report", str(front), "--design", str(count))
    assert done.code == 2 and f"give 0 to {count - 1}" in done.err
    assert phaze("report", str(front / "nothing"), "--design", "0").code == 2
