"""Lower bounds on a component's makespan, each by name so that each can be left out, and for one
layer on all chips.

critical_path   The longest path of ``min(L_i, P_i)``. Every operator of a path ends before the next
                starts.
load            Per resource, ``sum_i`` of the least that i holds of it: under icml24 ``min(L_i /
                cores, P_i)`` for the operators of the kind, and the collectives' time. While it
                runs on one core it holds 1 / cores of the kind, spread all of it, and no more than
                all is held at any moment.
antichain       The linear program over what can run together, see ``dual.py``: at least as good as
                both.
series          The sum over components is taken by the caller (``order.py`` proves it); switching
                it off bounds the whole problem as one component.

:func:`chip_bounds` gives critical path, load and a greedy antichain dual of one layer for every
chip at once, each an array over chips (``chip_dual.py``), and where HBM is shared the time of the
bytes; the greatest of them is a bound. Under ``serial`` the sum of P is the makespan itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaze.schedule.chip_dual import (
    FUSED,
    NETWORK,
    TENSOR,
    VECTOR,
    kinds_and_network,
    queue_and_network,
)
from phaze.schedule.dual import antichain, greedy_credits, load_credits
from phaze.schedule.order import bits
from phaze.schedule.part import WORD, Component, Floats, longest_paths
from phaze.schedule.problem import KINDS, Core
from phaze.schedule.rules import RULE, Rule, Rules

Bound = Literal["critical_path", "load", "antichain"]
BOUNDS: tuple[Bound, ...] = ("critical_path", "load", "antichain")
# A sum of up to 63 products of times of up to 2^40 is right to this.
FUZZ = 0.01


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a component in units by name, their credits, and the greatest of them as a
    whole number."""

    by_name: dict[str, float]
    credits: tuple[Floats, ...]

    @property
    def best(self) -> int:
        """Makespans in units are whole, so the greatest bound may be rounded up."""
        return max(1, int(np.ceil(max(self.by_name.values(), default=0.0) - FUZZ)))


def cheap_bounds(part: Component, use: Sequence[Bound] = BOUNDS) -> Bounds:
    """Critical path and load, of any number of operators."""
    by_name: dict[str, float] = {}
    credits = tuple(load_credits(part, resource) for resource in range(3)) if "load" in use else ()
    if "critical_path" in use:
        by_name["critical_path"] = float(max(longest_paths(part)))
    if "load" in use:
        by_name["load"] = max(float(credit.sum()) for credit in credits)
    if part.hbm:
        by_name["hbm"] = float(part.hbm)
    return Bounds(by_name, tuple(credit for credit in credits if credit.any()))


def with_antichain(part: Component, bounds: Bounds) -> Bounds:
    """``bounds`` and the antichain dual where a word holds the component."""
    if len(part) > WORD:
        return bounds
    bound, credits = antichain(part, part.tables())
    return Bounds({**bounds.by_name, "antichain": bound}, (credits, *bounds.credits))


def lower_bound(part: Component, use: Sequence[Bound] = BOUNDS) -> int:
    """The greatest of the chosen bounds, in units."""
    bound = cheap_bounds(part, use)
    return (with_antichain(part, bound) if "antichain" in use else bound).best


