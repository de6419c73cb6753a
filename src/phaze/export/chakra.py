"""A plan as Chakra execution traces, one file a rank, for ASTRA-sim and other simulators of
networks.

One step of training: what :mod:`phaze.export.chakra_program` has for every stage, with ranks in
their places. Ranks of a stage's replica come first (tensor, then context), then replicas and stages
in the order of the plan::

    rank = (stage * data + replica) * width + position      order "data"
    rank = (replica * stages + stage) * width + position    order "pipeline"

Durations are whole microseconds, rounded so that the sum of a rank's is never off by more than one.
Collectives name a group of ``comm_groups.json``, by number from 1 on (0 means all ranks). Bytes are
those that ASTRA-sim counts: of the whole tensor, of a gather of one rank's part.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phaze.cost.memory import sent_bytes
from phaze.errors import InputError
from phaze.evaluate.layers import Setting
from phaze.export.chakra_layers import Collective, Compute, layer_passes, require_mode
from phaze.export.chakra_program import ChakraProgram, StageJob, Task, ordered_passes, program_of
from phaze.export.chakra_wire import COLL, COLLECTIVES, COMP, RECV, SEND, ChakraNode, trace_bytes
from phaze.graph.ir import Model
from phaze.pipeline.families import FAMILIES
from phaze.pipeline.names import NAMES
from phaze.report.view_model import pipeline_of

PREFIX = "phaze"
MOST_NODES = 2_000_000
"""Of all ranks together: about 150 MB."""
DRAWN = tuple(name for name in NAMES if not FAMILIES[name].split)


@dataclass(frozen=True, slots=True)
class TracedPlan:
    """A plan with its stage of ZeRO, and the model and the setting that it was made for."""

    name: str
    model: Model
    setting: Setting
    plan: Mapping[str, Any]
    batch: int


@dataclass(frozen=True, slots=True)
class ChakraRanks:
    """Where the ranks of a plan lie."""

    width: int
    stages: int
    data: int
    by_data: bool

    def rank(self, stage: int, local: int) -> int:
        """The rank of a stage's ``local``-th, replica by replica."""
        replica, position = divmod(local, self.width)
        outer = stage * self.data + replica if self.by_data else replica * self.stages + stage
        return outer * self.width + position

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
    parts, start = [], 0
    for chunk in range(chunks):
        takes_extra = extra > 0 and chunk == (0 if layers[0] == 0 else chunks - 1)
        end = start + size + takes_extra
        parts.append(tuple(layers[start:end]))
        start = end
    return tuple(parts)


