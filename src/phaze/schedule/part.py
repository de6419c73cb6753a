"""One series component as arrays of whole numbers: what the bounds, the list schedule and the
labels work on.

Whole numbers. Let the horizon be the sum of the shortest times: all operators one after another,
each in its shortest way, take it. Times become multiples of a unit: a power of ten when every time
is one of its multiples (as files of microseconds are), else the horizon / 2^40, each time rounded
up. Let ``excess`` be the most that rounding added to any time, in units. For every schedule of true
makespan C, the same order and ways to run with rounded times ends after at most C / unit + n *
excess, since its last end is the sum of the times along one chain of at most n operators. So with
C* the least makespan in rounded times,

    C  >=  (C* - n * excess) * unit
       (:meth:`Component.seconds_below`)

and replaying its decisions with true times gives a schedule of at most C* units, up to the rounding
of floats.

Ways to run. Mode 0 is one core, mode 1 spread. A spread way that is no faster than one core is left
out: one core needs less of every resource for no longer. A way that is longer than the horizon is
left out: no shortest schedule has it. What a mode holds is coded per resource as 0 nothing, 1 one,
2 all.

=========================  =====================  ====================  =======================
mode                       icml24                 links                 overlap
=========================  =====================  ====================  =======================
tensor on one core         tensor 1                                     tensor 1
vector on one core         vector 1                                     vector 1
both on one core           tensor 1, vector 1                           tensor 1, vector 1
tensor spread              all, all, network      all, all              tensor all
vector spread              all, all, network      all, all              vector all
both spread                all, all, network      all, all              tensor all, vector all
with the network, spread   all, all, network      all, all, network     its kinds all, network
collective (mode 1)        all, all, network      network               network
=========================  =====================  ====================  =======================

Every operator holds something, so under icml24 what holds everything runs alone. Rules companions
are links with more order (:func:`in_turn`). ``hbm_s`` is the sum over the operators where the rules
share HBM, else 0: no schedule of the component is shorter (``rules.py``), whatever its last end.

Twins. Operators i and j of the same core and times are twins in this order when what is below i is
below j too, and what is above j is above i too. Then some optimal schedule starts i no later than
j: where j starts first, the two may change places. ``start_after[j]`` holds such i: j is started
after i is (i need not have ended). Of two with equal masks the first in the order comes first, so
the relation has no cycle: i -> j implies (below_i, above_i) no larger than / no smaller than those
of j, or equality and i < j."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phaze.schedule.order import Order, bits, mirrored
from phaze.schedule.problem import KINDS, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import LINKS, Rule, groups_in_turn

# Sets of operators are bits of one 64-bit word, whose sign bit stays free.
WORD = 63
# Whole times up to here: sums of 63 of them stay below 2^46, which a 64-bit float holds exactly.
MOST_UNITS = 2**40
# The modes of an operator as bits: on one core, spread over all.
ONE, ALL = 1, 2

Ints = NDArray[np.int64]
Masks = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Tables(NamedTuple):
    """A component for the kernels: ``time[i, mode]`` in units (0: no such mode), ``holds[i, mode,
    resource]``."""

    time: Ints
    holds: Ints
    cores: Ints
    below: Masks
    above: Masks
    start_after: Masks
    alone: bool


@dataclass(frozen=True, slots=True)
class Component:
    """A series component of a problem, in units."""

    order: Order
    times: tuple[tuple[int, int], ...]
    times_s: tuple[tuple[float, float], ...]
    holds: tuple[tuple[tuple[int, int, int], tuple[int, int, int]], ...]
    above: tuple[int, ...]
    cores: tuple[int, int, int]
    alone: bool
    unit_s: float
    excess: float
    hbm_s: float = 0.0

    def __len__(self) -> int:
        return len(self.times)

    def seconds_below(self, units: float) -> float:
        """A lower bound in units as one in seconds: what rounding may have added is taken off."""
        return max(0.0, (units - len(self) * self.excess) * self.unit_s * (1 - 1e-15 * len(self)))

    @property
    def hbm(self) -> int:
        """Whole units of HBM time: a schedule that ends by then can be no shorter."""
        return int(self.hbm_s / self.unit_s)

    @property
    def total_s(self) -> float:
        """The sum of all times of all ways to run, in an order that no numbering changes."""
        return sum(sorted(time for times in self.times_s for time in times))

    def least(self, i: int) -> int:
        """The shorter of operator i's ways to run."""
        return min(time for time in self.times[i] if time > 0)

    def tables(self) -> Tables:
        """The component as arrays; beyond 63 operators the masks are left empty, and only list
        schedules may use it."""
        empty = [0] * len(self)
        below, above, after = (
            (self.order.below, self.above, twins(self))
            if len(self) <= WORD
            else (empty, empty, empty)
        )
        return Tables(
            np.array(self.times, np.int64).reshape(-1, 2),
            np.array(self.holds, np.int64).reshape(-1, 2, 3),
            np.array(self.cores, np.int64),
            np.array(below, np.uint64),
            np.array(above, np.uint64),
            np.array(after, np.uint64),
            self.alone,
        )


