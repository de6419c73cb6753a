"""Is this a schedule (``phaze.schedule/1``) of those operators (``phaze.operators/1``)? From the
rules alone.

A schedule is right when

1.  every operator has exactly one slot, in the order of the problem;
2.  a slot lasts as long as its way to run says: L on one core, P spread, 0 for an operator that is
    free;
3.  i -> j in the graph: i ends before j starts;
4.  a slot on one core names a core that exists, of each kind it uses and of no other; a spread one
    names none;
5.  two slots that overlap in time are allowed to by the rules, and never share a core;
6.  where the rules share HBM, operators of a series component (connected by pairs of which neither
    must precede the other) start no sooner than the one before it is over, and a component lasts at
    least the sum of its HBM times;
7.  the makespan is the last end (6: or the last component's, if that is later), the lower bound not
    above it.

Times are compared with a tolerance of 1e-9 of the makespan. Two slots overlap when both last longer
than the tolerance and their common time does too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from types import MappingProxyType
from typing import Any

from .orders import in_series, led_to
from .reading import require

TOLERANCE = 1e-9
"""Sums in another order differ by less."""
KINDS = ("tensor", "vector")
USES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tensor": ("tensor",), "vector": ("vector",), "both": KINDS, "none": ()}
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What may run at the same time: ``queue``: nothing; ``one_core``: operators may run on one
    core; ``alone``: a spread operator, and a collective, run beside nothing; ``own_kinds``: a
    spread operator has its kinds of core to itself, else all; ``named``: a collective runs beside
    what names it alone; ``hbm``: HBM is shared;
    ``paired``: a spread operator of both kinds works on as many cores of each."""

    queue: bool = False
    one_core: bool = False
    alone: bool = False
    own_kinds: bool = False
    named: bool = False
    hbm: bool = False
    paired: bool = False


