"""Keys of files that follow from the tables of options."""

from tools.key_stubs import STUB, stub

from phaze.options.jobs import JobOptions, ParallelOptions
from phaze.options.keys import FIELDS
from phaze.options.option import table_parameters
from phaze.study.schema import TrainingTable


def test_type_checkers_see_the_keys_that_the_tables_state() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "python -m tools.key_stubs writes it anew"


def test_an_option_of_a_job_is_a_key_of_a_study_by_its_statement() -> None:
    options = [
        one.option for table in (JobOptions, ParallelOptions) for one in table_parameters(table)
    ]
    keys = {
        one.key.removeprefix("training."): one for one in options if one.key.startswith("training.")
    }
    assert set(keys) == {field.name for field in FIELDS["TrainingKeys"]}
    for key, option in keys.items():
        assert TrainingTable.model_fields[key].description == option.description
