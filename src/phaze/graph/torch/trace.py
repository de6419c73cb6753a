"""From a source to a :class:`phaze.graph.ir.Model`: build without weights, find equal blocks, cut,
convert.

discover   one forward pass of the whole model at width 1: which block calls are equal (their
           signature)
trace      one folded pass, forward and backward, at any width and microbatch: layers, calls, edges,
           ties
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

from phaze.errors import InputError
from phaze.graph import opset
from phaze.graph.ir import Call, Edge, Layer, Model, Tie
from phaze.graph.positions import extended, require_positions
from phaze.graph.supply.point import RankPoint, RankVariant
from phaze.graph.torch import faults
from phaze.graph.torch.blocks import find_blocks
from phaze.graph.torch.convert import live, real_reads
from phaze.graph.torch.crossing import note_crossings, passes_by, running
from phaze.graph.torch.fake import without_weights
from phaze.graph.torch.follow import Sizes, Track
from phaze.graph.torch.layers import Weights, layer_of
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.record import FROM_PARAMETERS
from phaze.graph.torch.regions import TracedRegion
from phaze.graph.torch.replacements import KernelReplacement
from phaze.graph.torch.shard import Sharding, shard_model
from phaze.graph.torch.signature import signature
from phaze.graph.torch.walk import PassWalk

# A line of code that runs so often in a block is a loop over tokens; the most experts of a
# published model are 512.
MOST_RUNS, FEW_TOKENS = 600, 256


@dataclass(frozen=True, slots=True)
class Discovery:
    """Which calls of blocks are equal: ``classes[i]`` is the class of the i-th call, ``modules``
    their paths. With ``entire`` they also exchange tensors that are no arguments or results, and a
    trace has to run them all."""

    classes: tuple[int, ...]
    modules: tuple[str, ...]
    entire: bool = False


def discover(
    source: Source, sequence: int | None = None, fused: bool = False, microbatch: int = 1
) -> Discovery:
    """Run the whole model once, forward, and sort its block calls into classes of equal ones."""
    shape = TensorShape(microbatch, _sequence(source, sequence), fused)
    with without_weights(), faults.of_model(source.name):
        program = source.build(shape)
        walk = _walk(program, None, KernelReplacement(fused), most_runs=_most_runs(shape.sequence))
        classes: dict[object, int] = {}
        blocks = [region for region in walk.regions if region.module is not None]
        numbers = tuple(
            classes.setdefault(signature(walk, region), len(classes)) for region in blocks
        )
        entire = passes_by(walk.regions, walk.recorder.log)
        return Discovery(numbers, tuple(region.path for region in blocks), entire)


def trace_model(
    source: Source,
    *,
    tensor: int = 1,
    microbatch: int = 1,
    sequence: int | None = None,
    discovery: Discovery | None = None,
    tracks: dict[TensorShape, Track] | None = None,
    **variant: Unpack[RankVariant],
) -> Model:
    """The model's training step on one of ``tensor`` ranks; pass the ``discovery`` of an earlier
    trace to save time, and ``tracks`` to keep what the code of the whole model does for other
    widths."""
    if microbatch < 1:
        raise InputError("--microbatch", f"{microbatch} is not a positive number")
    point = RankPoint(tensor, microbatch, _sequence(source, sequence), **variant)
    fused, length = point.attention == "fused", point.sequence
    discovered = discovery or discover(source, sequence, fused, microbatch)
    with without_weights(), faults.of_model(source.name):
        shape = TensorShape(microbatch, length, fused)
        program = source.build(shape)
        track = _track(source, program, discovered, shape, tracks) if tensor > 1 else None
        sharding = shard_model(
            program.module,
            source,
            width=tensor,
            sequence=length,
            sequence_parallel=point.split,
        )
        kernels = KernelReplacement(fused, sharding.vocabulary)
        uneven = next(
            (note.partition(";")[0] for note in sharding.notes if "do not divide" in note), ""
        )
        with faults.of_model(source.name, f"try a width that divides: {uneven}" if uneven else ""):
            sizes = Sizes(track, sharding.rules) if sharding.rules is not None else None
            walk = _walk(program, discovered, kernels, sharding, sizes)
        faults.check_known(source.name, _unknown(walk))
        layers, calls, edges, ties = _assemble(walk, sharding)
    return Model(
        name=source.name,
        **replace(point, sequence_parallel=point.split).document(),
        layers=layers,
        calls=calls,
        edges=edges,
        ties=ties,
        approximations=(
            *source.notes,
            *sharding.notes,
            *_kept_by_many(walk),
            *_unfused(fused, layers),
            *extended(length, source.longest, source.rotary),
        ),
    )


def _kept_by_many(walk: PassWalk) -> tuple[str, ...]:
    """Said when several blocks read one tensor: each of them counts it among what it keeps."""
    last = len(walk.regions) - 1
    makers: dict[str, None] = {}
    for maker in walk.regions:
        for result in maker.gives:
            if sum(reader.module is not None for reader in walk.readers(result, maker)) > 1:
                makers[maker.path or _part_name(maker.number, last)] = None
    if not makers:
        return ()
    return (
        (
            f"a result of {', '.join(makers)} is read by several blocks; each counts it in "
            "what it keeps"
        ),
    )


def _unfused(fused: bool, layers: Sequence[Layer]) -> tuple[str, ...]:
    """Said when fused attention was requested and the model's code never calls it."""
    kinds = {operator.kind for layer in layers for operator in layer.forward.operators}
    if not fused or "attention" in kinds:
        return ()
    return ("nothing is fused: the model's code does not call scaled_dot_product_attention",)


