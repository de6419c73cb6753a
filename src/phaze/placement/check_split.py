"""Families of split backward passes for the checker: what they hold, wait for and count, and their events.

Lists of passes are written out as words: ``F0`` is the next forward of the first chunk of a stage, ``B1`` the next
gradients of the inputs of its second one, ``W1`` their weights' gradients, ``D1`` both in one, ``w`` the weights'
gradients that wait longest. Words joined by + start together and deliver together.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

# Seconds of F, B and W of every stage.
Passes = Sequence[tuple[float, float, float]]
NAMES = ("zb-h1", "zb-interleaved", "zb-v", "dualpipe-v")
FOLDED = ("zb-v", "dualpipe-v")


class Stated(Protocol):
    """A family as the rules state it."""

    @property
    def name(self) -> str: ...
    @property
    def flying(self) -> str: ...
    @property
    def chunks(self) -> int: ...


def held_at(family: Stated, stage: int, count: int, rounds: int) -> float:
    """Microbatches that a stage, from the first, holds at once."""
    if family.flying == "all":
        return float(rounds)
    pieces = 2 * (count - stage) - 1 + (family.chunks - 1) * count
    held = count - stage if family.chunks == 1 else pieces / family.chunks
    if family.name in NAMES:
        held = count + 0.5 if family.name == "dualpipe-v" else float(count)
    return held if family.flying == "number" else min(float(rounds), held)


def fewest_rounds(name: str, count: int) -> int:
    """The fewest microbatches of a replica."""
    return 2 * count if name in FOLDED else count if name in NAMES else 0


def fill_s(name: str, chunks: int, passes: Passes) -> float:
    """What filling and emptying the pipeline takes: S - 1 times the mean D."""
    count, total = len(passes), 0.0
    for f, b, w in passes:
        if name not in FOLDED:
            most = (count - 1) * max(f, b, f + b - w)
        elif name == "dualpipe-v":
            most = (count - 1) * max(0.0, b - w) + max(2 * (count - 1) * f, (count - 2) * f + (count - 1) * b)
        else:
            # One stage of them all waits for what comes first in each pair.
            least = count - 2
            ends = [(b, b), (2 * b - 2 * w, 2 * b - 2 * w), (b, w), (f, w), (f, 2 * f - b), (2 * f - b - w, 2 * f - b)]
            ends += [(f + b - 2 * w, 2 * f - 2 * w), (2 * f - 3 * w, 2 * f - 2 * w)]
            most = max(one + least * other for one, other in ends)
        total += most / chunks
    return total / count if count > 1 else 0.0


def _looped(stage: int, count: int, rounds: int, chunks: int) -> list[str]:
    """Chunks in turn, as many microbatches as there are stages at a time."""
    turns = [
        c for start in range(0, rounds, count) for c in range(chunks) for _ in range(start, min(rounds, start + count))
    ]
    ahead = min(len(turns), (chunks - 1) * count + count - 1 - stage)
    words = [f"F{c}" for c in turns[:ahead]]
    for k, c in enumerate(turns):
        words += [f"F{turns[ahead + k]}"] if ahead + k < len(turns) else []
        words += [f"B{chunks - 1 - c}"] + (["w"] if k >= stage else [])
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


def words_of(name: str, stage: int, count: int, rounds: int, chunks: int) -> list[str]:
    """What a stage runs, in order."""
    if name == "zb-v":
        return _zb_v(stage, count, rounds)
    if name == "dualpipe-v":
        return _dualpipe_v(stage, count, rounds)
    return _looped(stage, count, rounds, chunks)


Event = tuple[str, int, int]


def _events(name: str, stage: int, count: int, rounds: int, chunks: int) -> list[list[Event]]:
    """The groups of a stage's list, each of (pass, place in the line, microbatch)."""
    folded, waiting, groups = name in FOLDED, deque[Event](), []
    done: dict[str, int] = {}
    for word in words_of(name, stage, count, rounds, chunks):
        group: list[Event] = []
        for part in word.split("+"):
            if part == "w":
                group.append(("W", *waiting.popleft()[1:]))
                continue
            what, chunk = part[0], int(part[1:])
            place = 2 * count - 1 - stage if folded and chunk else chunk * count + stage
            counter = f"{'B' if what == 'D' else what}{chunk}"
            one = done[counter] = done.get(counter, -1) + 1
            if what == "D":
                group += [("B", place, one), ("W", place, one)]
                done[f"W{chunk}"] = one
            else:
                group.append((what, place, one))
            if what == "B":
                waiting.append(("B", place, one))
            if what == "W":
                waiting.remove(("B", place, one))
        groups.append(group)
    return groups


def _needs(event: Event, places: int) -> Event | None:
    what, place, one = event
    if what == "F":
        return ("F", place - 1, one) if place else None
    if what == "W":
        return ("B", place, one)
    return ("B", place + 1, one) if place < places - 1 else ("F", place, one)


def run_split_events(name: str, passes: Passes, rounds: int, chunks: int) -> float:
    """End of the last event, by running whatever is ready."""
    count = len(passes)
    lists = [deque(_events(name, stage, count, rounds, chunks)) for stage in range(count)]
    done, free, moved = dict[Event, float](), [0.0] * count, True
    while moved:
        moved = False
        for stage, groups in enumerate(lists):
            while groups:
                group = groups[0]
                needs = [need for event in group if (need := _needs(event, count * chunks)) and need not in group]
                if any(need not in done for need in needs):
                    break
                seconds = [passes[stage]["FBW".index(what)] / chunks for what, _, _ in group]
                free[stage] = max([free[stage], *(done[need] for need in needs)]) + sum(seconds)
                done |= dict.fromkeys(group, free[stage])
                groups.popleft()
                moved = True
    return max(free)
