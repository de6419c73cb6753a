"""What compiles the kernels of this room: a small pipeline of every family."""

import numpy as np

from phaze.pipeline.event_kernels import run_events
from phaze.pipeline.families import FAMILIES


def warm() -> None:
    """Compile and cache every kernel of this room."""
    for family in FAMILIES.values():
        lists = family.event_lists(2, 4, family.chunks)
        places = 2 * family.chunks
        run_events(
            np.ones((3, 2)),
            np.zeros((2, places)),
            lists,
            4,
            family.chunks,
            np.empty((3, 2, 4 * family.chunks)),
        )
