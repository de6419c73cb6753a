"""From pydantic's list of faults to the one sentence a person needs: path, value seen, what is
allowed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from phaze.errors import InputError, nearest

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "int_type": "give a whole number",
        "int_from_float": "give a whole number",
        "float_type": "give a number",
        "string_type": "give a text in quotes",
        "bool_type": "give true or false",
        "tuple_type": "give a list",
        "list_type": "give a list",
        "dict_type": "give a table of keys",
        "model_type": "give a table of keys",
        "model_attributes_type": "give a table of keys",
        "finite_number": "give a finite number",
    }
)
BOUNDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "greater_than": ("gt", "it must be greater than {}"),
        "greater_than_equal": ("ge", "it must be at least {}"),
        "less_than": ("lt", "it must be less than {}"),
        "less_than_equal": ("le", "it must be at most {}"),
    }
)


def spell_path(steps: tuple[int | str, ...]) -> str:
    """``("levels", 0, "size")`` as ``levels[0].size``."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


def spell_value(value: Any, limit: int = 60) -> str:
    """A value as it would stand in a file, cut to a readable length."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table of keys"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) > 10**18:
        return "a number beyond all bounds"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def keys_at(model: type[BaseModel], steps: tuple[int | str, ...]) -> list[str]:
    """The keys that ``model`` allows at the place that ``steps`` leads to; empty where it cannot be
    told."""
    here = [model]
    for step in steps:
        fields = [
            m.model_fields[step] for m in here if isinstance(step, str) and step in m.model_fields
        ]
        if fields:
            here = [inner for field in fields for inner in _models_in(field.annotation)]
    return sorted({field.alias or name for m in here for name, field in m.model_fields.items()})


def _sentence(model: type[BaseModel], fault: ErrorDetails) -> tuple[str, str]:
    kind, value, context = fault["type"], spell_value(fault["input"]), fault.get("ctx", {})
    last = fault["loc"][-1] if fault["loc"] else ""
    if kind == "extra_forbidden":
        return f"unknown key '{last}'", nearest(str(last), keys_at(model, fault["loc"][:-1]))
    if kind == "missing":
        return "this key is missing", "add it"
    if kind in BOUNDS:
        name, text = BOUNDS[kind]
        return f"{value} is out of range", text.format(context.get(name))
    if kind in ("literal_error", "enum"):
        choices = [
            c.strip(" '") for c in str(context.get("expected", "")).replace(" or ", ", ").split(",")
        ]
        return f"{value} is not known here", nearest(str(fault["input"]), choices)
    if kind in ("value_error", "assertion_error"):
        return f"{value} cannot be used", str(context.get("error", fault["msg"]))
    if kind in KINDS:
        return f"{value} is of the wrong type", KINDS[kind]
    message = fault["msg"].replace("Tuple should", "List should")  # files have lists alone
    return f"{value} cannot be used", message[:1].lower() + message[1:]


def _is_plain(step: int | str) -> bool:
    """Whether a step names a form of one word: a text, a choice, true or false."""
    return step in ("str", "bool", "constrained-str") or str(step).startswith("literal[")


def _of_one_form(faults: list[ErrorDetails]) -> list[ErrorDetails]:
    """Where a value may have several forms, only what is wrong in the form that it has: a list of
    tables is no text, but that is not what is wrong with it."""

    def other_form(fault: ErrorDetails) -> bool:
        steps = fault["loc"]
        if (
            not steps
            or not _is_plain(steps[-1])
            or isinstance(fault["input"], str | bool | int | float)
        ):
            return False
        others = [other["loc"] for other in faults if other["loc"][: len(steps) - 1] == steps[:-1]]
        return any(
            len(other) >= len(steps) and not _is_plain(other[len(steps) - 1]) for other in others
        )

    return [fault for fault in faults if not other_form(fault)]


def _is_form(step: int | str) -> bool:
    """Whether a step names one of the forms that a value may have, which no file spells: a kind, or
    a class."""
    kinds = ("list[", "function-", "constrained-", "literal[")
    return isinstance(step, str) and (
        step.startswith(kinds) or (step[:1].isupper() and step.isidentifier())
    )


def first_fault(model: type[BaseModel], error: ValidationError, where: str) -> InputError:
    """The fault to report first: an unknown key explains a missing one, so it goes before."""
    reported = _of_one_form(error.errors(include_url=False))
    faults = sorted(reported, key=lambda fault: fault["type"] != "extra_forbidden")
    fault = faults[0]
    steps = fault["loc"][:-1] if fault["type"] == "extra_forbidden" else fault["loc"]
    path = spell_path(tuple(step for step in steps if not _is_form(step)))
    problem, remedy = _sentence(model, fault)
    return InputError(f"{where}: {path}" if path else where, problem, remedy)
