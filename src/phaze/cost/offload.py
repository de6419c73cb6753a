r"""Activations that wait for the backward pass in the memory of the host, and what copying them
there and back takes.

    copies    2 H / B              H bytes of a layer and microbatch go over a link of B bytes a
              second each way
    exposed   max(0, 2 H / B - h (f + b))     behind the share h of the layer's own forward and
              backward seconds

so a faster link never takes longer. A device holds the activations of the layer that runs, and
those of its neighbour on their way (:mod:`phaze.graph.saved.modes`). How much memory the host has
is not asked.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HOST_SHARE = 0.85
"""What transfers reach of a link's rate: about 55 of the 64 GB/s of PCIe 5 (recalled)."""


def exposed_copies_s(
    host_bytes: float, host_bytes_per_s: float, window_s: Floats, hidden: float
) -> Floats:
    """Seconds that copying activations to the host and back adds to the passes of a layer, on every
    chip."""
    copies_s = 2.0 * host_bytes / (HOST_SHARE * host_bytes_per_s)
    return np.maximum(0.0, copies_s - hidden * window_s)
