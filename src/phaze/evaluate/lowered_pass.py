"""One pass of a layer under the schedule rule of its stack: on no chip yet, then on arrays of chips
or on one exactly.

A (fused) graph becomes operators, each one of

    a work             seconds on all cores and, where the rule has such a way, on one; its HBM time
    a collective c     seconds on the network; under rules companions beside its weight gradients
                       W(c)
    c in n pieces      a stack that cuts gathers and scatters runs c with the products next to it as
                       one operator that
                       holds cores and network:  max(c, p) + min(c, p) / n + b,  p the products'
                                                 time, b that of what
                       lies between them and c (a sum before a scatter, a norm after a gather)
    a ring             of keys and values runs behind the attention that reads them: in_ring

Then, with d_i the operators' times in their shortest way (:mod:`phaze.schedule.rules` has the
rules):

    serial       device = sum of d                                                         exact,
                 all chips at once
    companions   device = sum of d - sum over c of min(d_c, sum of W(c))                   exact,
                 all chips at once
    both         of the exchanges of experts x, as far as they are exposed then, the stack hides
                 min(x, shared experts beside it), and of what is left the share kappa behind
                 another microbatch, but
                 the device takes no less than all exchanges together     (:class:`ExchangeOverlap`)
    others       device = least makespan (:meth:`LoweredPass.schedule`), or no less than     for one
                 chip
                          bounds for all chips at once (:meth:`LoweredPass.bound`)
    pass = (device^3 + host^3)^(1/3),  host = operators x host time: the host runs ahead, but not
                                       far
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.collective import CollectiveCost, collective, kind_named
from phaze.cost.exchange import exchange_cost
from phaze.cost.table import CostTable, cost_table, cost_works
from phaze.cost.work import CollectiveWork, Work
from phaze.evaluate.exchange_overlap import NO_OVERLAP, ExchangeOverlap
from phaze.evaluate.schedule_operators import Unit, in_pieces, in_ring
from phaze.graph.opset import KINDS
from phaze.hardware.calibration import Constants
from phaze.placement.machine import SOFTNESS, Machine
from phaze.schedule.bounds import BOUNDS, Bound, chip_bounds
from phaze.schedule.order import Order, contract, series
from phaze.schedule.problem import Schedule, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rule
from phaze.schedule.solve import PartMemo, Scheduler, SchedulingLimits, solve
from phaze.schedule.solved import SolvedSchedules

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of every unit on every chip, [units, chips]: on one core, spread, and of its bytes at
    full bandwidth."""

    one_core_s: Floats
    spread_s: Floats
    hbm_s: Floats
    tensor_cores: NDArray[np.int64]
    vector_cores: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WorkTimes:
    """Seconds of works on every chip, [works, chips], as a rule asks for them; see
    :class:`Times`."""

    one_core_s: Floats
    spread_s: Floats
    hbm_s: Floats

    def taken(self, index: NDArray[np.int64]) -> "WorkTimes":
        """Those of the chips of ``index``; what is nothing or the same takes no memory."""
        spread = self.spread_s[:, index]
        if self.one_core_s is self.spread_s:
            return WorkTimes(spread, spread, np.broadcast_to(0.0, spread.shape))
        return WorkTimes(self.one_core_s[:, index], spread, self.hbm_s[:, index])

    def of_works(self, rows: Sequence[int]) -> "WorkTimes":
        """Those of the works of ``rows``, as :meth:`taken`."""
        index = np.array(rows, np.int64)
        spread = self.spread_s[index]
        if self.one_core_s is self.spread_s:
            return WorkTimes(spread, spread, np.broadcast_to(0.0, spread.shape))
        return WorkTimes(self.one_core_s[index], spread, self.hbm_s[index])

    def with_more(self, more: "WorkTimes") -> "WorkTimes":
        """These and then those of ``more``, of the same chips under the same rule."""
        spread = np.concatenate([self.spread_s, more.spread_s])
        if more.one_core_s is more.spread_s:
            return WorkTimes(spread, spread, np.broadcast_to(0.0, spread.shape))
        one_core, hbm = (
            np.concatenate(pair)
            for pair in ((self.one_core_s, more.one_core_s), (self.hbm_s, more.hbm_s))
        )
        return WorkTimes(one_core, spread, hbm)


def work_times(
    works: Sequence[Work], chips: ChipSet, constants: Constants, rule: Rule
) -> WorkTimes:
    """The works of some passes on every chip; one-core and HBM times only where the rule has a use
    for them."""
    if not rule.one_core:
        spread = cost_works(works, chips, constants).times_s()
        return WorkTimes(spread, spread, np.broadcast_to(0.0, spread.shape))
    return table_times(cost_table(works, chips, constants), chips, rule)


