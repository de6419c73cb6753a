"""The list of commands."""

import sys
from collections.abc import Callable
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

TOUR = """Plan training on chips that exist, or search the chip and the plan together.

The answer is proved: nothing in the searched space is better. A first look:

  phaze plan --model llama3-8b --chip h100 --devices 64 --batch 4M-tokens
  phaze search --model llama3-8b --out runs/first
  phaze verify runs/first

A model: a built-in name, a Hugging Face config.json, or my_model.py:build.
Each command has examples in its --help, and --json (one document).
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

# The commands by what people want to do, in the order of --help: (name, function, what it gives).
PANELS: tuple[tuple[str, tuple[tuple[Callable[..., None], str], ...]], ...] = (
    (
        "Plan training on chips that exist",
        (
            (plan.plan, "TP, PP, DP, microbatch, recompute of a job: does it fit?"),
            (compare.compare, "chips on the same job, each with its best plan"),
        ),
    ),
    (
        "Search the chip and the plan together",
        (
            (search.search, "the best chip and plan within a budget, certified"),
            (front.front, "the Pareto front of two or three metrics, certified"),
            (sweep.sweep, "the certified best along a range: devices, links, batch, ..."),
            (new.new, "a commented study, space, chip, cluster, stack or model file"),
        ),
    ),
    (
        "Understand and verify",
        (
            (explain.explain, "why this chip, marginal values, near-ties, sensitivity"),
            (verify.verify, "check the certificate of a run by independent code"),
            (validate.validate, "our times, areas and powers against measured ones"),
            (calibrate.calibrate, "fit a chip's constants on your measurements"),
            (bench.bench, "solver times beside published ones and peers"),
        ),
    ),
    (
        "View and export",
        (
            (report.report, "one HTML page of a run, front, sweep or plan"),
            (view.view, "all runs of a folder in a browser, live"),
            (export.export, "launch flags, traces, tables"),
        ),
    ),
    (
        "Single problems",
        (
            (graph.graph, "the operators that a model runs on one rank"),
            (estimate.estimate, "time, mapping, traffic, energy of an operator or collective"),
            (schedule.schedule, "the least makespan of operators on one chip, with a proof"),
            (place.place, "the fastest split of layers over devices, with a proof"),
        ),
    ),
    (
        "Library",
        (
            (chips.chips, "chips, and the chips of a space"),
            (clusters.clusters, "clusters: network levels, bandwidths, latencies"),
            (stacks.stacks, "training frameworks: what they fuse, overlap and save"),
            (technologies.technologies, "processes: area, energy, wafer"),
            (models.models, "the built-in models"),
            (schema.schema, "the file formats, as JSON schemas"),
        ),
    ),
)
LAST = "Housekeeping"

for _panel, _commands in PANELS:
    for _function, _gives in _commands:
        app.command(rich_help_panel=_panel, short_help=_gives)(_function)
app.add_typer(study.app, name="study", rich_help_panel=LAST, short_help="check a study file before searching")
app.command(rich_help_panel=LAST, short_help="traced graphs of your own models")(cache.cache)
app.command(rich_help_panel=LAST, short_help="what is installed, what is missing for what")(doctor.doctor)
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
