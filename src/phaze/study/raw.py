"""A study as plain values: of a model with every default, of a file, with ``--set a.b=c`` put in;
not checked yet."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from phaze import documents
from phaze.errors import InputError
from phaze.files import is_path, read_text
from phaze.study.places import Origin, origin_of


def default_study(model: str, rules: str | None = None) -> dict[str, Any]:
    """The study of one model with everything at its default, that of ``rules`` if they are
    named."""
    study = {"schema": "phaze.study/1", "name": model, "models": [model]}
    return study if rules is None else {**study, "rules": rules}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def with_settings(raw: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """``raw`` with each ``a.b=c`` put in; c is a TOML value, or else a text."""
    values: dict[str, Any] = dict(raw)
    for setting in settings:
        path, equals, text = setting.partition("=")
        steps = [step.strip() for step in path.split(".")]
        if not equals or not all(steps):
            raise InputError(
                f"--set {setting}", "this is not of the form a.b=c", "e.g. training.batch=2048"
            )
        inner = values
        for step in steps[:-1]:
            below = inner.get(step, {})
            if not isinstance(below, dict):
                raise InputError(
                    f"--set {setting}", f"'{step}' is not a table", "name a key of a table"
                )
            inner[step] = dict(below)
            inner = inner[step]
        inner[steps[-1]] = _value(text.strip())
    return values


def given_paths(settings: Sequence[str]) -> frozenset[str]:
    """The values of ``a.b=c`` that may be paths: what a person gives on the command line lies in
    the working folder."""
    values = [_value(setting.partition("=")[2].strip()) for setting in settings]
    return frozenset(value for value in values if isinstance(value, str) and is_path(value))


def read_study(path: str) -> tuple[dict[str, Any], Origin]:
    """The plain values of a study's file, and where it comes from."""
    text, where = read_text(path)
    return documents.parse(text, documents.notation_of(path, text), where), origin_of(path, where)
