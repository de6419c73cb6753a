"""The events of a pipeline: every stage runs a fixed list of passes, each as soon as what it needs
is there.

Lists are written as words: ``F0`` is the next forward of the first chunk of a stage, ``B1`` the
next gradients of the inputs of its second one, ``W1`` their weights' gradients, ``D1`` both in one,
``w`` the weights' gradients that wait longest. Words joined by + start together and deliver
together. A microbatch goes through places 0 to S v - 1: chunk c of stage i is place c S + i, or in
a V 2 S - 1 - i for the second chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from .families import Family

MOST_EVENTS = 20_000
"""Running so many takes 40 ms; of more it is only checked that they end within what is proved."""
NEVER = -1.0
"""What has not been delivered."""
Passes = Sequence[tuple[float, float, float]]
"""Seconds of F, B and W of every stage."""


def _turns(count: int, rounds: int, chunks: int) -> list[int]:
    """Chunks in the order in which forwards run: as many microbatches as there are stages pass one
    after the other."""
    found = list[int]()
    for start in range(0, rounds, count):
        size = min(count, rounds - start)
        for chunk in range(chunks):
            found += [chunk] * size
    return found


def _alternating(family: Family, stage: int, count: int, rounds: int) -> list[str]:
    """So many forwards ahead, all of them under GPipe, then backward and forward in turn."""
    chunks, turns = family.chunks, _turns(count, rounds, family.chunks)
    lead = count - stage if chunks == 1 else 2 * (count - 1 - stage) + (chunks - 1) * count + 1
    ahead = len(turns) if family.apart else min(len(turns), lead)
    words = [f"F{chunk}" for chunk in turns[:ahead]]
    for index, chunk in enumerate(turns):
        words.append(f"D{chunks - 1 - chunk}")
        words += [f"F{later}" for later in turns[ahead + index : ahead + index + 1]]
    return words


def _zero_bubble(stage: int, count: int, rounds: int, chunks: int) -> list[str]:
    """Forward and gradients of inputs in turn; those of weights come as many backwards later as
    stages are before."""
    turns = _turns(count, rounds, chunks)
    ahead = min(len(turns), chunks * count - 1 - stage)
    words = [f"F{chunk}" for chunk in turns[:ahead]]
    for index, chunk in enumerate(turns):
        words += [f"F{later}" for later in turns[ahead + index : ahead + index + 1]]
        words.append(f"B{chunks - 1 - chunk}")
        words += ["w"] if index >= stage else []
    return words + ["w"] * min(stage, len(turns))


def _zb_v(stage: int, count: int, rounds: int) -> list[str]:
    after = count - stage
    words = ["F0"] * (2 * after - 1) + ["F1", "F0"] * stage + ["F1", "B1", "W1"] * after
    ahead = rounds - 2 * count + stage + 1
    for turn in range(rounds - count):
        words += (["F0"] if turn < ahead else []) + ["B0", "W0", "F1", "B1", "W1"]
    return words + ["B0", "B1"] * stage + ["B0", "W0"] * after + ["W1"] * stage + ["W0"] * stage


def _dualpipe_v(stage: int, count: int, rounds: int) -> list[str]:
    after = count - stage - 1
    words = ["F0"] * (2 * after) + ["F0", "F1"] * (stage + 1) + ["B1", "w", "F1"] * after
    main = ["F0+D1", "F1+D0"] * (rounds - 2 * count + stage + 1)
    words += ["F0", "D1", *main[1:]] if after == 0 else main
    words += ["D1", "F1+D0"] * after
    last = ["1", "0"] * (stage + 1)
    words += [f"{'D' if k <= stage else 'B'}{chunk}" for k, chunk in enumerate(last)]
    return words + ["w", "B0"] * after + ["w"] * (stage + 1)


def words_of(family: Family, stage: int, count: int, rounds: int) -> list[str]:
    """What a stage runs, in order."""
    if family.name == "zb-v":
        return _zb_v(stage, count, rounds)
    if family.name == "dualpipe-v":
        return _dualpipe_v(stage, count, rounds)
    if family.split:
        return _zero_bubble(stage, count, rounds, family.chunks)
    return _alternating(family, stage, count, rounds)


Step = tuple[list[int], list[int], float]
"""A word of a list: events that must have been delivered, events that it delivers, its seconds."""


@dataclass(frozen=True, slots=True)
class _Line:
    """The places of a pipeline; an event is F or B of a microbatch at a place, by number."""

    family: Family
    count: int
    rounds: int

    @property
    def places(self) -> int:
        return self.count * self.family.chunks

    def place(self, stage: int, chunk: int) -> int:
        return (
            2 * self.count - 1 - stage
            if self.family.folded and chunk
            else chunk * self.count + stage
        )

    def _pass(self, what: str, place: int) -> tuple[int, int]:
        """The first event that a pass at a place makes, and the first that it needs, -1 for none;
        those of the k-th microbatch are k further."""
        forward, backward = place * self.rounds, (self.places + place) * self.rounds
        if what == "F":
            return forward, forward - self.rounds if place else -1
        return backward, forward if place == self.places - 1 else backward + self.rounds

    def steps(self, stage: int, seconds: tuple[float, float, float]) -> list[Step]:
        """The list of a stage. Gradients of weights wait for a pass of their own stage, which is
        before them in it."""
        forward, back, weight = (own / self.family.chunks for own in seconds)
        each = {"F": forward, "B": back, "W": weight, "D": back + weight, "w": weight}
        words, found = words_of(self.family, stage, self.count, self.rounds), list[Step]()
        meaning = dict[str, tuple[list[tuple[int, int]], float]]()
        for word in set(words):
            parts = word.split("+")
            passes = [
                self._pass(part[0], self.place(stage, int(part[1:])))
                for part in parts
                if part[0] not in "wW"
            ]
            meaning[word] = passes, sum(each[part[0]] for part in parts)
        done = {first: 0 for passes, _ in meaning.values() for first, _ in passes}
        for word in words:
            passes, total = meaning[word]
            makes = [first + done[first] for first, _ in passes]
            needs = [needed + done[first] for first, needed in passes if needed >= 0]
            found.append(([need for need in needs if need not in makes], makes, total))
            for first, _ in passes:
                done[first] += 1
        return found

    def channel(self, event: int, sent: Sequence[tuple[float, float]]) -> tuple[int, float] | None:
        """Where the result of an event is sent, and for how long; None where it goes nowhere."""
        which, place = divmod(event // self.rounds, self.places)
        target = place - 1 if which else place + 1
        if not 0 <= target < self.places:
            return None
        stage, to = place % self.count, target % self.count
        around = to == (self.count - 1 if which else 0)
        return 2 * stage + which, sent[to][which] / (self.family.chunks - around)


def run_events(
    family: Family, passes: Passes, rounds: int, sent: Sequence[tuple[float, float]] = ()
) -> float:
    """When the last event ends, by running whatever is ready; ``sent``: transfers into every stage,
    of either pass, that run behind other chunks, one after the other on the channel of a stage."""
    line = _Line(family, len(passes), rounds)
    lists = [line.steps(stage, seconds) for stage, seconds in enumerate(passes)]
    there = [NEVER] * (2 * line.places * rounds)
    free, busy, position = [0.0] * len(passes), [0.0] * (2 * len(passes)), [0] * len(passes)
    moved = True
    while moved:
        moved = False
        for stage, steps in enumerate(lists):
            at, now = position[stage], free[stage]
            while at < len(steps):
                needs, makes, seconds = steps[at]
                arrivals = [there[need] for need in needs]
                if NEVER in arrivals:
                    break
                now = max(now, *arrivals, 0.0) + seconds
                for event in makes:
                    there[event] = now
                    channel = line.channel(event, sent) if sent else None
                    if channel is not None:
                        busy[channel[0]] = max(now, busy[channel[0]]) + channel[1]
                        there[event] = busy[channel[0]]
                at += 1
            moved |= at > position[stage]
            position[stage], free[stage] = at, now
    return max(free)


def events_range(
    family: Family, passes: Passes, rounds: int, sent: Sequence[tuple[float, float]] = ()
) -> tuple[float, float]:
    """The least and the most that the end of the last event can be; the same where it is known.

    The slowest stage is busy for m max T, and some stage or channel works at any time; without
    chunks it ends by (m + S - 1) max T, and with all forwards ahead at (m - 1)(max F + max R) + sum
    T (docs/placement.md).
    """
    times, count = [fsum(own) for own in passes], len(passes)
    if (3 if family.split else 2) * rounds * count * family.chunks <= MOST_EVENTS:
        end = run_events(family, passes, rounds, sent)
        return end, end
    if family.apart:
        pace = max(forward for forward, _, _ in passes) + max(
            back + weight for _, back, weight in passes
        )
        end = (rounds - 1) * pace + fsum(times)
        return end, end
    if family.split or family.chunks > 1:
        return rounds * max(times), rounds * (fsum(times) + fsum(fsum(own) for own in sent))
    return rounds * max(times), (rounds + count - 1) * max(times)
