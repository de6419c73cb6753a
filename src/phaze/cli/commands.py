"""The commands of the tour, as one application; each is imported only when it is asked for."""

import inspect
import sys
from collections.abc import Callable, Container
from importlib import import_module
from typing import Annotated

import typer

from phaze import __version__, api
from phaze.cli.command import command
from phaze.cli.help_text import help_of
from phaze.cli.tour import COMMANDS, HIDDEN, PANELS, TOUR, Command


def _print_version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"phaze {__version__}\n")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    pass


def _unnamed() -> None:
    """Stands in ``phaze --help`` for a command that is not run, so that its module is not
    imported."""


def command_named(name: str) -> "Callable[..., None] | typer.Typer":
    """The command of a name, or the application of one that has commands of its own."""
    listed = COMMANDS.get(name, Command(name, ""))
    if listed.help:
        return command(getattr(api, name), listed)
    module = import_module(f"phaze.cli.{name}")
    return module.app if hasattr(module, "app") else command(getattr(module, name))


def _add(app: typer.Typer, listed: Command, panel: str) -> None:
    made_of = command_named(listed.name)
    if isinstance(made_of, typer.Typer):
        app.add_typer(made_of, name=listed.name, rich_help_panel=panel, short_help=listed.gives)
        return
    text = help_of(inspect.getdoc(made_of) or "")
    app.command(listed.name, rich_help_panel=panel, short_help=listed.gives, help=text)(made_of)


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
        for listed in panel.commands:
            if names is None or listed.name in names:
                _add(app, listed, panel.title)
            else:
                app.command(listed.name, rich_help_panel=panel.title, short_help=listed.gives)(
                    _unnamed
                )
    for name in HIDDEN:
        if names is None or name in names:
            hidden = command_named(name)
            assert not isinstance(hidden, typer.Typer)
            app.command(name, hidden=True)(hidden)
    return app


def application_for(arguments: list[str]) -> typer.Typer:
    """The application that a command line needs: only the command that it begins with is
    imported."""
    return application(arguments[:1])
