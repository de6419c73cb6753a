"""Lower bounds on a component's makespan, each by name so that each can be left out, and for one layer on all chips.

critical_path   The longest path of ``min(L_i, P_i)``. Every operator of a path ends before the next starts.
load            Per resource, ``sum_i`` of the least that i holds of it: under icml24 ``min(L_i / cores, P_i)`` for the
                operators of the kind, and the collectives' time. While it runs on one core it holds 1 / cores of the
                kind, spread all of it, and no more than all is held at any moment.
antichain       The linear program over what can run together, see ``dual.py``: at least as good as both.
series          The sum over components is taken by the caller (``order.py`` proves it); switching it off bounds the
                whole problem as one component.

:func:`chip_bounds` gives critical path, load and the greedy antichain dual of one layer for every chip at once, each
an array over chips; the greatest of them is a bound. Under ``serial`` the sum of P is the makespan itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaze.schedule.dual import antichain, greedy_credits, load_credits
from phaze.schedule.order import bits
from phaze.schedule.part import WORD, Floats, Part, longest_paths
from phaze.schedule.problem import KINDS, Core
from phaze.schedule.rules import Rules

Bound = Literal["critical_path", "load", "antichain"]
BOUNDS: tuple[Bound, ...] = ("critical_path", "load", "antichain")
# A sum of up to 63 products of times of up to 2^40 is right to this.
FUZZ = 0.01


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a component in units by name, their credits, and the greatest of them as a whole number."""

    by_name: dict[str, float]
    credits: tuple[Floats, ...]

    @property
    def best(self) -> int:
        """Makespans in units are whole, so the greatest bound may be rounded up."""
        return max(1, int(np.ceil(max(self.by_name.values(), default=0.0) - FUZZ)))


def cheap_bounds(part: Part, use: Sequence[Bound] = BOUNDS) -> Bounds:
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


def with_antichain(part: Part, known: Bounds) -> Bounds:
    """``known`` and the antichain dual where a word holds the component."""
    if len(part) > WORD:
        return known
    bound, credits = antichain(part, part.tables())
    return Bounds({**known.by_name, "antichain": bound}, (credits, *known.credits))


def lower_bound(part: Part, use: Sequence[Bound] = BOUNDS) -> int:
    """The greatest of the chosen bounds, in units."""
    found = cheap_bounds(part, use)
    return (with_antichain(part, found) if "antichain" in use else found).best


def chip_bounds(
    rules: Rules,
    kinds: Sequence[Core],
    below: Sequence[int],
    one_core_s: Floats,
    all_cores_s: Floats,
    tensor_cores: NDArray[np.int64],
    vector_cores: NDArray[np.int64],
    use: Sequence[Bound] = BOUNDS,
) -> dict[str, Floats]:
    """Bounds in seconds by name, each over chips: operators in topological order, times [operators, chips].

    ``below`` are the masks of ``order.contract``; a collective has ``kinds[i] = "none"`` and equal times.
    """
    if rules == "serial":
        return {"sum": all_cores_s.sum(axis=0)}
    least = np.minimum(one_core_s, all_cores_s)
    found: dict[str, Floats] = {}
    if "critical_path" in use:
        found["critical_path"] = _critical_paths(below, least)
    if "load" in use:
        found["load"] = _loads(rules, kinds, one_core_s, all_cores_s, tensor_cores, vector_cores)
    if "antichain" in use and rules == "icml24":
        cores = np.stack([tensor_cores, vector_cores], axis=1).astype(np.int64)
        dual = greedy_credits(one_core_s, all_cores_s, cores, kinds, below)
        if dual is not None:
            found["antichain"] = dual * (1 - 1e-12)
    return found


def _critical_paths(below: Sequence[int], least: Floats) -> Floats:
    ends = np.zeros_like(least)
    for j, mask in enumerate(below):
        before = bits(mask)
        ends[j] = least[j] + (ends[before].max(axis=0) if before else 0.0)
    return np.asarray(ends.max(axis=0)) if len(ends) else np.zeros(least.shape[1])


def _loads(
    rules: Rules,
    kinds: Sequence[Core],
    one_core_s: Floats,
    all_cores_s: Floats,
    tensor_cores: NDArray[np.int64],
    vector_cores: NDArray[np.int64],
) -> Floats:
    chips = one_core_s.shape[1]
    network = sum((one_core_s[i] for i, kind in enumerate(kinds) if kind == "none"), np.zeros(chips))
    alone = network if rules == "icml24" else np.zeros(chips)
    best = network
    for name, cores in (("tensor", tensor_cores), ("vector", vector_cores)):
        own = [i for i, kind in enumerate(kinds) if name in KINDS[kind]]
        share = np.minimum(one_core_s[own] / np.maximum(1, cores), all_cores_s[own]).sum(axis=0)
        best = np.maximum(best, alone + share)
    return np.asarray(best)
