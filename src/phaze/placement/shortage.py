"""Nothing fits, as an answer: the closest plan, what it needs, and what would have to change.

Whether something fits never turns from yes to no with more memory or more devices, so the least
memory and the fewest devices are found by halving; the rest of the levers are tried as they are. A
wider split (sharded layers shrink with the width) and a smaller microbatch (activations and edges
shrink with it) are estimates, as a problem does not hold their layers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from phaze.cost.network_prices import NetworkPrices
from phaze.placement.layers import LayerGraph, PlacedLayer
from phaze.placement.plan import Plan, Stage
from phaze.placement.prepared_width import prepared
from phaze.placement.problem import ROUNDING, PlacementProblem
from phaze.placement.shapes import cases_of, fits
from phaze.placement.solve import fastest_plan
from phaze.units import show

# Halvings after which two numbers of 53 bits are next to each other.
HALVINGS = 60
# After so many halvings it is asked whether the plan found needs the least.
LOOK_EVERY = 8
# Sums of the bytes of a stage in another order differ by less.
LAST_BITS = 4e-15
# More memory than this lets everything fit that a device number allows.
MOST_BYTES = 1e40
# A microbatch or a width is divided by 2 to this power at the most: beyond a thousand nobody would.
MOST_HALVINGS = 10


@dataclass(frozen=True, slots=True)
class Levers:
    """The smallest change of each lever alone that would make it fit; None where none does or it
    does not apply."""

    hbm_bytes: float | None
    devices: int | None
    tensor: int | None
    microbatch_divisor: int | None
    recompute: str | None
    optimizer: str | None
    zero: int | None


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why nothing is feasible. Without a plan, even endless memory would not help: devices are
    short. Of a device's memory the share ``headroom`` is kept free, and ``available_bytes`` are the
    rest."""

    plan: Plan | None
    available_bytes: float
    available_devices: int
    levers: Levers
    rules: str = "icml24"
    headroom: float = 0.0

    @property
    def tightest(self) -> Stage | None:
        """The fullest stage of the closest plan."""
        return (
            None
            if self.plan is None
            else max(self.plan.stages, key=lambda stage: stage.memory.total_bytes)
        )

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
        shape = f"{depth} stage{'s' if depth > 1 else ''}, TP {self.plan.tensor}"
        if not self.headroom:
            return f"nothing fits into {there} a device; the closest plan ({shape}) needs {needed}"
        whole = self.available_bytes / (1 - self.headroom)
        free = f"{100 * self.headroom:.3g} %"
        sentence = (
            f"nothing fits into {there} a device ({show(whole, 'B')}, of which {free} "
            "are kept free); "
            f"the closest plan ({shape}) needs {needed}"
        )
        return sentence + (
            ", which fits with headroom 0" if stage.memory.total_bytes <= whole else ""
        )


def smaller_microbatch(graph: LayerGraph, divisor: int) -> LayerGraph:
    """The graph with activations and edges of a microbatch so many times smaller."""
    return replace(
        graph,
        layers=tuple(_less(layer, divisor) for layer in graph.layers),
        edges=tuple(replace(edge, size_bytes=edge.size_bytes / divisor) for edge in graph.edges),
    )


def split_wider(graph: LayerGraph, factor: int) -> LayerGraph:
    """The graph with its sharded layers split so many times further."""
    layers = tuple(
        _apart(_narrower(layer, factor) if layer.sharded else layer) for layer in graph.layers
    )
    return replace(graph, width=graph.width * factor, layers=layers)


def first_power(fits: Callable[[int], bool]) -> int | None:
    """The first power of two that fits, or None."""
    return next((2**power for power in range(1, MOST_HALVINGS + 1) if fits(2**power)), None)


def something_fits(problem: PlacementProblem) -> bool:
    """Whether any plan fits, whatever its time."""
    prices = NetworkPrices(problem.cluster)
    # Chunks and split backward passes never need less memory than 1F1B, so they are tried only
    # where nothing else is allowed; what divides what then matters, as it does for the ranks that
    # shard experts or state.
    plain = tuple(
        family for family in problem.rules.families if family.chunks == 1 and not family.split
    )
    plain = () if any(family.most_stages for family in plain) else plain
    if not plain or problem.sharing.group > 1 or problem.sharing.shard:
        return fastest_plan(problem, prices) is not None
    for graph in problem.graphs:
        width = prepared(problem, graph, prices)
        if width.depth:
            for case in cases_of(problem, width, plain, prices):
                if any(fits(case, stages, 0) for stages in range(1, width.depth + 1)):
                    return True
    return False


def _just_enough(problem: PlacementProblem, hbm_bytes: float) -> float:
    """The memory of a device that the fastest plan of so much just fits into, as rounding is
    allowed."""
    plan = fastest_plan(replace(problem, hbm_bytes=hbm_bytes))
    if plan is None:
        return hbm_bytes
    need_bytes = max(stage.memory.total_bytes for stage in plan.stages) / (1 - problem.headroom)
    return need_bytes / (1 + ROUNDING) * (1 + LAST_BITS)


