"""What a stage's ranks do in one step, in order: computation, collectives, transfers, and what each waits for.

A pass of a microbatch waits for what it receives and for the pass before it; collectives inside it wait for the
computation before them and are waited for by what follows. Gradients are reduced layer by layer with the last
microbatch, and the optimizer waits for all of them: how much of it is hidden is left to the simulator. Under ZeRO 3
weights are gathered layer by layer, each gather behind the one before it and none behind computation. The order of
passes is that of the plan's pipeline schedule.
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

    ``alike``: ranks of a stage with the same weights, which lie ``width`` apart; of a mixture's experts
    ``alike // experts``. ``first`` and ``last``: numbers of its chunks among all virtual stages.
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
class Program:
    """The tasks of a stage's ranks, in the order in which they were written."""

    tasks: list[Task] = field(default_factory=list)
    last: int | None = None
    gathered: int | None = None
    reduced: list[int] = field(default_factory=list)

    def add(self, what: str, does: Compute | Collective | Transfer, *after: int | None) -> int:
        """A task behind others; its number."""
        known = tuple(sorted({number for number in after if number is not None}))
        self.tasks.append(Task(what, does, known))
        return len(self.tasks) - 1

    def run(self, what: str, segments: Sequence[Segment], *after: int | None) -> None:
        """Segments one after another, behind what ran last and behind ``after``."""
        for own in segments:
            name = what if isinstance(own, Compute) else f"{what} {own.kind}"
            self.last = self.add(name, own, self.last, *after)
            after = ()


def _virtual(job: StageJob, chunk: int) -> int:
    return chunk * job.stages + job.stage


def _reduction(job: StageJob, size: float, group: int, stride: int) -> list[Collective]:
    """How gradients of ``size`` bytes are reduced over ranks with the same weights."""
    if group == 1 or size <= 0:
        return []
    if job.zero == 0:
        return [Collective("all_reduce", int(size), group, stride)]
    inner = job.shard if 0 < job.shard < group and group % job.shard == 0 else group
    found = [Collective("reduce_scatter", int(size), inner, stride)]
    if inner < group:
        found.append(Collective("all_reduce", int(size / inner), group // inner, stride * inner))
    return found


def _weights(job: StageJob, layer: LayerPasses, still: bool = False) -> list[tuple[float, int, int]]:
    """Trained parameters of a layer, and those that are not where they are wanted (``still``), by how they are shared:
    their number, ranks that hold them alike, and how far apart."""
    frozen = layer.frozen if still else (0, 0)
    every, experts = layer.parameters + frozen[0], layer.expert_parameters + frozen[1]
    found = [(float(every - experts), job.alike, job.tensor)]
    if experts:
        apart = job.experts * job.tensor
        found.append((float(experts), max(1, job.alike // job.experts), apart))
    return found


def _reduce(program: Program, job: StageJob, name: str, layer: LayerPasses) -> None:
    for count, group, stride in _weights(job, layer):
        behind = program.last
        for own in _reduction(job, count * job.gradient_bytes, group, stride):
            behind = program.add(f"{name} gradients {own.kind}", own, behind)
            program.reduced.append(behind)


def _gather(program: Program, job: StageJob, name: str, layer: LayerPasses) -> int | None:
    """Weights of a layer gathered anew, behind the gather before: all of them for a pass under ZeRO 3, those that the
    optimizer changed elsewhere."""
    found = None
    for count, group, stride in _weights(job, layer, still=job.zero == 3):
        inner = job.shard if 0 < job.shard < group and group % job.shard == 0 else group
        if inner > 1 and count:
            own = Collective("all_gather", -(-int(count * job.weight_bytes) // inner), inner, stride)
            found = program.gathered = program.add(f"{name} weights all_gather", own, program.gathered)
    return found


def _pass(
    program: Program, job: StageJob, layers: Sequence[LayerPasses], kind: str, chunk: int, name: str, reduces: bool
) -> None:
    """One pass of one microbatch over the layers of a chunk."""
    own = job.chunks[chunk] if kind == "forward" else job.chunks[chunk][::-1]
    waiting: list[Segment] = []
    for number in own:
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


def program_of(job: StageJob, layers: Sequence[LayerPasses], passes: Sequence[tuple[str, int, int]]) -> Program:
    """The program of a stage: ``passes`` in order, each forward or backward, a microbatch and a chunk."""
    program, ends = Program(), len(job.chunks) * job.stages - 1
    last_of = {chunk: max(m for kind, m, c in passes if kind == "backward" and c == chunk) for _, _, chunk in passes}
    count = 1 + max(microbatch for _, microbatch, _ in passes)
    for kind, microbatch, chunk in passes:
        ahead, at = kind == "forward", _virtual(job, chunk)
        name, tag = f"{kind} {microbatch}" + (f" chunk {chunk}" if len(job.chunks) > 1 else ""), microbatch
        come, go = (at - 1, at + 1) if ahead else (at + 1, at - 1)
        if 0 <= come <= ends:
            cut = min(at, come)
            tagged = (2 * cut + (not ahead)) * count + tag
            program.last = program.add(
                f"{name} receive", Transfer(come, job.sent_bytes[cut], tagged, False), program.last
            )
        _pass(program, job, layers, kind, chunk, name, not ahead and microbatch == last_of[chunk])
        if 0 <= go <= ends:
            cut = min(at, go)
            tagged = (2 * cut + (not ahead)) * count + tag
            program.add(f"{name} send", Transfer(go, job.sent_bytes[cut], tagged, True), program.last)
    done = program.add("optimizer", Compute(job.optimizer_s, 0.0), program.last, *program.reduced)
    if job.zero in (1, 2):
        everywhere = [layers[number] for chunk in job.chunks for number in chunk]
        program.gathered = done
        for layer in everywhere:
            _gather(program, job, "optimizer", layer)
    return program


def ordered_passes(starts: Mapping[str, Any], stage: int, chunks: int) -> list[tuple[str, int, int]]:
    """The passes of a stage by their starts, forward before backward where both start at once."""
    found = [
        (float(start), rank, kind, piece // chunks, piece % chunks)
        for rank, (kind, own) in enumerate(starts.items())
        for piece, start in enumerate(own[stage])
    ]
    return [(kind, microbatch, chunk) for _, _, kind, microbatch, chunk in sorted(found)]
