"""How much of a reduction over replicas is seen when it runs behind the backward passes of a stage,
layer by layer.

The gradients of a layer are complete when its backward pass of the last microbatch ends; then they
are reduced while the layers after it (in the order of the backward pass) still work. With b_1 ...
b_L the backward passes in that order and r_1 ... r_L the reductions, one at a time on the network,
the last reduction ends at

    max over k of (b_1 + ... + b_k) + (r_k + ... + r_L)

since some reduction k starts the moment its layer ends and the network is busy from then on. So
after the last backward pass there is still seen

    open = max over k of (r_k + ... + r_L) - (b_{k+1} + ... + b_L)

and for L equal layers ``r`` if r <= b, else ``L (r - b) + b``: the network falls behind by r - b a
layer (:func:`open_reduction_of_equal_layers_s`). Placement counts the parameters of a stage in
layers of one size, so there L need be no whole number.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def open_reduction_of_equal_layers_s(
    reduction_s: float, backward_s: float, layers: Floats
) -> Floats:
    """Seconds of the reductions after the last backward pass, of stages with so many equal layers,
    at least one: r if r <= b, else r + (L - 1) (r - b)."""
    return np.asarray(reduction_s + (layers - 1) * max(0.0, reduction_s - backward_s))
