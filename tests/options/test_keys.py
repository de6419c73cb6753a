"""Keys of files that follow from the tables of options."""

import json
from typing import get_args

import pytest
from tools.key_stubs import STUB, stub

from phaze.options.key_fields import UNSTATED, rule_default, study_options
from phaze.options.values import RuleName
from phaze.study.raw import with_settings
from phaze.study.schema import StudyFile


def test_type_checkers_see_the_keys_that_the_tables_state() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "python -m tools.key_stubs writes it anew"


def test_every_key_of_a_study_in_the_table_has_its_meaning_and_its_default_from_there() -> None:
    schema = StudyFile.model_json_schema()
    tables = {"": schema["properties"]}
    for name in ("training", "cost", "objective", "search"):
        reference = StudyFile.model_fields[name].annotation
        tables[name] = reference.model_json_schema()["properties"]  # type: ignore[union-attr]
    stated = study_options()
    assert {"space", "training.zero", "cost.basis", "search.gap"} <= set(stated)
    for key, option in stated.items():
        place, _, name = key.rpartition(".")
        field = tables[place][name]
        default = list(option.default) if isinstance(option.default, tuple) else option.default
        assert field["description"] == option.description
        assert (field.get("default"), field.get(UNSTATED, "")) == (default, option.default_words)


@pytest.mark.parametrize("rules", get_args(RuleName))
def test_a_default_by_rules_is_what_a_study_that_states_it_has(rules: RuleName) -> None:
    plain = StudyFile.model_validate({"schema": "phaze.study/1", "name": "a", "models": ["gpt"]})
    for key, option in study_options().items():
        stated = None if option.rules is None else option.rules.under(rules)
        if stated is None:
            continue
        place, _, name = key.rpartition(".")
        table = getattr(plain, place) if place else plain
        assert getattr(table, name) is None, "one default, that of the rules"
        given = with_settings(
            plain.model_dump(by_alias=True, exclude_none=True), [f"{key}={json.dumps(stated)}"]
        )
        read = StudyFile.model_validate(given)
        assert getattr(getattr(read, place) if place else read, name) == rule_default(key, rules)
