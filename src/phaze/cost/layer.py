"""A layer's passes on one chip, operators one after the other: seconds, energy, power, and what
takes the time.

pass seconds = sum over operators of their all-core times + sum over its collectives of their times
(none hidden)
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from phaze.cost.chip_set import chip_set
from phaze.cost.collective import collective, kind_named
from phaze.cost.energy import layer_power
from phaze.cost.measured_clock import chip_constants
from phaze.cost.table import cost_works
from phaze.cost.work import Work, works_of
from phaze.graph.ir import Model
from phaze.hardware.calibration import Basis, Constants
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.cluster import Cluster


@dataclass(frozen=True, slots=True)
class PassEstimate:
    """One pass over one layer; energy and power are None where the chip names no technology."""

    time_s: float
    tensor_s: float
    vector_s: float
    network_s: float
    operators: int
    share_of_peak: float
    energy_j: float | None
    average_w: float | None
    peak_w: float | None


@dataclass(frozen=True, slots=True)
class LayerEstimate:
    """Both passes of a layer that is called ``count`` times."""

    name: str
    count: int
    forward: PassEstimate
    backward: PassEstimate


def network(works: Sequence[Work], cluster: Cluster | None, basis: Basis) -> tuple[float, float]:
    """Seconds of the collectives of a pass, one after the other, and bytes sent; without a cluster
    they take none."""
    asked = [work.collective for work in works if work.collective is not None]
    if cluster is None:
        return 0.0, 0.0
    costs = [collective(kind_named(c.kind), c.bytes, c.group, cluster, basis) for c in asked]
    return sum(cost.time_s for cost in costs), sum(cost.sent_bytes for cost in costs)


def estimate_pass(
    works: Sequence[Work], chip: Chip, constants: Constants, cluster: Cluster | None
) -> PassEstimate:
    """A sequence of works on one chip."""
    chips = chip_set([chip])
    column = cost_works(works, chips, constants)
    times = column.times_s()[:, 0] if works else np.zeros(0)
    tensor = np.array([work.core in ("tensor", "both") for work in works], dtype=bool)
    waited, sent = network(works, cluster, constants.basis)
    total = float(times.sum()) + waited
    energy = average = peak = None
    figures = estimates_of(chip)
    if figures is not None and works:
        power = layer_power(
            column, range(len(works)), chips, figures.technology, np.array([figures.static_w])
        )
        energy = (
            float(power.energy_j[0])
            + sent * figures.technology.sent_j_per_byte
            + figures.static_w * waited
        )
        average, peak = energy / total if total else 0.0, float(power.peak_w[0])
    flops = sum(work.flops for work in works)
    return PassEstimate(
        time_s=total,
        tensor_s=float(times[tensor].sum()),
        vector_s=float(times[~tensor].sum()),
        network_s=waited,
        operators=len(works),
        share_of_peak=flops / (total * chip.peak_flops) if total else 0.0,
        energy_j=energy,
        average_w=average,
        peak_w=peak,
    )


def estimate_layers(
    model: Model,
    chip: Chip,
    cluster: Cluster | None = None,
    basis: Basis = "calibrated",
    residency: bool = True,
) -> tuple[LayerEstimate, ...]:
    """Every distinct layer of a model, as operators queued in training."""
    constants = chip_constants(chip, basis, "training")
    return tuple(
        LayerEstimate(
            layer.name,
            model.count(index),
            estimate_pass(works_of(layer.forward, residency), chip, constants, cluster),
            estimate_pass(works_of(layer.backward, residency), chip, constants, cluster),
        )
        for index, layer in enumerate(model.layers)
    )


def layers_document(layers: Sequence[LayerEstimate]) -> dict[str, Any]:
    """The layers as plain values, and the sums over all calls."""
    return {
        "layers": [asdict(layer) for layer in layers],
        "forward_s": sum(layer.count * layer.forward.time_s for layer in layers),
        "backward_s": sum(layer.count * layer.backward.time_s for layer in layers),
    }
