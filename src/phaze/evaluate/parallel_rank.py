"""One rank of a model under tensor, context and expert parallelism, from traces of whole layers.

load at s / c positions        :func:`phaze.graph.fold_experts.folded_model` where t > 1 and experts
                               are sharded, with the trace at width 1 and s / (c t) positions
shard the experts              :func:`phaze.graph.split_experts.expert_parallel`
let attention see all keys     :func:`phaze.graph.split_context.context_parallel`
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from phaze.cost.ranks import Degrees, Divided, require_divided
from phaze.errors import InputError
from phaze.evaluate.memo import Memo
from phaze.graph.fold_experts import folded_model, require_own_tokens
from phaze.graph.ir import Layer, Model
from phaze.graph.mixture import Mixture, mixture_of
from phaze.graph.split_context import Way, context_parallel
from phaze.graph.split_experts import expert_parallel
from phaze.graph.supply.point import RankPoint
from phaze.graph.supply.supply import Supply
from phaze.placement.sharing import Sharing

# No router is let to send one rank more of the mean than this.
MOST_ROWS = 64.0
# From here on context degrees are tried unless others are said: activations of one sequence fill a
# device, and in most models attention takes longer than all products. Below it, sharing a sequence
# by tensor parallelism is enough.
LONG_SEQUENCE = 32_768
USUAL_CONTEXTS = (2, 4, 8)
# The trace at (tensor width, sequence, sequence parallel).
LoadAt = Callable[[int, int, bool], Model]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Degrees beyond tensor parallelism; without ``expert_tensor`` experts are cut as the rest is,
    by ``tensor``. ``rows``: routed tokens of the fullest rank over the mean
    (:func:`fullest_rows`)."""

    tensor: int
    context: int = 1
    expert: int = 1
    expert_tensor: int | None = None
    way: Way = "ring"
    rows: float = 1.0

    @property
    def sharing(self) -> Sharing:
        """What placement asks: experts that are not sharded are cut and replicated as all
        else."""
        if self.expert == 1:
            if self.expert_tensor not in (None, self.tensor):
                raise InputError(
                    "expert_tensor",
                    f"{self.expert_tensor} with tensor {self.tensor} needs expert parallelism",
                    "leave it out, or use expert 2 or more",
                )
            return Sharing(self.context)
        return Sharing(self.context, self.expert, self.expert_tensor or self.tensor)


def fullest_rows(imbalance: float | None, capacity: float | None, where: str = "") -> float:
    """Routed tokens of the fullest rank over the mean: the imbalance, of which a capacity drops
    what is beyond it."""
    for name, value in (("imbalance", imbalance), ("capacity", capacity)):
        if value is not None and not 1 <= value <= MOST_ROWS:
            raise InputError(
                f"{where}{name}",
                f"{value!r} is out of range",
                f"give 1, the mean load, to {MOST_ROWS:g}",
            )
    if capacity is not None and imbalance is None:
        raise InputError(
            f"{where}capacity", "a balanced load never exceeds it", "give imbalance too"
        )
    return min(imbalance or 1.0, capacity or MOST_ROWS)


def require_shared_out(rows: float, experts: Iterable[int], where: str) -> None:
    """Refuse an imbalance among ranks where no experts are sharded."""
    if rows > 1 and max(experts) == 1:
        raise InputError(
            where,
            "there is no expert parallelism, so all ranks have the same load",
            "give expert too",
        )


def parallels(
    width: int,
    contexts: Iterable[int],
    experts: Iterable[int],
    ways: Sequence[Way] = ("ring",),
    rows: float = 1.0,
) -> Iterator[Parallel]:
    """Every further degree to try at a width, a context in every way; experts are cut as the rest
    is, or not at all."""
    degrees = tuple(experts)
    for context in contexts:
        for expert in degrees:
            for cut in sorted({1, width}) if expert > 1 else (None,):
                for way in ways if context > 1 else ways[:1]:
                    yield Parallel(width, context, expert, cut, way, rows if expert > 1 else 1.0)


def usual_expert_degrees(experts: int, ranks: int) -> tuple[int, ...]:
    """The degrees to try where none are said: 1, and for a mixture the powers of two that divide
    its experts, as far as there are ranks."""
    powers = (2**power for power in range(1, max(experts, 1).bit_length()))
    return (1, *(degree for degree in powers if experts % degree == 0 and degree <= ranks))


