"""A function of the API: its signature, its documentation and the reading of its values follow from
its options."""

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from phaze.api.values import Answer
from phaze.errors import InputError
from phaze.options.arguments import LONGEST_NAME
from phaze.options.option import Parameter, parameters_of

P = ParamSpec("P")
T = TypeVar("T")
# A parameter's name of now, or what makes arguments of now from those that were given.
Former = str | Callable[..., dict[str, Any]]


def file_fault(fault: OSError) -> InputError | None:
    """What is wrong with a file that was named; None of one of the package: that is nobody else's
    fault."""
    named = fault.filename
    if named is None or isinstance(named, int):
        return None
    path = os.fsdecode(named)
    if Path(path).absolute().is_relative_to(Path(__file__).parents[1]):
        return None
    return InputError(path[:LONGEST_NAME], fault.strerror or "it cannot be used")


def _documented(text: str | None, parameters: list[Parameter]) -> str:
    """A docstring with the section of its parameters before that of what is returned."""
    before, returns, after = (text or "").partition("    Returns:\n")
    section = "\n".join(["    Args:", *(parameter.document for parameter in parameters)])
    return f"{before}{section}\n\n{returns}{after}"


def _signature(parameters: list[Parameter], result: Any) -> inspect.Signature:
    stated = [
        inspect.Parameter(
            parameter.name, parameter.kind, default=parameter.default, annotation=parameter.type
        )
        for parameter in parameters
    ]
    return inspect.Signature(stated, return_annotation=result)


def _now(
    name: str, former: Mapping[str, Former], args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Arguments by their names of now; a former name works for one release, with a note."""
    for old, new in former.items():
        if old not in options:
            continue
        if new in options:
            raise TypeError(f"{name}() got both '{new}' and '{old}', its former name")
        before = set(options)
        if isinstance(new, str):
            options = {new if key == old else key: value for key, value in options.items()}
        else:
            args, options = (), new(*args, **options)
        names = " or ".join(f"{key}=" for key in sorted(set(options) - before))
        note = f"{name}({old}=...) is called {names} now; the former name ends with this release"
        warnings.warn(note, DeprecationWarning, stacklevel=3)
    return args, options


def api_renamed(
    **changed: Callable[..., dict[str, Any]],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function of the API that also takes parameters of before, each with what makes those
    of now from it."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters = parameters_of(function)
        signature = _signature(parameters, inspect.signature(function).return_annotation)
        readers = {parameter.name: (parameter.flag, parameter.reader) for parameter in parameters}
        former = {
            parameter.option.former: parameter.name
            for parameter in parameters
            if parameter.option.former
        } | changed

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            arguments, options = _now(function.__name__, former, args, dict(kwargs))
            bound = signature.bind(*arguments, **options)
            for name, value in bound.arguments.items():
                flag, reader = readers[name]
                if reader is not None and value is not None:
                    bound.arguments[name] = reader(flag, value)
            bound.apply_defaults()
            try:
                answer = function(*bound.args, **bound.kwargs)
                page = bound.arguments.get("html")
                if page is not None and isinstance(answer, Answer):
                    answer.page(page)
                return answer
            except OSError as fault:
                refusal = file_fault(fault)
                if refusal is None:
                    raise
                raise refusal from fault

        called.__signature__ = signature  # type: ignore[attr-defined]
        called.parameters = parameters  # type: ignore[attr-defined]
        called.__doc__ = _documented(function.__doc__, parameters)
        return called

    return decorate


def api(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function take its options as its command does, and refuse in the same sentence what
    they cannot be."""
    return api_renamed()(function)
