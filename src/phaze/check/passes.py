"""The seconds of a pass by its schedule rule: serial and companions are a formula, links, icml24
and overlap a schedule or what none undercuts (docs/schedule.md, docs/cost.md).

Schedules of icml24 and overlap place units on cores (:class:`.schedules.CoreSchedules`), those of
links put them into a queue (:class:`.queues.Queues`). Else they run one after another, so a pass
takes the sum of its units. A collective c that a stack cuts into n pieces (n ranks) is one unit
with the products p beside it and all that lies between them (:mod:`.pass_units`):

    max(c, p) + min(c, p) / n + what lies between

Where nothing is cut, companions take min(c, p) off the sum for each collective that the others
leave room for. A ring of n ranks runs behind the attention A that reads what comes round: A +
max(0, c - (n - 1)/n A). Of the exchanges of experts x_u, less what is hidden of them by now, a
stack may hide what products of shared experts take beside them, and of the rest a share; the device
takes no less than all of them. With the host the pass takes (device^3 + (operators x host
time)^3)^(1/3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graphs import Pass
from .network import Network, collective, collective_sent, exchange, exchange_sent, neighbours
from .queues import Queues
from .reading import require
from .schedules import CoreSchedules, CoreSeconds
from .works import EXCHANGES, Work

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WorkSeconds:
    """Seconds of works on some chips, spread over all cores and, where schedules place operators,
    on one; where they share HBM, of their bytes at its whole bandwidth; how many cores of each kind
    the chips have; ``effort``: whether components of schedules are searched, 0 not, 1 by ideals, 2
    by all that can start next."""

    spread: Mapping[Work, Floats]
    one: Mapping[Work, Floats]
    hbm: Mapping[Work, Floats]
    cores: Mapping[str, Floats]
    chips: int
    effort: int = 0

    def taken(self, index: NDArray[np.int64]) -> "WorkSeconds":
        """On some of the chips."""
        if len(index) == self.chips:
            return self
        spread = {work: seconds[index] for work, seconds in self.spread.items()}
        one = {work: seconds[index] for work, seconds in self.one.items()}
        hbm = {work: seconds[index] for work, seconds in self.hbm.items()}
        cores = {kind: count[index] for kind, count in self.cores.items()}
        return WorkSeconds(spread, one, hbm, cores, len(index), self.effort)

    def rows(self, works: Sequence[Work], seconds: Mapping[Work, Floats]) -> Floats:
        """[works, chips]; nothing where they are not known."""
        rows = np.zeros((len(works), self.chips))
        if seconds:
            for place, work in enumerate(works):
                rows[place] = seconds[work]
        return rows


@dataclass(frozen=True, slots=True)
class CutCollective:
    """A collective in ``pieces``, and the places of the products beside it; or a ring and its
    attention."""

    place: int
    pieces: int
    products: tuple[int, ...]
    ring: bool = False

    def seconds(self, wait: float, products: Floats) -> Floats:
        """Both together."""
        if self.ring:
            return products + np.maximum(0.0, wait - (self.pieces - 1) / self.pieces * products)
        return np.maximum(wait, products) + np.minimum(wait, products) / self.pieces


@dataclass(frozen=True, slots=True)
class Exchanging:
    """How a stack hides exchanges of experts: a share of them, behind shared experts; whether a
    token goes to a node once."""

    share: float = 0.0
    shared: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class TimedPass:
    """A pass as units of places, each with what is cut inside it; ``beside``: units that a unit's
    collective hides, ``exchanges``: units of exchanges of experts with those of the shared experts
    beside them; ``queues``: of the rule links, ``placed``: of those that place units on cores."""

    own: Pass
    units: tuple[tuple[tuple[int, ...], tuple[CutCollective, ...]], ...]
    beside: tuple[tuple[int, tuple[int, ...]], ...]
    host: float
    hides: Exchanging = Exchanging()
    exchanges: tuple[tuple[int, tuple[int, ...]], ...] = ()
    queues: Queues | None = None
    placed: CoreSchedules | None = None

    def met_by_none(self) -> "TimedPass":
        """The pass where no other microbatch is there to exchange tokens behind."""
        return replace(self, hides=replace(self.hides, share=0.0))

    def waits(self, network: Network) -> Floats:
        """Seconds of the collectives by place, 0 for others."""
        waits = np.zeros(len(self.own.works))
        for place, work in enumerate(self.own.works):
            if work.collective is None:
                continue
            kind, size, group, *_ = work.collective
            if kind in EXCHANGES:
                waits[place] = exchange(network, work.collective, self.hides.once)
            else:
                members = neighbours(network, group)
                waits[place] = float(
                    collective(network, kind, members, np.array([float(size)]), group)[0]
                )
        return waits

    def sent_bytes(self, network: Network) -> float:
        """Bytes that a device sends in its collectives."""
        total = 0.0
        for work in self.own.works:
            if work.collective is None:
                continue
            kind, size, group, *_ = work.collective
            if kind in EXCHANGES:
                total += exchange_sent(network, work.collective, self.hides.once)
            else:
                total += collective_sent(network, kind, neighbours(network, group), size, group)
        return total

    def _on_cores(self, times: WorkSeconds, waits: Floats) -> CoreSeconds:
        """Units: a work alone has one core or all, several in pieces have one way to run."""
        one, hbm = (times.rows(self.own.works, rows) for rows in (times.one, times.hbm))
        spread = np.array(self._units(times.rows(self.own.works, times.spread), waits))
        alone, moved = spread.copy(), np.zeros_like(spread)
        for number, (places, cuts) in enumerate(self.units):
            if len(places) == 1 and not cuts:
                alone[number] = one[places[0]] + waits[places[0]]
            moved[number] = hbm[list(places)].sum(axis=0)
        return CoreSeconds(alone, spread, moved, times.cores)

    def answered(self, times: WorkSeconds, waits: Floats, slots: Any, where: str) -> Floats:
        """Seconds on one chip as an answer's schedule has it, which is checked."""
        if not self.own.works or (self.placed is None and self.queues is None):
            require(slots == [], f"{where}: there is nothing to schedule")
            return self.seconds(times.rows(self.own.works, times.spread), waits)
        if self.placed is not None:
            makespan = self.placed.makespan(slots, self._on_cores(times, waits), where)
            return self._with_host(np.array([makespan]))
        assert self.queues is not None
        spread = times.rows(self.own.works, times.spread)
        units = np.array(self._units(spread, waits))[:, 0]
        return self._with_host(np.array([self.queues.makespan(slots, units, where)]))

    def least(self, times: WorkSeconds, waits: Floats) -> Floats:
        """Seconds on every chip, or what no schedule undercuts."""
        if self.placed is not None and self.own.works:
            least = self.placed.least(self._on_cores(times, waits), times.effort)
            return self._with_host(least)
        return self.seconds(times.rows(self.own.works, times.spread), waits)

    def _with_host(self, device: Floats) -> Floats:
        return np.asarray(device if self.host == 0 else (device**3 + self.host**3) ** (1 / 3))

    def _units(self, spread: Floats, waits: Floats) -> list[Floats]:
        """Seconds of every unit."""
        alone = spread + waits[:, None]
        units = []
        for places, cuts in self.units:
            total, inside = np.zeros(spread.shape[1]), set[int]()
            for cut in cuts:
                inside |= {cut.place, *cut.products}
                products = spread[list(cut.products)].sum(axis=0)
                total = total + cut.seconds(float(waits[cut.place]), products)
            for place in places:
                if place not in inside:
                    total = total + alone[place]
            units.append(total)
        return units

    def seconds(self, spread: Floats, waits: Floats) -> Floats:
        """Seconds on every chip, from those of operators [works, chips]; under links what no
        schedule undercuts."""
        if not len(self.own.works):
            return np.zeros(spread.shape[1])
        units = self._units(spread, waits)
        if self.queues is not None:
            return self._with_host(self.queues.least(np.array(units)))
        device, hidden = np.sum(units, axis=0), dict[int, Floats]()
        for unit, others in self.beside:
            products = np.sum([units[other] for other in others], axis=0)
            hidden[unit] = np.minimum(units[unit], products)
            device = device - hidden[unit]
        if self.exchanges:
            device = self._less_exchanges(device, units, hidden)
        return self._with_host(device)

    def _less_exchanges(
        self, device: Floats, units: Sequence[Floats], hidden: Mapping[int, Floats]
    ) -> Floats:
        """The device without what a stack hides of exchanges, and no less than all of them."""
        left, busy = np.zeros_like(device), np.zeros_like(device)
        for unit, others in self.exchanges:
            exposed = units[unit] - hidden.get(unit, 0.0)
            shared = np.zeros_like(device)
            for other in others:
                shared = shared + units[other]
            covered = np.minimum(exposed, shared)
            device = device - covered
            left = left + exposed - covered
            busy = busy + units[unit]
        return np.maximum(device - self.hides.share * left, busy)
