"""Does a plan document tell the truth? Everything it says is computed again here, from the rules alone.

Shares no code with solver or pricing: a stage's walk is the closed form of the rules (the greatest of the sums behind
each late edge), sums are exact (``fsum``), and the events are run by a queue of what is ready. Optimality is not
checked, only that the bound does not exceed the batch time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from phaze.placement.problem import ROUNDING, Edge, LayerGraph, Problem

TOLERANCE = 1e-9
MOST_EVENTS = 400_000


@dataclass(frozen=True, slots=True)
class _Truth:
    forward_s: float
    backward_s: float
    devices: int
    terms: dict[str, float]
    own_s: tuple[float, float]


def _same(said: Any, true: float) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and abs(said - true) <= TOLERANCE * abs(true)


def _late(seconds: list[float], edges: Sequence[tuple[int, float]], floor_s: float) -> float:
    """The greatest of ``floor_s`` and, for each edge (position k, arrival), arrival + seconds[k] + ... to the end."""
    return max([floor_s, *(arrival_s + fsum(seconds[k:]) for k, arrival_s in edges)])


def _truth(problem: Problem, graph: LayerGraph, ids: set[int], again: bool, number: int) -> _Truth:
    order = [i for i, layer in enumerate(graph.layers) if layer.id in ids]
    position = {layer: k for k, layer in enumerate(order)}
    own = [graph.layers[i] for i in order]
    link, n = problem.link_bytes_per_s, len(order)
    into = [e for e in graph.edges if e.head in position and e.tail not in position]
    out = [e for e in graph.edges if e.tail in position and e.head not in position]
    forward = [layer.forward_s for layer in own]
    backward = [layer.backward_s for layer in reversed(own)]
    ahead_s, behind_s = fsum(forward), fsum(backward)
    weights, kept = fsum(la.parameter_bytes for la in own), fsum(la.activation_bytes for la in own)
    flying = fsum(e.size_bytes for e in into) if again else kept
    terms = {"parameters": weights, "gradients": weights, "activations": kept, "in_flight": (number - 1) * flying}
    terms |= {"optimizer": weights if problem.optimizer == "adam" else 0.0, "reserve": 0.0}
    return _Truth(
        forward_s=_late(forward, [(position[e.head], e.size_bytes / link) for e in into], ahead_s),
        backward_s=_late(
            backward,
            [(n - 1 - position[e.tail], e.size_bytes / link) for e in out],
            behind_s + (ahead_s if again else 0.0),
        ),
        devices=graph.width if any(layer.sharded for layer in own) else 1,
        terms=terms,
        own_s=(ahead_s, behind_s),
    )


def run_events(stages: Sequence[tuple[float, float]], rounds: int, all_ahead: bool = False) -> float:
    """End of 1F1B, or with all forwards ahead of GPipe, by running whatever is ready: each stage (forward, backward)
    has a fixed list of what it runs."""
    count = len(stages)
    lists = []
    for i in range(count):
        ahead = rounds if all_ahead else min(rounds, count - i)
        work = [(0, k) for k in range(ahead)]
        for k in range(rounds):
            work.append((1, k))
            if ahead + k < rounds:
                work.append((0, ahead + k))
        lists.append(work)
    done: dict[tuple[int, int, int], float] = {}
    at, free = [0] * count, [0.0] * count
    ready = [0]
    while ready:
        i = ready.pop()
        while at[i] < 2 * rounds:
            which, k = lists[i][at[i]]
            needs = (0, i - 1, k) if which == 0 and i > 0 else (1, i + 1, k) if which == 1 and i < count - 1 else None
            if needs is not None and needs not in done:
                break
            start = free[i] if needs is None else max(free[i], done[needs])
            free[i] = start + stages[i][which]
            done[which, i, k] = free[i]
            at[i] += 1
            ready += [j for j in (i - 1, i + 1) if 0 <= j < count]
    return max(free)


def run_pieces(stages: Sequence[tuple[float, float]], rounds: int, chunks: int) -> float:
    """End of interleaved 1F1B, by running whatever is ready; chunk c of stage i is place c S + i of a longer line."""
    count, places = len(stages), len(stages) * chunks
    turns = [(k, c) for g in range(0, rounds, count) for c in range(chunks) for k in range(g, g + count)]
    lists = []
    for i in range(count):
        ahead = min(len(turns), 2 * (count - 1 - i) + (chunks - 1) * count + 1)
        work = [(0, k, c * count + i) for k, c in turns[:ahead]]
        for at, (k, c) in enumerate(turns):
            work.append((1, k, (chunks - 1 - c) * count + i))
            work += [(0, later, d * count + i) for later, d in turns[ahead + at : ahead + at + 1]]
        lists.append(work)
    done: dict[tuple[int, int, int], float] = {}
    at_, free, moved = [0] * count, [0.0] * count, True
    while moved:
        moved = False
        for i in range(count):
            while at_[i] < len(lists[i]):
                which, k, place = lists[i][at_[i]]
                needs = (0, k, place - 1) if which == 0 else (1, k, place + 1) if place < places - 1 else (0, k, place)
                if needs[2] >= 0 and needs not in done:
                    break
                free[i] = max(free[i], done.get(needs, 0.0)) + stages[i][which] / chunks
                done[which, k, place] = free[i]
                at_[i], moved = at_[i] + 1, True
    return max(free)


def _stage_objections(problem: Problem, index: int, said: Mapping[str, Any], true: _Truth) -> list[str]:
    found = []
    pairs = {
        "forward_s": true.forward_s,
        "backward_s": true.backward_s,
        "time_s": true.forward_s + true.backward_s,
        "memory_bytes": fsum(true.terms.values()),
        "devices": true.devices,
    }
    for name, value in pairs.items():
        if not _same(said.get(name), value):
            found.append(f"stages[{index}].{name} is {said.get(name)!r} and should be {value!r}")
    for name, value in true.terms.items():
        if not _same(said.get("memory", {}).get(name), value):
            found.append(f"stages[{index}].memory.{name} should be {value!r}")
    if pairs["memory_bytes"] > problem.hbm_bytes * (1 + ROUNDING + TOLERANCE):
        found.append(f"stages[{index}] needs {pairs['memory_bytes']!r} bytes and there are {problem.hbm_bytes!r}")
    return found


def _structure_objections(problem: Problem, graph: LayerGraph, document: Mapping[str, Any]) -> list[str]:
    stages: list[dict[str, Any]] = document["stages"]
    placed = [id_ for stage in stages for id_ in stage["layers"]]
    if sorted(placed) != sorted(layer.id for layer in graph.layers) or any(not s["layers"] for s in stages):
        return ["the stages do not hold every layer once, or one is empty"]
    owner = {id_: i for i, stage in enumerate(stages) for id_ in stage["layers"]}
    rank = {layer.id: i for i, layer in enumerate(graph.layers)}
    found = [
        f"the edge from {graph.layers[e.tail].id} to {graph.layers[e.head].id} runs backwards"
        for e in graph.edges
        if _backwards(e, graph, owner)
    ]
    for i, stage in enumerate(stages):
        allowed = {"none": ("none",), "full": ("full",), "best": ("none", "full")}[problem.recompute]
        if stage["recompute"] not in (("none",) if i == len(stages) - 1 else allowed):
            found.append(f"stages[{i}].recompute is {stage['recompute']!r}")
        if [rank[id_] for id_ in stage["layers"]] != sorted(rank[id_] for id_ in stage["layers"]):
            found.append(f"stages[{i}].layers are not in the order in which they run")
    if document["pipeline"] != len(stages):
        found.append(f"pipeline is {document['pipeline']!r} and there are {len(stages)} stages")
    return found


def _backwards(edge: Edge, graph: LayerGraph, owner: Mapping[int, int]) -> bool:
    return owner[graph.layers[edge.tail].id] > owner[graph.layers[edge.head].id]


def _whole_objections(problem: Problem, document: Mapping[str, Any], stages: Sequence[_Truth]) -> list[str]:
    data, count, found = document["data"], len(stages), []
    rounds = -(-problem.microbatches // data)
    longest = max(stages, key=lambda stage: stage.forward_s + stage.backward_s)
    longest_s = longest.forward_s + longest.backward_s
    sync_s = 4 * (data - 1) * stages[0].terms["parameters"] / (data * problem.link_bytes_per_s)
    batch_s = longest_s * (rounds + count - 1) + sync_s
    if not _same(document["batch_s"], batch_s):
        found.append(f"batch_s is {document['batch_s']!r} and should be {batch_s!r}")
    if not 0 <= document["lower_bound_s"] <= batch_s * (1 + TOLERANCE):
        found.append(f"lower_bound_s {document['lower_bound_s']!r} exceeds the batch time")
    if sum(stage.devices for stage in stages) > problem.devices // data:
        found.append("the copies take more devices than there are")
    if not 0 < document["simulated_s"] <= batch_s * (1 + TOLERANCE) and batch_s > 0:
        found.append(f"simulated_s {document['simulated_s']!r} is out of range")
    if 2 * rounds * count <= MOST_EVENTS:
        end_s = run_events([(stage.forward_s, stage.backward_s) for stage in stages], rounds) + sync_s
        if not _same(document["simulated_s"], end_s):
            found.append(f"simulated_s is {document['simulated_s']!r} and should be {end_s!r}")
    return found + _breakdown_objections(document, stages, (longest_s, sync_s, rounds))


def _breakdown_objections(
    document: Mapping[str, Any], stages: Sequence[_Truth], whole: tuple[float, float, int]
) -> list[str]:
    longest_s, sync_s, rounds = whole
    said: dict[str, float] = document["breakdown"]
    names = {"forward_s", "backward_s", "recompute_s", "transfer_s", "bubble_s", "synchronisation_s"}
    others = set(said) - names
    if not names <= set(said) or others != {"optimizer_s", "tied_s"} or any(said[name] for name in others):
        return [f"breakdown should have {sorted(names)}, and nothing for optimizer_s and tied_s"]
    found = []
    if abs(fsum(said.values()) - document["batch_s"]) > TOLERANCE * abs(document["batch_s"]):
        found.append("breakdown does not sum to batch_s")
    for name, value in (("bubble_s", longest_s * (len(stages) - 1)), ("synchronisation_s", sync_s)):
        if not _same(said[name], value):
            found.append(f"breakdown.{name} should be {value!r}")
    slowest = [i for i, t in enumerate(stages) if _same(t.forward_s + t.backward_s, longest_s)]
    own = [(stages[i].own_s, document["stages"][i]["recompute"] == "full") for i in slowest]
    expected = [(rounds * f, rounds * b, rounds * f if again else 0.0) for (f, b), again in own]
    given = (said["forward_s"], said["backward_s"], said["recompute_s"])
    if not any(all(map(_same, given, terms)) for terms in expected):
        found.append("breakdown does not show the slowest stage")
    return found


def objections(problem: Problem, document: Mapping[str, Any]) -> list[str]:
    """Everything that a feasible ``phaze.plan/1`` of ``problem`` says and that is not so; empty if it is right."""
    if document.get("schema") != "phaze.plan/1" or document.get("feasible") is not True:
        return ["the document is not a feasible plan"]
    if document["tensor"] not in [graph.width for graph in problem.graphs]:
        return [f"width {document['tensor']!r} is not in the problem"]
    if type(document["data"]) is not int or not 1 <= document["data"] <= min(problem.devices, problem.microbatches):
        return [f"data {document['data']!r} is out of range"]
    graph = problem.graph(document["tensor"])
    found = _structure_objections(problem, graph, document)
    if found:
        return found
    said, count = document["stages"], len(document["stages"])
    true = [
        _truth(problem, graph, set(stage["layers"]), stage["recompute"] == "full", count - i)
        for i, stage in enumerate(said)
    ]
    for i, (stage, right) in enumerate(zip(said, true, strict=True)):
        found += _stage_objections(problem, i, stage, right)
    return found + _whole_objections(problem, document, true)