def least_hbm(problem: PlacementProblem) -> float | None:
    """A memory at which something fits, above the least by rounding only; None if devices are
    short."""

    def enough_is(hbm_bytes: float) -> bool:
        return something_fits(replace(problem, hbm_bytes=hbm_bytes))

    short, enough = problem.hbm_bytes, problem.hbm_bytes
    while not enough_is(enough):
        short, enough = enough, 2 * enough
        if enough > MOST_BYTES:
            return None
    for halving in range(HALVINGS):
        # Plans need memory in few sizes: the least of those that are left is soon the only one.
        if halving % LOOK_EVERY == LOOK_EVERY - 1:
            least = _just_enough(problem, enough)
            if short < least < enough and enough_is(least):
                enough = least
                if not enough_is(least * (1 - 2 * LAST_BITS)):
                    break
        middle = (short + enough) / 2
        if not short < middle < enough:
            break
        if enough_is(middle):
            enough = middle
        else:
            short = middle
    return enough


def _fewest_devices(problem: PlacementProblem) -> int | None:
    short, enough = problem.devices, problem.cluster.devices
    if enough <= short or not something_fits(replace(problem, devices=enough)):
        return None
    while enough - short > 1:
        middle = (short + enough) // 2
        if something_fits(replace(problem, devices=middle)):
            enough = middle
        else:
            short = middle
    return enough


def _less(layer: PlacedLayer, divisor: int) -> PlacedLayer:
    """The layer with a microbatch's bytes so many times smaller."""
    selective = None if layer.selective_bytes is None else layer.selective_bytes / divisor
    more = tuple(
        replace(x, bytes=x.bytes / divisor, live_bytes=x.live_bytes / divisor) for x in layer.more
    )
    return replace(
        layer,
        activation_bytes=layer.activation_bytes / divisor,
        selective_bytes=selective,
        live_bytes=layer.live_bytes / divisor,
        more=more,
    )


def _divided(problem: PlacementProblem, divisor: int) -> PlacementProblem:
    return replace(
        problem, graphs=tuple(smaller_microbatch(graph, divisor) for graph in problem.graphs)
    )


def _narrower(layer: PlacedLayer, factor: int) -> PlacedLayer:
    """The layer split so many times further."""
    return replace(
        _less(layer, factor),
        parameter_bytes=layer.parameter_bytes / factor,
        expert_bytes=layer.expert_bytes / factor,
        tied_bytes=layer.tied_bytes / factor,
        buffer_bytes=layer.buffer_bytes / factor,
    )


def _apart(layer: PlacedLayer) -> PlacedLayer:
    """Layers of one kind that are split and that are not have buffers of their own."""
    return replace(layer, kind=2 * layer.kind + layer.sharded if layer.kind >= 0 else -1)


def _widened(problem: PlacementProblem, factor: int) -> bool:
    graph = problem.graphs[-1]
    if graph.width == 1 or graph.width * factor > problem.devices:
        return False
    ties = {(layer.tied, layer.sharded) for layer in graph.layers if layer.tied}
    if len(ties) > len(
        {name for name, _ in ties}
    ):  # a layer that is split and one that is not would share no size
        return False
    return something_fits(replace(problem, graphs=(split_wider(graph, factor),)))


def shortage_of(problem: PlacementProblem, prices: NetworkPrices | None = None) -> Shortage:
    """The shortage of a problem for which there is no plan."""
    least = least_hbm(problem)
    plan = None if least is None else fastest_plan(replace(problem, hbm_bytes=least), prices)
    need = (
        None
        if plan is None
        else max(stage.memory.total_bytes for stage in plan.stages) / (1 - problem.headroom)
    )
    factor = first_power(lambda f: _widened(problem, f))
    best = problem.recompute != "best" and something_fits(replace(problem, recompute="best"))
    sgd = problem.sgd_state is not None and something_fits(
        replace(problem, state=problem.sgd_state)
    )
    zeros = (zero for zero in problem.rules.zeros if problem.zero < zero)
    levers = Levers(
        hbm_bytes=need,
        devices=_fewest_devices(problem),
        tensor=None
        if factor is None
        else problem.graphs[-1].width // problem.sharing.context * factor,
        microbatch_divisor=first_power(lambda divisor: something_fits(_divided(problem, divisor))),
        recompute="best" if best else None,
        optimizer="sgd" if sgd else None,
        zero=next((zero for zero in zeros if something_fits(problem.at_zero(zero))), None),
    )
    rules = problem.rules.name
    return Shortage(plan, problem.available_bytes, problem.devices, levers, rules, problem.headroom)
