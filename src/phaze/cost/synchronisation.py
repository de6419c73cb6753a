"""How much of a collective over replicas is seen when it runs behind the passes of a stage, layer by layer.

**Gradients.** The gradients of a layer are complete when its backward pass of the last microbatch ends; then they are
reduced while the layers after it (in the order of the backward pass) still work. With b_1 ... b_L the backward passes
in that order and r_1 ... r_L the reductions, one at a time on the network, the last reduction ends at

    max over k of (b_1 + ... + b_k) + (r_k + ... + r_L)

since some reduction k starts the moment its layer ends and the network is busy from then on. So after the last
backward pass there is still seen

    open = max over k of (r_k + ... + r_L) - (b_{k+1} + ... + b_L)                          (:func:`open_reduction_s`)

and for L equal layers ``r`` if r <= b, else ``L (r - b) + b``: the network falls behind by r - b a layer
(:func:`open_reduction_of_equal_layers_s`). Placement counts the parameters of a stage in layers of one size, so there L
need be no whole number.

**Weights.** Under ZeRO 3 the weights of a layer are gathered before it runs, those of the next layer while it runs.
With g_1 ... g_L the network's time for each layer and f_1 ... f_L the pass,

    open = g_1 + sum over i of max(0, g_{i+1} - f_i)                                          (:func:`open_gathers_s`)

for equal layers ``g + (L - 1) max(0, g - f)``.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def open_reduction_s(reductions_s: Sequence[float], backwards_s: Sequence[float]) -> float:
    """Seconds of the reductions after the last backward pass; both in the order in which the backward passes run."""
    worst = seen = 0.0
    for reduction_s, backward_s in zip(reversed(reductions_s), reversed(backwards_s), strict=True):
        # ``seen`` is the sum of the reductions from here on, less that of the backward passes after this one.
        seen += reduction_s
        worst = max(worst, seen)
        seen -= backward_s
    return worst


def open_reduction_of_equal_layers_s(reduction_s: float, backward_s: float, layers: Floats) -> Floats:
    """The same of stages with so many equal layers, at least one: r if r <= b, else r + (L - 1) (r - b)."""
    return np.asarray(reduction_s + (layers - 1) * max(0.0, reduction_s - backward_s))


def open_gathers_s(gathers_s: Sequence[float], passes_s: Sequence[float]) -> float:
    """Seconds that a pass waits for gathers, each begun when the layer before it begins; both in order of the pass."""
    if not gathers_s:
        return 0.0
    behind = zip(gathers_s[1:], passes_s[:-1], strict=True)
    return gathers_s[0] + sum(max(0.0, gather_s - pass_s) for gather_s, pass_s in behind)
