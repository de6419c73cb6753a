"""Does a plan document tell the truth? Everything it says is computed again here, from the problem alone.

Shares no code with solver, pricing or layout: a stage's walk is the closed form of the rules (the greatest of the sums
behind each late edge), sums are exact (``fsum``), levels are found by counting devices, and events are run by what is
ready. What a transfer or a collective costs is an input, as it is for the solver. Optimality is not checked, only that
the bound does not exceed the batch time.
"""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt

from phaze.placement.check_end import batch_end, ranks_of_experts, sharing_ranks
from phaze.placement.check_events import events_range
from phaze.placement.check_layout import Priced, Stated, crossed_level
from phaze.placement.check_split import FOLDED, NAMES, fewest_rounds, fill_s, held_at
from phaze.placement.check_waits import (
    TRANSFERS,
    frozen_bytes,
    most_gathered,
    paced,
    seconds_again,
    untrained_bytes,
    with_waits,
)
from phaze.placement.layers import LayerGraph
from phaze.placement.problem import ROUNDING, Problem

Floats = npt.NDArray[np.float64]
TOLERANCE = 1e-9
"""Sums in another order differ in the last bits; a forged figure by more."""


def _same(said: Any, true: float) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and abs(said - true) <= TOLERANCE * abs(true)


def _late(seconds: list[float], edges: Sequence[tuple[int, float]], least_s: float) -> float:
    """The greatest of ``least_s`` and, for each edge (position k, arrival), arrival + seconds[k] + ... to the end."""
    return max([least_s, *(arrival_s + fsum(seconds[k:]) for k, arrival_s in edges)])


def _stage_sums(stated: Stated, stage: Mapping[str, Any]) -> dict[str, float]:
    """What a stage adds up to: seconds, with edges that arrive inside it, and bytes."""
    graph, rules, mode, ids = stated.graph, stated.problem.rules, stage["recompute"], set(stage["layers"])
    order = [i for i, layer in enumerate(graph.layers) if layer.id in ids]
    position, n = {layer: k for k, layer in enumerate(order)}, len(order)
    layers, extras = [graph.layers[i] for i in order], [stated.extras[i] for i in order]
    inside, apart = rules.stage == "icml24", ranks_of_experts(stated.problem) > 1
    into = [e for e in graph.edges if e.head in position and not (inside and e.tail in position)]
    kept, again = [layer.activation_bytes for layer in layers], list(seconds_again(layers, extras, mode))
    for k, extra in enumerate(extras):
        if mode == "full":
            kept[k] = fsum(e.size_bytes for e in into if position[e.head] == k)
        elif mode == "selective" and extra.selective_bytes is not None:
            kept[k] = extra.selective_bytes
    own = [next((row for row in extra.more if row.name == mode), None) for extra in extras]
    kept = [row.bytes if row else k for row, k in zip(own, kept, strict=True)]
    live = [layer.activation_bytes - k for layer, k in zip(layers, kept, strict=True)]
    lasting = [extra.live_bytes for extra in extras]
    lives = [row.live_bytes if row else max(0.0, left) for row, left in zip(own, live, strict=True)]
    beside = max(left + more for left, more in zip(lives, lasting, strict=True))
    buffers = {(x.kind, -1 if x.kind >= 0 else i): x.buffer_bytes for i, x in zip(order, extras, strict=True)}
    names = {extra.tied: extra.tied_bytes for extra in extras if extra.tied is not None}
    twice = fsum(extra.tied_bytes for extra in extras if extra.tied is not None) - fsum(names.values())
    forward, backward = [layer.forward_s for layer in layers], [layer.backward_s for layer in reversed(layers)]
    ahead_s, behind_s = fsum(forward), fsum(backward) + fsum(again)
    sums = {
        "forward": ahead_s,
        "backward": fsum(backward),
        "again": fsum(again),
        "weight": fsum(layer.weight_s or 0.0 for layer in layers),
        "ahead_s": ahead_s,
        "behind_s": behind_s,
        "parameters": fsum(layer.parameter_bytes for layer in layers) - twice,
        "largest": most_gathered(
            stated, [layer.parameter_bytes - (layer.expert_bytes if apart else 0.0) for layer in layers]
        ),
        "experts": fsum(layer.expert_bytes for layer in layers) if apart else 0.0,
        "most_experts": max(layer.expert_bytes for layer in layers) if apart else 0.0,
        **frozen_bytes(stated, extras),
        "kept": fsum(kept),
        "live": fsum(live) + max(lasting) if inside else beside,
        "buffers": fsum(buffers.values()),
        "devices": graph.width if not rules.unsplit_stages or any(layer.sharded for layer in layers) else 1,
    }
    if inside and rules.link_bytes_per_s is not None:
        link, out = rules.link_bytes_per_s, [e for e in graph.edges if e.tail in position and e.head not in position]
        sums["ahead_s"] = _late(forward, [(position[e.head], e.size_bytes / link) for e in into], ahead_s)
        sums["behind_s"] = _late(backward, [(n - 1 - position[e.tail], e.size_bytes / link) for e in out], behind_s)
    return sums


