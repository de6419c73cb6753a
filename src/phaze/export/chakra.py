"""A plan as Chakra execution traces, one file a rank, for ASTRA-sim and other simulators of networks.

One step of training: what :mod:`phaze.export.chakra_program` has for every stage, with ranks in their places. Ranks of
a stage's replica come first (tensor, then context), then replicas and stages in the order of the plan::

    rank = (stage * data + replica) * width + own      order "data"
    rank = (replica * stages + stage) * width + own    order "pipeline"

Durations are whole microseconds, rounded so that the sum of a rank's is never off by more than one. Collectives name a
group of ``comm_groups.json``, by number from 1 on (0 means all ranks). Bytes are those that ASTRA-sim counts: of the
whole tensor, of a gather of one rank's part.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phaze.cost.memory import sent_bytes
from phaze.errors import InputError
from phaze.evaluate.layers import Setting
from phaze.export.chakra_layers import Collective, Compute, layer_passes, require_mode
from phaze.export.chakra_program import Program, StageJob, Task, ordered_passes, program_of
from phaze.export.chakra_wire import COLL, COLLECTIVES, COMP, RECV, SEND, Node, trace_bytes
from phaze.graph.ir import Model
from phaze.report.view_model import pipeline_of

PREFIX = "phaze"
MOST_NODES = 2_000_000
"""Of all ranks together: about 150 MB."""
KNOWN = ("gpipe", "1f1b", "interleaved")


@dataclass(frozen=True, slots=True)
class TracedPlan:
    """A plan with the model and the setting that it was made for."""

    name: str
    model: Model
    setting: Setting
    plan: Mapping[str, Any]
    batch: int
    zero: int


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where the ranks of a plan lie."""

    width: int
    stages: int
    data: int
    by_data: bool

    def rank(self, stage: int, local: int) -> int:
        """The rank of a stage's ``local``-th, replica by replica."""
        replica, own = divmod(local, self.width)
        outer = stage * self.data + replica if self.by_data else replica * self.stages + stage
        return outer * self.width + own

    @property
    def count(self) -> int:
        return self.width * self.stages * self.data