RULES = MappingProxyType({
    "serial": Rule(queue=True, alone=True),
    "companions": Rule(named=True),
    "links": Rule(),
    "icml24": Rule(one_core=True, alone=True, paired=True),
    "overlap": Rule(one_core=True, own_kinds=True, hbm=True),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """An operator in its slot: the kinds of core that it uses, whether the network; its seconds on
    one core and on all, and of its HBM bytes; start and end; spread, or the core of each kind."""

    name: str
    uses: tuple[str, ...]
    network: bool
    one_s: float
    all_s: float
    start: float
    end: float
    spread: bool
    cores: tuple[int | None, int | None] = (None, None)
    hbm_s: float = 0.0

    @property
    def free(self) -> bool:
        """Whether one of its ways to run takes no time."""
        return min(self.one_s, self.all_s) == 0

    @property
    def length(self) -> float:
        return 0.0 if self.free else self.all_s if self.spread else self.one_s


@dataclass(frozen=True, slots=True)
class Runs:
    """Operators in their slots: rule, cores of each kind, edges by position, pairs that name each
    other."""

    rule: Rule
    cores: Mapping[str, int]
    runs: Sequence[Run]
    edges: Sequence[tuple[int, int]]
    named: frozenset[frozenset[str]] = frozenset()

    @property
    def last(self) -> float:
        """When all is over."""
        ends = [run.end for run in self.runs]
        if self._shares_hbm:
            ends += [over for _, over, _ in self._spans()]
        return max(ends, default=0.0)

    def faults(self, slack: float) -> Iterator[str]:
        """What is wrong, one sentence each."""
        for run in self.runs:
            if abs(run.end - run.start - run.length) > slack:
                yield f"'{run.name}' lasts {run.end - run.start!r} s, not {run.length!r} s"
        for first, then in self.edges:
            if self.runs[then].start < self.runs[first].end - slack:
                yield f"'{self.runs[then].name}' starts before '{self.runs[first].name}' ends"
        for run in self.runs:
            yield from self._cores(run)
        yield from self._overlaps(slack)
        if self._shares_hbm:
            yield from self._early(slack)

    def _cores(self, run: Run) -> Iterator[str]:
        for kind, core in zip(KINDS, run.cores, strict=True):
            wanted = kind in run.uses and not run.spread
            if wanted and (type(core) is not int or not 0 <= core < self.cores[kind]):
                yield f"'{run.name}' runs on {kind} core {core}, which does not exist"
            if not wanted and core is not None:
                yield f"'{run.name}' names {kind} core {core} and does not run on one"
        must_spread = not self.rule.one_core or not run.uses or run.network
        if must_spread and not run.free and not run.spread:
            yield f"'{run.name}' must be spread"

    def _overlaps(self, slack: float) -> Iterator[str]:
        lasting = sorted(
            (run for run in self.runs if run.end - run.start > slack), key=lambda run: run.start
        )
        for at, run in enumerate(lasting):
            for later in lasting[at + 1 :]:
                if later.start >= run.end - slack:
                    break
                clash = self._clash(run, later)
                if clash and min(run.end, later.end) - later.start > slack:
                    yield f"'{run.name}' and '{later.name}' {clash}"

    def _clash(self, a: Run, b: Run) -> str:
        """Why the two may not run at the same time; empty when they may."""
        rule, spread = self.rule, a.spread or b.spread
        if rule.queue:
            return "run at the same time"
        if rule.alone and spread:
            return "run at the same time, and one of them runs alone"
        if (a.network or not a.uses) and (b.network or not b.uses):
            return "use the network at the same time"
        if not a.uses or not b.uses:
            allowed = not rule.named or frozenset((a.name, b.name)) in self.named
            return "" if allowed else "run at the same time, and neither names the other"
        common = set(a.uses) & set(b.uses)
        if spread and (common or not rule.own_kinds):
            return "run at the same time, and one of them has the cores to itself"
        for at, kind in enumerate(KINDS):
            if kind in common and a.cores[at] == b.cores[at]:
                return f"run on the same {kind} core"
        return ""

    @property
    def _shares_hbm(self) -> bool:
        return self.rule.hbm and any(run.hbm_s > 0 for run in self.runs)

    def _components(self) -> list[list[int]]:
        """Operators that cost something, joined where neither must precede the other, in the order
        of their starts."""
        before = led_to(len(self.runs), [(then, first) for first, then in self.edges])
        busy = [at for at, run in enumerate(self.runs) if not run.free]
        busy.sort(key=lambda at: before[at].bit_count())
        return in_series(busy, before)

    def _spans(self) -> Iterator[tuple[float, float, list[int]]]:
        """Where each component may begin, when it is over, and its operators."""
        begin = 0.0
        for part in self._components():
            memory = fsum(self.runs[at].hbm_s for at in part)
            over = max(begin + memory, *(self.runs[at].end for at in part))
            yield begin, over, part
            begin = over

    def _early(self, slack: float) -> Iterator[str]:
        for begin, _, part in self._spans():
            for at in part:
                if self.runs[at].start < begin - slack:
                    yield (
                        f"'{self.runs[at].name}' starts before the HBM has moved the bytes "
                        "of the operators before it"
                    )


def length_of(runs: Runs, where: str) -> float:
    """The length of a schedule that breaks no rule; refuses any other."""
    last = runs.last
    for sentence in runs.faults(TOLERANCE * last):
        require(False, f"{where}: {sentence}")
    return last


def _runs_of(operators: Mapping[str, Any], schedule: Mapping[str, Any]) -> Runs:
    rows, place = list[Run](), {row["id"]: at for at, row in enumerate(operators["operators"])}
    named = set[frozenset[str]]()
    for row, slot in zip(operators["operators"], schedule["slots"], strict=True):
        rows.append(
            Run(
                row["id"],
                USES[row["core"]],
                row["network"],
                row["one_core_s"],
                row["all_cores_s"],
                slot["start_s"],
                slot["end_s"],
                slot["spread"],
                (slot["tensor_core"], slot["vector_core"]),
                row["hbm_s"],
            )
        )
        named |= {frozenset((row["id"], other)) for other in row["beside"]}
    cores = {kind: operators[f"{kind}_cores"] for kind in KINDS}
    edges = [(place[first], place[then]) for first, then in operators["edges"]]
    return Runs(RULES[operators["rules"]], cores, rows, edges, frozenset(named))


def schedule_faults(operators: Mapping[str, Any], schedule: Mapping[str, Any]) -> list[str]:
    """What is wrong with a schedule, one sentence each; empty when it holds."""
    slots = schedule["slots"]
    if [slot["id"] for slot in slots] != [row["id"] for row in operators["operators"]]:
        return ["the slots are not the operators, in their order"]
    makespan, bound = schedule["makespan_s"], schedule["lower_bound_s"]
    times = [makespan, bound, *(slot[name] for slot in slots for name in ("start_s", "end_s"))]
    if not all(isfinite(time) and time >= 0 for time in times):
        return ["a time is negative or not a number"]
    runs, found = _runs_of(operators, schedule), list[str]()
    last = runs.last
    if abs(last - makespan) > TOLERANCE * last:
        found.append(f"the makespan is {makespan!r}, the last end {last!r}")
    if bound > makespan * (1 + TOLERANCE):
        found.append("the lower bound is above the makespan")
    if schedule["rules"] != operators["rules"]:
        found.append(
            f"the schedule is one under the rules {schedule['rules']}, not {operators['rules']}"
        )
    return found or list(runs.faults(TOLERANCE * makespan))
