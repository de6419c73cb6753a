"""Pipeline families (docs/placement.md, Families): laps x pace + share x sum D + ends.

    family            laps      share      D                                  in flight at stage s
                      from the end
    icml24            m + S - 1 0          T                                  s
    gpipe             m - 1     1          T, pace max F + max R              m
    1f1b              m - 1     1          T                                  min(m, s)
    interleaved v     m - 1/v   1/v        T                                  min(m, (2 (s - 1) + (v
                      - 1) S + 1) / v)
    zb-h1, -inter. v  m         (S - 1)/S  max(F, B, F + B - W) / v           min(m, S)
    zb-v              m         (S - 1)/S  greatest of :func:`_folded` / 2    min(m, S)
    dualpipe-v        m         (S - 1)/S  (max(2 F, (1 - e) F + B) + max(0, B - W)) / 2     min(m,
                      S + 1/2)

F and R are the passes of a stage, T = F + R, W of R the gradients of weights and B = R - W; pace is
the greatest T. Where a stack sends behind other chunks, a stage of ``interleaved`` is faster than T
at the pace of the pipeline: of its m v pieces a pass all but (v - 1) S have a piece of the other
pass beside them, and then a transfer and that work end with the longer of the two. D counts T all
the same. The last four recompute nothing and need m >= S microbatches, zb-v and dualpipe-v, whose
last stage hands on to itself, m >= 2 S; interleaved families need S to divide m.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .reading import cover

Floats = NDArray[np.float64]
Form = tuple[float, float, float]
FOLDED = ("zb-v", "dualpipe-v")
LOOPED = ("interleaved", "zb-interleaved")
SPLIT = ("zb-h1", "zb-interleaved", *FOLDED)
PUBLISHED = "icml24"
KNOWN = (PUBLISHED, "gpipe", "1f1b", *LOOPED, "zb-h1", *FOLDED)


@dataclass(frozen=True, slots=True)
class Family:
    """A family with so many chunks a stage; ``alone``: for one stage only."""

    name: str
    chunks: int = 1
    alone: bool = False

    @property
    def split(self) -> bool:
        """Whether gradients of inputs and of weights run at different times."""
        return self.name in SPLIT

    @property
    def folded(self) -> bool:
        return self.name in FOLDED

    @property
    def published(self) -> bool:
        """Whether it is counted as the ICML 2024 paper does."""
        return self.name == PUBLISHED

    @property
    def apart(self) -> bool:
        """Whether all forwards run before the backwards."""
        return self.name == "gpipe"

    def laps(self, rounds: float, stages: int = 1) -> float:
        """How often the pace counts; under the published rule for every stage beyond the first once
        more."""
        if self.published:
            return float(rounds + stages - 1)
        return float(rounds) if self.split else rounds - 1 / self.chunks

    def share(self, stages: int) -> float:
        """How much of the sum of D counts."""
        if self.published:
            return 0.0
        return (stages - 1) / stages if self.split else 1 / self.chunks

    def hides(self, stack_sends_beside: bool) -> bool:
        """Whether transfers run beside other chunks; families of split backward passes wait for
        theirs."""
        return stack_sends_beside and self.name == "interleaved" and self.chunks > 1

    def shown(self, stack_sends_beside: bool, rounds: float, stages: int) -> float:
        """The part of a transfer that counts at the pace although work beside it takes longer: all
        of it where nothing runs beside it."""
        if not self.hides(stack_sends_beside):
            return 1.0
        return (self.chunks - 1) * stages / (rounds * self.chunks - 1)

    def unmet(self, rounds: float, stages: int) -> float:
        """The part of its passes at which a stage has no other microbatch to exchange experts'
        tokens behind."""
        if self.split or self.published:
            return 1.0
        if self.chunks > 1:
            return (self.chunks - 1) * stages / (rounds * self.chunks - 1)
        return float(stages > 1)

    def runs(self, rounds: float, stages: int) -> bool:
        """Whether replicas of so many stages can run so many microbatches each."""
        enough = rounds >= stages * (2 if self.folded else 1 if self.split else 0)
        even = self.name not in LOOPED or self.chunks == 1 or rounds % stages == 0
        return enough and even and (stages == 1 or not self.alone)

    def flying(self, rounds: float, number: int, stages: int) -> float:
        """Microbatches that the stage of a number, from the end, holds at once."""
        if self.published:
            return float(number)
        if self.apart:
            return float(rounds)
        if self.split:
            return min(float(rounds), stages + 0.5 * (self.name == "dualpipe-v"))
        if self.chunks == 1:
            return float(min(rounds, number))
        return min(float(rounds), (2 * (number - 1) + (self.chunks - 1) * stages + 1) / self.chunks)

    def forms(self, stages: int) -> list[Form]:
        """Coefficients of F, B and W: D is the greatest of them over the chunks; none where it is
        T."""
        e = 1 / (stages - 1) if stages > 1 else 0.0
        if self.name == "zb-v":
            return _folded(e)
        if self.name == "dualpipe-v":
            return [(2, 0, 0), (2, 1, -1), (1 - e, 1, 0), (1 - e, 2, -1)]
        return [(1, 0, 0), (0, 1, 0), (1, 1, -1)] if self.split else []

    def filled(self, forward: Floats, backward: Floats, weight: Floats, stages: int) -> Floats:
        """D of stages with these passes, ``weight`` being a part of ``backward``."""
        if not self.split:
            return forward + backward
        rest = backward - weight
        found = [f * forward + b * rest + w * weight for f, b, w in self.forms(stages)]
        return np.asarray(np.max(found, axis=0) / self.chunks)

    def least_filled(
        self, forward: Floats, rest: Floats, weight: Floats, stages: int, known: str
    ) -> Floats:
        """What no sum of D over stages undercuts whose passes sum to no less than these; ``known``:
        they are exact but for what goes in equal parts to F and B (``but moves``), or for more on
        either (``but more``), or are no more than a bound (``nothing``)."""
        found = np.zeros_like(forward)
        for f, b, w in self.forms(stages):
            if known == "nothing":
                found = np.maximum(found, f * forward) if min(f, b, w) >= 0 else found
            elif known == "but moves" or min(f, b) >= 0:
                found = np.maximum(found, f * forward + b * rest + w * weight)
        return found / self.chunks


def _folded(e: float) -> list[Form]:
    """The forms of a V, e = 1 / (S - 1)."""
    return [
        (0, 1, 0), (0, 2, -2), (0, e, 1 - e), (e, 0, 1 - e), (2 - e, e - 1, 0), (2, -1, -e),
        (2 - e, e, -2),
        (2, 0, -2 - e),
    ]  # fmt: skip


def families_of(names: Sequence[str], blocks: int, chunks: Sequence[int] | None) -> list[Family]:
    """The families of a stack for a model of so many equal blocks in a row (0: none). GPipe takes
    no less time and memory than 1F1B; a plan of one stage is always among them."""
    unknown = sorted(set(names) - set(KNOWN))
    cover(not unknown, f"the pipeline family {unknown[0] if unknown else ''}")
    found = []
    for name in names:
        if name in LOOPED:
            found += [
                Family(name, v) for v in range(2, blocks // 2 + 1) if chunks is None or v in chunks
            ]
        elif name in FOLDED:
            found += [Family(name, 2)] if blocks > 1 else []
        elif name != "gpipe" or "1f1b" not in names:
            found.append(Family(name))
    of_one_stage = {"1f1b", PUBLISHED} & set(names)
    return found if of_one_stage else [Family("1f1b", alone=True), *found]
