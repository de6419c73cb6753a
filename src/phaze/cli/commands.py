"""The list of commands."""

import sys
from typing import Annotated

import typer

from phaze import __version__
from phaze.cli import (
    bench,
    cache,
    calibrate,
    chips,
    clusters,
    compare,
    doctor,
    estimate,
    explain,
    export,
    front,
    graph,
    kernels,
    models,
    new,
    place,
    plan,
    report,
    schedule,
    schema,
    search,
    stacks,
    study,
    sweep,
    technologies,
    validate,
    verify,
    view,
)

TOUR = """Search the AI accelerator and the way training runs on many of them, together.

[bold]Look around[/bold]

  phaze chips                     the built-in chips
  phaze chips tpu-v4              one of them: its parts, its area, its cost
  phaze chips my-chip.toml        your own
  phaze chips --space n5-reticle --count
  phaze clusters dgx-h100         how devices are joined
  phaze stacks                    what training frameworks fuse, hide and spend
  phaze technologies n5           a process: area, energy, wafer
  phaze models                    the built-in models
  phaze schema chip               what a file may hold

[bold]Start[/bold]

  phaze new study --node n5 --area 800 --power 700       a commented file that runs
  phaze new chip | space | cluster | stack | model       the same for each
  phaze plan --model my_model.py:build --chip h100 --devices 64 --batch 4M-tokens

[bold]Ask[/bold]

  phaze graph --model llama2-7b --tensor 4               what a model runs
  phaze estimate --gemm 1x4096x4096x4096 --chip tpu-v4   what an operator takes
  phaze schedule layer.json       the least makespan of operators on one chip
  phaze place profile.json        the fastest split of layers over devices
  phaze plan --fixed run.json     what a given plan takes, and whether it fits
  phaze search --model llama3-8b  the best chip and placement together, proved
  phaze study check study.toml    what a search would be asked
  phaze compare --run runs/llama3-8b --chip h100         chips side by side
  phaze sweep --model llama3-8b --over training.devices=64..4096    along a range
  phaze front --model llama3-8b --of throughput,price    what none beats

[bold]Take along[/bold]

  phaze report runs/llama3-8b     the page of a run, one HTML file
  phaze view                      all runs of a folder in a browser, live
  phaze export runs/llama3-8b --to csv                   every chip as a row
  phaze export plan.json --to megatron                   launch flags of a plan

[bold]Doubt[/bold]

  phaze explain runs/llama3-8b    why this chip, and what more would buy
  phaze verify runs/llama3-8b     the proof of a search, checked again
  phaze validate --silicon        our area and power against published dies
  phaze validate --operators      our times against measured ones
  phaze calibrate measured.csv --chip a100-80gb          your own constants
  phaze bench                     our times beside published ones and peers

[bold]Housekeeping[/bold]

  phaze doctor                    what is installed, what is missing for what
  phaze cache                     traced graphs of your own models

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
app.command()(technologies.technologies)
app.command()(models.models)
app.command()(schema.schema)
app.command()(graph.graph)
app.command()(estimate.estimate)
app.command()(schedule.schedule)
app.command()(place.place)
app.command()(plan.plan)
app.command()(validate.validate)
app.command()(calibrate.calibrate)
app.command()(new.new)
app.command()(search.search)
app.command()(report.report)
app.command()(view.view)
app.command()(export.export)
app.add_typer(study.app, name="study")
app.command()(verify.verify)
app.command()(compare.compare)
app.command()(bench.bench)
app.command()(sweep.sweep)
app.command()(front.front)
app.command()(explain.explain)
app.command()(cache.cache)
app.command()(doctor.doctor)
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
