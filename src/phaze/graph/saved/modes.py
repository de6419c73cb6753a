r"""The ways in which a stack holds the activations of a layer: what each keeps, what it runs again.

A mode recomputes a region D of the forward pass (:mod:`phaze.graph.saved.regions`). What D wrote is
no source any more but for what others read of it (they keep their own operand), unless D's results
are dropped; then

    kept(D)  = least bytes that backward's operands can be made from
             (:func:`phaze.graph.saved.cut.least_kept`)
    rerun(D) = the operators of D on the way from what is kept to what backward reads
    live     = kept(none) - kept(D) + logits: what the layer holds beside its kept bytes while its
             backward runs

so a mode that keeps less never takes more: q kept + live falls with kept for q >= 1 microbatches in
flight. Further

    selective   as the stack means it: ``scores`` reruns the score paths of eager attention;
                ``operators`` keeps the layer's inputs and the results of every second product, of
                attention and of exchanges (reduce-scatter, all-to-all), and reruns the rest
    full        keeps the inputs and reruns the forward pass
    alternate   full in every second block: half of its bytes and seconds, on average over the
                blocks of a stage
    offload     what a mode keeps waits in the memory of the host: kept = 0, live = its own + 2
                kept, as the layer that runs and its neighbour on its way are on the device; with no
                other name none, else M+offload

Unions of modules are offered along their efficiency, bytes saved for each second rerun
(:func:`unions`), which is the convex hull of all of them, and single modules beside them; none is
offered that keeps no less than another whose rerun is a part of its own, which no chip can make the
slower one. On one chip those that take no less time and memory than another go too
(:func:`phaze.evaluate.efficient_modes.efficient`): the Pareto front.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from phaze.graph import opset
from phaze.graph.ir import Layer, Operator, OperatorGraph
from phaze.graph.recompute import empty_graph, part_of
from phaze.graph.saved.cut import least_kept
from phaze.graph.saved.regions import KnownRegions, SavedRegion, regions_of
from phaze.graph.saved.rules import ForwardFlow, Saves, flow_of, logits, sources_of, wanted_of

Selective = Literal["scores", "operators"]
SELECTIVES: tuple[Selective, ...] = ("scores", "operators")
ALTERNATE = "alternate"
OFFLOAD = "offload"
JOIN = "+"
# Exchanges whose results an operator-level policy keeps.
EXCHANGES = frozenset({"reduce_scatter", "all_to_all"})
# FLOP that take as long as a byte of memory traffic on accelerators of today; it only orders the
# unions on offer.
FLOP_PER_BYTE = 300.0
# Unions on offer beside none, selective, full and what waits in the memory of the host.
MOST_UNIONS = 5
# A module that saves less than this share is not offered in unions: it costs time for nothing
# (fused attention).
WORTH = 0.01


@dataclass(frozen=True, slots=True)
class Mode:
    """One way: bytes that every microbatch in flight keeps, bytes beside them while the layer's
    backward runs, what runs again (the share ``part`` of it on average), and bytes that the host
    keeps."""

    name: str
    saved_bytes: int
    live_bytes: int
    rerun: OperatorGraph
    part: float = 1.0
    host_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a stack keeps activations: its rule, bytes of a logit (None: as the rule says), what
    selective means to it, the modules that it can recompute, and the unions of them that a plan
    names (none: the efficient ones); whether activations may wait in the memory of the host."""

    saves: Saves = "trace"
    logit_bytes: float | None = None
    selective: Selective = "scores"
    modules: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    offload: bool = False


AS_TRACED = Keeping()


