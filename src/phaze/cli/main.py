"""The ``phaze`` command: the list of commands, and the way in."""

import sys
from typing import Annotated

import typer

from phaze import __version__
from phaze.cli import calibrate, chips, clusters, estimate, graph, kernels, models, schema, stacks, validate
from phaze.cli.answer import exit_code_of

TOUR = """Search the AI accelerator and the way training runs on many of them, together.

[bold]Look around[/bold]

  phaze chips                     the chips that come along
  phaze chips tpu-v4              one of them: its parts, its area, its cost
  phaze chips my-chip.toml        your own
  phaze chips --space paper --count
  phaze clusters dgx-h100         how devices are joined
  phaze stacks                    what training frameworks fuse, hide and spend
  phaze models                    the models that come along
  phaze graph --model llama2-7b --tensor 4    what one of them runs
  phaze estimate --gemm 1x4096x4096x4096 --chip tpu-v4
  phaze validate --silicon        our area and power against published dies
  phaze schema chip               what a file may hold

Every command takes --json (one document on standard output) and --help.
Exit codes: 0 an answer, 2 bad input, 3 nothing feasible, 1 a fault of phaze.
"""

app = typer.Typer(
    name="phaze",
    help=TOUR,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command()(chips.chips)
app.command()(clusters.clusters)
app.command()(stacks.stacks)
app.command()(models.models)
app.command()(graph.graph)
app.command()(estimate.estimate)
app.command()(calibrate.calibrate)
app.command()(validate.validate)
app.command()(schema.schema)
app.command(hidden=True)(kernels.kernels)


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"phaze {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the ``phaze`` script."""
    sys.exit(exit_code_of(app, sys.argv[1:]))
