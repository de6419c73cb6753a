"""Options of commands on a finished run, on measurements, on one rank of a model, and on what is
bundled."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Required, TypedDict

from phaze.options.arguments import workers
from phaze.options.frameworks import FRAMEWORK_NAMES
from phaze.options.jobs import (
    SOURCES,
    BasisName,
    CodeOptions,
    DatasheetOptions,
    DeviceOptions,
    OwnModelOptions,
    PageOptions,
    SizeOptions,
    TimelineOptions,
    TraceOptions,
)
from phaze.options.option import REQUIRED, Option

if TYPE_CHECKING:
    from phaze.graph.supply.module import ModuleSupply as Model


class ExplainOptions(PageOptions, total=False):
    """Options of ``explain``."""

    instead: Annotated[
        Sequence[str],
        Option(
            "axis=value: the best chip with this value, such as vector_cores=64; repeatable.", ()
        ),
    ]
    flatness: Annotated[
        str, Option("Count exactly the chips within this margin of the answer: 1%, 3%.", "1%")
    ]
    constants: Annotated[
        bool,
        Option(
            "Also how far each constant of area and energy must change before another chip wins.",
            False,
        ),
    ]
    ranges: Annotated[
        bool,
        Option(
            "Also the range of each rate within which the answer stays best; many searches.", False
        ),
    ]
    error: Annotated[
        float | None, Option("Also the best when every rate is lower by this share: 0.2 for 20 %.")
    ]
    held_out: Annotated[
        Sequence[str],
        Option("Also this chip on a model that was not part of the search; repeatable.", ()),
    ]
    compare: Annotated[
        Sequence[str], Option("Also an existing chip, to compare with on the page; repeatable.", ())
    ]
    regret: Annotated[
        bool,
        Option("Also the best chip for each model alone, and what this one loses to it.", False),
    ]
    workers: Annotated[int, Option("Worker processes; 0: one for each core.", 0, read=workers)]


class VerifyOptions(CodeOptions, PageOptions, total=False):
    """Options of ``verify``."""

    study: Annotated[str | Path | None, Option("A study file that the run must answer.")]
    quick: Annotated[
        bool, Option("Check the answer and what rooflines exclude; not a full proof.", False)
    ]
    all_: Annotated[bool, Option("Every chip of the space (the default); not with `quick`.", False)]
    space: Annotated[
        str | Path | None,
        Option("Check the answer against this space, a name or a file, of any size."),
    ]
    gap: Annotated[float | None, Option("With `space`: the relative gap to prove.")]


class ReportOptions(TypedDict, total=False):
    """Options of ``report``."""

    out: Annotated[str | Path | None, Option("The page to write; default: in the folder.")]
    design: Annotated[int | None, Option("One design of a front, by its number.")]


class ExportOptions(TypedDict, total=False):
    """Options of ``export``."""

    to: Required[
        Annotated[
            str,
            Option(f"{', '.join(FRAMEWORK_NAMES)}, chakra, perfetto, csv or parquet.", REQUIRED),
        ]
    ]
    out: Annotated[
        str | Path | None,
        Option(
            "The file to write, of chakra the folder; default: standard output.",
            python="Without it ``text``.",
        ),
    ]
    model: Annotated[str | None, Option("Which model, where a run has several.")]


class ValidateOptions(DatasheetOptions, CodeOptions, PageOptions, total=False):
    """Options of ``validate``."""

    silicon: Annotated[
        bool, Option("Area, power and sustained rates against published chips.", False)
    ]
    operators: Annotated[
        bool, Option("Operators, collectives and layers against measured ones.", False)
    ]
    sets: Annotated[Sequence[str], Option("Only this set of runs; repeatable.", (), flag="--set")]
    every: Annotated[
        bool,
        Option("Show every run.", False, flag="--rows", python="The document always has them."),
    ]
    best: Annotated[bool, Option("The best plan for each job against the one that was run.", False)]
    rediscovery: Annotated[
        bool, Option("The best chip within a real one's area and power, against it.", False)
    ]


class CalibrateOptions(CodeOptions, total=False):
    """Options of ``calibrate``."""

    chip: Annotated[str | None, Option("The chip that was measured: a preset or a file.")]
    cluster: Annotated[
        str | None, Option("With a table (phaze.rows/1): the cluster, else the chip's usual one.")
    ]
    stack: Annotated[
        str | None,
        Option("With a table: the stack whose products were measured, else the cluster's."),
    ]
    out: Annotated[
        str | Path | None,
        Option(
            "The chip file to write (CHIP-calibrated.toml); with `trace` a folder (RUN-fitted), "
            "with a table too (CHIP-fitted)."
        ),
    ]
    trace: Annotated[
        Sequence[str | Path],
        Option("A PyTorch profiler trace (.json, .json.gz) of a rank, or a log; repeatable.", ()),
    ]
    run: Annotated[
        str | Path | None, Option("With `trace`: the run that was measured (phaze.run/1).")
    ]


class RankOptions(TraceOptions, total=False):
    """One rank of a model; of a graph's file as it was traced where nothing is given."""

    tensor: Annotated[
        int | None,
        Option("Tensor-parallel degree of the model, else 1; all sizes are of one rank."),
    ]
    microbatch: Annotated[int | None, Option("Sequences in one microbatch of the model, else 1.")]
    sequence: Annotated[
        int | str | None,
        Option(
            "Sequence length of the model in tokens, such as 4096 or 32k (k = 1024); "
            "default: its own."
        ),
    ]
    attention: Annotated[
        Literal["eager", "fused"] | None,
        Option(
            "How attention runs: eager, or fused (scores never leave the chip); default: "
            "the stack's, else eager."
        ),
    ]


