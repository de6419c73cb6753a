"""One pass of a layer as a scheduler sees it: works, cores, collectives and precedence, on no chip yet.

Under the rules of the ICML 2024 paper operator i of a pass takes, on a chip,

    L_i  one core of its kind, with its share of the memories        P_i  all cores; a fused one min(T, V) of each kind
    a collective of S bytes over n ranks: L_i = P_i = 2 (n-1)/n S/B for an all-reduce, half of it for the others

and what no core runs (views, reshapes) is free. :func:`times_on` has L and P of every operator on every chip,
:func:`problem_on` the scheduling problem of one chip. The search bounds and the plain evaluation both start here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phaze.cost.collective import flat_ring_s
from phaze.cost.parts import ChipArrays
from phaze.cost.table import CostTable, cost_table
from phaze.cost.work import Work, works_of
from phaze.graph.ir import Layer, OperatorGraph
from phaze.graph.ir import Operator as GraphOperator
from phaze.hardware.calibration import IDEAL, Constants
from phaze.schedule.order import Order, contract, series
from phaze.schedule.problem import Core, Operator, Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pass:
    """The operators of one pass that cost something, in a runnable order; ``network_s`` is 0 but for collectives.
    ``names`` say to a person what they are: their kind and where in the model they stand."""

    works: tuple[Work, ...]
    cores: tuple[Core, ...]
    network_s: tuple[float, ...]
    edges: tuple[tuple[int, int], ...]
    names: tuple[str, ...] = ()

    @cached_property
    def parts(self) -> tuple[Order, ...]:
        """The components that run one after another, whatever the chip; operators by position."""
        ones = tuple(Operator(str(i), core, 1.0, 1.0) for i, core in enumerate(self.cores))
        return tuple(series(contract(Problem("icml24", 1, 1, ones, self.edges))))


@dataclass(frozen=True, slots=True)
class LayerPasses:
    """Both passes of a distinct layer, and what it holds on one device."""

    name: str
    forward: Pass
    backward: Pass
    parameter_bytes: float
    activation_bytes: float
    sharded: bool


def name_of(operator: GraphOperator) -> str:
    """Kind and module of an operator, of a fused one the kinds of its members."""
    kinds = dict.fromkeys(part.kind for part in operator.parts) or {operator.kind: None}
    return f"{' + '.join(kinds)}{f' ({operator.module})' if operator.module else ''}"


def _core(work: Work) -> Core:
    return "none" if work.core == "network" else work.core


def pass_of(graph: OperatorGraph, link_bytes_per_s: float, residency: bool = True) -> Pass:
    """A graph as a pass: free operators are left out, and what they join stays in order."""
    works = works_of(graph, residency)
    seconds = [
        0.0 if c is None else flat_ring_s(c.kind, c.bytes, c.group, link_bytes_per_s)
        for c in (work.collective for work in works)
    ]
    kept = [i for i, work in enumerate(works) if work.core not in ("none", "network") or seconds[i] > 0]
    place = {op.id: i for i, op in enumerate(graph.operators)}
    before: list[set[int]] = [set() for _ in works]
    for tail, head in graph.edges():
        before[place[head]].add(place[tail])
    number = {i: at for at, i in enumerate(kept)}
    nearest: list[set[int]] = []
    for i in range(len(works)):
        nearest.append({k for j in before[i] for k in ({j} if j in number else nearest[j])})
    edges = tuple((number[j], number[i]) for i in kept for j in sorted(nearest[i]))
    return Pass(
        tuple(works[i] for i in kept),
        tuple(_core(works[i]) for i in kept),
        tuple(seconds[i] for i in kept),
        edges,
        tuple(name_of(graph.operators[i]) for i in kept),
    )


def passes_of(layer: Layer, link_bytes_per_s: float, element_bytes: int = 2, residency: bool = True) -> LayerPasses:
    """A (fused) layer; parameters are held in ``element_bytes`` each, activations as they are saved.

    Without ``residency`` every operand comes from HBM and every result goes there.
    """
    return LayerPasses(
        layer.name,
        pass_of(layer.forward, link_bytes_per_s, residency),
        pass_of(layer.backward, link_bytes_per_s, residency),
        float(element_bytes * layer.parameter_elements),
        float(layer.none.saved_bytes),
        layer.sharded,
    )


def table_of(passes: Sequence[Pass], chips: ChipArrays, constants: Constants = IDEAL) -> CostTable:
    """The costs of all operators of some passes, each distinct work once; rows in the order of the passes."""
    return cost_table([work for one in passes for work in one.works], chips, constants)


def times_on(one: Pass, table: CostTable, first: int) -> tuple[Floats, Floats]:
    """L and P of the operators of a pass, each [operators, chips]; its rows of the table begin at ``first``."""
    count = len(table.all_cores.tensor_part_of)
    singles, spreads = np.empty((len(one.works), count)), np.empty((len(one.works), count))
    for i, wait_s in enumerate(one.network_s):
        row = table.rows[first + i]
        singles[i] = wait_s if one.cores[i] == "none" else table.one_core.time_s(row)
        spreads[i] = wait_s if one.cores[i] == "none" else table.spread_s(row, paired=True)
    return singles, spreads


def problem_on(one: Pass, one_core_s: Sequence[float], all_cores_s: Sequence[float], cores: tuple[int, int]) -> Problem:
    """The scheduling problem of a pass on a chip with that many tensor and vector cores."""
    operators = tuple(
        Operator(str(i), core, single, spread)
        for i, (core, single, spread) in enumerate(zip(one.cores, one_core_s, all_cores_s, strict=True))
    )
    return Problem("icml24", cores[0], cores[1], operators, one.edges)
