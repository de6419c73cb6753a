"""Options of training jobs, and of ``plan``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from phaze.options.arguments import names, shards, share
from phaze.options.option import Option
from phaze.pipeline.names import NAMES

if TYPE_CHECKING:
    from phaze.graph.supply.module import ModuleSupply as Model

Degrees = str | int | Sequence[int]
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
        int | None, Option("Number of devices.", key="training.devices", value="Count")
    ]
    batch: Annotated[
        int | str | None,
        Option(
            "Global batch in sequences, 1024, or tokens, 4M-tokens (M = 10^6; "
            "4Mi-tokens: 2^20), within 5 % of it as "
            "a round number of sequences.",
            key="training.batch",
            value="BatchSize",
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
            "Share of memory to leave free, such as 6% or 0.06; default 6%, under rules "
            "icml24 none. A fixed plan may "
            "use all of it.",
            key="training.headroom",
            read=share,
            value="Headroom",
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


class ParallelOptions(TypedDict, total=False):
    """Which plans of a job may be chosen."""

    microbatch: Annotated[
        Degrees | None,
        Option(
            "Microbatch sizes to try, such as 1,2,4; default 1,2,4,8,16.",
            former="microbatches",
            value="Count",
            choices="Choices",
        ),
    ]
    tensor: Annotated[
        Degrees | None,
        Option(
            "Tensor-parallel degrees (TP) to try, such as 1,8; default: all that divide.",
            former="widths",
            value="Count",
            choices="Choices",
        ),
    ]
    expert: Annotated[
        Degrees | None,
        Option(
            "Expert-parallel degrees (EP) to try, such as 1,8: ranks that experts are "
            "distributed over; default, "
            "for a mixture of experts, 1 and the powers of two that divide them.",
            key="training.expert",
            value="Count",
            choices="Choices",
            unstated=1,
        ),
    ]
    context: Annotated[
        Degrees | None,
        Option(
            "Context-parallel degrees (CP) to try, such as 1,2: ranks that a sequence is "
            "split over; default 1, "
            "and from 32,768 tokens on 1, 2, 4, 8.",
            former="contexts",
            key="training.context",
            value="Count",
            choices="Choices",
            unstated=1,
        ),
    ]
    context_way: Annotated[
        str | Sequence[str] | None,
        Option(
            "Context-parallel methods: ring, all_gather, ulysses or hierarchical, or "
            "several of them; default: "
            "the fastest.",
            former="ways",
            read=names,
            key="training.context_way",
            value="Way",
            choices="WayChoices",
            unstated="ring",
        ),
    ]
    imbalance: Annotated[
        float | None,
        Option(
            "Tokens of the most loaded expert rank over the mean, at least 1; default 1, balanced.",
            key="training.imbalance",
            value="Positive",
        ),
    ]
    capacity: Annotated[
        float | None,
        Option(
            "Token limit of an expert rank, over the mean; tokens beyond it are dropped.",
            key="training.capacity",
            value="Positive",
        ),
    ]
    chunks: Annotated[
        Degrees | None,
        Option(
            (
                "Virtual stages (VPP) to try in addition to 1, such as 2,4; default: all "
                "that divide the blocks; 1: none."
            ),
            key="training.chunks",
            value="Count",
            choices="Choices",
            unstated=1,
        ),
    ]
    family: Annotated[
        str | Sequence[str] | None,
        Option(
            f"Pipeline families to allow, of those that the stack runs: {', '.join(NAMES)}; "
            "best (default): all of them.",
            former="families",
            read=names,
            key="training.family",
            value="PipelineFamily",
            choices="FamilyChoices",
            unstated=None,
        ),
    ]
    zero: Annotated[
        int | None,
        Option(
            "ZeRO stage: 1 shards the optimizer state over the replicas, 2 also "
            "gradients, 3 also weights; default: "
            "the fastest.",
            key="training.zero",
            value="ZeroStage",
            choices="ZeroChoice",
            unstated=0,
        ),
    ]
    recompute: Annotated[
        str,
        Option(
            "none, selective, full or modules (mlp,layernorm) on every stage, with "
            "offload saved activations are "
            "held in host memory (full,offload); best chooses stage by stage.",
            "best",
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
