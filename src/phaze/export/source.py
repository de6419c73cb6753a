"""What can be exported, from either a search's run or a plan's document: a split of a model, in
plain words.

The layers of a model are distinguished by their part in a decoder: what lies before its blocks, the
blocks, what lies after them. Frameworks cut pipelines by blocks, so a plan whose layers are no such
chain cannot be told to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from phaze.errors import InputError
from phaze.evaluate.flow import block_calls
from phaze.evaluate.job_file import Reopened
from phaze.graph.experts import layer_has_experts
from phaze.graph.family import check_sizes
from phaze.graph.ir import Model
from phaze.graph.zoo import ZOO
from phaze.hardware.bundled import preset_names
from phaze.hardware.cluster import Cluster
from phaze.hardware.stack import Stack, StateBytes

if TYPE_CHECKING:
    from phaze.search.task import ModelTask
    from phaze.study.schema import StudyFile


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """A planned job: ``stages`` as (blocks, has what lies before, has what lies after), first to
    last.

    ``stack``: the bundled software stack that it was priced for, "" where it is the user's own.
    ``node``: devices that the innermost level of the network joins, a pod of a torus, 0 where
    nothing is known of it.
    """

    model: str
    chip: str
    tensor: int
    pipeline: int
    data: int
    chunks: int
    microbatch: int
    batch: int
    sequence: int | None
    sequence_parallel: bool
    optimizer: str
    precision: str
    zero: int
    order: str
    attention: str
    hides_synchronisation: bool
    recompute: tuple[str, ...]
    devices: tuple[int, ...]
    stages: tuple[tuple[int, bool, bool], ...]
    sizes: Mapping[str, int]
    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    low_precision_weights: bool = False
    shard: int = 0
    state: StateBytes | None = None
    family: str = ""
    context_way: str = "ring"
    deduplicated_exchange: bool = False
    hidden_exchange: float = 0.0
    overlaps_shared_experts: bool = False
    stack: str = ""
    node: int = 0

    @property
    def schedule(self) -> str:
        """The pipeline family: the one that the plan names, else 1F1B, with chunks interleaved."""
        return self.family or ("interleaved" if self.chunks > 1 else "1f1b")

    @property
    def shards(self) -> int:
        """Groups of ranks that shard state; 1 where all do."""
        return self.data * self.context // self.shard if self.shard else 1

    @property
    def processes(self) -> int:
        """Devices of the job."""
        return self.tensor * self.context * self.pipeline * self.data

    @property
    def blocks(self) -> int:
        return sum(blocks for blocks, _, _ in self.stages)

    @property
    def rounds(self) -> int:
        """Microbatches of one replica."""
        return -(-self.batch // (self.microbatch * self.data))


def _is_chain(model: Model, blocks: Sequence[int]) -> bool:
    """Whether blocks are in a row and all alike, or those of a mixture of experts after the dense
    ones."""
    kinds = [kind for kind, _ in groupby(model.calls[call].layer for call in blocks)]
    experts = [layer_has_experts(model.layers[kind]) for kind in kinds]
    return list(blocks) == list(range(blocks[0], blocks[-1] + 1)) and (
        len(kinds) == 1 or experts == [False, True]
    )


def cut(
    model: Model, stages: Sequence[Mapping[str, Any]], name: str
) -> tuple[tuple[int, bool, bool], ...]:
    """The stages by blocks; refuses layers of several stages that are no chain of before, equal
    blocks, after."""
    blocks = block_calls(model)
    first, last = blocks[0], blocks[-1]
    if len(stages) > 1 and not _is_chain(model, blocks):
        raise InputError(
            name,
            "its layers are not a chain of equal blocks",
            "launch files need one; export to csv or perfetto",
        )
    parts = []
    for stage in stages:
        layers = stage["layers"]
        count = sum(first <= layer <= last for layer in layers)
        parts.append(
            (count, any(layer < first for layer in layers), any(layer > last for layer in layers))
        )
    for what, place, wanted in (("before", 1, 0), ("after", 2, len(stages) - 1)):
        holders = [number for number, part in enumerate(parts) if part[place]]
        if holders and holders != [wanted]:
            raise InputError(
                name,
                (
                    f"what lies {what} its blocks is spread over the stages "
                    f"{', '.join(map(str, holders))}"
                ),
                "plan with fewer stages: a launch file keeps it in one",
            )
    return tuple(parts)


def _listed_sizes(model: str) -> dict[str, int]:
    """The sizes that phaze lists of a named model."""
    if model not in ZOO:
        return {}
    entry = ZOO[model]
    sizes = {
        "layers": entry.layers,
        "hidden": entry.hidden,
        "heads": entry.heads,
        "sequence": entry.sequence,
    }
    return sizes if entry.positions is None else {**sizes, "positions": entry.positions}


def _planned_fields(plan: Mapping[str, Any], model: Model, name: str) -> dict[str, Any]:
    """How a plan splits the model."""
    stages, shared = plan["stages"], ("chunks", "context", "expert", "expert_tensor")
    return {
        **{degree: plan[degree] for degree in ("tensor", "pipeline", "data")},
        **{degree: int(plan.get(degree, 1)) for degree in shared},
        "shard": int(plan.get("shard", 0)),
        "zero": int(plan.get("zero", 0)),
        "attention": model.attention,
        "family": str(plan.get("family") or ""),
        "order": str(plan.get("order", "")),
        "recompute": tuple(stage["recompute"] for stage in stages),
        "devices": tuple(stage["devices"] for stage in stages),
        "stages": cut(model, stages, name),
        "context_way": model.context_way or "ring",
    }


def _machine_fields(stack: Stack, cluster: Cluster) -> dict[str, Any]:
    """What a plan assumes of the software and the network; a stack of the user's own describes what
    the user runs."""
    same = (
        "low_precision_weights",
        "state",
        "deduplicated_exchange",
        "hidden_exchange",
        "overlaps_shared_experts",
    )
    return {
        **{name: getattr(stack, name) for name in same},
        "hides_synchronisation": stack.hidden_synchronisation > 0,
        "stack": stack.name if stack.name in preset_names("stacks") else "",
        "node": cluster.levels[0].size,
    }


def searched_split(
    task: "ModelTask", answer: Mapping[str, Any], study: "StudyFile", chip: str
) -> PlannedSplit:
    """A model of a search's answer (its table in ``phaze.result/1``)."""
    from phaze.search.reference import way_of

    way = way_of(task, answer)
    if way is None:
        raise InputError(task.name, "its configuration is none of the study's", "search again")
    graph, job = task.graphs[way.graph], task.training
    table = next(table for table in study.tables() if table.name == task.name)
    sizes = _listed_sizes(task.name)
    return PlannedSplit(
        model=task.name,
        chip=chip,
        microbatch=answer["microbatch"],
        batch=job.batch,
        sequence=table.sequence or sizes.get("sequence"),
        sequence_parallel=bool(answer.get("sequence_parallel", study.training.sequence_parallel)),
        optimizer=job.optimizer,
        precision=job.precision,
        sizes=sizes,
        **_planned_fields({"zero": answer["zero"], **answer["plan"]}, graph.model, task.name),
        **_machine_fields(job.machine.stack, job.machine.cluster),
    )


def planned_split(document: Mapping[str, Any], answered: Reopened) -> PlannedSplit:
    """A plan's document (``phaze.plan/1``) with its job."""
    if document.get("sequence") == 1:
        raise InputError(
            answered.model.name,
            "the model has no sequence, and what these frameworks train has one",
        )
    job, model = answered.job, answered.model
    sizes = _listed_sizes(model.name)
    if job.family is not None and job.sizes is not None:
        sizes = {key: int(value) for key, value in check_sizes(job.family, job.sizes).items()}
    return PlannedSplit(
        model=job.family or model.name,
        chip=answered.setting.chip.name,
        microbatch=document["microbatch"],
        batch=job.batch,
        sequence=model.sequence,
        sequence_parallel=bool(document.get("sequence_parallel", False)),
        optimizer=job.optimizer,
        precision=job.precision,
        sizes=sizes,
        **_planned_fields(document, model, model.name),
        **_machine_fields(answered.setting.stack, answered.setting.cluster),
    )
