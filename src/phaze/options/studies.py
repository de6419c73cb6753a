"""Options of studies: search, front, sweep, compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict

from phaze.options.arguments import workers
from phaze.options.jobs import CodeOptions, JobOptions, OwnModelOptions, PageOptions, TraceOptions
from phaze.options.option import REQUIRED, ByRules, Option

if TYPE_CHECKING:
    from phaze.graph.supply.module import ModuleSupply as Model

Study = Annotated[
    "str | Path | Mapping[str, Any] | Model | None",
    Option(
        "A study (phaze.study/1).",
        argument=True,
        python="Also its values, or a model with everything at its default: a name, "
        "own.py:build or a phaze.Model, "
        "which may also be among a study's values.",
    ),
]


class SettingOptions(TypedDict, total=False):
    """Changes of a study."""

    settings: Annotated[
        Sequence[str], Option("a.b=c: override a value of the study; repeatable.", (), flag="--set")
    ]


class CheckOptions(SettingOptions, TraceOptions, CodeOptions, total=False):
    """Options of ``study check``."""


class StudyOptions(TypedDict, total=False):
    """A study of models instead of a file, and changes of it."""

    model: Annotated[
        "str | Model | Sequence[str | Model] | None",
        Option(
            (
                "Instead of a study: a built-in name, file.py:function, a config.json or its "
                "folder; repeatable."
            ),
            repeatable=True,
        ),
    ]
    rules: Annotated[
        str | None,
        Option(
            (
                "Set of defaults: cluster (today's hardware, the default) or icml24; "
                "default: the study's."
            ),
            key="rules",
        ),
    ]


class FolderOptions(TypedDict, total=False):
    """Where the answer of a study is kept, and who works on it."""

    out: Annotated[
        str | Path | None,
        Option(
            "The folder of the answer; {name} is the study's.",
            python="Without it one that goes with the value.",
        ),
    ]
    workers: Annotated[int, Option("Worker processes; 0: one for each core.", 1, read=workers)]
    page: Annotated[
        bool, Option("Also write the page of the answer into its folder, as commands do.", False)
    ]


class EngineOptions(TypedDict, total=False):
    """What runs the worker processes."""

    engine: Annotated[str, Option("local: processes of this machine; ray: a Ray cluster.", "local")]
    address: Annotated[
        str | None,
        Option("With the `engine` ray: auto (the cluster of this machine), local, or HOST:PORT."),
    ]


class LimitOptions(TypedDict, total=False):
    """When a search ends early."""

    time: Annotated[
        float | None,
        Option("Stop after this many seconds, with the gap proved so far.", former="time_s"),
    ]


class GapOptions(TypedDict, total=False):
    """How far a proof must go."""

    gap: Annotated[
        float | None,
        Option(
            "Relative gap to prove, such as 0.0001; default {rules}.",
            key="search.gap",
            value="Share",
            rules=ByRules(0.001, 0.0001),
        ),
    ]


class SearchOptions(
    StudyOptions, FolderOptions, LimitOptions, EngineOptions, JobOptions, SettingOptions,
    OwnModelOptions,
    TraceOptions, CodeOptions, GapOptions, total=False,
):  # fmt: skip
    """Options of ``search``."""


class FrontOptions(
    StudyOptions,
    FolderOptions,
    LimitOptions,
    SettingOptions,
    TraceOptions,
    CodeOptions,
    total=False,
):
    """Options of ``front``."""

    of: Required[
        Annotated[
            str | Sequence[str],
            Option(
                (
                    "Two or three metrics, such as throughput,area,power; also price, "
                    "embodied, energy, cost, carbon."
                ),
                REQUIRED,
            ),
        ]
    ]
    within: Annotated[
        Sequence[str], Option("metric=number: upper limit; lower limit for throughput.", ())
    ]
    gap: Annotated[
        float,
        Option(
            "Relative gap in metrics that depend on the plan, 0.01 for 1 %; 0 is exact.",
            0.0,
            key="search.gap",
        ),
    ]


class SweepOptions(
    StudyOptions,
    FolderOptions,
    EngineOptions,
    SettingOptions,
    TraceOptions,
    CodeOptions,
    total=False,
):
    """Options of ``sweep``."""

    over: Required[
        Annotated[
            str, Option("key=low..high or key=a,b,c: a key of the study and its range.", REQUIRED)
        ]
    ]
    points: Annotated[int, Option("Number of values of a range, in geometric progression.", 9)]


class CompareOptions(
    StudyOptions, SettingOptions, TraceOptions, CodeOptions, PageOptions, total=False
):
    """Options of ``compare``."""

    chips: Annotated[
        Sequence[str], Option("A chip by name or path; repeatable.", (), flag="--chip")
    ]
    runs: Annotated[
        Sequence[str | Path],
        Option("The folder of a search, whose chip is added; repeatable.", (), flag="--run"),
    ]
    rows: Annotated[
        str | Path | None,
        Option("A CSV of chips and plans: chip, changed keys, tensor, pipeline.", flag="--chips"),
    ]
    basis: Annotated[
        str, Option("Constants of all chips: space, baseline, own, datasheet or ideal.", "space")
    ]