def _moves(stated: Stated) -> list[float]:
    """Seconds at every boundary for a microbatch, in all its chunks; first and last the way around."""
    chunks, graph, count = stated.family.chunks, stated.graph, stated.count
    if stated.problem.rules.stage != "layers":
        return [0.0] * (count + 1)
    owner = {id_: i for i, stage in enumerate(stated.document["stages"]) for id_ in stage["layers"]}
    lanes = int(stated.document["tensor"]) if stated.problem.scatter_gather else 1

    def seconds(level: int, sizes: Sequence[float]) -> float:
        return float(stated.prices.transfer_s(level, np.array([fsum(sizes) / lanes]))[0])

    levels, found = [crossed_level(stated, boundary) for boundary in range(count - 1)], []
    for boundary, level in enumerate(levels):
        ends = ((owner[graph.layers[e.tail].id], owner[graph.layers[e.head].id], e.size_bytes) for e in graph.edges)
        over = [size for tail, head, size in ends if tail <= boundary < head]
        found.append(chunks * seconds(level, over))
    around_s = 0.0
    if chunks > 1 and stated.family.name not in FOLDED:
        blocks = [i for i, extra in enumerate(stated.extras) if extra.block] or [0, len(stated.extras) - 1]
        cuts = [
            [e.size_bytes for e in graph.edges if e.tail <= at < e.head] for at in range(blocks[0], max(blocks[-1], 1))
        ]
        around_s = (chunks - 1) * seconds(max([0, *levels]), max(cuts, key=fsum, default=[]))
    return [around_s, *found, around_s]


def _tied(stated: Stated) -> float:
    owner = {id_: i for i, stage in enumerate(stated.document["stages"]) for id_ in stage["layers"]}
    total = []
    for name in sorted({extra.tied for extra in stated.extras if extra.tied is not None}):
        holders = [owner[la.id] for la, e in zip(stated.graph.layers, stated.extras, strict=True) if e.tied == name]
        if len(set(holders)) > 1:
            outer = max(crossed_level(stated, boundary) for boundary in range(stated.count - 1))
            members = tuple(len(holders) if i == outer else 1 for i in range(len(stated.problem.cluster.levels)))
            size = next(extra.tied_bytes for extra in stated.extras if extra.tied == name)
            sent = np.array([stated.problem.rules.gradient_wire * size])
            total.append(float(stated.prices.all_reduce_s(members, sent)[0]))
    return fsum(total)


def _stage(stated: Stated, said: Mapping[str, Any], true: Mapping[str, float], flying: float) -> list[str]:
    problem, data = stated.problem, sharing_ranks(stated)
    experts, alike = true["experts"] / problem.sent_bytes, stated.width * stated.data / ranks_of_experts(problem)
    count, largest = true["parameters"] / problem.sent_bytes, true["largest"] / problem.sent_bytes
    most = true["most_experts"] / problem.sent_bytes

    def shared(size: float, spread: bool) -> float:
        """Bytes of all but the largest layer over the ranks that hold the same, and of the largest in full; of dense
        parameters and of experts."""
        if not spread:
            return size * count
        return size * ((count - experts - largest) / data + largest + (experts - most) / max(alike, 1.0) + most)

    terms = {
        "parameters": shared(problem.state.weight, problem.zero > 2) + untrained_bytes(stated, true),
        "gradients": shared(problem.state.gradient, problem.zero > 1) + true["buffers"],
        "optimizer": problem.state.optimizer
        * ((count - experts) / (data if problem.zero else 1) + experts / (alike if problem.zero else 1)),
        "activations": true["kept"] + true["live"],
        "in_flight": (flying - 1) * true["kept"],
        "reserve": problem.reserve_bytes,
    }
    pairs = {
        **{name: true[name] for name in ("forward_s", "backward_s", "time_s")},
        **{name: true[name] for name in TRANSFERS if true[name] or name in said},
        **({"weight_s": true["weight"]} if stated.family.name in NAMES else {}),
        "memory_bytes": fsum(terms.values()),
        "devices": true["devices"],
    }
    found = [f"{name} should be {value!r}" for name, value in pairs.items() if not _same(said.get(name), value)]
    return found + [
        f"memory.{name} should be {v!r}" for name, v in terms.items() if not _same(said["memory"].get(name), v)
    ]


