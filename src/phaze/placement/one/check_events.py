"""The events of a pipeline for the checker: run by what is ready, without the kernels of the simulation."""

from collections.abc import Sequence


def run_events(passes: Sequence[tuple[float, float]], rounds: int, chunks: int, all_ahead: bool) -> float:
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
        for at, (k, c) in enumerate(turns):
            work.append((1, k, (chunks - 1 - c) * count + i))
            work += [(0, later, d * count + i) for later, d in turns[ahead + at : ahead + at + 1]]
        lists.append(work)
    done: dict[tuple[int, int, int], float] = {}
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
                position[i], moved = position[i] + 1, True
    return max(free)
