"""The tables of options: what functions, commands and studies follow from."""

import inspect
import re
from typing import Any, get_args

import pytest
from typer.main import get_command

from phaze import api
from phaze.cli.main import app
from phaze.cli.tour import COMMANDS
from phaze.options.jobs import PlanOptions
from phaze.options.option import NAMED, Parameter, table_parameters
from phaze.options.studies import SearchOptions
from phaze.study.schema import StudyFile
from tests.keys.walk import keys_of

# Commands that are functions, each with its parameters.
FUNCTIONS = {name: getattr(api, name) for name, listed in COMMANDS.items() if listed.help}
PARAMETERS: dict[str, list[Parameter]] = {
    name: function.parameters for name, function in FUNCTIONS.items()
}
# Words of a quantity's sentence: its unit.
MEASURED = {
    "time": "seconds", "gap": "exact|relative gap", "headroom": "%", "batch": "sequences",
    "sequence": "tokens",
}  # fmt: skip
EVERY = [(name, parameter) for name, parameters in PARAMETERS.items() for parameter in parameters]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_and_its_command_take_what_the_table_states(name: str) -> None:
    parameters = PARAMETERS[name]
    signature = inspect.signature(FUNCTIONS[name]).parameters
    assert [(one.name, one.default) for one in parameters] == [
        (one.name, one.default) for one in signature.values()
    ]
    options = {one.name: one for one in get_command(app).commands[name].params}  # type: ignore[attr-defined]
    always = COMMANDS[name].always or {}
    assert set(options) - {"as_json", "pretty", "help"} == {one.name for one in parameters} - set(
        always
    )
    for one in parameters:
        if one.name not in always and not one.option.argument:
            assert one.flag.split("/")[0] in options[one.name].opts


@pytest.mark.parametrize(
    ("name", "parameter"), EVERY, ids=lambda value: getattr(value, "name", value)
)
def test_an_option_is_one_statement_with_a_default_of_its_type(
    name: str, parameter: Parameter
) -> None:
    assert parameter.help.endswith((".", ")")) or ":" in parameter.help
    others = {one.name for one in PARAMETERS[name]}
    assert set(NAMED.findall(parameter.option.sentence)) <= others, (
        "it names an option that the command has not"
    )
    if parameter.type is bool:
        assert parameter.default in (False, True)


def test_a_name_means_one_type_wherever_a_table_states_it_for_the_same_thing() -> None:
    plan, search = (
        {one.name: one for one in table_parameters(table)} for table in (PlanOptions, SearchOptions)
    )
    shared = set(plan) & set(search)
    assert {"devices", "batch", "attention", "headroom", "shard"} <= shared
    assert [name for name in shared if plan[name].option is not search[name].option] == []


def test_an_option_that_stands_for_a_key_of_a_study_names_one() -> None:
    keys = {one.option.key for _, one in EVERY if one.option.key}
    assert keys - set(keys_of(StudyFile)) == set()


def test_spellings_are_those_of_the_names_but_where_python_has_the_word() -> None:
    others = {(name, one.name): one.option.flag for name, one in EVERY if one.option.flag}
    assert others == {
        **{(name, "settings"): "--set" for name in ("search", "front", "sweep", "compare")},
        ("compare", "chips"): "--chip",
        ("compare", "runs"): "--run",
        ("compare", "rows"): "--chips",
        ("validate", "sets"): "--set",
        ("validate", "every"): "--rows",
    }


def test_python_shows_what_the_table_states() -> None:
    for name, parameter in EVERY:
        assert parameter.document.strip()[:60] in (inspect.getdoc(FUNCTIONS[name]) or "")
    kinds: Any = inspect.signature(api.plan).parameters["attention"].annotation
    assert "fused" in get_args(get_args(kinds)[0])


def test_an_option_that_is_a_quantity_states_its_unit() -> None:
    units = {one.name: one.help for _, one in EVERY if one.name in MEASURED}
    for name, text in units.items():
        assert re.search(MEASURED[name], text, re.IGNORECASE), f"{name}: {text}"
