"""How much of the devices' peak a plan reaches, in the field's two counts, for a batch of T seconds
on K devices:

    MFU = F_model / (T K peak)      F_model: matrix products of the forward and the backward pass,
                                    each once, attention over the pairs that its kernel computes: a
                                    causal one those that its mask leaves, an eager one all s x s
    HFU = F_run / (T K peak)        F_run: what the devices run, that is F_model, the products that
                                    stages recompute, and the scores that a fused attention makes
                                    again in its backward pass

K are all devices of the job, idle ones too; the peak is that of the precision that runs, at the
rated clock (:meth:`phaze.hardware.chip.Chip.peak_flops_in`). Nothing runs faster than that, so
neither exceeds 1. For a decoder with all s x s pairs F_model would be 6 N + 12 L h s FLOP a token,
``full_flops_per_token``: N are the parameters that stand in products, L the blocks, h their width,
s the sequence (:func:`utilisation_of`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from phaze.graph.ir import Layer, Model, Operator, OperatorGraph
from phaze.graph.opset import flops
from phaze.graph.pairs import attention_pairs
from phaze.graph.saved.modes import Keeping, Modes

WORDS = (
    "MFU and HFU are shares of the {precision} peak at the rated clock, {peak} a device, "
    "of all devices of the job. "
    "MFU counts {model} a token: the matrix products of forward and backward, attention "
    "over the pairs that its kernel "
    "computes (with all s x s pairs, 6 N + 12 L h s, {full}); HFU counts what devices "
    "run, {run}: recomputed products "
    "too"
)


@dataclass(frozen=True, slots=True)
class LayerFlops:
    """FLOP of one call of a layer, of one rank and microbatch: both passes, and what may be run
    again; ``full``: both passes with attention over all pairs."""

    model: float
    full: float
    scores: float
    rerun: Callable[[str], float]

    def again(self, recompute: str) -> float:
        """What the devices run beside the model's own products, in a mode of recompute."""
        return self.scores + self.rerun(recompute)


@dataclass(frozen=True, slots=True)
class Utilisation:
    """The two shares of peak, the peak, and the FLOP a token behind each."""

    mfu: float
    hfu: float
    peak_flops: float
    flops_per_token: float
    full_flops_per_token: float
    run_flops_per_token: float

    def document(self) -> dict[str, Any]:
        """Plain values, with the definition in words."""
        return {
            "mfu": self.mfu,
            "hfu": self.hfu,
            "device_peak_flops": self.peak_flops,
            "flops_per_token": self.flops_per_token,
            "full_flops_per_token": self.full_flops_per_token,
            "run_flops_per_token": self.run_flops_per_token,
        }


def _scores(operator: Operator, masked: bool = True) -> float:
    """FLOP of the scores that a fused backward pass makes again: 2 b w for each pair that it
    computes."""
    if operator.parts:
        return sum(_scores(part, masked) for part in operator.parts)
    if operator.kind != "attention_backward":
        return 0.0
    pairs = (
        attention_pairs(operator) if masked else operator.size("queries") * operator.size("keys")
    )
    return 2.0 * operator.size("batch") * pairs * operator.size("width")


def _flops(graph: OperatorGraph, masked: bool = True) -> float:
    return float(sum(flops(operator, masked) for operator in graph.operators))


def layer_flops(layer: Layer, keeping: Keeping) -> LayerFlops:
    """The FLOP of a layer; ``keeping`` says what selective recompute reruns."""
    scores = sum(_scores(operator) for operator in layer.backward.operators)
    both = _flops(layer.forward) + _flops(layer.backward)
    full = _flops(layer.forward, masked=False) + _flops(layer.backward, masked=False)
    full -= sum(_scores(operator, masked=False) for operator in layer.backward.operators)
    modes = Modes(layer, keeping)

    @cache
    def rerun(name: str) -> float:
        mode = modes.of(name)
        return mode.part * _flops(mode.rerun)

    return LayerFlops(both - scores, full, scores, rerun)


def model_flops(model: Model, keeping: Keeping) -> tuple[LayerFlops, ...]:
    """The FLOP of every distinct layer."""
    return tuple(layer_flops(layer, keeping) for layer in model.layers)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a batch is: so many microbatches of so many sequences on ``tensor`` ranks, and what it
    takes on all the devices of the job, each with that peak."""

    tensor: int
    microbatches: int
    tokens: float
    batch_s: float
    devices: int
    peak_flops: float


def utilisation_of(
    layers: Sequence[LayerFlops],
    calls: Sequence[int],
    stages: Sequence[Mapping[str, Any]],
    recomputed: Collection[int],
    ran: Ran,
) -> Utilisation:
    """MFU and HFU of a plan; ``calls`` name the layer of each call, ``recomputed`` are the calls
    that may be."""
    model, full = (sum(getattr(layers[kind], key) for kind in calls) for key in ("model", "full"))
    again = sum(
        layers[calls[call]].again(stage["recompute"] if call in recomputed else "none")
        for stage in stages
        for call in stage["layers"]
    )
    each = ran.tensor * ran.microbatches
    reach = ran.batch_s * ran.devices * ran.peak_flops
    return Utilisation(
        model * each / reach,
        (model + again) * each / reach,
        ran.peak_flops,
        model * each / ran.tokens,
        full * each / ran.tokens,
        (model + again) * each / ran.tokens,
    )