def _stage_jobs(traced: TracedPlan, ranks: ChakraRanks) -> list[StageJob]:
    plan, model, chunks = traced.plan, traced.model, int(traced.plan.get("chunks", 1))
    per_stage = [
        _chunks([int(layer) for layer in stage["layers"]], chunks) for stage in plan["stages"]
    ]
    virtual = [stage[chunk] for chunk in range(chunks) for stage in per_stage]
    if sum(len(layers) for layers in virtual) != len(model.calls):
        raise InputError(
            traced.name, f"{chunks} chunks do not share its layers evenly", "plan with --chunks 1"
        )
    wide = sent_bytes(traced.setting.precision)
    cuts = {number: _cut_bytes(model, virtual, number, wide) for number in range(len(virtual) - 1)}
    expert = int(plan.get("expert", 1)) * int(plan.get("expert_tensor", 1))
    return [
        StageJob(
            stage=number,
            chunks=tuple(
                tuple(model.calls[layer].layer for layer in layers) for layers in per_stage[number]
            ),
            mode=str(stage["recompute"]),
            width=ranks.width,
            tensor=model.tensor,
            alike=ranks.data * ranks.width // model.tensor,
            experts=max(1, expert // model.tensor),
            zero=int(plan.get("zero", 0)),
            shard=int(plan.get("shard", 0)),
            stages=ranks.stages,
            gradient_bytes=traced.setting.stack.gradient_wire_bytes * wide / 2.0,
            weight_bytes=wide,
            sent_bytes=cuts,
            optimizer_s=float(plan["breakdown"]["optimizer_s"]),
        )
        for number, stage in enumerate(plan["stages"])
    ]


def _cut_bytes(model: Model, virtual: list[tuple[int, ...]], stage: int, wide: float) -> int:
    """Bytes that a microbatch sends over the cut behind a virtual stage."""
    before = {layer for layers in virtual[: stage + 1] for layer in layers}
    crossing = [
        edge.bytes for edge in model.edges if (edge.source in before) != (edge.target in before)
    ]
    return int(wide / 2.0 * sum(crossing))


def _require(traced: TracedPlan) -> None:
    family = str(
        traced.plan.get("family")
        or ("interleaved" if int(traced.plan.get("chunks", 1)) > 1 else "1f1b")
    )
    if family not in DRAWN:
        raise InputError(
            traced.name,
            f"the pipeline schedule {family}",
            f"a trace has {', '.join(DRAWN)}; --family 1f1b",
        )
    if len({int(stage["devices"]) for stage in traced.plan["stages"]}) > 1:
        raise InputError(
            traced.name, "its stages have different devices", "plan with one width, widths = [1]"
        )


def _node(
    number: int, task: Task, stage: int, local: int, ranks: ChakraRanks, groups: Groups, micros: int
) -> ChakraNode:
    work, plain = task.does, ("is_cpu_op", 0)
    if isinstance(work, Compute):
        return ChakraNode(
            number, task.what, COMP, task.after, micros, (plain, ("num_ops", round(work.flops)))
        )
    if isinstance(work, Collective):
        first = local - local // work.stride % work.group * work.stride
        members = tuple(ranks.rank(stage, first + work.stride * step) for step in range(work.group))
        kind = (("comm_type", COLLECTIVES[work.kind]), ("comm_size", work.bytes))
        return ChakraNode(
            number,
            task.what,
            COLL,
            task.after,
            0,
            (plain, *kind, ("pg_name", str(groups.number(members)))),
        )
    mine, other = ranks.rank(stage, local), ranks.rank(work.peer % ranks.stages, local)
    ends = (mine, other) if work.sends else (other, mine)
    attributes = (
        plain,
        ("comm_src", ends[0]),
        ("comm_dst", ends[1]),
        ("comm_size", work.bytes),
        ("comm_tag", work.tag),
    )
    return ChakraNode(number, task.what, SEND if work.sends else RECV, task.after, 0, attributes)


def _nodes(
    program: ChakraProgram, stage: int, local: int, ranks: ChakraRanks, groups: Groups
) -> Iterator[ChakraNode]:
    """The program of a stage as the nodes of one of its ranks."""
    passed_s, passed_micros = 0.0, 0
    for number, task in enumerate(program.tasks):
        micros = 0
        if isinstance(task.does, Compute):
            passed_s += task.does.seconds
            micros = round(1e6 * passed_s) - passed_micros
            passed_micros += micros
        yield _node(number, task, stage, local, ranks, groups, micros)


def programs(traced: TracedPlan, ranks: ChakraRanks) -> list[ChakraProgram]:
    """What the ranks of every stage do."""
    _require(traced)
    layers = layer_passes(traced.model, traced.setting)
    chunks, rounds = (
        int(traced.plan.get("chunks", 1)),
        -(-traced.batch // (traced.model.microbatch * ranks.data)),
    )
    flow = pipeline_of(traced.plan, rounds)
    if flow is None:
        raise InputError(
            traced.name,
            f"{rounds:,} microbatches of {ranks.stages} stages",
            "a trace has less; plan a smaller batch",
        )
    stage_programs = []
    for job in _stage_jobs(traced, ranks):
        require_mode(layers, job.mode, traced.name)
        passes = ordered_passes(
            {"forward": flow.forward_s, "backward": flow.backward_s}, job.stage, chunks
        )
        stage_programs.append(program_of(job, layers, passes))
    return stage_programs


def ranks_of(traced: TracedPlan) -> ChakraRanks:
    """The ranks of a plan."""
    width = traced.model.tensor * traced.model.context
    return ChakraRanks(
        width,
        int(traced.plan["pipeline"]),
        int(traced.plan["data"]),
        traced.plan.get("order") != "pipeline",
    )


def chakra(traced: TracedPlan) -> Iterator[tuple[str, bytes | dict[str, list[int]]]]:
    """The name and content of every file: traces by rank, then the groups as plain values."""
    ranks, groups = ranks_of(traced), Groups()
    stage_programs = programs(traced, ranks)
    total = sum(len(program.tasks) for program in stage_programs) * ranks.width * ranks.data
    if total > MOST_NODES:
        seen = f"{total:,} nodes on {ranks.count:,} ranks"
        raise InputError(
            traced.name, seen, f"at most {MOST_NODES:,}; plan fewer devices or a smaller batch"
        )
    for stage, program in enumerate(stage_programs):
        for local in range(ranks.width * ranks.data):
            nodes = list(_nodes(program, stage, local, ranks, groups))
            yield f"{PREFIX}.{ranks.rank(stage, local)}.et", trace_bytes(nodes)
    yield "comm_groups.json", groups.document()
