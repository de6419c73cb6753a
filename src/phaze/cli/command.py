"""Commands made of functions: options, defaults and spellings follow from the tables of options."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from phaze.api.values import Answer, NothingFitsError
from phaze.cli.answer import print_answer
from phaze.cli.tour import Command
from phaze.errors import InputError
from phaze.options.option import REQUIRED, Parameter, parameters_of
from phaze.report.progress import on_standard_error

# What every command takes besides.
SHARED = (
    ("as_json", "--json", "Print one JSON document on standard output."),
    ("pretty", "--pretty", "With --json: indent the document."),
)


def _metavar(kind: Any) -> str | None:
    """What the help shows for a value: that it is a number, or the names to choose from."""
    kinds = [kind] if get_origin(kind) is Literal else get_args(kind) or (kind,)
    kinds = [kind for kind in kinds if kind is not NoneType]
    if len(kinds) != 1:
        return None
    if get_origin(kinds[0]) is Literal:
        return f"<{'|'.join(get_args(kinds[0]))}>"
    return {int: "<int>", float: "<float>"}.get(kinds[0])


def _keyword(name: str, kind: Any, about: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, about]
    )


def _option(parameter: Parameter, default: Any) -> inspect.Parameter:
    """An option of a command: a switch, or texts that the function reads."""
    option, flag = parameter.option, parameter.flag
    default = None if default == () else default
    if parameter.type is bool:
        switch = f"{flag}/--no-{flag.removeprefix('--')}" if default is True else flag
        return _keyword(parameter.name, bool, typer.Option(switch, help=parameter.help), default)
    several = option.repeatable or get_origin(parameter.type) is Sequence
    kind: Any = list[str] if several else str
    kind = kind if default is REQUIRED else kind | None
    metavar = _metavar(parameter.type)
    if option.argument:
        return _keyword(
            parameter.name, kind, typer.Argument(help=parameter.help, metavar=metavar), default
        )
    return _keyword(
        parameter.name, kind, typer.Option(flag, help=parameter.help, metavar=metavar), default
    )


def _require_values(parameters: Sequence[Parameter], options: Mapping[str, Any]) -> None:
    """Refuse an option that stands where the value of another was forgotten: ``--html --json``."""
    for parameter in parameters:
        value = options.get(parameter.name)
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str) and text.startswith("--") and text != "--":
                raise InputError(
                    parameter.flag, f"'{text}' is an option, not a value", "give its value"
                )


def _read(parameters: Sequence[Parameter], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as values, each with its default where it is not given."""
    values = {}
    for parameter in parameters:
        text = options.get(parameter.name)
        if text is None:
            values[parameter.name] = parameter.default
        else:
            values[parameter.name] = (
                parameter.reader(parameter.flag, text) if parameter.reader else text
            )
    return values


def command(function: Callable[..., Answer], listed: Command | None = None) -> Callable[..., None]:
    """Make a command of a function: it is called with what was given, and what it returns, or that
    nothing is feasible, is printed. A function of the API has the help and the defaults with which
    it is ``listed``."""
    of_api: list[Parameter] | None = getattr(function, "parameters", None)
    always = (listed and listed.always) or {}
    usual = (listed and listed.defaults) or {}
    parameters = [
        parameter for parameter in of_api or parameters_of(function) if parameter.name not in always
    ]
    watched = "progress" in inspect.signature(function).parameters

    @functools.wraps(function)
    def run(as_json: bool, pretty: bool, **options: Any) -> None:
        _require_values(parameters, options)
        values = {**_read(parameters, options), **always}
        try:
            if of_api is not None:  # it tells its steps itself
                value = function(**values)
            else:
                with on_standard_error() as progress:
                    progress.step(f"phaze {function.__name__}")
                    value = function(**values, **({"progress": progress} if watched else {}))
        except NothingFitsError as fault:
            value = Answer(fault.document, fault.sections, exit_code=fault.exit_code)
        print_answer(value, as_json, pretty)

    signature = [
        _option(parameter, usual.get(parameter.name, parameter.default)) for parameter in parameters
    ]
    signature += [
        _keyword(name, bool, typer.Option(flag, help=text), False) for name, flag, text in SHARED
    ]
    run.__signature__ = inspect.Signature(signature, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    run.__doc__ = listed.help if listed and listed.help else function.__doc__
    return run
