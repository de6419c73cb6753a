"""Keys of a study that no command has an option for."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from phaze.options.jobs import BasisName
from phaze.options.option import ByRules, Option


class StudyKeys(TypedDict, total=False):
    """Every one with its sentence and its default."""

    space: Annotated[
        str | None,
        Option(
            "The space of chips: a name, such as n7-reticle or paper-free-lanes, or a path.",
            key="space",
            value="Place",
            rules=ByRules("n5-reticle", "paper"),
        ),
    ]
    hbm: Annotated[
        Sequence[str | int] | None,
        Option(
            "HBM sizes of a chip to choose from; chips of clusters have that of their HBM stacks, "
            "which are an axis.",
            key="hbm",
            value="MemorySizes",
            rules=ByRules(("32 GiB", "64 GiB", "80 GiB"), ("32 GiB", "64 GiB", "80 GiB")),
        ),
    ]
    cluster: Annotated[
        str | None,
        Option(
            "The cluster that it runs on: a name or a path; default: that of the space's chips, "
            "else {rules}.",
            key="training.cluster",
            value="Place",
            rules=ByRules("paper-flat", "paper-flat"),
        ),
    ]
    stack: Annotated[
        str | None,
        Option(
            "The software stack: a name or a path.",
            key="training.stack",
            value="Place",
            rules=ByRules(None, "icml24", "that of the cluster"),
        ),
    ]
    optimizer: Annotated[
        str | None,
        Option(
            "The optimizer; default: that of the stack.",
            key="training.optimizer",
            value="Optimizer",
        ),
    ]
    microbatches: Annotated[
        Sequence[int],
        Option(
            "Microbatch sizes to choose from, in sequences.",
            (1, 2, 4, 8),
            key="training.microbatches",
            value="Choices",
        ),
    ]
    recompute: Annotated[
        Sequence[bool | str] | None,
        Option(
            "Recompute modes to choose from: best (stage by stage) or, uniform over stages, false "
            "(none), true (full), selective or modules, with offload beside them.",
            key="training.recompute",
            rules=ByRules(("best",), (False, True)),
        ),
    ]
    sequence_parallel: Annotated[
        bool | str,
        Option(
            "Whether activations that tensor parallelism replicates are sharded; best tries both.",
            False,
            key="training.sequence_parallel",
            value="SequenceParallel",
        ),
    ]
    basis: Annotated[
        BasisName | None,
        Option(
            "How much of its peaks hardware reaches: the constants that times rest on.",
            key="cost.basis",
            value="Basis",
            rules=ByRules("calibrated", "ideal"),
        ),
    ]
    residency: Annotated[
        bool,
        Option(
            "Whether operands that are still in the global buffer spare a trip to HBM.",
            True,
            key="cost.residency",
            value="YesOrNo",
        ),
    ]
    kind: Annotated[
        str, Option("What is wanted.", "throughput", key="objective.kind", value="Kind")
    ]
    mean: Annotated[
        str,
        Option("How several models are averaged.", "geometric", key="objective.mean", value="Mean"),
    ]
    baseline: Annotated[
        str | None,
        Option(
            "The chip that models are compared on: a name or a path; default: that of the space's "
            "cluster, else {rules}.",
            key="objective.baseline",
            value="Place",
            rules=ByRules("tpu-v4-paper", "tpu-v4-paper"),
        ),
    ]
    round_size: Annotated[
        int,
        Option("Chips that a round evaluates.", 16, key="search.round_size", value="RoundSize"),
    ]
