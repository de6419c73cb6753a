"""The fields of files that follow from the tables of options."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, create_model

from phaze.documents import Document
from phaze.options import values
from phaze.options.jobs import JobOptions, ParallelOptions
from phaze.options.option import REQUIRED, Option, table_parameters


@dataclass(frozen=True, slots=True)
class KeyField:
    """A key of a file: the name of its type in :mod:`.values`, and what holds where the file does
    not state it."""

    name: str
    kind: str
    unstated: Any = REQUIRED
    description: str = ""

    def definition(self) -> Any:
        """As pydantic takes it."""
        kind = getattr(values, self.kind)
        if self.unstated is None:
            kind = kind | None
        if self.description:
            kind = Annotated[kind, Field(description=self.description)]
        return kind, ... if self.unstated is REQUIRED else self.unstated


def job_options() -> dict[str, Option]:
    """The options of a training job and of its plans, by name."""
    parameters = [*table_parameters(JobOptions), *table_parameters(ParallelOptions)]
    return {parameter.name: parameter.option for parameter in parameters}


def study_keys(table: str) -> list[KeyField]:
    """Every option whose key stands in this table of a study; None is as the rules have it."""
    fields = []
    for option in job_options().values():
        place, _, key = option.key.rpartition(".")
        if place == table:
            fields.append(KeyField(key, option.choices or option.value, None, option.description))
    return fields


def job_keys(required: Sequence[str], optional: Sequence[str]) -> list[KeyField]:
    """Options of a job, one value each; what is optional is None where the job does not state
    it."""
    fields = []
    for name in (*required, *optional):
        option = job_options()[name]
        # The sentence of an option with choices speaks of several values.
        description = "" if option.choices else option.description
        fields.append(
            KeyField(name, option.value, REQUIRED if name in required else None, description)
        )
    return fields


def plan_keys(*names: str) -> list[KeyField]:
    """The value of each option in a plan, and what holds where the plan does not state it."""
    options = job_options()
    return [KeyField(name, options[name].value, options[name].unstated) for name in names]


def choice_keys(*names: str) -> list[KeyField]:
    """What plans were chosen from; None is what is usual."""
    options = job_options()
    return [KeyField(name, options[name].choices or options[name].value, None) for name in names]


def document(name: str, fields: Sequence[KeyField]) -> type[Document]:
    """A document of these fields."""
    definitions: dict[str, Any] = {field.name: field.definition() for field in fields}
    return create_model(name, __base__=Document, **definitions)
