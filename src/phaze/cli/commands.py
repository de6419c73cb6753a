"""The commands of the tour, as one application; each is imported only when it is asked for."""

import sys
from collections.abc import Container
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


def _unnamed() -> None:
    """Stands in ``phaze --help`` for a command that is not run, so that its module is not imported."""


def _add(app: typer.Typer, name: str, panel: str, gives: str) -> None:
    module = import_module(f"phaze.cli.{name}")
    if hasattr(module, "app"):  # a command with commands of its own
        app.add_typer(module.app, name=name, rich_help_panel=panel, short_help=gives)
    else:
        function = getattr(module, name)
        app.command(rich_help_panel=panel, short_help=gives, help=help_of(function))(function)


def application(names: Container[str] | None = None) -> typer.Typer:
    """The application: every command, or of those not in ``names`` only the line in ``--help``."""
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
            if names is None or name in names:
                _add(app, name, panel.title, gives)
            else:
                app.command(name, rich_help_panel=panel.title, short_help=gives)(_unnamed)
    for name in HIDDEN:
        if names is None or name in names:
            app.command(hidden=True)(getattr(import_module(f"phaze.cli.{name}"), name))
    return app


def application_for(arguments: list[str]) -> typer.Typer:
    """The application that a command line needs: only the command that it begins with is imported."""
    return application(arguments[:1])