def _structure(problem: Problem, graph: LayerGraph, document: Mapping[str, Any], split: bool) -> list[str]:
    stages = document["stages"]
    placed = [id_ for stage in stages for id_ in stage["layers"]]
    if sorted(placed) != sorted(layer.id for layer in graph.layers) or not all(stage["layers"] for stage in stages):
        return ["the stages do not hold every layer once, or one is empty"]
    owner = {id_: i for i, stage in enumerate(stages) for id_ in stage["layers"]}
    rank = {layer.id: i for i, layer in enumerate(graph.layers)}
    wrong = {
        "an edge runs backwards": any(
            owner[graph.layers[e.tail].id] > owner[graph.layers[e.head].id] for e in graph.edges
        ),
        "a stage saves in a way that is not allowed": any(
            stage["recompute"] not in problem.modes(last=i == len(stages) - 1)
            or (split and stage["recompute"] != "none")
            for i, stage in enumerate(stages)
        ),
        "layers are not in the order in which they run": any(
            [rank[id_] for id_ in s["layers"]] != sorted(rank[id_] for id_ in s["layers"]) for s in stages
        ),
        "pipeline or order is wrong": document["pipeline"] != len(stages)
        or document.get("order", "") not in problem.rules.orders,
    }
    return [text for text, so in wrong.items() if so]


def _whole(stated: Stated, true: Sequence[Mapping[str, float]], rounds: int) -> list[str]:
    document, family, found = stated.document, stated.family, []
    passes = [(sums["forward_s"], sums["backward_s"]) for sums in true]
    times = [sums["time_s"] for sums in true]
    waited_s = [fsum([*own, *(sums[name] for name in TRANSFERS)]) for own, sums in zip(passes, true, strict=True)]
    sync_s, step_s = batch_end(stated, [sums["parameters"] for sums in true], [sums["experts"] for sums in true])
    tied_s, pace_s = _tied(stated), max(times)
    if family.apart:
        pace_s = max(forward for forward, _ in passes) + max(backward for _, backward in passes)
    # The formulas of each family, written out: docs/placement.md.
    laps = rounds + stated.count - 1 if family.pace_stages else rounds - 1 / family.chunks
    pipeline_s = fsum([laps * pace_s, 0.0 if family.pace_stages else fsum(waited_s) / family.chunks])
    thirds = [(f, r - sums["weight"], sums["weight"]) for (f, r), sums in zip(passes, true, strict=True)]
    split = (family.name, thirds) if family.name in NAMES else None
    if split is not None:
        pipeline_s = rounds * pace_s + fill_s(family.name, family.chunks, thirds)
    batch_s = fsum([pipeline_s, sync_s, step_s, tied_s])
    said, room, possible = document["breakdown"], TOLERANCE * batch_s, []
    # Stages that tie for the slowest differ in the last bits only, and the breakdown may show any one of them.
    for i, sums in enumerate(true):
        if _same(times[i], max(times)):
            waited = fsum([sums["ahead_s"], sums["behind_s"], -sums["forward"], -sums["backward"], -sums["again"]])
            moved_s = sums["moved_s"] + waited
            terms = {f"{name}_s": rounds * sums[name] for name in ("forward", "backward")}
            terms |= {"recompute_s": rounds * sums["again"], "transfer_s": rounds * moved_s}
            hidden_s = times[i] - fsum([sums["forward"], sums["backward"], sums["again"], moved_s])
            terms |= {"synchronisation_s": sync_s + rounds * hidden_s, "optimizer_s": step_s, "tied_s": tied_s}
            possible.append(terms | {"bubble_s": pipeline_s - rounds * times[i]})
    if set(said) != set(possible[0]) or abs(fsum(said.values()) - batch_s) > room:
        found.append("the breakdown does not sum to the step time")
    elif not any(all(abs(said[name] - value) <= room for name, value in terms.items()) for terms in possible):
        found.append(f"the breakdown should be {possible[0]!r}")
    if not _same(document["batch_s"], batch_s):
        found.append(f"batch_s should be {batch_s!r}")
    if not 0 <= document["lower_bound_s"] <= batch_s * (1 + TOLERANCE):
        found.append("lower_bound_s exceeds the step time")
    sent = [(sums[TRANSFERS[0]], sums[TRANSFERS[1]]) for sums in true]
    least_s, most_s = events_range(passes, rounds, family.chunks, family.apart, split, sent)
    said_s, end_s = document["simulated_s"], sync_s + step_s + tied_s
    if not (_same(said_s, least_s + end_s) or least_s + end_s <= said_s <= (most_s + end_s) * (1 + TOLERANCE)):
        more = "" if least_s == most_s else f" to {most_s + end_s!r}"
        found.append(f"simulated_s should be {least_s + end_s!r}{more}")
    return found


