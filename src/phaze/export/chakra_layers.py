"""The passes of a layer as computation and collectives in turn, for traces that a network simulator replays.

The seconds of a pass are those of the plan without what of its collectives is exposed, shared out over its operators by
the seconds that each takes on all cores; a collective stands where it stands in the pass and waits for what is before
it::

    compute of an operator = its seconds * (pass - exposed collectives) / sum of all operators' seconds
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phaze.cost.chip_set import chip_set
from phaze.errors import InputError
from phaze.evaluate.flow import block_calls
from phaze.evaluate.layer_passes import RuledLayer, ruled_layers
from phaze.evaluate.layers import LayerCost, PassCost, Setting, layer_costs
from phaze.evaluate.ruled_pass import RuledPass, work_times
from phaze.graph.ir import Model


@dataclass(frozen=True, slots=True)
class Compute:
    """Cores at work for ``seconds`` on ``flops`` of matrix products."""

    seconds: float
    flops: float


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of ``bytes`` as a simulator counts them: of the whole tensor, of a gather of this rank's part.

    Its ranks are ``group`` of a stage's, ``stride`` apart.
    """

    kind: str
    bytes: int
    group: int
    stride: int


Segment = Compute | Collective


@dataclass(frozen=True, slots=True)
class LayerPasses:
    """A distinct layer: its passes, what each mode of recompute runs before backward, and its weights by sharing:
    trained ones, experts among them, and ``frozen`` ones, experts among those."""

    forward: tuple[Segment, ...]
    backward: tuple[Segment, ...]
    again: dict[str, tuple[Segment, ...]]
    parameters: int
    expert_parameters: int
    frozen: tuple[int, int] = (0, 0)


def _segments(layer_pass: RuledPass, setting: Setting, total_s: float) -> tuple[Segment, ...]:
    if not layer_pass.works:
        return ()
    chips = chip_set([setting.chip])
    works = work_times(layer_pass.works, chips, setting.constants, layer_pass.rule)
    device = layer_pass.device_s(layer_pass.times(works, 0, chips))
    cost = PassCost(
        works.spread_s[:, 0], np.array(layer_pass.waits_s), float(device[0]), total_s, layer_pass.rule.network_apart
    )
    busy_s = float(cost.times_s.sum())
    scale = max(0.0, total_s - cost.open_s) / busy_s if busy_s > 0 else 0.0
    segments: list[Segment] = []
    for work, seconds in zip(layer_pass.works, cost.times_s, strict=True):
        if work.collective is None:
            segments.append(Compute(scale * float(seconds), work.flops))
        elif work.collective.group > 1:
            collective = work.collective
            segments.append(_collective(collective.kind, collective.bytes, collective.group, collective.stride))
    return joined(segments)


def joined(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Computation that nothing comes between as one."""
    merged: list[Segment] = []
    for segment in segments:
        last = merged[-1] if merged else None
        if isinstance(segment, Compute) and isinstance(last, Compute):
            merged[-1] = Compute(last.seconds + segment.seconds, last.flops + segment.flops)
        else:
            merged.append(segment)
    return tuple(merged)


def _collective(kind: str, size: int, group: int, stride: int) -> Collective:
    """As a simulator counts bytes: a ring of keys and values gathers the parts of all ranks, step by step."""
    if kind == "all_gather":
        return Collective(kind, -(-size // group), group, stride)
    return Collective("all_gather" if kind == "ring" else kind, size, group, stride)


def _again(layer: RuledLayer, cost: LayerCost, setting: Setting) -> dict[str, tuple[Segment, ...]]:
    full = layer.forward if layer.full is None else layer.full
    reruns = {
        "none": (),
        "selective": _segments(layer.selective, setting, cost.selective_s),
        "full": _segments(full, setting, cost.full_s),
    }
    for mode, mode_cost in zip(layer.more, cost.more, strict=True):
        if mode.rerun is not None:
            reruns[mode.name] = _segments(mode.rerun, setting, mode_cost.again_s)
    return reruns


def layer_passes(model: Model, setting: Setting) -> tuple[LayerPasses, ...]:
    """Every distinct layer of a model; what lies around its blocks is not recomputed."""
    blocks = {model.calls[number].layer for number in block_calls(model)}
    layers, costs = ruled_layers(model, setting.machine), layer_costs(model, setting)
    return tuple(
        LayerPasses(
            _segments(layer.forward, setting, cost.forward_s),
            _segments(layer.backward, setting, cost.backward_s),
            {mode: segments if kind in blocks else () for mode, segments in _again(layer, cost, setting).items()},
            cost.parameters,
            cost.expert_parameters,
            cost.frozen,
        )
        for kind, (layer, cost) in enumerate(zip(layers, costs, strict=True))
    )


def require_mode(passes: Sequence[LayerPasses], mode: str, model: str) -> None:
    """Refuse a mode of recompute whose work is no pass of the device alone."""
    if any(mode not in layer.again for layer in passes):
        raise InputError(model, f"recompute {mode}", "a trace has none, selective, full and modules; plan with layer")
