"""What may run at the same time, as values: one :class:`Rule` by name, and nothing else asks for
the name.

Every rule says how an operator holds cores and network while it runs:

=============  ========  ===========  =============  =======================================
               ===========
rule           one core  kinds apart  network apart  a collective runs beside                 HBM
               shared
=============  ========  ===========  =============  =======================================
               ===========
serial         no        no           no             nothing
companions     no        no           yes            the operators that it names, no other
links          no        no           yes            any operator
icml24         yes       no           no             nothing
overlap        yes       yes          yes            any operator                             yes
=============  ========  ===========  =============  =======================================
               ===========

one core        an operator may run on one core of its kind (``both``: one of each) beside others;
                without it every operator is spread over the chip and they form one queue.
kinds apart     a spread operator has only its own kinds of core to itself; without it, all cores.
network apart   a collective holds the network and no core, one at a time; without it, the whole
                chip too.
HBM shared      tensor and vector work read one memory: with ``hbm_s`` the time that an operator's
                bytes take at the full bandwidth, no series component (``order.py``) is shorter than
                the sum of its ``hbm_s``:

                    length = max(last end - begin, sum of hbm_s)            the next component begins after that.

                It is a bound, not a rate: operators are not slowed one by one, and a component that
                waits for its memory has the same length in any order of its operators.

``paired`` (icml24) belongs to the published rule too: a spread fused operator works on as many
cores of each kind as there are of the fewer (:mod:`phaze.cost.parts`); it is in the times that a
problem is given.

An operator with cores and ``network`` holds both for all its time, and is spread: a collective
fused with its products piece by piece. Fewer things are held from serial to links to overlap, and
from serial to icml24 to overlap, so optima can only fall along either line (where the HBM time of a
component is no longer than its icml24 schedule, as it is when an operator on one core has its share
of the bandwidth). companions stands between serial and links.

**companions**. Let c name the operators W(c), no operator named twice. A schedule's length is the
sum of all times less what runs at the same time, and c shares at most ``min(time(c), sum of
W(c))``: its time runs beside nothing else, and W(c) is one queue. So

    length  >=  sum of all times - sum over c of min(time(c), sum of W(c))

and where the groups {c} + W(c) can be put in an order (no group waits for itself through others),
running them one after another, in each the collective beside the queue, meets it: the order of the
stack as constraints (:func:`in_turn <phaze.schedule.part.in_turn>`).
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Rules = Literal["serial", "companions", "links", "icml24", "overlap"]


@dataclass(frozen=True, slots=True)
class Rule:
    """How operators hold the chip while they run; the table above has a line for each."""

    name: Rules
    one_core: bool = False
    kinds_apart: bool = False
    network_apart: bool = False
    named_only: bool = False
    hbm_shared: bool = False
    paired: bool = False

    @property
    def one_queue(self) -> bool:
        """Nothing runs beside anything: the sum of spread times is the only makespan."""
        return not (self.one_core or self.network_apart)

    @property
    def alone(self) -> bool:
        """A spread operator runs with nothing beside it."""
        return not (self.kinds_apart or self.network_apart)


SERIAL = Rule("serial")
COMPANIONS = Rule("companions", network_apart=True, named_only=True)
LINKS = Rule("links", network_apart=True)
ICML24 = Rule("icml24", one_core=True, paired=True)
OVERLAP = Rule("overlap", one_core=True, kinds_apart=True, network_apart=True, hbm_shared=True)

RULE: Mapping[str, Rule] = MappingProxyType(
    {rule.name: rule for rule in (SERIAL, COMPANIONS, LINKS, ICML24, OVERLAP)}
)


def groups_in_turn(
    count: int, edges: Sequence[tuple[int, int]], beside: Sequence[tuple[int, int]]
) -> list[list[int]] | None:
    """Each collective with the operators it names, all others alone, in a runnable order; None when
    there is none.

    Among groups that could be next the one with the first operator comes first.
    """
    head = list(range(count))
    for collective, other in beside:
        head[other] = collective
    members: dict[int, list[int]] = {}
    for i in range(count):
        members.setdefault(head[i], []).append(i)
    after: dict[int, set[int]] = {group: set() for group in members}
    waiting = dict.fromkeys(members, 0)
    for first, then in edges:
        if head[first] == head[then] in (first, then):
            return None
        if head[then] not in after[head[first]] and head[first] != head[then]:
            after[head[first]].add(head[then])
            waiting[head[then]] += 1
    ready = [(members[group][0], group) for group in members if waiting[group] == 0]
    heapq.heapify(ready)
    turn = []
    while ready:
        _, group = heapq.heappop(ready)
        turn.append(members[group])
        for then in sorted(after[group]):
            waiting[then] -= 1
            if waiting[then] == 0:
                heapq.heappush(ready, (members[then][0], then))
    return turn if len(turn) == len(members) else None
