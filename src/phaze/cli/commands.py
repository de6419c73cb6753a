"""The commands of the tour, as one application; each is imported only when it is asked for."""

import sys
from importlib import import_module
from typing import Annotated

import typer

from phaze import __version__
from phaze.cli.help_text import help_of
from phaze.cli.tour import HIDDEN, PANELS, TOUR


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"phaze {__version__}\n")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def application(named: str | None = None) -> typer.Typer:
    """The application with every command, or with the one that is named."""
    app = typer.Typer(
        name="phaze",
        help=TOUR,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for panel in PANELS:
        for name, gives in panel.commands:
            if named in {None, name}:
                module = import_module(f"phaze.cli.{name}")
                if hasattr(module, "app"):  # a command with commands of its own
                    app.add_typer(module.app, name=name, rich_help_panel=panel.title, short_help=gives)
                else:
                    function = getattr(module, name)
                    shown = help_of(function)
                    app.command(rich_help_panel=panel.title, short_help=gives, help=shown)(function)
    for name in HIDDEN:
        if named in {None, name}:
            app.command(hidden=True)(getattr(import_module(f"phaze.cli.{name}"), name))
    return app


def application_for(arguments: list[str]) -> typer.Typer:
    """The application that a command line needs: with its command alone if it begins with one."""
    names = {*HIDDEN, *(name for panel in PANELS for name, _ in panel.commands)}
    return application(arguments[0] if arguments and arguments[0] in names else None)
