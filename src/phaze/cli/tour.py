"""``phaze --help``: the commands by what people want to do, each with its help and its examples.

A command that has a function in :mod:`phaze.api` is that function, with the options of its table;
another one is a module here. One that is not listed does not exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

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
class Command:
    """A command: what it gives, and its help, which ends with examples (``·`` parts them).
    ``defaults`` are those that differ from the function's, ``always`` is what it is called with
    besides."""

    name: str
    gives: str
    help: str = ""
    defaults: Mapping[str, Any] | None = None
    always: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Commands that serve one wish, in the order of ``--help``."""

    title: str
    commands: tuple[Command, ...]


# A value of Python keeps its folder as long as it lives, and a process that Python starts runs the
# script that started it again; commands name a folder and use every core.
def _in_folder(folder: str) -> Mapping[str, Any]:
    return MappingProxyType({"out": folder, "workers": 0})


PAGE: Final[Mapping[str, Any]] = MappingProxyType({"page": True})

PANELS: Final = (
    Panel(
        "Plan training on chips that exist",
        (
            Command(
                "plan",
                "TP, PP, DP, microbatch, recompute of a job: does it fit?",
                """Plan a training job on given devices: TP, PP, DP, CP, EP, VPP, ZeRO, microbatch, recompute.
Will it fit?

Examples: phaze plan --model llama2-7b --chip a100-80gb --devices 64 --batch 4M-tokens --tokens 2T ·
phaze plan --model my_model.py:build --chip h100 --devices 64 --batch 512 ·
phaze plan --fixed run.json ·
phaze plan --model mixtral-8x7b --chip h100 --devices 64 --batch 512 --expert 1,8 --context 1,2 ·
phaze plan --model llama3-8b --chip h100 --devices 64 --batch 256 --stack torchtitan-eager --family 1f1b,zb-v ·
phaze plan --against launch.sh --model llama3-8b --chip h100 --devices 64 ·
phaze plan --model llama3-8b --chip h100 --devices 64 --batch 512 --over devices=64..256 --over chip=h200,b200 ·
phaze plan --model llama2-7b --chip a100-80gb --devices 64 --batch 512 --certificate runs/proof""",
            ),
            Command(
                "compare",
                "chips on the same job, each with its best plan",
                """Compare chips: throughput of every model, and its ratio to the study's baseline chip.

Without a study or --model that of the first --run is used. All chips have the same constants unless
--basis is own.

Examples: phaze compare --run runs/llama3-8b --chip h100 ·
phaze compare --model bert-large --rules icml24 --chips rows.csv""",
            ),
        ),
    ),
    Panel(
        "Search the chip and the plan together",
        (
            Command(
                "search",
                "the best chip and plan within a budget, certified",
                """Search the best chip and the best plan on it together, to a proven gap.

A stopped run resumes with the same command.

Examples: phaze search --model llama3-8b ·
phaze search --model bert-large --rules icml24 ·
phaze search study.toml --engine ray ·
phaze search study.toml --batch 4M-tokens --tokens 2T --out runs/priced""",
                _in_folder("runs/{name}"),
                PAGE,
            ),
            Command(
                "front",
                "the Pareto front of two or three metrics, certified",
                """Find the Pareto front of two or three metrics, with a certificate for each design.

Metrics: throughput, area, power, price and embodied (manufacturing a chip), energy, cost and carbon (of
a step). A stopped front resumes with the same command.

Examples: phaze front --model llama3-8b --of throughput,price ·
phaze front study.toml --of throughput,carbon,price --within power=300""",
                _in_folder("runs/{name}-front"),
                PAGE,
            ),
            Command(
                "sweep",
                "the certified best along a range: devices, links, batch, ...",
                """Search along a range: the certified best chip and plan for each value of one key of a study.

A stopped sweep resumes with the same command; phaze plan --over sweeps plans on a given chip.

Examples: phaze sweep --model llama3-8b --over budget.power=400..700 ·
phaze sweep study.toml --over training.devices=64,256,1024 ·
phaze sweep --model bert-large --rules icml24 --over cluster.link_bytes_per_s=1e9..1e12 --points 4""",
                _in_folder("runs/{name}-sweep"),
                PAGE,
            ),
            Command("new", "a commented study, space, chip, cluster, stack or model file"),
        ),
    ),
    Panel(
        "Understand and verify",
        (
            Command(
                "explain",
                "why this chip, marginal values, near-ties, sensitivity",
                """Explain the answer of a search: neighbours, near-ties, what the next mm2, W or device would gain.

Every number is computed exactly, one chip at a time or by another certified search, and stored in the
run as explanation.json with the results of earlier calls; phaze report then shows it.

Examples: phaze explain runs/demo --flatness 3% ·
phaze explain runs/demo --held-out gpt3-175b --compare b200 ·
phaze explain runs/demo --instead clusters=12 ·
phaze explain runs/demo --constants ·
phaze explain runs/demo --ranges --error 0.2""",
            ),
            Command(
                "verify",
                "check the certificate of a run by independent code",
                """Check the certificate of a run: the claim in words, then whether it holds, every chip of the space.

The checker shares no code with the search. Exit code 0: it holds; 1: it does not; 3: this kind of run
is not checkable yet (docs/search.md lists them).

Examples: phaze verify runs/bert-large ·
phaze verify runs/mine --study mine.toml ·
phaze verify runs/proof""",
            ),
            Command(
                "validate",
                "our times, areas and powers against measured ones",
                """Compare estimates with published figures: whole training runs, operators, or silicon.

Examples: phaze validate ·
phaze validate --set sc21 --rows ·
phaze validate my_runs.csv ·
phaze validate --best""",
            ),
            Command(
                "calibrate",
                "fit a chip's constants on your measurements",
                """Fit a chip's constants to measured operators, or those of chip, network and stack to your own run.

A row is a GEMM (operator gemm; batch, m, n, k) or a vector operator (its kind; elements, rows) with its
seconds. A trace or log of a run fits what it determines, lists what it does not, and writes files for
phaze plan.

Examples: phaze calibrate a100.csv --chip a100-80gb --out my-a100.toml ·
phaze calibrate --trace rank0.json.gz --trace rank1.json.gz --run run.json --out mine""",
            ),
        ),
    ),
    Panel(
        "View and export",
        (
            Command(
                "report",
                "one HTML page of a run, front, sweep or plan",
                """Write the page of a run, front, sweep or plan: one self-contained HTML file.

Examples: phaze report runs/llama3-8b ·
phaze report runs/llama3-8b-front ·
phaze report plan.json --out plan.html""",
            ),
            Command("view", "all runs of a folder in a browser, live"),
            Command(
                "export",
                "launch flags, traces, tables",
                """Write launch files (Megatron-LM, torchtitan, MaxText, DeepSpeed), traces (Chakra, Perfetto),
or tables.

Examples: phaze export plan.json --to megatron ·
phaze export plan.json --to chakra --out traces ·
phaze export runs/llama3-8b --to parquet --out chips.parquet""",
            ),
        ),
    ),
    Panel(
        "Single problems",
        (
            Command(
                "graph",
                "the operators that a model runs on one rank",
                """Show a model as layers of operators, forward and backward, on one rank.

Examples: phaze graph --model llama2-7b --tensor 4 ·
phaze graph --model my.py:build --check ·
phaze graph --gpt hidden=4096,layers=36,heads=32,vocabulary=51200 --sequence 2048 --json""",
            ),
            Command(
                "estimate",
                "time, mapping, traffic, energy of an operator or collective",
                """Time, bound, mapping, traffic and energy of an operator.

Examples: phaze estimate --gemm 1x4096x4096x4096 --chip tpu-v4 ·
phaze estimate --vector softmax:16777216:4096 --chip a100-80gb ·
phaze estimate --collective all_reduce:64MiB:8 --cluster selene""",
            ),
            Command(
                "schedule",
                "the least makespan of operators on one chip, with a proof",
                """Schedule operators on the cores of a chip: the least makespan, with a proof.

The operators are those of files, or of a layer of a model, one line for each file or pass with --json.

Examples: phaze schedule layer.json --perfetto trace.json ·
phaze schedule --model llama2-7b --chip tpu-v4 --pass backward ·
phaze schedule --model my.py:build --chip h100 --tensor 4 --rules overlap""",
            ),
            Command(
                "place",
                "the fastest split of layers over devices, with a proof",
                """Place layers on devices: stages, DP, TP and recompute, proved to be the fastest.

One line for each file with --json, in order.

Examples: phaze place profile.json ·
phaze place *.json --json ·
phaze place profile.json --perfetto trace.json""",
            ),
        ),
    ),
    Panel(
        "Library",
        (
            Command(
                "chips",
                "chips, and the chips of a space",
                """List chips, or show one: parts, area, power, cost.

Examples: phaze chips ·
phaze chips tpu-v4 ·
phaze chips my-chip.toml --json ·
phaze chips --space paper --count""",
            ),
            Command(
                "clusters",
                "clusters: network levels, bandwidths, latencies",
                """List clusters, or show one: its levels, bandwidths and latencies.

Examples: phaze clusters ·
phaze clusters dgx-h100 ·
phaze clusters my-cluster.toml --json""",
            ),
            Command(
                "stacks",
                "training frameworks: what they fuse, overlap and save",
                """List software stacks, or show one.

Examples: phaze stacks ·
phaze stacks megatron-core --json""",
            ),
            Command(
                "technologies",
                "processes: area, energy, wafer",
                """List process technologies, or show one: areas, energies, wafer, and the source of every number.

Examples: phaze technologies ·
phaze technologies n5 ·
phaze technologies my-process.toml --json""",
            ),
            Command(
                "models",
                "the built-in models",
                """List the built-in models, or show one.

Examples: phaze models ·
phaze models llama2-7b --json""",
            ),
            Command("schema", "the file formats, as JSON schemas"),
        ),
    ),
    Panel(
        "Housekeeping",
        (
            Command("cache", "traced graphs of your own models"),
            Command("doctor", "what is installed, what is missing for what"),
            Command("study", "check a study file before searching"),
        ),
    ),
)
# A command that set-up runs and --help does not list.
HIDDEN: Final = ("kernels",)
COMMANDS: Final = MappingProxyType(
    {command.name: command for panel in PANELS for command in panel.commands}
)
