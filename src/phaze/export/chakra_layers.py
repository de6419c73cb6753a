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
from phaze.evaluate.layer_times import RuledLayer, ruled_layers
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


def _segments(one: RuledPass, setting: Setting, total_s: float) -> tuple[Segment, ...]:
    if not one.works:
        return ()
    chips = chip_set([setting.chip])
    works = work_times(one.works, chips, setting.constants, one.rule)
    device = one.device_s(one.times(works, 0, chips))
    cost = PassCost(works.spread_s[:, 0], np.array(one.waits_s), float(device[0]), total_s, one.rule.network_apart)
    busy_s = float(cost.times_s.sum())
    scale = max(0.0, total_s - cost.open_s) / busy_s if busy_s > 0 else 0.0
    found: list[Segment] = []
    for work, seconds in zip(one.works, cost.times_s, strict=True):
        if work.collective is None:
            found.append(Compute(scale * float(seconds), work.flops))
        elif work.collective.group > 1:
            own = work.collective
            found.append(_collective(own.kind, own.bytes, own.group, own.stride))
    return joined(found)


def joined(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Computation that nothing comes between as one."""
    found: list[Segment] = []
    for own in segments:
        last = found[-1] if found else None
        if isinstance(own, Compute) and isinstance(last, Compute):
            found[-1] = Compute(last.seconds + own.seconds, last.flops + own.flops)
        else:
            found.append(own)
    return tuple(found)


def _collective(kind: str, size: int, group: int, stride: int) -> Collective:
    """As a simulator counts bytes: a ring of keys and values gathers the parts of all ranks, step by step."""
    if kind == "all_gather":
        return Collective(kind, -(-size // group), group, stride)
    return Collective("all_gather" if kind == "ring" else kind, size, group, stride)


def _again(layer: RuledLayer, cost: LayerCost, setting: Setting) -> dict[str, tuple[Segment, ...]]:
    full = layer.forward if layer.full is None else layer.full
    found = {
        "none": (),
        "selective": _segments(layer.selective, setting, cost.selective_s),
        "full": _segments(full, setting, cost.full_s),
    }
    for mode, own in zip(layer.more, cost.more, strict=True):
        if mode.rerun is not None:
            found[mode.name] = _segments(mode.rerun, setting, own.again_s)
    return found


def layer_passes(model: Model, setting: Setting) -> tuple[LayerPasses, ...]:
    """Every distinct layer of a model; what lies around its blocks is not recomputed."""
    blocks = {model.calls[number].layer for number in block_calls(model)}
    layers, costs = ruled_layers(model, setting.machine), layer_costs(model, setting)
    return tuple(
        LayerPasses(
            _segments(layer.forward, setting, cost.forward_s),
            _segments(layer.backward, setting, cost.backward_s),
            {mode: own if kind in blocks else () for mode, own in _again(layer, cost, setting).items()},
            cost.parameters,
            cost.expert_parameters,
            cost.frozen,
        )
        for kind, (layer, cost) in enumerate(zip(layers, costs, strict=True))
    )


def require_mode(passes: Sequence[LayerPasses], mode: str, model: str) -> None:
    """Refuse a mode of recompute whose work is no pass of the device alone."""
    if any(mode not in one.again for one in passes):
        raise InputError(model, f"recompute {mode}", "a trace has none, selective, full and modules; plan with one")