def twins(part: Component) -> list[int]:
    """For each operator the mask of the twins that start no later than it."""
    count = len(part)
    after = [0] * count
    below, above = part.order.below, part.above
    for j in range(count):
        for i in range(count):
            if i == j or part.times[i] != part.times[j] or part.holds[i] != part.holds[j]:
                continue
            if below[i] & ~below[j] or above[j] & ~above[i]:
                continue
            if below[i] != below[j] or above[i] != above[j] or i < j:
                after[j] |= 1 << i
    return after


def _grid(times_s: list[float], horizon: float) -> tuple[float, float, list[int]]:
    """The unit in seconds, the most that rounding added in units, and the times in units."""
    for digits in range(13):
        scaled = [time * 10.0**digits for time in times_s]
        if horizon * 10.0**digits > MOST_UNITS:
            break
        whole = [round(time) for time in scaled]
        if all(n > 0 and abs(n - time) <= 1e-12 * n for n, time in zip(whole, scaled, strict=True)):
            return (
                10.0**-digits,
                max(n - time for n, time in zip(whole, scaled, strict=True)) + 1e-12,
                whole,
            )
    scaled = [time / horizon * MOST_UNITS for time in times_s]
    whole = [max(1, int(np.ceil(time))) for time in scaled]
    return (
        horizon / MOST_UNITS,
        max(n - time for n, time in zip(whole, scaled, strict=True)) + 1e-3,
        whole,
    )


def shortest_s(operator: ScheduledOperator, rule: Rule) -> float:
    """The shortest way to run that the rule has."""
    if operator.networked or not rule.one_core:
        return operator.all_cores_s
    return min(operator.one_core_s, operator.all_cores_s)


def _holds(
    operator: ScheduledOperator, rule: Rule
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    tensor, vector = (int(kind in KINDS[operator.core]) for kind in ("tensor", "vector"))
    network = ALL if operator.networked or not rule.network_apart else 0
    if operator.core == "none" and rule.network_apart:
        return (0, 0, 0), (0, 0, network)
    if not rule.kinds_apart:
        return (tensor, vector, 0), (ALL, ALL, network)
    return (tensor, vector, 0), (ALL * tensor, ALL * vector, network)


def _modes(operator: ScheduledOperator, rule: Rule, horizon: float) -> tuple[float, float]:
    """The times of both ways to run in seconds, 0 for a way that no shortest schedule needs or the
    rule excludes."""
    one_core_s, spread = operator.one_core_s, operator.all_cores_s
    if operator.networked or not rule.one_core:
        return 0.0, spread
    if one_core_s <= spread:
        return one_core_s, 0.0
    return (one_core_s if one_core_s <= horizon else 0.0), spread


def in_turn(problem: ScheduleProblem) -> ScheduleProblem:
    """Under rules where a collective runs only beside what it names: the same problem by order,
    under links.

    Each collective and what it names form a group, and groups run one after another (``rules.py``
    proves it).
    """
    if not problem.rule.named_only:
        return problem
    groups = groups_in_turn(len(problem.operators), problem.edges, problem.beside)
    assert groups is not None
    chain = [(i, j) for before, after in pairwise(groups) for i in before for j in after]
    return replace(problem, rules=LINKS.name, edges=(*problem.edges, *chain), beside=())


def part_of(problem: ScheduleProblem, order: Order) -> Component:
    """The component ``order`` of ``problem`` in units."""
    operators = [problem.operators[i] for i in order.operators]
    rule = problem.rule
    horizon = sum(shortest_s(operator, rule) for operator in operators)
    modes = [_modes(operator, rule, horizon) for operator in operators]
    lasting = [time for pair in modes for time in pair if time > 0]
    unit_s, excess, whole = _grid(lasting, horizon)
    units = iter(whole)
    times = tuple(
        (next(units) if alone > 0 else 0, next(units) if spread > 0 else 0)
        for alone, spread in modes
    )
    return Component(
        order,
        times,
        tuple(modes),
        tuple(_holds(operator, rule) for operator in operators),
        tuple(mirrored(order.below)),
        (problem.tensor_cores, problem.vector_cores, 1),
        rule.alone,
        unit_s,
        max(0.0, excess),
        sum(sorted(operator.hbm_s for operator in operators)) if rule.hbm_shared else 0.0,
    )


def incomparable(part: Component) -> list[int]:
    """For each operator the mask of those that may run beside it as far as precedence goes."""
    everything = (1 << len(part)) - 1
    return [everything & ~(part.order.below[i] | part.above[i] | 1 << i) for i in range(len(part))]


def longest_paths(part: Component) -> list[int]:
    """For each operator the longest path of shortest times that begins with it: a lower bound on
    what follows."""
    tail = [0] * len(part)
    for i in reversed(range(len(part))):
        tail[i] = part.least(i) + max((tail[j] for j in bits(part.above[i])), default=0)
    return tail
