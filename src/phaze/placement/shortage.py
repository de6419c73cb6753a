"""Nothing fits, as an answer: the stage that comes closest, what it needs, and what would have to change.

The closest plan is the one whose fullest stage is least full, over all widths, depths and cuts on the devices there
are: the table of :mod:`phaze.placement.kernels` with memory as the cost. Each lever is then moved alone, the rest
staying as it is: the least HBM and the fewest devices are exact; a wider split (sharded layers shrink with the width)
and a smaller microbatch (activations and edges shrink with it) are estimates, as the profile does not hold their
layers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from phaze.placement import kernels
from phaze.placement.pipeline import price
from phaze.placement.problem import LayerGraph, Plan, Problem, Stage
from phaze.placement.solve import Found, cuts_of, limits, ready, require_room, rules_of
from phaze.placement.stage_kernels import BY_MEMORY
from phaze.units import show

MOST_HALVINGS = 10


@dataclass(frozen=True, slots=True)
class Levers:
    """The smallest change of each lever alone that would make it fit; None where none does or it does not apply."""

    hbm_bytes: float | None
    devices: int | None
    tensor: int | None
    microbatch_divisor: int | None
    recompute: str | None
    optimizer: str | None
    zero: int | None


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why nothing is feasible. Without a plan, even endless memory would not help: devices are short. Of a device's
    memory the share ``headroom`` is kept free, and ``available_bytes`` are the rest."""

    plan: Plan | None
    available_bytes: float
    available_devices: int
    levers: Levers
    rules: str = "icml24"
    headroom: float = 0.0

    @property
    def tightest(self) -> Stage | None:
        """The fullest stage of the closest plan."""
        return None if self.plan is None else max(self.plan.stages, key=lambda stage: stage.memory.total_bytes)

    @property
    def sentence(self) -> str:
        """What to tell a person."""
        stage = self.tightest
        if self.plan is None or stage is None:
            count = self.available_devices
            more = "device that there is" if count == 1 else "devices there are"
            return f"every width needs more than the {count} {more}"
        there, needed = show(self.available_bytes, "B"), show(stage.memory.total_bytes, "B")
        depth = len(self.plan.stages)
        shape = f"{depth} stage{'s' if depth > 1 else ''}, tensor width {self.plan.tensor}"
        if not self.headroom:
            return f"nothing fits into {there} a device; the closest plan ({shape}) needs {needed}"
        whole = self.available_bytes / (1 - self.headroom)
        kept = f"{100 * self.headroom:.3g} %"
        said = (
            f"nothing fits into {there} a device ({show(whole, 'B')}, of which {kept} are kept free); "
            f"the closest plan ({shape}) needs {needed}"
        )
        return said + (", which fits with headroom 0" if stage.memory.total_bytes <= whole else "")


def fewest_devices(problem: Problem) -> int | None:
    """The fewest devices on which some plan fits, of those there are, or None."""
    rules, fewest = rules_of(problem), inf
    for graph in problem.graphs:
        width = ready(problem, graph, rules)
        limit_s = limits(width, inf)
        if len(limit_s) > 2:
            require_room(width, len(limit_s) - 2)
            fewest = min(fewest, kernels.leanest(width.case, kernels.table(width.case, width.kinds, limit_s), True)[0])
    return None if fewest == inf else int(fewest)


def leanest_plan(problem: Problem) -> Plan | None:
    """The plan whose fullest stage needs the least memory, whether or not there is as much; None if devices lack."""
    widest = sum(_whole_bytes(problem, graph) for graph in problem.graphs)
    enough = problem
    while fewest_devices(enough) is None:
        if enough.hbm_bytes > widest:
            return None
        enough = replace(enough, hbm_bytes=2 * enough.hbm_bytes)
    rules = rules_of(enough, BY_MEMORY)
    best: Found | None = None
    for graph in problem.graphs:
        width = ready(problem, graph, rules)
        limit_s = limits(width, inf)
        if len(limit_s) > 2:
            g = kernels.table(width.case, width.kinds, limit_s)
            value, *choice = kernels.leanest(width.case, g, False)
            if value < (inf if best is None else best.value):
                best = Found(width, g, limit_s, value, (choice[0], choice[1], choice[2]), 1)
    return None if best is None else price(problem, best.width.graph.width, 1, cuts_of(best))


def _whole_bytes(problem: Problem, graph: LayerGraph) -> float:
    """More than any stage of this width can need."""
    edges = sum(edge.size_bytes for edge in graph.edges)
    kept = sum(layer.activation_bytes for layer in graph.layers)
    held = problem.state_factor * sum(layer.parameter_bytes for layer in graph.layers)
    return held + (len(graph.layers) + 1) * (kept + edges)


def _with_graphs(problem: Problem, change: Callable[[LayerGraph], LayerGraph]) -> Problem:
    return replace(problem, graphs=tuple(change(graph) for graph in problem.graphs))


def smaller_microbatch(graph: LayerGraph, divisor: int) -> LayerGraph:
    """The graph with activations and edges of a microbatch so many times smaller."""
    return replace(
        graph,
        layers=tuple(replace(la, activation_bytes=la.activation_bytes / divisor) for la in graph.layers),
        edges=tuple(replace(edge, size_bytes=edge.size_bytes / divisor) for edge in graph.edges),
    )


def wider(graph: LayerGraph, factor: int) -> LayerGraph:
    """The graph with its sharded layers split so many times further."""
    layers = tuple(
        replace(la, parameter_bytes=la.parameter_bytes / factor, activation_bytes=la.activation_bytes / factor)
        if la.sharded
        else la
        for la in graph.layers
    )
    return replace(graph, width=graph.width * factor, layers=layers)


def first_power(fits: Callable[[int], bool]) -> int | None:
    """The first power of two that fits, or None."""
    return next((2**power for power in range(1, MOST_HALVINGS + 1) if fits(2**power)), None)


def _fits(problem: Problem) -> bool:
    return fewest_devices(problem) is not None


def _wider_fits(problem: Problem, factor: int) -> bool:
    widest = problem.graphs[-1]
    if widest.width == 1 or widest.width * factor > problem.devices:
        return False
    return _fits(replace(problem, graphs=(wider(widest, factor),)))


def levers_of(problem: Problem, leanest: Plan | None) -> Levers:
    """Move each lever alone until it fits."""
    plenty = replace(problem, devices=len(problem.graphs[0].layers) * problem.graphs[-1].width)
    factor = first_power(lambda f: _wider_fits(problem, f))
    need = None if leanest is None else max(stage.memory.total_bytes for stage in leanest.stages)
    other = replace(problem, recompute="best")
    plain = replace(problem, optimizer="sgd")
    return Levers(
        hbm_bytes=need,
        devices=fewest_devices(plenty) if plenty.devices > problem.devices else None,
        tensor=None if factor is None else problem.graphs[-1].width * factor,
        microbatch_divisor=first_power(
            lambda divisor: _fits(_with_graphs(problem, lambda graph: smaller_microbatch(graph, divisor)))
        ),
        recompute="best" if problem.recompute != "best" and _fits(other) else None,
        optimizer="sgd" if problem.optimizer != "sgd" and _fits(plain) else None,
        zero=None,
    )


def shortage_of(problem: Problem) -> Shortage:
    """The shortage of a problem for which there is no plan."""
    plan = leanest_plan(problem)
    return Shortage(plan, problem.hbm_bytes, problem.devices, levers_of(problem, plan))
