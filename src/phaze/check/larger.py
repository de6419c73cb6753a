"""The answer of a run against a space with more combinations than anyone could look at, its own or another one:
nothing in that is better by a gap (docs/search.md, Larger spaces). Boxes close all but a few chips (:mod:`.boxes`),
which then go through the steps of a proof.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from .boxes import Grid, walk
from .means import Mean
from .proof import Counted, Watch, prove
from .published import Model
from .reading import cover, require
from .space import Space

MOST_CHIPS = 4_000_000
"""Combinations of which every chip is checked where boxes could exclude them: more takes longer than boxes do."""


def boxed(problem: Mapping[str, Any]) -> bool:
    """Whether the space of a problem is proved by boxes: of many chips of cores for one model under the rules icml24,
    fronts among them, of many chips of clusters for any models; where throughput counts."""
    space, models = problem["space"], problem["models"]
    many = "axes" in space and prod(len(values) for values in space["axes"].values()) > MOST_CHIPS
    layered = [model["training"]["machine"]["stack"]["stages"] == "layers" for model in models]
    if "front" in problem:
        throughput = not {*problem["front"]["of"], *problem["front"]["within"]} & {"energy", "cost", "carbon"}
        return bool(many and throughput and len(models) == 1 and not any(layered) and not clustered(space))
    throughput = problem["objective"]["kind"] == "throughput"
    of_clusters = clustered(space) and all(layered)
    return bool(
        many and throughput and (of_clusters or (len(models) == 1 and not any(layered) and not clustered(space)))
    )


def clustered(space: Mapping[str, Any]) -> bool:
    """Whether its chips are of clusters."""
    return space["base"].get("clusters") is not None


def prove_larger(model: Model, mean: Mean, grid: Grid, memories: Sequence[int], bound: float, watch: Watch) -> Counted:
    """No chip of a space scores below the bound; how many boxes and chips it took."""
    found = walk(model, grid, len(memories) - 1, bound, watch)
    counted = Counted(grid.combinations, grid.combinations, bound, dict(found.closed))
    counted.closed["boxes"] = 0
    total = sum(found.closed.values()) + found.open
    require(total == grid.combinations, f"boxes cover {total} of {grid.combinations} combinations")
    counted.boxes = found.boxes
    if not found.open:
        return counted
    chips = grid.limits.kept(grid.corner(np.concatenate(found.left)))
    counted.closed["rules of the space"] = found.open - len(chips)
    memory = grid.limits.memory(chips, memories)
    if not (memory >= 0).any():
        return counted
    some = Space(chips, grid.combinations, memory)
    watch(f"{len(some.chips):,} chips that boxes leave")
    rest = prove([model], mean, some, (bound, bound), watch)
    for step, count in rest.closed.items():
        counted.closed[step] = counted.closed.get(step, 0) + count
    require(rest.least >= bound * (1 - 1e-9), f"nothing shows that {rest.first_open} scores {bound!r} or more")
    return counted


def covered(models: list[Any]) -> Model:
    """The one model under rules icml24 that boxes are covered for."""
    cover(len(models) == 1 and isinstance(models[0], Model), "larger spaces but for one model under the rules icml24")
    found: Model = models[0]
    return found
