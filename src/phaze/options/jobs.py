"""Options of training jobs, and of ``plan``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from phaze.options.arguments import shards, share
from phaze.options.option import ByRules, Option
from phaze.options.parallel import Degrees, ParallelOptions

if TYPE_CHECKING:
    from phaze.graph.supply.module import ModuleSupply as Model

Sizes = str | Mapping[str, Any]
Source = str | Path | Mapping[str, Any]
BasisName = Literal["calibrated", "datasheet", "ideal"]

SOURCES = (
    "A name (see phaze models), a phaze.graph/1 file, a config.json of transformers, or "
    "path.py:function or "
    "package.module:function that returns (module, inputs) or (module, inputs, loss). "
    "Code of a model file is run only when you name it here."
)
ModelSource = Annotated[
    "str | Model | None", Option(SOURCES, python="In Python also a phaze.Model.")
]


class SizeOptions(TypedDict, total=False):
    """A model by its sizes."""

    gpt: Annotated[
        Sizes | None,
        Option(
            "A Megatron-style decoder by sizes: hidden=4096,layers=36, and heads, "
            "vocabulary, sequence."
        ),
    ]
    llama: Annotated[
        Sizes | None,
        Option(
            "A Llama-style decoder by sizes: hidden, layers, heads, kv_heads, head_dim, "
            "mlp, vocabulary, tied."
        ),
    ]


class DeviceOptions(TypedDict, total=False):
    """Where a job runs."""

    chip: Annotated[str | None, Option("A chip: a preset or the path of a file.")]
    cluster: Annotated[
        str | None, Option("A cluster: a preset or the path of a file; default: that of the chip.")
    ]
    stack: Annotated[
        str | None,
        Option("A software stack: a preset or the path of a file; default: that of the cluster."),
    ]


class JobOptions(TypedDict, total=False):
    """What is trained, whatever it runs on; in a study each is a key of ``training``."""

    devices: Annotated[
        int | None,
        Option(
            "Number of devices.",
            key="training.devices",
            value="Count",
            rules=ByRules(1024, 1024),
        ),
    ]
    batch: Annotated[
        int | str | None,
        Option(
            "Global batch in sequences, 1024, or tokens, 4M-tokens (M = 10^6; "
            "4Mi-tokens: 2^20), within 5 % of it as "
            "a round number of sequences.",
            key="training.batch",
            value="BatchSize",
            rules=ByRules(1024, 4096),
        ),
    ]
    sequence: Annotated[
        int | str | None,
        Option(
            "Sequence length in tokens, such as 4096 or 32k (k = 1024); default: the model's.",
            key="training.sequence",
            value="Length",
        ),
    ]
    shard: Annotated[
        Degrees | None,
        Option(
            "Hybrid sharding: over how many of the ranks with the same weights ZeRO "
            "shards, such as 8,16 or 8,all; "
            "default all.",
            python="In a list 0 is all.",
            former="shards",
            read=shards,
            of_plan="Hybrid sharding: how many of the context x data ranks with the same weights "
            "shard ZeRO's state; default: all.",
            key="training.shard",
            value="ShardRanks",
            choices="ShardChoices",
            unstated=None,
        ),
    ]
    attention: Annotated[
        Literal["eager", "fused", "best"] | None,
        Option(
            (
                "eager, fused (scores never leave the chip), or best of both; default: as "
                "the stack runs it."
            ),
            of_plan="Kind of attention; default: as the stack runs it, of a graph its own.",
            key="training.attention",
            value="Attention",
            choices="AttentionChoice",
            unstated="eager",
        ),
    ]
    precision: Annotated[
        str | None,
        Option(
            "bf16, fp32, fp8 (the stack's recipe), fp8-delayed, fp8-tensorwise, "
            "fp8-block, mxfp8 or nvfp4; "
            "default: the stack's.",
            key="training.precision",
            value="Precision",
        ),
    ]
    headroom: Annotated[
        str | float | None,
        Option(
            "Share of memory that a plan leaves free unless it is given, such as 6% or 0.06; "
            "default {rules}.",
            key="training.headroom",
            read=share,
            value="Headroom",
            # Nearly 5 GiB of an 80 GiB device: fragments and workspaces beyond the stack's reserve.
            rules=ByRules("6%", 0),
        ),
    ]
    tokens: Annotated[
        int | str | None,
        Option(
            (
                "Tokens to train on, 15T (T = 10^12): days, device hours, USD, kWh and kg "
                "CO2e of the run."
            ),
            key="training.tokens",
            value="TokenCount",
        ),
    ]
    terms: Annotated[
        str | Path | None,
        Option(
            "With `tokens`: prices, PUE and carbon (phaze.ownership/1); default: bundled ones.",
            key="training.terms",
            value="Place",
        ),
    ]


class OwnModelOptions(TypedDict, total=False):
    """How models of one's own are traced."""

    tp_plan: Annotated[
        str | Path | None,
        Option(
            "A tensor-parallel plan (phaze.tensor-plan/1) of your own model; phaze graph "
            "--show-plan prints one."
        ),
    ]


class TraceOptions(TypedDict, total=False):
    """Whether models of one's own are traced again."""

    fresh: Annotated[
        bool,
        Option(
            "Trace your own models again, ignoring the cache; phaze graph: bundled ones too.", False
        ),
    ]


class PageOptions(TypedDict, total=False):
    """Where the answer's page is written."""

    html: Annotated[str | Path | None, Option("Also write the answer's page to this file.")]


class CodeOptions(TypedDict, total=False):
    """Whether code that a file names may run."""

    allow_code: Annotated[
        bool,
        Option(
            "Let the file name Python code as a model (file.py:function), which then runs.", False
        ),
    ]


class DatasheetOptions(TypedDict, total=False):
    """Which constants of the hardware are used."""

    datasheet: Annotated[bool, Option("Use data-sheet constants only, no measured ones.", False)]


class TimelineOptions(TypedDict, total=False):
    """A timeline of the answer."""

    perfetto: Annotated[
        str | Path | None, Option("Write the timeline to this file, for ui.perfetto.dev.")
    ]


class PlanOptions(
    SizeOptions, DeviceOptions, JobOptions, ParallelOptions, DatasheetOptions, OwnModelOptions,
    TraceOptions,
    TimelineOptions, CodeOptions, PageOptions, total=False,
):  # fmt: skip
    """Options of ``plan``."""

    fixed: Annotated[
        Source | None,
        Option(
            (
                "A run (phaze.run/1) whose given plan is evaluated, fitting or not; - for "
                "standard input."
            ),
            python="Also its values.",
        ),
    ]
    against: Annotated[
        str | Path | None,
        Option(
            "Your plan, to compare with the best: a run (phaze.run/1), a shell file with "
            "Megatron-LM's flags, a "
            "torchtitan job (TOML), a configuration of MaxText (YAML) or DeepSpeed (JSON)."
        ),
    ]
    what_if: Annotated[
        bool, Option("Also plan other devices, batches, sequences and chips.", False)
    ]
    over: Annotated[
        Sequence[str],
        Option(
            (
                "Plan along devices, batch, sequence or chip: devices=64..1024 (doubling), "
                "chip=h100,b200."
            ),
            (),
        ),
    ]
    certificate: Annotated[
        str | Path | None,
        Option("Write the certificate of the plan to this folder, for phaze verify."),
    ]