def unknown_operators(
    source: Source, sequence: int | None = None, microbatch: int = 1
) -> tuple[tuple[str, str, str], ...]:
    """All operators of the model that :mod:`phaze.graph.opset` has no row for: name, module, source
    line."""
    discovered = discover(source, sequence, microbatch=microbatch)
    with without_weights(), faults.of_model(source.name):
        program = source.build(TensorShape(microbatch, _sequence(source, sequence)))
        walk = _walk(program, discovered, KernelReplacement(False))
        return tuple((name, *place) for name, place in _unknown(walk).items())


def _unknown(walk: PassWalk) -> dict[str, tuple[str, str]]:
    """Operators without a row that something depends on: name, and module and line of its first
    use."""
    unknown: dict[str, tuple[str, str]] = {}
    for region in walk.regions:
        for step in running(walk.recorder.log, region):
            if opset.kind_of(step.name) is None:
                unknown.setdefault(step.name, (step.module, step.line))
    return unknown


def _sequence(source: Source, requested: int | None) -> int:
    length = source.sequence if requested is None else requested
    if source.fixed and length != source.sequence:
        raise InputError(
            "--sequence", f"{source.name} always has {source.sequence} positions, not {length}"
        )
    if length < 1:
        raise InputError("--sequence", f"{length} is out of range", "it must be at least 1")
    require_positions(source.name, length, source.longest, source.rotary)
    return length


def _most_runs(sequence: int) -> int:
    """How often a line may run in a block: fewer times than there are tokens, where these are more
    than the experts or other parts that code goes through one by one."""
    return min(MOST_RUNS, sequence) if sequence >= FEW_TOKENS else MOST_RUNS


def _track(
    source: Source,
    program: TracedProgram,
    discovery: Discovery,
    shape: TensorShape,
    tracks: dict[TensorShape, Track] | None,
) -> Track | None:
    """What the code of the whole model does, where the plan says only which weights are cut."""
    if source.plan is None or not source.plan.cuts:
        return None
    known_tracks = {} if tracks is None else tracks
    if shape not in known_tracks:
        sizes = Sizes()
        _walk(program, discovery, KernelReplacement(shape.fused), None, sizes)
        known_tracks[shape] = sizes.track
    return known_tracks[shape]


def _walk(
    program: TracedProgram,
    discovery: Discovery | None,
    kernels: KernelReplacement,
    sharding: Sharding | None = None,
    sizes: Sizes | None = None,
    most_runs: int = 0,
) -> PassWalk:
    program.module.train()
    blocks = find_blocks(program.module)
    classes, entire = (None, False) if discovery is None else (discovery.classes, discovery.entire)
    walk = PassWalk(
        program.module,
        blocks,
        classes,
        None if sharding is None else sharding.borders,
        entire,
        sizes,
        most_runs,
    )
    with kernels:
        walk.run(program.step, program.inputs)
    faults.check_called(blocks, [region.path for region in walk.regions])
    if walk.backward:
        note_crossings(walk.regions, walk.recorder.log)
    return walk


def _is_layer(walk: PassWalk, region: TracedRegion) -> bool:
    """A part between blocks is a layer if anything runs in it that a result depends on."""
    if region.module is not None:
        return True
    needed = set(region.outputs)
    return bool(live(walk.recorder.log.forward.get(region.number, ()), needed) or region.gradients)


def _part_name(index: int, last: int) -> str:
    if last == 0:
        return "model"
    return "prologue" if index == 0 else "epilogue" if index == last else f"between.{index}"