class Modes:
    """The modes of one layer, each made when it is requested."""

    def __init__(
        self, layer: Layer, keeping: Keeping, known_regions: KnownRegions | None = None
    ) -> None:
        self.layer, self.keeping, self._parts = layer, keeping, known_regions
        self.flow: ForwardFlow = flow_of(layer)
        self._made = {tensor: self.flow.made_from(tensor) for tensor in self.flow.writer}
        self._sizes = {number: tensor.bytes for number, tensor in self.flow.tensors.items()}
        self._known: dict[str, Mode] = {}
        self.wanted = wanted_of(layer, self.flow, keeping.saves, keeping.logit_bytes is not None)
        self.sources = sources_of(layer, self.flow, keeping.saves)
        self.none_bytes = self._bytes(self._saved(frozenset(), frozenset()))
        last = logits(layer) if keeping.logit_bytes is not None else None
        self.logit_bytes = (
            0
            if last is None
            else round((keeping.logit_bytes or 0.0) * self.flow.tensors[last].elements)
        )
        self._regions: dict[str, SavedRegion] | None = None

    @property
    def regions(self) -> dict[str, SavedRegion]:
        """The parts of the layer that the stack can recompute."""
        if self._regions is None:
            wanted = {part for name in self.keeping.named for part in name.split(JOIN)} | set(
                self.keeping.modules
            )
            regions = (regions_of if self._parts is None else self._parts.of)(self.layer, self.flow)
            self._regions = {name: region for name, region in regions.items() if name in wanted}
        return self._regions

    def _bytes(self, tensors: Iterable[int]) -> int:
        return sum([self._sizes[tensor] for tensor in tensors])

    def _saved(self, operators: frozenset[int], dropped: frozenset[int]) -> frozenset[int]:
        if not operators and self.keeping.saves == "trace":
            return self.wanted
        gone = set()
        for tensor, op in self.flow.writer.items():
            if op.id in operators:
                outside = any(
                    reader.id not in operators for reader in self.flow.readers.get(tensor, ())
                )
                if op.id in dropped or not (outside or tensor in self.flow.outputs):
                    gone.add(tensor)
        return self._least(self.wanted, self.sources - gone)

    def _least(self, wanted: frozenset[int], sources: frozenset[int]) -> frozenset[int]:
        """The least that is kept, with what all modes share made once."""
        return least_kept(wanted, sources, self._made, self._sizes)

    def _rerun(self, saved: frozenset[int], among: frozenset[int] | None) -> OperatorGraph:
        """The operators that lead from what is kept to what backward reads."""
        needed: set[int] = set()
        stack, seen = [tensor for tensor in self.wanted if tensor not in saved], set(self.wanted)
        while stack:
            op = self.flow.writer.get(stack.pop())
            if op is None:
                continue
            if among is None or op.id in among:
                needed.add(op.id)
            fresh = {a.tensor for a in op.reads} - self.flow.free - saved - seen
            seen |= fresh
            stack.extend(fresh)
        chosen: list[Operator] = [op for op in self.layer.forward.operators if op.id in needed]
        return part_of(self.layer.forward, chosen, self.wanted) if chosen else empty_graph()

    def _mode(self, name: str, saved: frozenset[int], rerun: OperatorGraph) -> Mode:
        saved_bytes = min(self._bytes(saved), self.none_bytes)
        return Mode(name, saved_bytes, self.none_bytes - saved_bytes + self.logit_bytes, rerun)

    def _of_regions(self, name: str, regions: Sequence[SavedRegion]) -> Mode:
        operators = frozenset().union(*(region.operators for region in regions))
        dropped = frozenset().union(*(region.operators for region in regions if region.drops))
        saved = self._saved(operators, dropped)
        return self._mode(name, saved, self._rerun(saved, operators))

    def none(self) -> Mode:
        """Nothing is recomputed."""
        return Mode("none", self.none_bytes, self.logit_bytes, empty_graph())

    def full(self) -> Mode:
        """The layer's inputs are kept."""
        saved_bytes = min(self.layer.full.saved_bytes, self.none_bytes)
        return Mode(
            "full",
            saved_bytes,
            self.none_bytes - saved_bytes + self.logit_bytes,
            self.layer.full.rerun,
        )

    def selective(self) -> Mode:
        """What the stack calls so."""
        if self.keeping.selective == "operators":
            return self._operators()
        rerun = self.layer.selective.rerun
        recomputed = {access.tensor for op in rerun.operators for access in op.writes}
        if not recomputed:
            return self._mode("selective", self._saved(frozenset(), frozenset()), rerun)
        return self._mode("selective", self._least(self.wanted - recomputed, self.sources), rerun)

    def _operators(self) -> Mode:
        results, products = set(self.layer.full.saved), 0
        parameters = {t.id for t in self.layer.forward.tensors if t.role == "parameter"}
        for op in self.layer.forward.operators:
            weighted = op.kind == "product" and any(a.tensor in parameters for a in op.reads)
            products += weighted
            if op.kind in EXCHANGES or op.kind == "attention" or (weighted and products % 2):
                results.update(a.tensor for a in op.writes)
        saved = frozenset(results)
        return self._mode("selective", saved, self._rerun(saved, None))

    def alternate(self) -> Mode:
        """Full in every second block."""
        full = self.full()
        saved_bytes = (full.saved_bytes + self.none_bytes) // 2
        live = self.none_bytes - full.saved_bytes + self.logit_bytes
        return Mode(ALTERNATE, saved_bytes, live, full.rerun, 0.5)

    def of(self, name: str) -> Mode:
        """The mode of a name: none, selective, full, alternate, or modules joined by +, with
        offload or without; a module that the layer has not changes nothing."""
        if name not in self._known:
            self._known[name] = self._of(name)
        return self._known[name]

    def _of(self, name: str) -> Mode:
        parts = name.split(JOIN)
        if OFFLOAD in parts:
            base = self.of(JOIN.join(part for part in parts if part != OFFLOAD) or "none")
            live = base.live_bytes + 2 * base.saved_bytes
            return Mode(name, 0, live, base.rerun, base.part, base.saved_bytes)
        by_name = {
            "none": self.none,
            "selective": self.selective,
            "full": self.full,
            ALTERNATE: self.alternate,
        }
        if name in by_name:
            return by_name[name]()
        chosen = [self.regions[part] for part in parts if part in self.regions]
        if not chosen:
            return Mode(name, self.none_bytes, self.logit_bytes, empty_graph())
        return self._of_regions(name, chosen)


