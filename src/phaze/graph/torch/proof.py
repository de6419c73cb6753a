"""The proof of a tensor-parallel plan: two ranks train like the whole model, on a copy with real
numbers.

One block of each kind runs, with what lies before and after the blocks, on a short sequence. If its
weights are too many, the copy has fewer features: the axis that blocks hand on is shortened, in all
weights. Loss and the gradient of every weight must be those of the whole copy:

    | part - whole | <= tolerance * max(|whole|, 1e-3 * largest gradient of the model)

in 64 bit, also where the code casts to less: what a model rounds by itself is allowed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from phaze.errors import PhazeError
from phaze.graph.torch.copies import Copy, copy_of, restored, values
from phaze.graph.torch.cuts import Slice, cut_weights
from phaze.graph.torch.faults import quoted
from phaze.graph.torch.flow import Map, MapRecorder
from phaze.graph.torch.follow import Sizes, Track
from phaze.graph.torch.parallel import RankGroup
from phaze.graph.torch.partition import Partition
from phaze.graph.torch.plans import ShardCut
from phaze.graph.torch.program import Source, TensorShape
from phaze.graph.torch.ranks import Exchange, in_ranks
from phaze.graph.torch.record import tensors_in
from phaze.graph.torch.regions import Borders
from phaze.graph.torch.replacements import KernelReplacement
from phaze.graph.torch.reshaping import Unsplit

RANKS = 2
"""Two ranks show a wrong split as more would, in the least time."""
# Tokens of a sequence in the copy: few, and enough that every one of two ranks has several.
TOKENS = 16
# Elements of weights (64 bit) above which a copy gets fewer features, and above which it is not
# run: 0.5 and 2 GiB.
MANY, MOST = 2**26, 2**28
# Elements of one activation above which a copy is not run, 1 GiB: its sequence cannot be shortened.
MOST_ACTIVATION = 2**27
FEATURES = 64
# Sums of 64 bit in another order differ by a millionth of that; a wrong cut by a hundred thousand
# times as much.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Outcome:
    """Loss and gradients of one run; how each weight was taken from the whole, and whether it lies
    in a block."""

    loss: float
    gradients: dict[str, Tensor]
    slices: dict[str, Slice] = field(default_factory=dict)
    inside: frozenset[str] = frozenset()


@dataclass(slots=True)
class ShardingProof:
    """Three copies of a model: the whole one and two ranks, with what the first run of its code
    saw."""

    copies: list[Copy]
    track: Track
    flow: MapRecorder
    sequence: int
    tokens_first: bool
    hidden: int
    is_loss: bool

    @property
    def maps(self) -> list[Map]:
        """The linear maps that run."""
        return self.flow.maps

    def group(self, rank: int, sequence_parallel: bool) -> RankGroup:
        """The communication of one rank."""
        return RankGroup(
            RANKS, rank, sequence_parallel, 0 if self.tokens_first else 1, self.sequence
        )


def _cut(
    copy: Copy, cuts: Sequence[ShardCut], group: RankGroup
) -> tuple[Sizes, Borders, KernelReplacement, dict[int, Slice]]:
    done = cut_weights(copy.program.module, cuts, group.width, group.rank)
    rules = Partition(group, done.vocabulary, done.stacked)
    borders = Borders(
        group.region,
        group.shard,
        group.whole,
        group.sequence_parallel,
        group.is_whole,
        group.is_shard,
    )
    return Sizes(None, rules), borders, KernelReplacement(False, done.vocabulary), done.slices


def dry_run(bench: ShardingProof, cuts: Sequence[ShardCut]) -> str:
    """Why the code cannot run with these weights cut, by shapes alone; nothing where it can."""
    copy = bench.copies[1]
    try:
        with restored(copy.program.module):
            sizes, borders, kernels, _ = _cut(copy, cuts, bench.group(0, False))
            sizes.reference = bench.track
            with kernels, torch.no_grad():
                copy.run(sizes, borders)
    except (Unsplit, PhazeError) as fault:
        return str(fault)
    except Exception as fault:
        return quoted(fault)
    return ""


def shortened(
    bench: ShardingProof, columns: Mapping[str, Map], rows: Mapping[str, Map]
) -> dict[str, tuple[int, ...]]:
    """Shapes of all weights with fewer features: the axis that blocks hand on is the inputs of what
    is cut by outputs, the outputs of what is cut by inputs, and every axis of its size of all other
    weights."""
    shapes = {}
    biases = {linear_map.bias for linear_map in columns.values()}
    for name, weight in bench.copies[0].program.module.named_parameters():
        shape = list(map(int, weight.shape))
        kept_axes = (
            {columns[name].outputs}
            if name in columns
            else {rows[name].inputs}
            if name in rows
            else set()
        )
        for axis, size in enumerate(shape):
            if size == bench.hidden and axis not in kept_axes and name not in biases:
                shape[axis] = FEATURES
        shapes[name] = tuple(shape)
    return shapes


def _outcome(copy: Copy, result: Any, slices: Mapping[int, Slice]) -> Outcome:
    results = [
        t
        for t in tensors_in(result if isinstance(result, tuple | list | dict) else [result])
        if t.requires_grad
    ]
    total = sum(
        (
            (r * values(f"gradient {i}", tuple(r.shape), r.dtype).to(r.dtype)).sum()
            for i, r in enumerate(results)
        ),
        torch.zeros((), dtype=torch.float64),
    )
    named = dict(copy.program.module.named_parameters())
    wanted = {name: p for name, p in named.items() if p.requires_grad}
    assert isinstance(total, Tensor)
    derivatives = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
    gradients = {name: g for name, g in zip(wanted, derivatives, strict=True) if g is not None}
    own_slices = {name: slices[id(p)] for name, p in named.items() if id(p) in slices}
    blocks = tuple(f"{path}." for path in copy.blocks)
    return Outcome(
        float(total.detach()),
        gradients,
        own_slices,
        frozenset(n for n in named if n.startswith(blocks)),
    )


class Proof:
    """Runs the whole copy once and two ranks as often as plans are tried."""

    def __init__(self, bench: ShardingProof, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.bench = bench
        whole = bench.copies[0]
        for copy in bench.copies:
            copy.fill(shapes)
        sizes = Sizes(bench.track, None, whole.real)
        with KernelReplacement(False):
            self.whole = _outcome(whole, whole.run(sizes), {})
        self.track = sizes.track

    def fault(self, cuts: Sequence[ShardCut], sequence_parallel: bool = False) -> str:
        """How two ranks differ from the whole; nothing where they do not."""

        def run(rank: int, exchange: Exchange) -> Outcome:
            copy = self.bench.copies[1 + rank]
            with restored(copy.program.module):
                sizes, borders, kernels, slices = _cut(
                    copy, cuts, self.bench.group(rank, sequence_parallel)
                )
                sizes.reference, sizes.real = self.track, copy.real
                with kernels:
                    return _outcome(copy, copy.run(sizes, borders), slices)

        try:
            parts = in_ranks(RANKS, run)
        except (Unsplit, PhazeError) as fault:
            return str(fault)
        except Exception as fault:
            return quoted(fault)
        return self._difference(parts, sequence_parallel)

    def _difference(self, parts: Sequence[Outcome], sequence_parallel: bool) -> str:
        whole = self.whole
        for part in parts:
            if not math.isclose(part.loss, whole.loss, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                return f"two ranks compute {part.loss:.6g} where one computes {whole.loss:.6g}"
        largest = max((float(g.abs().max()) for g in whole.gradients.values()), default=0.0)
        for name, target in whole.gradients.items():
            summed = sequence_parallel and name in whole.inside and name not in parts[0].slices
            for part in parts:
                gradient = part.gradients.get(name)
                if gradient is None:
                    return f"on two ranks the gradient of {name} is missing"
                expected = part.slices[name](target) if name in part.slices else target
                total = sum(p.gradients[name] for p in parts) if summed else gradient
                scale = max(
                    float(expected.abs().max()) if expected.numel() else 0.0, 1e-3 * largest
                )
                error = (
                    float((total - expected).abs().max()) / max(scale, 1e-30)
                    if expected.numel()
                    else 0.0
                )
                if not error <= TOLERANCE:
                    return f"on two ranks the gradient of {name} is off by {100 * error:.3g} %"
        return ""


def open_bench(source: Source) -> ShardingProof:
    """Build three copies without memory and run the first; the caller is within
    ``without_weights``."""
    sequence = source.sequence if source.fixed else min(TOKENS, source.sequence)
    shape = TensorShape(1, sequence)
    copies = [copy_of(source.build(shape)) for _ in range(1 + RANKS)]
    flow, sizes = MapRecorder(copies[0].program.module), Sizes()
    with KernelReplacement(False):
        result = copies[0].run(sizes, None, flow)
    size = flow.exchanged
    is_loss = isinstance(result, Tensor) and result.numel() == 1
    tokens_first = len(size) == 3 and size[0] == sequence != size[1]
    return ShardingProof(
        copies, dict(sizes.track), flow, sequence, tokens_first, size[-1] if size else 0, is_loss
    )


def too_large(bench: ShardingProof) -> str:
    """Why a copy cannot be run at all."""
    largest = max(
        (math.prod(shape) for calls in bench.track.values() for s in calls for shape in s.results),
        default=0,
    )
    if largest > MOST_ACTIVATION:
        return f"a sequence of {bench.sequence} is too long to run: let the function take sequence"
    return ""


def prove(
    bench: ShardingProof, columns: Mapping[str, Map], rows: Mapping[str, Map]
) -> "Proof | str":
    """A proof on the smallest copy that runs, or why there is none."""
    if problem := too_large(bench):
        return problem
    shapes = {
        name: tuple(map(int, p.shape))
        for name, p in bench.copies[0].program.module.named_parameters()
    }
    elements = sum(math.prod(shape) for shape in shapes.values())
    problem = ""
    if elements > MANY and bench.hidden > FEATURES:
        try:
            return Proof(bench, shortened(bench, columns, rows))
        except Exception as fault:
            problem = str(fault) if isinstance(fault, Unsplit) else quoted(fault)
    if elements > MOST:
        return (
            f"its {elements / 1e6:,.0f} million weights are too many to run, and with fewer "
            f"features: {problem}"
        )
    try:
        return Proof(bench, shapes)
    except Exception as fault:
        return f"a copy with real numbers does not run: {quoted(fault)}"