def chip_bounds(
    rules: Rules,
    kinds: Sequence[Core],
    below: Sequence[int],
    one_core_s: Floats,
    all_cores_s: Floats,
    tensor_cores: NDArray[np.int64],
    vector_cores: NDArray[np.int64],
    use: Sequence[Bound] = BOUNDS,
    network: Sequence[bool] | None = None,
    hbm_s: Floats | None = None,
) -> dict[str, Floats]:
    """Bounds in seconds by name, each over chips: operators in topological order, times [operators,
    chips].

    ``below`` are the masks of ``order.contract``; a collective has ``kinds[i] = "none"`` and equal
    times. ``network`` marks operators with cores that hold the network too; ``hbm_s`` counts where
    the rules share HBM, for operators of one series component.
    """
    rule = RULE[rules]
    if rule.one_queue:
        return {"sum": all_cores_s.sum(axis=0)}
    if rule.named_only:
        raise ValueError("a formula gives the makespan of rules companions; they have no bounds")
    on_network = [kind == "none" or bool(network and network[i]) for i, kind in enumerate(kinds)]
    queued = [i for i, flag in enumerate(on_network) if flag or not rule.one_core]
    single = one_core_s
    if any(kinds[i] != "none" for i in queued):
        single = one_core_s.copy()
        single[queued] = all_cores_s[queued]
    bounds: dict[str, Floats] = {}
    if "critical_path" in use:
        bounds["critical_path"] = _critical_paths(below, np.minimum(single, all_cores_s))
    if "load" in use:
        bounds["load"] = _loads(
            rule, kinds, on_network, single, all_cores_s, tensor_cores, vector_cores
        )
    if "antichain" in use:
        cores = (tensor_cores.astype(np.int64), vector_cores.astype(np.int64))
        dual = _dual(rule, kinds, on_network, below, single, all_cores_s, cores)
        if dual is not None:
            bounds["antichain"] = dual * (1 - 1e-12)
    if rule.hbm_shared and hbm_s is not None:
        bounds["hbm"] = hbm_s.sum(axis=0) * (1 - 1e-12)
    return bounds


def _dual(
    rule: Rule,
    kinds: Sequence[Core],
    on_network: Sequence[bool],
    below: Sequence[int],
    one_core_s: Floats,
    all_cores_s: Floats,
    cores: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Floats | None:
    """The antichain dual of the rule for each chip, None where it is too dear or a time is zero."""
    collectives = [kind == "none" for kind in kinds]
    if not rule.one_core:
        alone = [
            flag and not collective
            for flag, collective in zip(on_network, collectives, strict=True)
        ]
        return queue_and_network(all_cores_s, collectives, alone, below)
    if not ((one_core_s > 0).all() and (all_cores_s > 0).all()):
        return None
    if rule.alone:
        return greedy_credits(one_core_s, all_cores_s, np.stack(cores, axis=1), kinds, below)
    roles = [
        {"tensor": TENSOR, "vector": VECTOR, "both": FUSED, "none": NETWORK}[kind] for kind in kinds
    ]
    return kinds_and_network(one_core_s, all_cores_s, cores, roles, below)


def _critical_paths(below: Sequence[int], least: Floats) -> Floats:
    ends = np.zeros_like(least)
    for j, mask in enumerate(below):
        before = bits(mask)
        ends[j] = least[j] + (ends[before].max(axis=0) if before else 0.0)
    return np.asarray(ends.max(axis=0)) if len(ends) else np.zeros(least.shape[1])


def _loads(
    rule: Rule,
    kinds: Sequence[Core],
    on_network: Sequence[bool],
    one_core_s: Floats,
    all_cores_s: Floats,
    tensor_cores: NDArray[np.int64],
    vector_cores: NDArray[np.int64],
) -> Floats:
    nothing = np.zeros(one_core_s.shape[1])
    best = sum((all_cores_s[i] for i, flag in enumerate(on_network) if flag), nothing)
    waits = sum((all_cores_s[i] for i, kind in enumerate(kinds) if kind == "none"), nothing)
    alone = nothing if rule.network_apart else waits
    if not rule.one_core:
        queue = sum((all_cores_s[i] for i, kind in enumerate(kinds) if kind != "none"), nothing)
        return np.asarray(np.maximum(best, queue))
    for name, cores in (("tensor", tensor_cores), ("vector", vector_cores)):
        computed = [i for i, kind in enumerate(kinds) if name in KINDS[kind] and not on_network[i]]
        share = np.minimum(one_core_s[computed] / np.maximum(1, cores), all_cores_s[computed]).sum(
            axis=0
        )
        collectives = [i for i, kind in enumerate(kinds) if name in KINDS[kind] and on_network[i]]
        best = np.maximum(best, alone + share + all_cores_s[collectives].sum(axis=0))
    return np.asarray(best)
