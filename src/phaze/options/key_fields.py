"""The fields of files that follow from the tables of options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, create_model

from phaze.documents import Document
from phaze.options import values
from phaze.options.jobs import JobOptions
from phaze.options.option import REQUIRED, Option, table_parameters
from phaze.options.parallel import ParallelOptions
from phaze.options.studies import GapOptions
from phaze.options.study_keys import StudyKeys

# In the schema of a file: what holds where a key is not stated and something else decides.
UNSTATED = "unstated"


@dataclass(frozen=True, slots=True)
class KeyField:
    """A key of a file: the name of its type in :mod:`.values`, and what holds where the file does
    not state it, for None in words."""

    name: str
    kind: str
    unstated: Any = REQUIRED
    description: str = ""
    words: str = ""

    def definition(self) -> Any:
        """As pydantic takes it."""
        kind = getattr(values, self.kind)
        if self.unstated is None:
            kind = kind | None
        if self.description:
            words: dict[str, Any] | None = {UNSTATED: self.words} if self.words else None
            kind = Annotated[kind, Field(description=self.description, json_schema_extra=words)]
        return kind, ... if self.unstated is REQUIRED else self.unstated


def job_options() -> dict[str, Option]:
    """The options of a training job and of its plans, by name."""
    parameters = [*table_parameters(JobOptions), *table_parameters(ParallelOptions)]
    return {parameter.name: parameter.option for parameter in parameters}


def study_options() -> dict[str, Option]:
    """What stands for a key of a study, an option of a command or not, by that key."""
    parameters = [*table_parameters(GapOptions), *table_parameters(StudyKeys)]
    options = [*job_options().values(), *(parameter.option for parameter in parameters)]
    return {option.key: option for option in options if option.key}


def study_keys(table: str) -> list[KeyField]:
    """Every key of this table of a study; None is as the rules, or something else, have it."""
    fields = []
    for path, option in study_options().items():
        place, _, key = path.rpartition(".")
        kind = option.choices or option.value
        if place == table and kind:
            unstated = list(option.default) if isinstance(option.default, tuple) else option.default
            words = option.default_words
            fields.append(KeyField(key, kind, unstated, option.description, words))
    return fields


def rule_default(key: str, rules: str) -> Any:
    """What a key of a study is under ``rules`` where the study does not state it, read as the study
    is; None where something else of the study decides."""
    option = study_options()[key]
    stated = None if option.rules is None else option.rules.under(rules)
    kind = option.choices or option.value
    if stated is None or not kind:
        return stated
    return TypeAdapter(getattr(values, kind)).validate_python(stated)


def job_keys(required: Sequence[str], optional: Sequence[str]) -> list[KeyField]:
    """Options of a job, one value each; what is optional is None where the job does not state
    it."""
    fields = []
    for name in (*required, *optional):
        option = job_options()[name]
        # The sentence of an option with choices speaks of several values.
        several = (option.description, option.default_words)
        meaning, words = option.of_one if option.choices else several
        stated = name in required
        fields.append(
            KeyField(
                name, option.value, REQUIRED if stated else None, meaning, "" if stated else words
            )
        )
    return fields


def plan_keys(*names: str) -> list[KeyField]:
    """The value of each option in a plan, and what holds where the plan does not state it."""
    fields = []
    for name in names:
        option = job_options()[name]
        meaning, words = option.of_one
        fields.append(KeyField(name, option.value, option.unstated, meaning, words))
    return fields


def choice_keys(*names: str) -> list[KeyField]:
    """What plans were chosen from; None is what is usual."""
    options = job_options()
    return [KeyField(name, options[name].choices or options[name].value, None) for name in names]


def document(name: str, fields: Sequence[KeyField]) -> type[Document]:
    """A document of these fields."""
    definitions: dict[str, Any] = {field.name: field.definition() for field in fields}
    return create_model(name, __base__=Document, **definitions)
