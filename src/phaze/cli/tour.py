"""``phaze --help``: the commands by what people want to do.

``commands.py`` makes the commands of this list; a command that is not on it does not exist.
"""

from dataclasses import dataclass
from typing import Final

TOUR: Final = """Plan training on chips that exist, or search the chip and the plan together.

The answer is proved: nothing in the searched space is better. A first look:

  phaze plan --model llama3-8b --chip h100 --devices 64 --batch 4M-tokens
  phaze search --model llama3-8b --out runs/first
  phaze verify runs/first

A model: a built-in name, a Hugging Face config.json, or my_model.py:build.
Each command has examples in its --help, and --json (one document).
Exit codes: 0 an answer, 2 bad input, 3 nothing feasible, 1 a fault of phaze.
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """Commands that serve one wish, in the order of ``--help``: the name (its module's, too) and what it gives."""

    title: str
    commands: tuple[tuple[str, str], ...]


PANELS: Final = (
    Panel(
        "Plan training on chips that exist",
        (
            ("plan", "TP, PP, DP, microbatch, recompute of a job: does it fit?"),
            ("compare", "chips on the same job, each with its best plan"),
        ),
    ),
    Panel(
        "Search the chip and the plan together",
        (
            ("search", "the best chip and plan within a budget, certified"),
            ("front", "the Pareto front of two or three metrics, certified"),
            ("sweep", "the certified best along a range: devices, links, batch, ..."),
            ("new", "a commented study, space, chip, cluster, stack or model file"),
        ),
    ),
    Panel(
        "Understand and verify",
        (
            ("explain", "why this chip, marginal values, near-ties, sensitivity"),
            ("verify", "check the certificate of a run by independent code"),
            ("validate", "our times, areas and powers against measured ones"),
            ("calibrate", "fit a chip's constants on your measurements"),
        ),
    ),
    Panel(
        "View and export",
        (
            ("report", "one HTML page of a run, front, sweep or plan"),
            ("view", "all runs of a folder in a browser, live"),
            ("export", "launch flags, traces, tables"),
        ),
    ),
    Panel(
        "Single problems",
        (
            ("graph", "the operators that a model runs on one rank"),
            ("estimate", "time, mapping, traffic, energy of an operator or collective"),
            ("schedule", "the least makespan of operators on one chip, with a proof"),
            ("place", "the fastest split of layers over devices, with a proof"),
        ),
    ),
    Panel(
        "Library",
        (
            ("chips", "chips, and the chips of a space"),
            ("clusters", "clusters: network levels, bandwidths, latencies"),
            ("stacks", "training frameworks: what they fuse, overlap and save"),
            ("technologies", "processes: area, energy, wafer"),
            ("models", "the built-in models"),
            ("schema", "the file formats, as JSON schemas"),
        ),
    ),
    Panel(
        "Housekeeping",
        (
            ("cache", "traced graphs of your own models"),
            ("doctor", "what is installed, what is missing for what"),
            ("study", "check a study file before searching"),
        ),
    ),
)
# A command that set-up runs and --help does not list.
HIDDEN: Final = ("kernels",)
