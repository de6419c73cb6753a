"""Small spaces of chips of clusters: dies of some mm2 and W, so that tiny models tell them
apart."""

from dataclasses import replace
from typing import Any

from phaze.options.values import Kind
from phaze.search.objective import Objective
from phaze.search.space import Space
from phaze.search.spaces import space_in
from phaze.search.task import ModelTask, SearchJob

SMALL: dict[str, Any] = {
    "schema": "phaze.space/2",
    "name": "small-clusters",
    "title": "a dozen chips of clusters",
    "base": "n5-reticle-base",
    "axes": {
        "clusters": [4, 8],
        "arrays": [2],
        "rows": [32],
        "columns": [64],
        "lanes": [128, 512],
        "operand_buffer": ["64 KiB"],
        "registers": ["1 MiB"],
        "global_buffer": ["25 MiB"],
        "global_width": [2048],
        "hbm_stacks": [2, 4],
        "links": ["225 GB/s", "900 GB/s"],
    },
    "keep": {"most_area": "500 mm2", "sustained_power": "180 W", "most_w_per_mm2": 3.0},
}


def silicon_space(keep: dict[str, Any] | None = None, **axes: Any) -> Space:
    """The small space with other axes or rules."""
    document = {
        **SMALL,
        "axes": {**SMALL["axes"], **axes},
        "keep": {**SMALL["keep"], **(keep or {})},
    }
    return space_in(document, "made")


def silicon_job(
    tasks: tuple[ModelTask, ...], space: Space, kind: Kind = "throughput", gap: float = 0.0
) -> SearchJob:
    """A search of it, with the constants that its chips have."""
    memories = space.memories or ()
    own = tuple(replace(task, constants=task.setting(space.base).constants) for task in tasks)
    return SearchJob(
        "made", own, space, memories, Objective(kind, baseline="h100"), gap, "made", round_size=2
    )