def table_times(table: CostTable, chips: ChipSet, rule: Rule) -> WorkTimes:
    """The operators of a table on its chips, each distinct work gathered once."""
    count, of = len(table.works), list(table.rows)
    one_core_s, spread, hbm = (np.zeros((count, len(chips))) for _ in range(3))
    for row in range(count):
        spread[row], one_core_s[row] = (
            table.spread_s(row, paired=rule.paired),
            table.one_core.time_s(row),
        )
        if rule.hbm_shared:
            hbm[row] = np.minimum(
                np.minimum(one_core_s[row], spread[row]), table.hbm_s(row, chips.hbm_bytes_per_s)
            )
    if not rule.hbm_shared:
        return WorkTimes(one_core_s[of], spread[of], np.broadcast_to(0.0, (len(of), len(chips))))
    return WorkTimes(one_core_s[of], spread[of], hbm[of])


@dataclass(frozen=True)
class LoweredPass:
    """A pass on no chip yet; ``beside`` pairs units, ``members`` are the traced operators of each
    work by number."""

    rule: Rule
    works: tuple[Work, ...]
    collectives: tuple[CollectiveCost | None, ...]
    units: tuple[Unit, ...]
    edges: tuple[tuple[int, int], ...]
    beside: tuple[tuple[int, int], ...]
    host_s: float
    members: tuple[tuple[int, ...], ...] = ()
    exchanges: ExchangeOverlap = NO_OVERLAP

    @property
    def sent_bytes(self) -> float:
        """Bytes that one device sends."""
        return sum(cost.sent_bytes for cost in self.collectives if cost is not None)

    @cached_property
    def alone(self) -> "LoweredPass | None":
        """The pass with no other microbatch behind whose work its exchanges run; None where they
        would not."""
        if not (self.exchanges.beside and self.exchanges.share):
            return None
        return replace(self, exchanges=replace(self.exchanges, share=0.0))

    @cached_property
    def parts(self) -> tuple[Order, ...]:
        """The components that run one after another, whatever the chip; units by position."""
        ones = tuple(
            ScheduledOperator(str(i), u.core, *self._unit_times(u), u.network)
            for i, u in enumerate(self.units)
        )
        return tuple(series(contract(ScheduleProblem(self.rule.name, 1, 1, ones, self.edges))))

    def _unit_times(self, unit: Unit) -> tuple[float, float]:
        free = unit.core == "none" and all(self.waits_s[place] == 0 for place in unit.places)
        return (0.0, 0.0) if free else (1.0, 1.0)

    @cached_property
    def waits_s(self) -> tuple[float, ...]:
        """Seconds of collectives by place in the graph, 0 for others."""
        return tuple(0.0 if cost is None else cost.time_s for cost in self.collectives)

    @cached_property
    def _alone(self) -> tuple[list[int], list[int], list[int]]:
        """The units that are one work on cores, the places of these works, and the units that are
        one collective."""
        single = [
            index for index, unit in enumerate(self.units) if len(unit.places) == 1 and not unit.cut
        ]
        units = [index for index in single if not self.units[index].network]
        return units, [self.units[index].places[0] for index in units], sorted({*single} - {*units})

    def on_network(self, machine: Machine) -> "LoweredPass":
        """The pass on another network."""
        return replace(self, collectives=network_costs(self.works, machine))

    def times(self, works: WorkTimes, first: int, chips: ChipSet) -> Times:
        """All units on all chips; the pass's works stand in ``works`` from ``first`` on."""
        rows = slice(first, first + len(self.works))
        return Times(
            *self._joined(works.one_core_s[rows], works.spread_s[rows], works.hbm_s[rows]),
            *_cores(chips),
        )

    def _joined(
        self, one_core: Floats, spread: Floats, hbm: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """The works' times as those of units."""
        shape = (len(self.units), one_core.shape[1])
        joined = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        alone, places, sent = self._alone
        joined[0][alone], joined[1][alone], joined[2][alone] = (
            one_core[places],
            spread[places],
            hbm[places],
        )
        for index in sent:
            place = self.units[index].places[0]
            joined[0][index] = joined[1][index] = spread[place] + self.waits_s[place]
            joined[2][index] = hbm[place]
        for index, unit in enumerate(self.units):
            if len(unit.places) == 1 and not unit.cut:
                continue
            for place in unit.places:
                joined[2][index] += hbm[place]
            inside = {place for cut in unit.cut for place in (cut.collective, *cut.products)}
            seconds = np.zeros(shape[1])
            for cut in unit.cut:
                products = sum((spread[place] for place in cut.products), np.zeros(shape[1]))
                waits = np.full(shape[1], self.waits_s[cut.collective])
                seconds = seconds + (in_ring if cut.ring else in_pieces)(waits, products, cut.count)
            for place in unit.places:
                if place not in inside:
                    seconds = seconds + spread[place] + self.waits_s[place]
            joined[0][index] = joined[1][index] = seconds
        return joined

    def exact(self, times: Times) -> Floats | None:
        """Device seconds on every chip where a formula gives them, else None."""
        if self.rule.one_queue or self.rule.named_only:
            total = times.spread_s.sum(axis=0)
            named: dict[int, Floats] = {}
            for unit, other in self.beside if self.rule.named_only else ():
                named[unit] = named.get(unit, 0.0) + times.spread_s[other]
            hidden = {unit: np.minimum(times.spread_s[unit], work) for unit, work in named.items()}
            for hidden_s in hidden.values():
                total = total - hidden_s
            return np.asarray(self.exchanges.overlapped(total, times.spread_s, hidden))
        return None

    def bound(self, times: Times, use: Sequence[Bound] = BOUNDS) -> Floats:
        """Device seconds that no schedule undercuts, on every chip; with one queue the dual is as
        cheap as others."""
        exact = self.exact(times)
        if exact is not None:
            return exact
        use = use if self.rule.one_core else BOUNDS
        total = np.zeros(times.spread_s.shape[1])
        for part in self.parts:
            units = list(part.operators)
            bounds = chip_bounds(
                self.rule.name,
                [self.units[i].core for i in units],
                part.below,
                times.one_core_s[units],
                times.spread_s[units],
                times.tensor_cores,
                times.vector_cores,
                use=use,
                network=[self.units[i].network for i in units],
                hbm_s=times.hbm_s[units],
            )
            total = total + np.max(np.stack(list(bounds.values())), axis=0)
        return total

    def problem(self, times: Times, chip: int) -> ScheduleProblem:
        """The scheduling problem on one chip of an array; cores beyond the number of operators make
        no difference."""
        operators = tuple(
            ScheduledOperator(
                str(index),
                unit.core,
                float(times.one_core_s[index, chip]),
                float(times.spread_s[index, chip]),
                unit.network,
                float(times.hbm_s[index, chip]),
            )
            for index, unit in enumerate(self.units)
        )
        tensor, vector = (
            min(int(n[chip]), len(operators)) for n in (times.tensor_cores, times.vector_cores)
        )
        return ScheduleProblem(self.rule.name, tensor, vector, operators, self.edges, self.beside)

    def schedule(
        self,
        times: Times,
        chip: int,
        limits: SchedulingLimits | None = None,
        parts: PartMemo | None = None,
        scheduler: Scheduler = "exact",
        solved: SolvedSchedules | None = None,
    ) -> Schedule:
        """The best schedule on one chip, proved or with its bound; or by another scheduler.
        ``solved``: those that need not be found again."""
        schedule = solve if solved is None else solved.solve
        return schedule(self.problem(times, chip), scheduler, limits, parts)

    def device_s(
        self,
        times: Times,
        limits: SchedulingLimits | None = None,
        parts: PartMemo | None = None,
        proved: bool = False,
        scheduler: Scheduler = "exact",
        solved: SolvedSchedules | None = None,
    ) -> Floats:
        """Device seconds on every chip by a formula, or a schedule for each; ``proved``: what no
        schedule undercuts."""
        exact = self.exact(times)
        if exact is not None:
            return exact
        count = times.spread_s.shape[1]
        schedules = [
            self.schedule(times, chip, limits, parts, scheduler, solved) for chip in range(count)
        ]
        return np.array(
            [schedule.lower_bound_s if proved else schedule.makespan_s for schedule in schedules]
        )

    def with_host(self, device_s: Floats) -> Floats:
        """The soft maximum of device and host."""
        if self.host_s == 0:
            return device_s
        return np.asarray((device_s**SOFTNESS + self.host_s**SOFTNESS) ** (1 / SOFTNESS))


def _cores(chips: ChipSet) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return chips.tensor_cores.astype(np.int64), chips.vector_cores.astype(np.int64)


# What collectives take on one machine.
KnownCollectives = dict[CollectiveWork, CollectiveCost]


def network_costs(
    works: Sequence[Work], machine: Machine, priced: KnownCollectives | None = None
) -> tuple[CollectiveCost | None, ...]:
    """What the collectives of a pass take, None for other works; ``priced`` keeps those of the
    machine."""
    priced, costs = {} if priced is None else priced, list[CollectiveCost | None]()
    for work in works:
        collective_work = work.collective
        if collective_work is not None and collective_work not in priced:
            priced[collective_work] = _network_cost(collective_work, machine)
        costs.append(None if collective_work is None else priced[collective_work])
    return tuple(costs)


def _network_cost(work: CollectiveWork, machine: Machine) -> CollectiveCost:
    where = machine.cluster, machine.basis
    if KINDS[work.kind].rule == "exchange":
        sizes = (work.bytes, work.group, work.stride, work.copies)
        return exchange_cost(work.kind, sizes, *where, machine.stack.deduplicated_exchange)
    return collective(kind_named(work.kind), work.bytes, work.group, *where)