def usual_context_degrees(sequence: int, ranks: int) -> tuple[int, ...]:
    """The degrees to try where none are said: 1, and for a long sequence those whose two chunks a
    rank divide it."""
    if sequence < LONG_SEQUENCE:
        return (1,)
    return (
        1,
        *(degree for degree in USUAL_CONTEXTS if sequence % (2 * degree) == 0 and degree <= ranks),
    )


class Refusals:
    """Which degrees the choices of a job refused, and why; degrees that none of them has are a
    fault of the job."""

    def __init__(self) -> None:
        self._faults: dict[tuple[int, int], InputError | None] = {}

    def attempted(self, parallel: Parallel, build: Callable[[], Model]) -> Model | None:
        """What ``build`` gives, or None where it refuses degrees that other choices may have."""
        degrees = (parallel.context, parallel.expert)
        try:
            model = build()
        except InputError as fault:
            if degrees == (1, 1):
                raise
            self._faults.setdefault(degrees, fault)
            return None
        self._faults[degrees] = None
        return model

    def require(self) -> None:
        """Raise the fault of degrees that no choice can have."""
        for fault in self._faults.values():
            if fault is not None:
                raise fault


def traces_of(traced: RankPoint, parallel: Parallel) -> Iterator[RankPoint]:
    """What :func:`parallel_rank` loads for a rank that is ``traced`` at the whole sequence; nothing
    where positions cannot be divided so."""
    positions, rest = divmod(traced.sequence, parallel.context)
    if rest:
        return
    yield replace(traced, tensor=parallel.tensor, sequence=positions)
    if parallel.expert > 1 and parallel.tensor > 1 and positions % parallel.tensor == 0:
        tokens = positions // parallel.tensor
        yield replace(traced, tensor=1, sequence=tokens, sequence_parallel=False)


def parallel_rank(
    load: LoadAt,
    parallel: Parallel,
    sequence: int,
    sequence_parallel: bool,
    memo: Memo | None = None,
) -> Model:
    """One rank; refused, with the degree that is wrong, where the model cannot be divided so.
    ``memo`` keeps what ranks of one ``load`` have in common."""
    sharing, memo = parallel.sharing, Memo() if memo is None else memo
    if (parallel.context, parallel.expert) == (1, 1):
        return load(parallel.tensor, sequence, sequence_parallel)
    require_divided(
        Degrees(parallel.tensor, parallel.context),
        Divided(sequence),
        sequence_parallel,
        parallel.way,
    )
    positions = sequence // parallel.context
    if parallel.expert > 1 and positions % parallel.tensor:
        raise InputError(
            "tensor",
            f"{positions} positions do not divide by {parallel.tensor}",
            "use another degree",
        )
    if parallel.expert > 1 and parallel.tensor > 1:
        require_own_tokens(sequence_parallel)

    def routed() -> Model:
        model = load(parallel.tensor, positions, sequence_parallel)
        return (
            model
            if parallel.tensor == 1
            else folded_model(model, load(1, positions // parallel.tensor, False))
        )

    point = parallel.tensor, positions, sequence_parallel
    if parallel.expert == 1:
        model = load(*point)
    else:
        whole = memo.take(("routed", *point), routed)
        cut = sharing.expert, sharing.expert_tensor, parallel.rows
        # Layers are kept with what is made of them, so that none takes the place of another in
        # memory.
        mixture_at = partial(_mixture, memo)
        model = memo.take(
            ("experts", *point, *cut), lambda: expert_parallel(whole, *cut, mixture_at)
        )
    return context_parallel(model, parallel.context, parallel.way)


def _mixture(memo: Memo, layer: Layer) -> Mixture | None:
    return memo.take(("mixture", id(layer)), lambda: (layer, mixture_of(layer)))[1]


def supply_at(supply: Supply, traced: RankPoint) -> LoadAt:
    """A model to be loaded at any width and sequence, with the microbatch and attention of
    ``traced``."""

    def load(tensor: int, sequence: int, spread: bool) -> Model:
        return supply.model(
            replace(traced, tensor=tensor, sequence=sequence, sequence_parallel=spread)
        )

    return load
