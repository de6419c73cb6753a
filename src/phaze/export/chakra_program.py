"""What a stage's ranks do in one step, in order: computation, collectives, transfers, and what each
waits for.

A pass of a microbatch waits for what it receives and for the pass before it; collectives inside it
wait for the computation before them and are waited for by what follows. Gradients are reduced layer
by layer with the last microbatch, and the optimizer waits for all of them: how much of it is hidden
is left to the simulator. Under ZeRO 3 weights are gathered layer by layer, each gather behind the
one before it and none behind computation. The order of passes is that of the plan's pipeline
schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phaze.export.chakra_layers import Collective, Compute, LayerPasses, Segment, joined


@dataclass(frozen=True, slots=True)
class Transfer:
    """A pipeline transfer to or from another virtual stage: its number, bytes and tag."""

    peer: int
    bytes: int
    tag: int
    sends: bool


@dataclass(frozen=True, slots=True)
class Task:
    """One node of a program: what it does, and the tasks that it waits for."""

    what: str
    does: Compute | Collective | Transfer
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StageJob:
    """A stage: the layers of each of its chunks, recompute, and the degrees that its programs need.

    ``alike``: ranks of a stage with the same weights, which lie ``width`` apart; of a mixture's
    experts ``alike // experts``. ``first`` and ``last``: numbers of its chunks among all virtual
    stages.
    """

    stage: int
    chunks: tuple[tuple[int, ...], ...]
    mode: str
    width: int
    tensor: int
    alike: int
    experts: int
    zero: int
    shard: int
    stages: int
    gradient_bytes: float
    weight_bytes: float
    sent_bytes: Mapping[int, int]
    optimizer_s: float


@dataclass(slots=True)
class ChakraProgram:
    """The tasks of a stage's ranks, in the order in which they were written."""

    tasks: list[Task] = field(default_factory=list)
    last: int | None = None
    gathered: int | None = None
    reduced: list[int] = field(default_factory=list)

    def add(self, what: str, does: Compute | Collective | Transfer, *after: int | None) -> int:
        """A task behind others; its number."""
        behind = tuple(sorted({number for number in after if number is not None}))
        self.tasks.append(Task(what, does, behind))
        return len(self.tasks) - 1

    def run(self, what: str, segments: Sequence[Segment], *after: int | None) -> None:
        """Segments one after another, behind what ran last and behind ``after``."""
        for segment in segments:
            name = what if isinstance(segment, Compute) else f"{what} {segment.kind}"
            self.last = self.add(name, segment, self.last, *after)
            after = ()


def _virtual(job: StageJob, chunk: int) -> int:
    return chunk * job.stages + job.stage


def _sharing(job: StageJob, group: int) -> int:
    """Ranks that shard state, of a group that holds the same weights."""
    return job.shard if 0 < job.shard < group and group % job.shard == 0 else group


