"""The answer of a run against a larger space than the one that was searched: nothing in that is better by a gap.

The space may have more combinations than anyone could look at (docs/search.md, Larger spaces): boxes close all but a
few chips (:mod:`.boxes`), which then go through the steps of a proof.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .boxes import grid_of, walk
from .means import Mean
from .proof import Counted, Watch, prove
from .published import Model
from .reading import cover, require
from .space import Space


def prove_larger(
    model: Model, mean: Mean, table: Mapping[str, Any], memories: int, bound: float, watch: Watch
) -> Counted:
    """No chip of a space scores below the bound; how many boxes and chips it took."""
    grid = grid_of(table)
    found = walk(model, grid, memories - 1, bound, watch)
    counted = Counted(grid.combinations, grid.combinations, bound, dict(found.closed))
    counted.closed["boxes"] = 0
    total = sum(found.closed.values()) + found.open
    require(total == grid.combinations, f"boxes cover {total} of {grid.combinations} combinations")
    counted.boxes = found.boxes
    if not found.open:
        return counted
    chips = grid.corner(np.concatenate(found.left))
    inside = (chips.area <= grid.budget * (1 + 1e-12)) & (
        (chips.area >= grid.least * grid.budget)
        | (grid.space["keep"]["smaller_with_one_core"] & ((chips.tensor_cores == 1) | (chips.vector_cores == 1)))
    )
    counted.closed["area"] = counted.closed.get("area", 0) + int((~inside).sum())
    if not inside.any():
        return counted
    some = Space(chips.taken(inside), grid.combinations, np.full(int(inside.sum()), memories - 1))
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
