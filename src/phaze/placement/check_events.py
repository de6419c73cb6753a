"""The events of a pipeline for the checker: run by what is ready, without the kernels of the simulation."""

from collections.abc import Sequence
from math import fsum

from phaze.placement.check_split import Passes, run_split_events

# Running more events than this takes seconds; a document's simulation of more must lie within what is proved.
MOST_EVENTS = 400_000


def events_range(
    passes: Sequence[tuple[float, float]],
    rounds: int,
    chunks: int,
    all_ahead: bool,
    split: tuple[str, Passes] | None = None,
    sent: Sequence[tuple[float, float]] = (),
) -> tuple[float, float]:
    """The least and the most that the end of the last event can be; the same where it is known.

    The slowest stage is busy for m max T, and some stage runs at any time, so the end is at most m sum T; without
    chunks it is at most (m + S - 1) max T, and with all forwards ahead (m - 1)(max F + max R) + sum T (placement.md).
    ``split``: the family and passes of backward passes in two; ``sent``: transfers into every stage that run behind
    other chunks, of either pass: then some stage or channel works at any time.
    """
    times = [forward + backward for forward, backward in passes]
    moved_s = fsum(fsum(own) for own in sent)
    if split is not None:
        if 3 * rounds * len(passes) * chunks > MOST_EVENTS:
            return rounds * max(times), rounds * fsum(times)
        end_s = run_split_events(*split, rounds, chunks)
        return end_s, end_s
    if 2 * rounds * len(passes) * chunks <= MOST_EVENTS:
        end_s = run_events(passes, rounds, chunks, all_ahead, sent)
        return end_s, end_s
    if all_ahead:
        pace_s = max(forward for forward, _ in passes) + max(backward for _, backward in passes)
        return (rounds - 1) * pace_s + fsum(times), (rounds - 1) * pace_s + fsum(times)
    most_s = rounds * (fsum(times) + moved_s) if chunks > 1 else (rounds + len(passes) - 1) * max(times)
    return rounds * max(times), most_s


def run_events(
    passes: Sequence[tuple[float, float]],
    rounds: int,
    chunks: int,
    all_ahead: bool,
    sent: Sequence[tuple[float, float]] = (),
) -> float:
    """End of the last event, by running whatever is ready; chunk c of stage i is place c S + i of a longer line.

    Stage i has a fixed list of what it runs: so many forwards ahead (all of them under GPipe), then backward and
    forward in turn; as many microbatches as there are stages pass one chunk after the other.
    """
    count, places = len(passes), len(passes) * chunks
    groups = [range(g, min(rounds, g + count)) for g in range(0, rounds, count)]
    turns = [(k, c) for group in groups for c in range(chunks) for k in group]
    lists = []
    for i in range(count):
        lead = 2 * (count - 1 - i) + (chunks - 1) * count + 1 if chunks > 1 else count - i
        ahead = len(turns) if all_ahead else min(len(turns), lead)
        work = [(0, k, c * count + i) for k, c in turns[:ahead]]
        for index, (k, c) in enumerate(turns):
            work.append((1, k, (chunks - 1 - c) * count + i))
            work += [(0, later, d * count + i) for later, d in turns[ahead + index : ahead + index + 1]]
        lists.append(work)
    done: dict[tuple[int, int, int], float] = {}
    line: dict[tuple[int, int], float] = {}
    position, free, moved = [0] * count, [0.0] * count, True
    while moved:
        moved = False
        for i in range(count):
            while position[i] < len(lists[i]):
                which, k, place = lists[i][position[i]]
                needs = (0, k, place - 1) if which == 0 else (1, k, place + 1) if place < places - 1 else (0, k, place)
                if needs[2] >= 0 and needs not in done:
                    break
                free[i] = max(free[i], done.get(needs, 0.0)) + passes[i][which] / chunks
                done[which, k, place] = free[i]
                to = (place - 1 if which else place + 1) % count
                if sent and 0 <= (place - 1 if which else place + 1) < places:
                    around = to == 0 if which == 0 else to == count - 1
                    begin = max(free[i], line.get((which, i), 0.0))
                    line[which, i] = done[which, k, place] = begin + sent[to][which] / (chunks - around)
                position[i], moved = position[i] + 1, True
    return max(free)