def _reduction(job: StageJob, size: float, group: int, stride: int) -> list[Collective]:
    """How gradients of ``size`` bytes are reduced over ranks with the same weights."""
    if group == 1 or size <= 0:
        return []
    if job.zero == 0:
        return [Collective("all_reduce", int(size), group, stride)]
    inner = _sharing(job, group)
    collectives = [Collective("reduce_scatter", int(size), inner, stride)]
    if inner < group:
        collectives.append(
            Collective("all_reduce", int(size / inner), group // inner, stride * inner)
        )
    return collectives


def _weights(
    job: StageJob, layer: LayerPasses, still: bool = False
) -> list[tuple[float, int, int]]:
    """Trained parameters of a layer, and those that are not where they are wanted (``still``), by
    how they are shared: their number, ranks that hold them alike, and how far stride."""
    frozen = layer.frozen if still else (0, 0)
    every, experts = layer.parameters + frozen[0], layer.expert_parameters + frozen[1]
    shares = [(float(every - experts), job.alike, job.tensor)]
    if experts:
        stride = job.experts * job.tensor
        shares.append((float(experts), max(1, job.alike // job.experts), stride))
    return shares


def _reduce(program: ChakraProgram, job: StageJob, name: str, layer: LayerPasses) -> None:
    for count, group, stride in _weights(job, layer):
        behind = program.last
        for collective in _reduction(job, count * job.gradient_bytes, group, stride):
            behind = program.add(f"{name} gradients {collective.kind}", collective, behind)
            program.reduced.append(behind)


def _gather(program: ChakraProgram, job: StageJob, name: str, layer: LayerPasses) -> int | None:
    """Weights of a layer gathered anew, behind the gather before: all of them for a pass under ZeRO
    3, those that the optimizer changed elsewhere."""
    gathered = None
    for count, group, stride in _weights(job, layer, still=job.zero == 3):
        inner = _sharing(job, group)
        if inner > 1 and count:
            collective = Collective(
                "all_gather", -(-int(count * job.weight_bytes) // inner), inner, stride
            )
            gathered = program.gathered = program.add(
                f"{name} weights all_gather", collective, program.gathered
            )
    return gathered


def _pass(
    program: ChakraProgram,
    job: StageJob,
    layers: Sequence[LayerPasses],
    kind: str,
    chunk: int,
    name: str,
    reduces: bool,
) -> None:
    """One pass of one microbatch over the layers of a chunk."""
    order = job.chunks[chunk] if kind == "forward" else job.chunks[chunk][::-1]
    waiting: list[Segment] = []
    for number in order:
        layer = layers[number]
        gathered = _gather(program, job, name, layer) if job.zero == 3 else None
        segments = layer.forward if kind == "forward" else (*layer.again[job.mode], *layer.backward)
        if job.zero == 3 or reduces:
            program.run(name, joined(segments), gathered)
        else:
            waiting += segments
        if reduces:
            _reduce(program, job, name, layer)
    program.run(name, joined(waiting))


def _transfer(
    job: StageJob, ends: tuple[int, int], sends: bool, microbatch: int, count: int
) -> Transfer:
    """Between a virtual stage and its peer; its tag says the cut, the direction and which of
    ``count`` microbatches."""
    stage, peer = ends
    cut, is_backward = min(ends), (peer > stage) != sends
    return Transfer(peer, job.sent_bytes[cut], (2 * cut + is_backward) * count + microbatch, sends)


def program_of(
    job: StageJob, layers: Sequence[LayerPasses], passes: Sequence[tuple[str, int, int]]
) -> ChakraProgram:
    """The program of a stage: ``passes`` in order, each forward or backward, a microbatch and a
    chunk."""
    program, last_stage = ChakraProgram(), len(job.chunks) * job.stages - 1
    last_of = {
        chunk: max(m for kind, m, c in passes if kind == "backward" and c == chunk)
        for _, _, chunk in passes
    }
    count = 1 + max(microbatch for _, microbatch, _ in passes)
    for kind, microbatch, chunk in passes:
        is_backward, stage = kind == "backward", _virtual(job, chunk)
        name = f"{kind} {microbatch}" + (f" chunk {chunk}" if len(job.chunks) > 1 else "")
        source, target = (stage + 1, stage - 1) if is_backward else (stage - 1, stage + 1)
        if 0 <= source <= last_stage:
            program.last = program.add(
                f"{name} receive",
                _transfer(job, (stage, source), False, microbatch, count),
                program.last,
            )
        _pass(program, job, layers, kind, chunk, name, is_backward and microbatch == last_of[chunk])
        if 0 <= target <= last_stage:
            program.add(
                f"{name} send",
                _transfer(job, (stage, target), True, microbatch, count),
                program.last,
            )
    done = program.add("optimizer", Compute(job.optimizer_s, 0.0), program.last, *program.reduced)
    if job.zero in (1, 2):
        everywhere = [layers[number] for chunk in job.chunks for number in chunk]
        program.gathered = done
        for layer in everywhere:
            _gather(program, job, "optimizer", layer)
    return program


def ordered_passes(
    starts: Mapping[str, Any], stage: int, chunks: int
) -> list[tuple[str, int, int]]:
    """The passes of a stage by their starts, forward before backward where both start at once."""
    passes = [
        (float(start), rank, kind, piece // chunks, piece % chunks)
        for rank, (kind, by_stage) in enumerate(starts.items())
        for piece, start in enumerate(by_stage[stage])
    ]
    return [(kind, microbatch, chunk) for _, _, kind, microbatch, chunk in sorted(passes)]
