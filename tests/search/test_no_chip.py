"""A space of which the rules leave no chip: exit code 3 with what the nearest chip needs and what
there is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.search.test_study import SPACE

STUDY = """schema = "phaze.study/1"
rules = "icml24"
name = "none"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 64, widths = [1]}}]
[training]
microbatches = [1]
[budget]
{budget}
"""


@pytest.mark.parametrize("command", [("study", "check"), ("search",)])
@pytest.mark.parametrize(
    ("budget", "rule", "said"),
    [
        ('area = "1 mm2"', "area", "the smallest chip needs"),
        ('power = "1 W"', "power", "the chip of least power within the area needs"),
        ("usd = 1", "cost", "the cheapest chip that is left costs"),
    ],
)
def test_a_study_with_no_chip_is_nothing_feasible_and_says_what_the_nearest_needs(
    command: tuple[str, ...],
    budget: str,
    rule: str,
    said: str,
    phaze: Callable[..., Ran],
    tmp_path: Path,
) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path, budget=budget))
    more = ("--out", tmp_path / "run") if command == ("search",) else ()
    ran = phaze(*command, tmp_path / "study.toml", *more, "--json")
    assert ran.code == 3
    document = json.loads(ran.out)
    short = document["shortage"]
    assert document["feasible"] is False and short["rule"] == rule
    assert short["needed"] > short["available"] == 1.0
    assert said in document["error"]