class Groups:
    """Groups of ranks by number, each once, from 1 on."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, ...], int] = {}

    def number(self, ranks: tuple[int, ...]) -> int:
        """The number of a group."""
        return self.numbers.setdefault(ranks, len(self.numbers) + 1)

    def document(self) -> dict[str, list[int]]:
        """As ASTRA-sim reads them."""
        return {str(number): list(ranks) for ranks, number in self.numbers.items()}


def _chunks(layers: list[int], chunks: int) -> tuple[tuple[int, ...], ...]:
    """The layers of a stage by chunk, as many blocks in each; what lies around them at its ends."""
    if chunks == 1:
        return (tuple(layers),)
    size, extra = divmod(len(layers), chunks)
    found, at = [], 0
    for chunk in range(chunks):
        own = (
            size + (chunk == 0 and extra > 0 and layers[0] == 0) + (chunk == chunks - 1 and extra > 0 and layers[0] > 0)
        )
        found.append(tuple(layers[at : at + own]))
        at += own
    return tuple(found)


def _stage_jobs(told: TracedPlan, ranks: Ranks) -> list[StageJob]:
    plan, model, chunks = told.plan, told.model, int(told.plan.get("chunks", 1))
    per_stage = [_chunks([int(layer) for layer in stage["layers"]], chunks) for stage in plan["stages"]]
    virtual = [per_stage[at % ranks.stages][at // ranks.stages] for at in range(chunks * ranks.stages)]
    if sum(len(own) for own in virtual) != len(model.calls):
        raise InputError(told.name, f"{chunks} chunks do not share its layers evenly", "plan with --chunks 1")
    wide = sent_bytes(told.setting.precision)
    cuts = {at: _cut_bytes(model, virtual, at, wide) for at in range(len(virtual) - 1)}
    expert = int(plan.get("expert", 1)) * int(plan.get("expert_tensor", 1))
    return [
        StageJob(
            stage=number,
            chunks=tuple(tuple(model.calls[layer].layer for layer in own) for own in per_stage[number]),
            mode=str(stage["recompute"]),
            width=ranks.width,
            tensor=model.tensor,
            alike=ranks.data * ranks.width // model.tensor,
            experts=max(1, expert // model.tensor),
            zero=told.zero,
            shard=int(plan.get("shard", 0)),
            stages=ranks.stages,
            gradient_bytes=told.setting.stack.gradient_wire_bytes * wide / 2.0,
            weight_bytes=wide,
            sent_bytes=cuts,
            optimizer_s=float(plan["breakdown"]["optimizer_s"]),
        )
        for number, stage in enumerate(plan["stages"])
    ]


def _cut_bytes(model: Model, virtual: list[tuple[int, ...]], at: int, wide: float) -> int:
    """Bytes that a microbatch sends over the cut behind a virtual stage."""
    before = {layer for own in virtual[: at + 1] for layer in own}
    crossing = [edge.bytes for edge in model.edges if (edge.source in before) != (edge.target in before)]
    return int(wide / 2.0 * sum(crossing))


def _require(told: TracedPlan) -> None:
    family = str(told.plan.get("family") or ("interleaved" if int(told.plan.get("chunks", 1)) > 1 else "1f1b"))
    if family not in KNOWN:
        raise InputError(told.name, f"the pipeline schedule {family}", f"a trace has {', '.join(KNOWN)}; --family 1f1b")
    if len({int(stage["devices"]) for stage in told.plan["stages"]}) > 1:
        raise InputError(told.name, "its stages have different devices", "plan with one width, widths = [1]")


def _node(number: int, task: Task, stage: int, local: int, ranks: Ranks, groups: Groups, micros: int) -> Node:
    own, plain = task.does, ("is_cpu_op", 0)
    if isinstance(own, Compute):
        return Node(number, task.what, COMP, task.after, micros, (plain, ("num_ops", round(own.flops))))
    if isinstance(own, Collective):
        first = local - local // own.stride % own.group * own.stride
        members = tuple(ranks.rank(stage, first + own.stride * at) for at in range(own.group))
        kind = (("comm_type", COLLECTIVES[own.kind]), ("comm_size", own.bytes))
        return Node(number, task.what, COLL, task.after, 0, (plain, *kind, ("pg_name", str(groups.number(members)))))
    mine, other = ranks.rank(stage, local), ranks.rank(own.peer % ranks.stages, local)
    ends = (mine, other) if own.sends else (other, mine)
    attributes = (plain, ("comm_src", ends[0]), ("comm_dst", ends[1]), ("comm_size", own.bytes), ("comm_tag", own.tag))
    return Node(number, task.what, SEND if own.sends else RECV, task.after, 0, attributes)


def _nodes(program: Program, stage: int, local: int, ranks: Ranks, groups: Groups) -> Iterator[Node]:
    """The program of a stage as the nodes of one of its ranks."""
    passed_s, told = 0.0, 0
    for number, task in enumerate(program.tasks):
        micros = 0
        if isinstance(task.does, Compute):
            passed_s += task.does.seconds
            micros = round(1e6 * passed_s) - told
            told += micros
        yield _node(number, task, stage, local, ranks, groups, micros)


def programs(told: TracedPlan, ranks: Ranks) -> list[Program]:
    """What the ranks of every stage do."""
    _require(told)
    layers = layer_passes(told.model, told.setting)
    chunks, rounds = int(told.plan.get("chunks", 1)), -(-told.batch // (told.model.microbatch * ranks.data))
    flow = pipeline_of(told.plan, rounds)
    if flow is None:
        raise InputError(
            told.name, f"{rounds:,} microbatches of {ranks.stages} stages", "a trace has less; plan a smaller batch"
        )
    found = []
    for job in _stage_jobs(told, ranks):
        require_mode(layers, job.mode, told.name)
        passes = ordered_passes({"forward": flow.forward_s, "backward": flow.backward_s}, job.stage, chunks)
        found.append(program_of(job, layers, passes))
    return found


def ranks_of(told: TracedPlan) -> Ranks:
    """The ranks of a plan."""
    width = told.model.tensor * told.model.context
    return Ranks(width, int(told.plan["pipeline"]), int(told.plan["data"]), told.plan.get("order") != "pipeline")


def chakra(told: TracedPlan) -> Iterator[tuple[str, bytes | dict[str, list[int]]]]:
    """The name and content of every file: traces by rank, then the groups as plain values."""
    ranks, groups = ranks_of(told), Groups()
    made = programs(told, ranks)
    total = sum(len(program.tasks) for program in made) * ranks.width * ranks.data
    if total > MOST_NODES:
        seen = f"{total:,} nodes on {ranks.count:,} ranks"
        raise InputError(told.name, seen, f"at most {MOST_NODES:,}; plan fewer devices or a smaller batch")
    for stage, program in enumerate(made):
        for local in range(ranks.width * ranks.data):
            nodes = list(_nodes(program, stage, local, ranks, groups))
            yield f"{PREFIX}.{ranks.rank(stage, local)}.et", trace_bytes(nodes)
    yield "comm_groups.json", groups.document()