def _in_even_chunks(stated: Stated, ids: Sequence[int]) -> bool:
    """Whether every chunk of a stage has as many blocks."""
    blocks = sum(x.block for la, x in zip(stated.graph.layers, stated.extras, strict=True) if la.id in ids)
    return stated.family.chunks == 1 or (blocks > 0 and blocks % stated.family.chunks == 0)


def _degrees(stated: Stated, rounds: int) -> list[str]:
    """What is wrong about degrees that must divide each other."""
    problem, document = stated.problem, stated.document
    if any(document.get(key, 1) != getattr(problem.sharing, key) for key in ("context", "expert", "expert_tensor")):
        return ["context, expert or expert_tensor is not that of the problem"]
    if document.get("shard", 0) != problem.sharing.shard:
        return ["shard is not that of the problem"]
    if problem.sharing.shard and stated.data * problem.sharing.context % problem.sharing.shard:
        return ["the ranks that shard state do not divide those with the same weights"]
    apart = stated.count > 1 and document.get("order") == "pipeline"
    if (stated.width if apart else stated.width * stated.data) % ranks_of_experts(problem):
        return ["the expert-parallel ranks do not divide those of a stage"]
    name = stated.family.name
    if stated.family.chunks > 1 and rounds % stated.count and name not in FOLDED:
        return ["the microbatches of a replica are not a multiple of the stages"]
    if stated.family.most_stages and stated.count > stated.family.most_stages:
        return [f"{name} is allowed for one stage alone"]
    if rounds < fewest_rounds(name, stated.count):
        return [f"the microbatches of a replica are too few for {name}"]
    return []


def objections(problem: Problem, document: Mapping[str, Any], prices: Priced) -> list[str]:
    """Everything that a ``phaze.plan/1``, fitting or not, says of ``problem`` and that is not so."""
    named = (document.get("schema"), document.get("rules"))
    if named != ("phaze.plan/1", problem.rules.name) or type(document.get("feasible")) is not bool:
        return [f"the document is not a plan under rules {problem.rules.name}"]
    tensor, data, name = (document.get(key) for key in ("tensor", "data", "family"))
    chunks = document.get("chunks", 1)
    known = [f for f in problem.rules.families if f.chunks == chunks]
    family = next((f for f in known if name == f.name or (name is None and f.name not in NAMES)), None)
    widths = {graph.width / problem.sharing.context: graph.width for graph in problem.graphs}
    if "stages" not in document or tensor not in widths or type(chunks) is not int:
        return ["stages, tensor or chunks are missing or out of range"]
    if type(data) is not int or not 1 <= data <= problem.microbatches or family is None:
        return ["data or family is out of range"]
    graph, extras = problem.graph(widths[tensor])
    found = _structure(problem, graph, document, family.name in NAMES)
    if found:
        return found
    stages, count, rounds = document["stages"], len(document["stages"]), -(-problem.microbatches // data)
    stated = Stated(problem, document, prices, count, data, document.get("order") == "data", graph, extras, family)
    if wrong := _degrees(stated, rounds):
        return wrong
    # A plan that is given may have uneven chunks; nothing is proved of it, and its bound is 0.
    if document["lower_bound_s"] > 0 and not all(_in_even_chunks(stated, stage["layers"]) for stage in stages):
        return ["the blocks of a stage are not a multiple of its chunks"]
    true = [_stage_sums(stated, stage) for stage in stages]
    if data * sum(int(sums["devices"]) for sums in true) > problem.devices:
        return ["the plan takes more devices than there are"]
    moves = _moves(stated)
    for i, (stage, sums) in enumerate(zip(stages, true, strict=True)):
        sums.update(paced(stated, rounds, with_waits(stated, sums, stage), (moves[i], moves[i + 1])))
        found += [
            f"stages[{i}]: {text}" for text in _stage(stated, stage, sums, held_at(stated.family, i, count, rounds))
        ]
    most, there = max(stage["memory_bytes"] for stage in stages), problem.hbm_bytes * (1 - problem.headroom)
    # A need that differs from the memory by rounding only may be called either.
    if document["feasible"] and most > there * (1 + ROUNDING + TOLERANCE):
        found.append(f"feasible is wrong: {most!r} bytes are needed and there are {there!r}")
    if not document["feasible"] and most < there * (1 + ROUNDING - TOLERANCE):
        found.append(f"feasible is wrong: {most!r} bytes are enough, as there are {there!r}")
    return found + _whole(stated, true, rounds)
