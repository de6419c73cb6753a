"""Does a plan document under rules ``cluster`` tell the truth? Everything it says is computed again, from the rules.

Shares no code with solver, pricing or layout (events are run as in ``check.py``, groups found in
``cluster_check_layout.py``): sums are exact (``fsum``). What a transfer or a collective costs is an input, as
it is for the solver.
"""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phaze.placement.check import MOST_EVENTS, run_events, run_pieces
from phaze.placement.cluster_check_layout import copies_met, crossed_level
from phaze.placement.cluster_problem import ClusterProblem, Extra
from phaze.placement.problem import ROUNDING, LayerGraph

TOLERANCE = 1e-9

Floats = npt.NDArray[np.float64]


class Priced(Protocol):
    """What the prices of the problem can tell."""

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """An all-reduce, of each size."""

    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """A gather, of each size in all."""

    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats:
        """A message across a level, of each size."""


def _same(said: Any, true: float) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and abs(said - true) <= TOLERANCE * abs(true)


def _pieces(document: Mapping[str, Any]) -> int:
    """Chunks of a stage."""
    return int(document.get("chunks", 1))


def _stage_sums(graph: LayerGraph, extras: Sequence[Extra], stage: Mapping[str, Any]) -> dict[str, float]:
    ids, mode = set(stage["layers"]), stage["recompute"]
    own = [(i, la, ex) for i, (la, ex) in enumerate(zip(graph.layers, extras, strict=True)) if la.id in ids]
    kept, again = [], []
    for i, layer, extra in own:
        if mode == "full":
            kept.append(fsum(edge.size_bytes for edge in graph.edges if edge.head == i))
            again.append(extra.full_s if extra.full_s is not None else layer.forward_s)
        elif mode == "selective" and extra.selective_bytes is not None:
            kept.append(extra.selective_bytes)
            again.append(extra.selective_s)
        else:
            kept.append(layer.activation_bytes)
    names = [extra.tied for _, _, extra in own if extra.tied is not None]
    twice = fsum(ex.tied_bytes for _, _, ex in own if ex.tied is not None)
    once = fsum(next(ex.tied_bytes for _, _, ex in own if ex.tied == name) for name in set(names))
    return {
        "forward": fsum(layer.forward_s for _, layer, _ in own),
        "backward": fsum(layer.backward_s for _, layer, _ in own),
        "again": fsum(again),
        "parameters": fsum(layer.parameter_bytes for _, layer, _ in own) - twice + once,
        "largest": max(layer.parameter_bytes for _, layer, _ in own),
        "kept": fsum(kept),
        "live": max([0.0, *(la.activation_bytes - k for (_, la, _), k in zip(own, kept, strict=True))]),
    }


def _moves(problem: ClusterProblem, graph: LayerGraph, document: Mapping[str, Any], prices: Priced) -> list[float]:
    """Seconds at every boundary for a microbatch, in all its pieces; first and last the way round from end to begin."""
    owner = {id_: i for i, stage in enumerate(document["stages"]) for id_ in stage["layers"]}
    lanes = document["tensor"] if problem.stack.scatter_gather else 1
    pieces, found, sizes, levels = _pieces(document), [], [], []
    for boundary in range(len(document["stages"]) - 1):
        over = [
            edge.size_bytes
            for edge in graph.edges
            if owner[graph.layers[edge.tail].id] <= boundary < owner[graph.layers[edge.head].id]
        ]
        sizes.append(fsum(over) / lanes)
        levels.append(crossed_level(problem, document, boundary))
        found.append(pieces * float(prices.transfer_s(levels[-1], np.array([sizes[-1]]))[0]))
    back_s = 0.0
    if pieces > 1 and sizes:
        back_s = (pieces - 1) * float(prices.transfer_s(max(levels), np.array([max(sizes)]))[0])
    return [back_s, *found, back_s]


def _waits(
    problem: ClusterProblem, document: Mapping[str, Any], stage: Mapping[str, Any], prices: Priced
) -> tuple[float, float]:
    """Collectives over copies for each microbatch of a stage, forward and backward."""
    if problem.zero < 2:
        return 0.0, 0.0
    graph, ids = problem.graph(document["tensor"])[0], set(stage["layers"])
    sizes = np.array([layer.parameter_bytes for layer in graph.layers if layer.id in ids])
    one = fsum(prices.gather_s(copies_met(problem, document), sizes).tolist())
    return (0.0, one) if problem.zero == 2 else (one, one + one)


def _with_waits(problem: ClusterProblem, work: float, wait: float) -> float:
    """Work with what it does not hide of the collectives beside it."""
    return work + wait - min(problem.stack.hidden_synchronisation * wait, work)


def _ends(
    problem: ClusterProblem, document: Mapping[str, Any], weights: Sequence[float], prices: Priced
) -> list[list[float]]:
    data = document["data"]
    collective = prices.gather_s if problem.zero == 2 else prices.all_reduce_s
    share = 0.0 if problem.zero == 3 else 1 - problem.stack.hidden_synchronisation
    shown = share * collective(copies_met(problem, document), np.array(weights))
    ends = []
    for sync_s, weight in zip(shown.tolist(), weights, strict=True):
        step_s = 0.0
        if problem.hbm_bytes_per_s is not None:
            moved = weight / problem.sent_bytes * problem.stack.optimizer_traffic_bytes
            step_s = moved / problem.hbm_bytes_per_s / (data if problem.zero else 1)
        ends.append([sync_s, step_s])
    return ends


