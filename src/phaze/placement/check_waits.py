"""What layers run again, and what is exposed of ZeRO's collectives and of transfers, for the checker: layer by layer,
with exact sums."""

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np

from phaze.placement.check_end import gathers, ranks_of_experts, sharing_ranks
from phaze.placement.check_layout import Stated
from phaze.placement.layers import Layer
from phaze.placement.problem import Extra

# Families whose transfers may run behind other chunks, and where a stage states them.
OVERLAPPED = ("interleaved",)
TRANSFERS = ("forward_transfer_s", "backward_transfer_s")


def paced(stated: Stated, rounds: int, work: tuple[float, float], moves: tuple[float, float]) -> dict[str, float]:
    """The passes of a stage, its transfers where they run behind other chunks, its time at the pace of the pipeline,
    and what of that is no work.

    Of a transfer beside a pass the lesser of the two is hidden, but for the (v - 1) S pieces of a microbatch's m v that
    run alone.
    """
    chunks = stated.family.chunks
    starts_s, whole_s = (chunks - 1) * stated.problem.rules.piece_start_s, fsum([*work, *moves])
    if not (stated.problem.rules.overlapped_transfers and stated.family.name in OVERLAPPED):
        passes = [own + move + starts_s for own, move in zip(work, moves, strict=True)]
        hidden_s, sent = 0.0, (0.0, 0.0)
    else:
        passes, sent = [own + starts_s for own in work], moves
        alone = (chunks - 1) * stated.count / (rounds * chunks - 1)
        hidden_s = (1 - alone) * fsum(min(own, move) for own, move in zip(work, moves, strict=True))
    time_s = fsum([whole_s, 2 * starts_s, -hidden_s])
    found = {"forward_s": passes[0], "backward_s": passes[1], "time_s": time_s, "moved_s": fsum([time_s, -fsum(work)])}
    return found | dict(zip(TRANSFERS, sent, strict=True))


def seconds_again(layers: Sequence[Layer], extras: Sequence[Extra], mode: str) -> Iterator[float]:
    """Seconds that each layer runs again in a mode."""
    for layer, extra in zip(layers, extras, strict=True):
        own = next((row for row in extra.more if row.name == mode), None)
        if own is not None:
            yield own.again_s
        elif mode == "full":
            yield layer.forward_s if extra.full_s is None else extra.full_s
        else:
            yield extra.selective_s if mode == "selective" and extra.selective_bytes is not None else 0.0


def most_gathered(stated: Stated, sizes: list[float]) -> float:
    """Parameter bytes that a stage holds whole at once under ZeRO 2 and 3: of one layer, or of two in a row."""
    if stated.problem.rules.prefetch == "stage" or stated.problem.has_experts or len(sizes) == 1:
        return max(sizes)
    return max(fsum(sizes[k : k + 2]) for k in range(len(sizes) - 1))


def frozen_bytes(stated: Stated, extras: Sequence[Extra]) -> dict[str, float]:
    """Bytes of weights that are not trained, of a stage: all, experts that ranks share out among them, and the most of
    each kind that are whole at once under ZeRO 3: of a layer, or of two such where the next is gathered ahead."""
    apart = ranks_of_experts(stated.problem) > 1
    experts = [extra.frozen.expert_bytes if apart else 0.0 for extra in extras]
    dense = [extra.frozen.bytes - more for extra, more in zip(extras, experts, strict=True)]
    again, seen = [], set[str]()
    for extra in extras:
        again.append(extra.frozen.tied_bytes if extra.frozen.tied in seen else 0.0)
        seen |= {extra.frozen.tied} if extra.frozen.tied is not None else set()
    whole = fsum(dense) - fsum(again)
    ahead = 2.0 if stated.problem.rules.prefetch == "layer" and not stated.problem.has_experts else 1.0
    most = {"frozen_largest": min(whole, ahead * max(dense)), "frozen_most_experts": max(experts)}
    return {"frozen": whole, "frozen_experts": fsum(experts), **most}


def untrained_bytes(stated: Stated, true: Mapping[str, float]) -> float:
    """Bytes on a device of the weights of a stage that are not trained."""
    problem = stated.problem
    each = problem.state.weight / problem.sent_bytes
    if problem.zero < 3:
        return each * (true["frozen"] + true["frozen_experts"])
    alike = max(1.0, stated.width * stated.data / ranks_of_experts(problem))
    dense = (true["frozen"] - true["frozen_largest"]) / sharing_ranks(stated) + true["frozen_largest"]
    most = true["frozen_most_experts"]
    return each * (dense + (true["frozen_experts"] - most) / alike + most)


def with_waits(stated: Stated, sums: dict[str, float], stage: Mapping[str, Any]) -> tuple[float, float]:
    """Forward and backward with what they do not hide of ZeRO's collectives for each microbatch."""
    rules, zero, work = stated.problem.rules, stated.problem.zero, (sums["ahead_s"], sums["behind_s"])
    if zero < 2:
        return work
    ids = set(stage["layers"])
    of = [(la, x) for la, x in zip(stated.graph.layers, stated.extras, strict=True) if la.id in ids]
    layers, extras = [la for la, _ in of], [x for _, x in of]
    sizes, experts = (np.array([getattr(la, name) for la in layers]) for name in ("parameter_bytes", "expert_bytes"))

    def gather(wire: float, still: Sequence[float] = (), more: Sequence[float] = ()) -> list[float]:
        whole, own = (sizes + np.array(still), experts + np.array(more)) if still else (sizes, experts)
        return [float(s) for s in gathers(stated, whole, own, wire)]

    still, more = [x.frozen.bytes for x in extras], [x.frozen.expert_bytes for x in extras]
    ahead = gather(rules.weight_wire, still, more) if zero == 3 else [0.0] * len(layers)
    behind = [g + s for g, s in zip(ahead, gather(rules.gradient_wire), strict=True)]
    both = []
    again = seconds_again(layers, extras, stage["recompute"])
    passes = [la.forward_s for la in layers], [la.backward_s + g for la, g in zip(layers, again, strict=True)]
    for whole, parts, waits in zip(work, passes, (ahead, behind), strict=True):
        if rules.prefetch == "layer":
            shown = [wait - min(rules.hidden * wait, w) for w, wait in zip(parts, waits, strict=True)]
        else:
            shown = [fsum(waits) - min(rules.hidden * fsum(waits), whole)]
        both.append(whole + fsum(shown))
    return both[0], both[1]