def modes_to_try(
    layers: Sequence[tuple[Layer, int]],
    keeping: Keeping,
    modes_of: Callable[[Layer], Modes] | None = None,
) -> tuple[str, ...]:
    """The modes between selective and full for all layers of a model, given with how often each is
    called: those that a plan names, else the unions of the layer that is called most, the first of
    equals. ``modes_of`` a layer where they are at hand."""
    if keeping.named:
        return keeping.named
    hosted = (OFFLOAD,) if keeping.offload else ()
    if not keeping.modules:
        return hosted
    block = max(layers, key=lambda pair: pair[1])[0]
    return (*unions(Modes(block, keeping) if modes_of is None else modes_of(block)), *hosted)


def work_of(graph: OperatorGraph) -> float:
    """Bytes that a graph moves and FLOP that it runs, as bytes."""
    return sum(op.bytes + opset.flops(op) / FLOP_PER_BYTE for op in graph.operators)


def _largest(regions: Mapping[str, SavedRegion], names: Sequence[str]) -> list[str]:
    """The names whose region lies in no other."""
    return [a for a in names if not any(regions[a].operators < regions[b].operators for b in names)]


def _undominated(modes: Sequence[Mode]) -> list[Mode]:
    """Those of some modes that no other one is at least as good as on every chip: it keeps as
    little or less, and what it runs again is a part of what they run; of equals the first."""
    runs = [frozenset(op.id for op in mode.rerun.operators) for mode in modes]

    def beats(a: int, b: int) -> bool:
        no_worse = modes[a].saved_bytes <= modes[b].saved_bytes and runs[a] <= runs[b]
        same = modes[a].saved_bytes == modes[b].saved_bytes and runs[a] == runs[b]
        return no_worse and (not same or a < b)

    every = range(len(modes))
    return [modes[b] for b in every if not any(beats(a, b) for a in every if a != b)]


def unions(modes: Modes) -> tuple[str, ...]:
    """Names of the modes on offer between none and full, cheapest first: modules one after another
    by efficiency, then single ones."""
    single = {name: modes.of(name) for name in modes.regions}
    worth_bytes = (1 - WORTH) * modes.none_bytes
    saving = {name: mode for name, mode in single.items() if mode.saved_bytes < worth_bytes}
    order = sorted(
        saving,
        key=lambda name: (
            work_of(saving[name].rerun) / (modes.none_bytes - saving[name].saved_bytes),
            name,
        ),
    )
    together: list[Mode] = []
    for count in range(1, len(order) + 1):
        mode = modes.of(JOIN.join(sorted(_largest(modes.regions, order[:count]))))
        if mode.saved_bytes < min(
            (other.saved_bytes for other in together), default=modes.none_bytes
        ):
            together.append(mode)
    alone = [saving[name] for name in order if name not in {mode.name for mode in together}]
    names = [mode.name for mode in _undominated([*together, *alone])]
    own_more = (ALTERNATE,) if ALTERNATE in modes.keeping.modules else ()
    modes_to_try = set(names[: MOST_UNIONS - len(own_more)])
    return (*sorted(modes_to_try, key=lambda name: (-modes.of(name).saved_bytes, name)), *own_more)
