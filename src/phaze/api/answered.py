"""The answer of a command as a value of the API."""

from collections.abc import Callable
from inspect import signature, unwrap
from typing import Any

from phaze.api.values import Shown
from phaze.cli.answer import Answer
from phaze.report.progress import on_standard_error


def answered(command: Callable[..., None], *arguments: Any, **options: Any) -> Shown:
    """What a command answers, as a value."""
    own: Callable[..., Answer] = unwrap(command)
    with on_standard_error() as progress:
        if "progress" in signature(own).parameters:
            options["progress"] = progress
        answer = own(*arguments, **options)
    return Shown(answer.documents[0], answer.show)
