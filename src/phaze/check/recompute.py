"""The modes in which a stack holds the activations of a layer (docs/plan.md, Memory): kept bytes,
and what runs again.

A mode recomputes a region of the forward pass. What the region wrote is no source any more, unless
others read it or it leaves the layer (a region that *drops* its results keeps none of them). Then

    kept    the least bytes that all that is wanted can be made from
            (saving.least_kept)
    again   the operators of the region between what is kept and what is wanted

none, selective (attention scores; or all but every second product and attention), the unions of
modules that a stack offers, by bytes moved for each byte saved, alternate (full in every second
block), full (inputs are kept), and any of them with what it keeps in the memory of the host
(offload).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .reading import cover
from .regions import MODULES, regions_of
from .saving import flow_of, least_kept, logits_of, sources_of, wanted_of
from .traced import NOTHING, Trace, Traced, TracedLayer

FLOP_A_BYTE, MOST_UNIONS, WORTH = 300.0, 5, 0.01


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a stack keeps activations: the key ``saves``, bytes of a logit, what selective means,
    modules, unions, whether they may wait in the memory of the host."""

    saves: str
    logit_bytes: float | None
    selective: str
    modules: tuple[str, ...]
    named: tuple[str, ...]
    offload: bool = False


@dataclass(frozen=True, slots=True)
class Mode:
    """Bytes that each microbatch in flight keeps, bytes beside them while backward runs (logits
    aside), what runs again, and which share of it; bytes that the host keeps."""

    name: str
    kept: int
    live: int
    again: Trace
    share: float = 1.0
    host: int = 0

    @property
    def reruns(self) -> bool:
        """Whether what runs again is no share of a full recompute."""
        return self.share == 1.0 and "full" not in self.name.split("+")


def _flops(operator: Traced) -> float:
    op = operator.op
    if op.kind in ("product", "convolution"):
        return 2.0 * op.size("batch") * op.size("m") * op.size("n") * op.size("k")
    if op.kind in ("attention", "attention_backward"):
        w, v, back = op.size("width"), op.size("value_width"), op.kind == "attention_backward"
        return (
            2.0
            * op.size("batch")
            * op.size("queries")
            * op.size("keys")
            * (3 * w + 2 * v if back else w + v)
        )
    return 0.0


def _effort(trace: Trace) -> float:
    """Bytes moved, and FLOP counted as bytes."""
    moved = sum(
        size
        for operator in trace.operators
        for _, size in (*operator.op.reads, *operator.op.writes)
    )
    return moved + sum(_flops(operator) for operator in trace.operators) / FLOP_A_BYTE


class Modes:
    """The modes of one layer, each made when it is asked for."""

    def __init__(self, layer: TracedLayer, keeping: Keeping) -> None:
        self.layer, self.keeping, self.flow = layer, keeping, flow_of(layer)
        cover(
            set(keeping.modules) <= MODULES,
            "recompute_modules: one that this checker does not know",
        )
        self._wanted = wanted_of(self.flow, keeping.saves, keeping.logit_bytes is not None)
        self._sources = sources_of(self.flow, keeping.saves)
        self.none_bytes = self._bytes(self._kept(frozenset(), frozenset()))
        last = logits_of(layer) if keeping.logit_bytes is not None else None
        self.logit_bytes = (
            0 if last is None else round((keeping.logit_bytes or 0.0) * layer.tensors[last][0])
        )
        named = {part for name in keeping.named for part in name.split("+")} | set(keeping.modules)
        regions = regions_of(self.flow) if named else {}
        self.regions = {name: own for name, own in regions.items() if name in named}

    def _bytes(self, tensors: Iterable[int]) -> int:
        return sum(self.layer.size(tensor) for tensor in tensors)

    def _kept(self, region: frozenset[int], dropped: frozenset[int]) -> frozenset[int]:
        if not region and self.keeping.saves == "trace":
            return self._wanted
        gone = set[int]()
        for tensor, operator in self.flow.writer.items():
            if operator.number in region:
                outside = any(
                    reader.number not in region for reader in self.flow.readers.get(tensor, ())
                )
                if operator.number in dropped or not (outside or tensor in self.flow.leaving):
                    gone.add(tensor)
        return least_kept(self.flow, self._wanted, self._sources - gone)

    def _between(self, kept: frozenset[int], region: frozenset[int] | None) -> Trace:
        """The operators of a region from what is kept to what is wanted; seen from the last one of
        the pass."""
        needed, numbers = self._wanted - kept, set[int]()
        for operator in reversed(self.layer.forward.operators):
            if needed.isdisjoint(operator.writes):
                continue
            if region is None or operator.number in region:
                numbers.add(operator.number)
            needed |= set(operator.reads) - self.flow.free - kept
        return self.layer.forward.part(numbers, self._wanted)

    def _mode(self, name: str, kept: frozenset[int], again: Trace) -> Mode:
        own = min(self._bytes(kept), self.none_bytes)
        return Mode(name, own, self.none_bytes - own, again)

    def _selective(self) -> Mode:
        if self.keeping.selective == "scores":
            again = self.layer.again
            made = {tensor for operator in again.operators for tensor in operator.writes}
            kept = self._kept(frozenset(), frozenset())
            if made:
                kept = least_kept(self.flow, self._wanted - made, self._sources)
            return self._mode("selective", kept, again)
        held, products = set(self.layer.inputs), 0
        for operator in self.layer.forward.operators:
            weighted = self.flow.weighted(operator)
            products += weighted
            if operator.op.kind in ("attention", "reduce_scatter", "all_to_all") or (
                weighted and products % 2
            ):
                held.update(operator.writes)
        return self._mode("selective", frozenset(held), self._between(frozenset(held), None))

    def _full(self) -> Mode:
        kept = min(self.layer.input_bytes, self.none_bytes)
        return Mode("full", kept, self.none_bytes - kept, self.layer.forward)

    def _alternate(self) -> Mode:
        full = self._full()
        return Mode(
            "alternate", (full.kept + self.none_bytes) // 2, full.live, self.layer.forward, 0.5
        )

    def of(self, name: str) -> Mode:
        """The mode of a name; a module that the layer has not changes nothing."""
        known: dict[str, Callable[[], Mode]] = {
            "none": lambda: Mode("none", self.none_bytes, 0, NOTHING),
            "selective": self._selective,
            "full": self._full,
            "alternate": self._alternate,
        }
        if name in known:
            return known[name]()
        parts = name.split("+")
        if "offload" in parts:
            base = self.of("+".join(part for part in parts if part != "offload") or "none")
            return Mode(name, 0, base.live + 2 * base.kept, base.again, base.share, base.kept)
        chosen = [self.regions[part] for part in parts if part in self.regions]
        if not chosen:
            return Mode(name, self.none_bytes, 0, NOTHING)
        region = frozenset().union(*(own for own, _ in chosen))
        kept = self._kept(region, frozenset().union(*(own for own, drops in chosen if drops)))
        return self._mode(name, kept, self._between(kept, region))