def _assemble(
    walk: PassWalk, sharding: Sharding
) -> tuple[tuple[Layer, ...], tuple[Call, ...], tuple[Edge, ...], tuple[Tie, ...]]:
    regions = [region for region in walk.regions if _is_layer(walk, region)]
    weights = _weights(walk, sharding)
    tail = next((region.number for region in reversed(regions) if region.module is None), -1)
    unread = _unread(walk, weights)
    layers: list[Layer] = []
    calls: list[Call] = []
    number_of: dict[int, int] = {}
    call_of: dict[int, int] = {}
    last = len(walk.regions) - 1
    for region in regions:
        name = region.path or _part_name(region.number, last)
        key = -1 - region.number if region.folds is None else region.folds
        if key not in number_of:
            number_of[key] = len(layers)
            layer_weights = replace(weights, unread=unread) if region.number == tail else weights
            layers.append(layer_of(walk.recorder.log, region, layer_weights, name))
        call_of[region.number] = len(calls)
        calls.append(Call(number_of[key], name))
    return tuple(layers), tuple(calls), _edges(walk, call_of), _ties(walk, weights, call_of)


def _weights(walk: PassWalk, sharding: Sharding) -> Weights:
    numbers = {id(parameter): number for number, parameter in walk.parameters.items()}
    names = {numbers[id(parameter)]: name for name, parameter in walk.model.named_parameters()}
    split = frozenset(numbers[key] for key in sharding.split if key in numbers)
    return Weights(walk.parameters, names, split)


def _unread(walk: PassWalk, weights: Weights) -> frozenset[int]:
    """Parameters outside blocks that nothing reads whose result is used: they lie in memory all the
    same."""
    steps = (step for region in walk.regions for step in running(walk.recorder.log, region))
    read = {operand.storage for step in steps for operand in step.reads}
    block_parameters = {
        id(parameter) for module in walk.blocks.values() for parameter in module.parameters()
    }
    return frozenset(
        n for n, p in weights.by_storage.items() if n not in read and id(p) not in block_parameters
    )


def _edges(walk: PassWalk, call_of: dict[int, int]) -> tuple[Edge, ...]:
    """Storages that one region hands out and another takes, made from parameters; summed for each
    pair of calls."""
    log = walk.recorder.log
    maker: dict[int, int] = {}
    edges: dict[tuple[int, int], list[int]] = {}
    for region in walk.regions:
        for (storage, _), differentiable in region.inputs.items():
            source = maker.get(storage)
            if (
                source is None
                or not log.origin.get(storage, 0) & FROM_PARAMETERS
                or region.number not in call_of
            ):
                continue
            sizes = edges.setdefault((call_of[source], call_of[region.number]), [0, 0])
            sizes[0] += log.bytes_of[storage]
            sizes[1] += log.bytes_of[storage] if differentiable else 0
        if region.number in call_of:
            for storage, _ in region.outputs:
                maker.setdefault(storage, region.number)
    _in_order(
        edges,
        [call_of[r.number] for r in walk.regions if r.module is None and r.number in call_of],
        len(call_of),
    )
    return tuple(Edge(source, target, *sizes) for (source, target), sizes in sorted(edges.items()))


def _in_order(edges: dict[tuple[int, int], list[int]], parts: Sequence[int], calls: int) -> None:
    """A part between blocks that depends on no parameter (a table of positions, made anew for each
    block) has no edge, and would lie beside all blocks: it stays where the code runs it, by edges
    of no bytes."""
    for part in parts:
        if part > 0 and all(target != part for _, target in edges):
            edges[part - 1, part] = [0, 0]
        if part < calls - 1 and all(source != part for source, _ in edges):
            edges[part, part + 1] = [0, 0]


def _ties(walk: PassWalk, weights: Weights, call_of: dict[int, int]) -> tuple[Tie, ...]:
    """Parameters that several calls hold: blocks their own, and what others read or are given and
    read."""
    users: dict[int, list[int]] = {}
    numbers = {id(parameter): number for number, parameter in weights.by_storage.items()}
    first = {region.folds: region for region in reversed(walk.regions)}
    read: dict[int, set[int]] = {}
    for region in walk.regions:
        if region.number not in call_of:
            continue
        like = region if region.module is None else first[region.folds]
        if like.number not in read:
            operands = (
                operand for step in running(walk.recorder.log, like) for operand in real_reads(step)
            )
            read[like.number] = {o.storage for o in operands if o.storage in weights.by_storage}
        if region.module is None:
            used = read[like.number]
        else:
            arguments = zip(like.takes, region.takes, strict=True)
            used = {numbers[id(parameter)] for parameter in region.module.parameters()}
            used |= {
                walk.recorder.number(b)
                for a, b in arguments
                if walk.recorder.number(a) in read[like.number]
            }
        for number in sorted(used):
            users.setdefault(number, []).append(call_of[region.number])
    return tuple(
        Tie(
            weights.names[n],
            tuple(calls),
            weights.by_storage[n].numel(),
            weights.by_storage[n].element_size(),
        )
        for n, calls in sorted(users.items())
        if len(calls) > 1
    )
