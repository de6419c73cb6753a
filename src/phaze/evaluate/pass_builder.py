"""From a graph to a pass on no chip yet: fused as the stack fuses, its operators made works, joined
into units.

The shape of a pass (units, order, what may stand beside what) asks for the structure of its graph
and the ranks of its collectives, not for other sizes: plans try one structure at many microbatches
and degrees, and find its shape once.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from phaze.cost.work import KnownOperators, Work, works_of
from phaze.evaluate.exchange_overlap import NO_OVERLAP, ExchangeOverlap, exchange_overlap
from phaze.evaluate.lowered_pass import KnownCollectives, LoweredPass, network_costs
from phaze.evaluate.overlap import companions
from phaze.evaluate.schedule_operators import Pieces, Unit, named_beside, rings_of, units_of
from phaze.graph.fuse import fuse_graph
from phaze.graph.fuse.structure import Fusions
from phaze.graph.ir import OperatorGraph
from phaze.graph.rewrites.accumulation import KnownGradients
from phaze.graph.rewrites.unfused_softmax import launches
from phaze.placement.machine import Machine
from phaze.schedule.rules import Rule


@dataclass(frozen=True, slots=True)
class PassShape:
    """What a pass has on every chip and network, whatever its sizes: see :class:`LoweredPass`."""

    units: tuple[Unit, ...]
    edges: tuple[tuple[int, int], ...]
    beside: tuple[tuple[int, int], ...]
    members: tuple[tuple[int, ...], ...]
    exchanges: ExchangeOverlap


def pass_shape(
    graph: OperatorGraph, works: Sequence[Work], machine: Machine, rule: Rule, backward: bool
) -> PassShape:
    """The shape of a (fused) pass; ``backward``: collectives may stand beside products of weight
    gradients."""
    place = {operator.id: index for index, operator in enumerate(graph.operators)}
    edges = [(place[tail], place[head]) for tail, head in graph.edges()]
    hides, cut = backward and rule.named_only, machine.stack.piecewise_collectives
    beside = (
        companions(graph, cut, hides or (backward and cut and rule.network_apart))
        if hides or cut
        else {}
    )
    joined = [
        Pieces(index, graph.operators[index].size("group"), others)
        for index, others in beside.items()
        if cut and others and (rule.named_only or graph.operators[index].kind != "all_reduce")
    ]
    joined += rings_of(graph)
    units, of = units_of(works, edges, joined)
    merged = tuple(sorted({(of[i], of[j]) for i, j in edges if of[i] != of[j]}))
    named = named_beside(
        len(units), merged, {of[index]: [of[i] for i in others] for index, others in beside.items()}
    )
    members = tuple(
        tuple(part.id for part in operator.parts or (operator,)) for operator in graph.operators
    )
    beside_units = named if hides and not cut else ()
    overlap = (
        exchange_overlap(graph, of, machine.stack)
        if rule.one_queue or rule.named_only
        else NO_OVERLAP
    )
    return PassShape(units, merged, beside_units, members, overlap)


@dataclass(frozen=True, slots=True)
class PassBuilder:
    """Makes passes of graphs on a machine under a rule. Graphs of one structure are fused alike and
    have one shape, which are found once: they ask for no size but the ranks of collectives.
    Operators that several graphs have, as what is recomputed and the forward pass do, are made
    works once."""

    machine: Machine
    rule: Rule
    fusions: Fusions = field(default_factory=Fusions, compare=False)
    shapes: dict[Hashable, PassShape] = field(default_factory=dict, compare=False)
    operators: KnownOperators = field(default_factory=dict, compare=False)
    collectives: KnownCollectives = field(default_factory=dict, compare=False)
    gradients: KnownGradients = field(default_factory=dict, compare=False)

    def fused(self, graph: OperatorGraph) -> OperatorGraph:
        """A graph as the stack fuses it."""
        return fuse_graph(graph, self.machine.stack.fusion, self.fusions)

    def lower(self, graph: OperatorGraph, backward: bool = False) -> LoweredPass:
        """A (fused) graph as a pass."""
        works = works_of(graph, self.machine.residency, self.operators)
        # The first size of a collective is its bytes.
        ranks = tuple([op.sizes[1:] for op in graph.operators if op.core == "network"])
        key = backward, ranks, self.fusions.structures.of(graph)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = pass_shape(graph, works, self.machine, self.rule, backward)
        host_s = sum(map(launches, graph.operators)) * self.machine.stack.host_s
        arguments = (shape.units, shape.edges, shape.beside, host_s, shape.members, shape.exchanges)
        return LoweredPass(
            self.rule, works, network_costs(works, self.machine, self.collectives), *arguments
        )

    def run(self, graph: OperatorGraph) -> LoweredPass:
        """A graph, not fused yet, that runs forward."""
        return self.lower(self.fused(graph))


def lower_pass(
    graph: OperatorGraph, machine: Machine, rule: Rule, backward: bool = False
) -> LoweredPass:
    """A single (fused) pass on a machine."""
    return PassBuilder(machine, rule).lower(graph, backward)