def offered(layers: Sequence[tuple[TracedLayer, int]], keeping: Keeping) -> tuple[str, ...]:
    """The modes between selective and full, of layers given with how often they are called: named
    ones, or of the layer that is called most its modules one after another, the one that moves
    least for a byte saved first, then each alone; without those that keep no less than another
    whose rerun is part of theirs."""
    hosted = ("offload",) if keeping.offload else ()
    if keeping.named or not keeping.modules:
        return keeping.named or hosted
    modes = Modes(max(layers, key=lambda pair: pair[1])[0], keeping)
    single = {name: modes.of(name) for name in modes.regions}
    worth = {
        name: mode for name, mode in single.items() if mode.kept < (1 - WORTH) * modes.none_bytes
    }
    order = sorted(
        worth,
        key=lambda name: (_effort(worth[name].again) / (modes.none_bytes - worth[name].kept), name),
    )
    found, least = list[Mode](), modes.none_bytes
    for count in range(1, len(order) + 1):
        some = order[:count]
        inner = {a for a in some if any(modes.regions[a][0] < modes.regions[b][0] for b in some)}
        mode = modes.of("+".join(sorted(set(some) - inner)))
        if mode.kept < least:
            found.append(mode)
            least = mode.kept
    found += [worth[name] for name in order if name not in {mode.name for mode in found}]
    last = ("alternate",) if "alternate" in keeping.modules else ()
    best = _undominated(found)[: MOST_UNIONS - len(last)]
    return (
        *(mode.name for mode in sorted(best, key=lambda mode: (-mode.kept, mode.name))),
        *last,
        *hosted,
    )


def _undominated(found: Sequence[Mode]) -> list[Mode]:
    """The modes that no other keeps as little as with a part of their rerun; of equals the
    first."""
    runs = [frozenset(operator.number for operator in mode.again.operators) for mode in found]
    kept = []
    for b, mode in enumerate(found):
        beaten = False
        for a, other in enumerate(found):
            if a != b and other.kept <= mode.kept and runs[a] <= runs[b]:
                beaten |= a < b or (other.kept, runs[a]) != (mode.kept, runs[b])
        kept += [] if beaten else [mode]
    return kept


def gradient_elements(layer: TracedLayer) -> int:
    """Elements of one gradient of every distinct shape of a trained weight; products that read one
    activation are one weight."""
    rows: dict[tuple[int, int], int] = {}
    for operator in layer.forward.operators:
        weights = [t for t in operator.reads if layer.roles[t] == "parameter"]
        if operator.op.kind == "product" and set(weights) - layer.still:
            read = next((t for t in operator.reads if layer.roles[t] != "parameter"), -1)
            key = (read, operator.op.size("k"))
            rows[key] = rows.get(key, 0) + operator.op.size("n")
    return sum(count * width for count, width in {(n, k) for (_, k), n in rows.items()})
