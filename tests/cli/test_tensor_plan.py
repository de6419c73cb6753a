"""``--tp-plan`` and ``--show-plan``: whose plan it is, and what is refused."""

from pathlib import Path

import pytest

from phaze.errors import InputError
from phaze.graph.supply.supply import TracedSupply, supply_of
from phaze.graph.tensor_plan import place_and_plan, plan_of
from phaze.study.places import name_of
from tests.cli.test_commands import Phaze


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("graph", "--model", "bert-large", "--show-plan"),
            "bert-large is built in, with a plan of its own",
        ),
        (
            ("graph", "--model", "bert-large", "--tp-plan", "p.toml"),
            "bert-large has a plan of its own",
        ),
        (
            ("graph", "--model", "my.py:build", "--tp-plan", "p.txt"),
            "its name ends in .toml or .json",
        ),
    ],
)
def test_a_plan_is_for_ones_own_model(phaze: Phaze, arguments: tuple[str, ...], said: str) -> None:
    ran = phaze(*arguments)
    assert ran.code == 2 and said in ran.err


def test_a_model_with_a_plan_of_ones_own_is_one_name_in_every_command(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    for place in ("my.py:build", str(tmp_path / "config.json")):
        found = supply_of(f"{place}@plan.toml", allow_code=True)
        assert isinstance(found, TracedSupply) and found.place == f"{place}@plan.toml"
    folder = supply_of(f"{tmp_path}@plan.toml")
    assert (
        isinstance(folder, TracedSupply) and folder.place == f"{tmp_path / 'config.json'}@plan.toml"
    )
    assert name_of("my.py:build@plan.toml") == name_of("my.py:build") == "my-build"
    assert place_and_plan("me@home.py:build") == ("me@home.py:build", None)


def test_a_plan_says_what_is_wrong_with_it() -> None:
    raw = {"schema": "phaze.tensor-plan/1", "cut": [{"weight": "a.weight", "dim": 0, "parts": [4]}]}
    with pytest.raises(InputError, match=r"plan.toml: cut\[0\].parts"):
        plan_of(raw, "plan.toml")