def _tied(problem: ClusterProblem, graph: LayerGraph, document: Mapping[str, Any], prices: Priced) -> float:
    extras = problem.graph(document["tensor"])[1]
    owner = {id_: i for i, stage in enumerate(document["stages"]) for id_ in stage["layers"]}
    total = []
    for name in sorted({extra.tied for extra in extras if extra.tied is not None}):
        holders = [owner[la.id] for la, ex in zip(graph.layers, extras, strict=True) if ex.tied == name]
        if len(set(holders)) > 1:
            outer = max(crossed_level(problem, document, i) for i in range(len(document["stages"]) - 1))
            members = tuple(len(holders) if i == outer else 1 for i in range(len(problem.cluster.levels)))
            size = next(ex.tied_bytes for ex in extras if ex.tied == name)
            total.append(float(prices.all_reduce_s(members, np.array([size]))[0]))
    return fsum(total)


def _structure(problem: ClusterProblem, graph: LayerGraph, document: Mapping[str, Any]) -> list[str]:
    stages = document["stages"]
    placed = [id_ for stage in stages for id_ in stage["layers"]]
    if sorted(placed) != sorted(layer.id for layer in graph.layers) or not all(stage["layers"] for stage in stages):
        return ["the stages do not hold every layer once, or one is empty"]
    owner = {id_: i for i, stage in enumerate(stages) for id_ in stage["layers"]}
    rank = {layer.id: i for i, layer in enumerate(graph.layers)}
    found = []
    if any(owner[graph.layers[e.tail].id] > owner[graph.layers[e.head].id] for e in graph.edges):
        found.append("an edge runs backwards")
    if any(stage["recompute"] not in problem.modes for stage in stages):
        found.append("a stage saves in a way that is not allowed")
    if any([rank[id_] for id_ in s["layers"]] != sorted(rank[id_] for id_ in s["layers"]) for s in stages):
        found.append("layers are not in the order in which they run")
    if document["pipeline"] != len(stages) or document["order"] not in ("pipeline", "data"):
        found.append("pipeline or order is wrong")
    if document["tensor"] * document["data"] * len(stages) > problem.devices:
        found.append("the plan takes more devices than there are")
    pieces = document.get("chunks", 1)
    if type(pieces) is not int or pieces < 1 or (pieces > 1 and problem.schedule == "gpipe"):
        found.append("chunks are out of range")
    elif pieces > 1 and -(-problem.microbatches // document["data"]) % len(stages):
        found.append("the microbatches of a copy are no multiple of the stages")
    return found


def _sharded(size: float, counts: tuple[float, float], data: int) -> float:
    """Bytes of all but the largest layer over so many copies, and of the largest in full."""
    parameters, largest = counts
    return size * ((parameters - largest) / data + largest) if data > 1 else size * parameters


def _stage(
    problem: ClusterProblem, said: Mapping[str, Any], true: Mapping[str, float], flying: float, data: int
) -> list[str]:
    count, largest = true["parameters"] / problem.sent_bytes, true["largest"] / problem.sent_bytes
    terms = {
        "parameters": _sharded(problem.state.weight, (count, largest), data if problem.zero > 2 else 1),
        "gradients": _sharded(problem.state.gradient, (count, largest), data if problem.zero > 1 else 1),
        "optimizer": count * problem.state.optimizer / (data if problem.zero else 1),
        "activations": true["kept"] + true["live"],
        "in_flight": (flying - 1) * true["kept"],
        "reserve": problem.stack.reserve_bytes,
    }
    need = fsum(terms.values())
    pairs = {
        "forward_s": true["forward_s"],
        "backward_s": true["backward_s"],
        "time_s": true["forward_s"] + true["backward_s"],
        "memory_bytes": need,
    }
    found = [f"{name} should be {value!r}" for name, value in pairs.items() if not _same(said.get(name), value)]
    found += [f"memory.{name} should be {v!r}" for name, v in terms.items() if not _same(said["memory"].get(name), v)]
    return found


def _flying(problem: ClusterProblem, document: Mapping[str, Any], index: int, rounds: int) -> float:
    """Microbatches in flight at a stage."""
    count, pieces = len(document["stages"]), _pieces(document)
    if problem.schedule == "gpipe":
        return rounds
    return min(rounds, count - index if pieces == 1 else (2 * (count - index) - 1 + (pieces - 1) * count) / pieces)


def _slowest_terms(
    sums: Mapping[str, float], time_s: float, moved_s: float, rounds: int, sync_s: float
) -> dict[str, float]:
    """What the microbatches of a copy take in the slowest stage, by term."""
    waited_s = time_s - fsum([sums["forward"], sums["backward"], sums["again"], moved_s])
    return {
        "forward_s": rounds * sums["forward"],
        "backward_s": rounds * sums["backward"],
        "recompute_s": rounds * sums["again"],
        "transfer_s": rounds * moved_s,
        "synchronisation_s": sync_s + rounds * waited_s,
    }


def _breakdown(said: Mapping[str, float], possible: Sequence[Mapping[str, float]], batch_s: float) -> list[str]:
    """Objections to a breakdown, which must be one of those ``possible``; those to the first if it is none."""
    room = TOLERANCE * batch_s
    if set(said) != set(possible[0]) or abs(fsum(said.values()) - batch_s) > room:
        return ["the breakdown does not sum to the batch time"]
    wrong = [[name for name, value in terms.items() if abs(said[name] - value) > room] for terms in possible]
    if not all(wrong):
        return []
    return [f"breakdown.{name} should be {possible[0][name]!r}" for name in wrong[0]]


def _whole(
    problem: ClusterProblem,
    document: Mapping[str, Any],
    true: Sequence[Mapping[str, float]],
    moves: Sequence[float],
    prices: Priced,
) -> list[str]:
    graph, rounds, found = problem.graph(document["tensor"])[0], -(-problem.microbatches // document["data"]), []
    passes = [(sums["forward_s"], sums["backward_s"]) for sums in true]
    times = [forward + backward for forward, backward in passes]
    sync_s, step_s = max(_ends(problem, document, [sums["parameters"] for sums in true], prices), key=sum)
    tied_s, pace_s = _tied(problem, graph, document, prices), max(times)
    all_ahead, pieces = problem.schedule == "gpipe", _pieces(document)
    if all_ahead:
        pace_s = max(forward for forward, _ in passes) + max(backward for _, backward in passes)
    batch_s = fsum([(rounds - 1 / pieces) * pace_s, fsum(times) / pieces, sync_s, step_s, tied_s])
    # Stages that tie for the slowest differ in the last bits only, and the breakdown may show any one of them.
    slowest = [i for i, seconds in enumerate(times) if _same(seconds, max(times))]
    found += _breakdown(
        document["breakdown"],
        [
            {
                **_slowest_terms(true[i], times[i], moves[i] + moves[i + 1], rounds, sync_s),
                "bubble_s": (fsum(times) - times[i]) / pieces + (rounds - 1) * (pace_s - times[i]),
                "optimizer_s": step_s,
                "tied_s": tied_s,
            }
            for i in slowest
        ],
        batch_s,
    )
    if not _same(document["batch_s"], batch_s):
        found.append(f"batch_s should be {batch_s!r}")
    if not 0 <= document["lower_bound_s"] <= batch_s * (1 + TOLERANCE):
        found.append("lower_bound_s exceeds the batch time")
    if 2 * rounds * len(times) * pieces <= MOST_EVENTS:
        end_s = run_events(passes, rounds, all_ahead) if pieces == 1 else run_pieces(passes, rounds, pieces)
        end_s += sync_s + step_s + tied_s
        if not _same(document["simulated_s"], end_s):
            found.append(f"simulated_s should be {end_s!r}")
    return found


def objections(problem: ClusterProblem, document: Mapping[str, Any], prices: Priced) -> list[str]:
    """Everything that a ``phaze.plan/1`` under rules ``cluster``, fitting or not, says and that is not so."""
    named = (document.get("schema"), document.get("rules"))
    if named != ("phaze.plan/1", "cluster") or type(document.get("feasible")) is not bool or "stages" not in document:
        return ["the document is no plan under rules cluster"]
    tensor, data, stages = document["tensor"], document["data"], document["stages"]
    if (
        tensor not in [g.width for g in problem.graphs]
        or type(data) is not int
        or not 1 <= data <= problem.microbatches
    ):
        return ["tensor or data is out of range"]
    graph, extras = problem.graph(tensor)
    found = _structure(problem, graph, document)
    if found:
        return found
    moves, rounds = _moves(problem, graph, document, prices), -(-problem.microbatches // data)
    true = [_stage_sums(graph, extras, stage) for stage in stages]
    for i, sums in enumerate(true):
        ahead, behind = _waits(problem, document, stages[i], prices)
        sums["forward_s"] = _with_waits(problem, sums["forward"], ahead) + moves[i]
        sums["backward_s"] = _with_waits(problem, sums["again"] + sums["backward"], behind) + moves[i + 1]
        flying = _flying(problem, document, i, rounds)
        found += [f"stages[{i}]: {text}" for text in _stage(problem, stages[i], sums, flying, data)]
        if stages[i]["devices"] != tensor:
            found.append(f"stages[{i}].devices should be {tensor}")
    most = max(stage["memory_bytes"] for stage in stages)
    # A need that differs from the memory by rounding only may be called either.
    band = (problem.hbm_bytes * (1 + ROUNDING - TOLERANCE), problem.hbm_bytes * (1 + ROUNDING + TOLERANCE))
    if (document["feasible"] and most > band[1]) or (not document["feasible"] and most < band[0]):
        found.append(f"feasible is wrong: {most!r} bytes are needed and there are {problem.hbm_bytes!r}")
    return found + _whole(problem, document, true, moves, prices)