class ShardedRankOptions(RankOptions, OwnModelOptions, total=False):
    """One rank of a model whose activations may be sharded too, by a plan of one's own."""

    sequence_parallel: Annotated[
        bool,
        Option("Shard activations that tensor parallelism replicates (norms, dropouts).", False),
    ]


class FusionOptions(TypedDict, total=False):
    """What is fused in a graph."""

    fusion: Annotated[
        Literal["none", "chains", "elementwise", "full"],
        Option(
            "What of a graph is fused: none, chains, elementwise, or full (also GEMM epilogues).",
            "none",
        ),
    ]


class BasisOptions(TypedDict, total=False):
    """Which constants of the hardware are used."""

    basis: Annotated[BasisName, Option("Constants: calibrated, datasheet or ideal.", "calibrated")]


class GraphOptions(SizeOptions, ShardedRankOptions, FusionOptions, total=False):
    """Options of ``graph``."""

    check: Annotated[bool, Option("List all operators that phaze does not support.", False)]
    show_plan: Annotated[
        bool, Option("Print the tensor-parallel plan as a file that `tp_plan` takes back.", False)
    ]


class EstimateOptions(RankOptions, FusionOptions, BasisOptions, total=False):
    """Options of ``estimate``."""

    gemm: Annotated[
        str | Sequence[int] | None,
        Option("A matrix product (GEMM): BATCHxMxNxK, or MxNxK.", python="Also a tuple of them."),
    ]
    vector: Annotated[
        str | tuple[str, int] | tuple[str, int, int] | None,
        Option(
            "A vector operator: KIND:ELEMENTS or KIND:ELEMENTS:ROWS.",
            python="Also a tuple of them.",
        ),
    ]
    collective: Annotated[
        str | tuple[str, int | str, int] | None,
        Option(
            "KIND:BYTES:RANKS, such as all_reduce:64MiB:8; with a `cluster`.",
            python="Also a tuple of them.",
        ),
    ]
    graph: Annotated[
        str | Path | None, Option("A graph file (phaze.graph/1; - for standard input).")
    ]
    model: Annotated["str | Model | None", Option(SOURCES)]
    chip: Annotated[
        str | None, Option("A preset, or the path of a chip file; a collective needs none.")
    ]
    cluster: Annotated[str | None, Option("A preset, or the path of a cluster file.")]
    load: Annotated[
        Literal["alone", "training"],
        Option(
            "One operator alone, or queued in training, at the clock that training holds.", "alone"
        ),
    ]
    precision: Annotated[str, Option("With `gemm`: bf16, fp8, mxfp8 or another recipe.", "bf16")]
    residency: Annotated[
        bool, Option("With a graph: keep results in the global buffer where they fit.", True)
    ]


class ScheduleOptions(
    DeviceOptions, ShardedRankOptions, BasisOptions, TimelineOptions, total=False
):
    """Options of ``schedule``; those of a model hold with ``model``."""

    scheduler: Annotated[
        Literal["exact", "list", "cpsat", "ilp"],
        Option("exact, list (states its gap), cpsat, or ilp (the published program).", "exact"),
    ]
    model: Annotated[
        "str | Model | None", Option(f"Instead of files, a layer of a model on a chip. {SOURCES}")
    ]
    layer: Annotated[
        str | None,
        Option("With `model`: a layer or module (phaze graph lists them); else the most repeated."),
    ]
    pass_: Annotated[
        Literal["forward", "backward"] | None,
        Option("With `model`: forward or backward; else both, in order."),
    ]
    rules: Annotated[
        str | None,
        Option("With `model`: serial, companions, links, icml24, overlap; else the stack's."),
    ]


class ChipsOptions(TypedDict, total=False):
    """Options of ``chips``."""

    space: Annotated[str | None, Option("A space of chips: a preset such as 'paper', or a file.")]
    count: Annotated[
        bool, Option("With `space`: the number of chips and of distinct components.", False)
    ]
    terms: Annotated[
        str, Option("Prices, lifetime and carbon intensities: a preset or a file.", "default")
    ]
