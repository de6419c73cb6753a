"""Least regret: the greatest time of a model relative to its own best chip, which the checker finds
by itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.check.verdict import check
from tests.check.forge import Papers
from tests.search.test_verify import finished

STUDY = """schema = "phaze.study/1"
rules = "cluster"
name = "regret"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 64}}, {{name = "gpt2-xl", sequence = 128}}]
[training]
devices = 8
batch = 16
microbatches = [1]
[objective]
mean = "regret"
"""
SPACE = """schema = "phaze.space/1"
name = "few"
title = "a few chips"
base = "tpu-v4-paper"
[axes]
tensor_cores = [2, 4]
rows = [32, 64, 96]
columns = [32, 128]
vector_cores = [2, 8]
lanes = "columns"
global_buffer = ["2 MiB", "16 MiB", "48 MiB"]
[core_buffers]
least = "1 KiB"
bytes_per_unit = 16
[keep]
most_area = "100 mm2"
least_share = 0.5
"""


@pytest.fixture(scope="module")
def regret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two models whose best chips differ."""
    return finished(tmp_path_factory.mktemp("regret"), STUDY, SPACE)


def test_the_least_regret_is_proved(regret: Path) -> None:
    assert Papers(regret).certificate["best"] > 1.001
    found = check(regret)
    assert found.holds, found.sentence()


def _less(papers: Papers) -> None:
    papers.claim(papers.certificate["best"] * 0.99)


def _more(papers: Papers) -> None:
    papers.claim(papers.certificate["best"] * 1.01)


def _none(papers: Papers) -> None:
    papers.claim(1.0)


def _worse_bests(papers: Papers) -> None:
    """Each model's own best is said to be what it takes on the chip of least regret."""
    answer = papers.certificate["answer"]
    chip = {key: answer[key] for key in ("chip", "hbm_bytes")}
    (rows,) = papers.certificate["bests"]
    rows[:] = [{**chip, "models": [model]} for model in answer["models"]]
    papers.claim(1.0)


def _left_out(papers: Papers) -> None:
    """A chip that is faster for both models is not said to be in the space."""
    papers.problem["space"]["keep"]["most_area"] = 150.0


@pytest.mark.parametrize("forge", [_less, _more, _none, _worse_bests, _left_out])
def test_another_regret_is_refused(
    forge: Callable[[Papers], None], regret: Path, tmp_path: Path
) -> None:
    papers = Papers(regret)
    forge(papers)
    found = check(papers.write(tmp_path))
    assert found.wrong and not found.missing, found.sentence()
