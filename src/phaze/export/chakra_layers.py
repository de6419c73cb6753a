"""The passes of a layer as computation and collectives in turn, for traces that a network simulator
replays.

The seconds of a pass are those of the plan without what of its collectives is exposed, distributed
over its operators by the seconds that each takes on all cores; a collective stands where it stands
in the pass and waits for what is before it::

    compute of an operator = its seconds * (pass - exposed collectives) / sum of all operators'
    seconds
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phaze.cost.chip_set import chip_set
from phaze.errors import InputError
from phaze.evaluate.flow import block_calls
from phaze.evaluate.layers import PassCost, Setting, model_table
from phaze.evaluate.lowered_layer import LoweredLayer
from phaze.evaluate.lowered_pass import LoweredPass, work_times
from phaze.graph.ir import Model


@dataclass(frozen=True, slots=True)
class Compute:
    """Cores at work for ``seconds`` on ``flops`` of matrix products."""

    seconds: float
    flops: float


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of ``bytes`` as a simulator counts them: of the whole tensor, of a gather of
    this rank's part.

    Its ranks are ``group`` of a stage's, ``stride`` apart.
    """

    kind: str
    bytes: int
    group: int
    stride: int


Segment = Compute | Collective


@dataclass(frozen=True, slots=True)
class LayerPasses:
    """A distinct layer: its passes, what each mode of recompute runs before backward, and its
    weights by sharing: trained ones, experts among them, and ``frozen`` ones, experts among
    those."""

    forward: tuple[Segment, ...]
    backward: tuple[Segment, ...]
    again: dict[str, tuple[Segment, ...]]
    parameters: int
    expert_parameters: int
    frozen: tuple[int, int] = (0, 0)


def _segments(layer_pass: LoweredPass, setting: Setting, total_s: float) -> tuple[Segment, ...]:
    if not layer_pass.works:
        return ()
    chips = chip_set([setting.chip])
    works = work_times(layer_pass.works, chips, setting.constants, layer_pass.rule)
    device = layer_pass.device_s(layer_pass.times(works, 0, chips))
    cost = PassCost(
        works.spread_s[:, 0],
        np.array(layer_pass.waits_s),
        float(device[0]),
        total_s,
        layer_pass.rule.network_apart,
    )
    busy_s = float(cost.times_s.sum())
    scale = max(0.0, total_s - cost.open_s) / busy_s if busy_s > 0 else 0.0
    segments: list[Segment] = []
    for work, seconds in zip(layer_pass.works, cost.times_s, strict=True):
        if work.collective is None:
            segments.append(Compute(scale * float(seconds), work.flops))
        elif work.collective.group > 1:
            collective = work.collective
            segments.append(
                _collective(collective.kind, collective.bytes, collective.group, collective.stride)
            )
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
    """As a simulator counts bytes: a ring of keys and values gathers the parts of all ranks, step
    by step."""
    if kind == "all_gather":
        return Collective(kind, -(-size // group), group, stride)
    return Collective("all_gather" if kind == "ring" else kind, size, group, stride)


def _again(
    layer: LoweredLayer, again_s: Sequence[float], setting: Setting
) -> dict[str, tuple[Segment, ...]]:
    reruns: dict[str, tuple[Segment, ...]] = {"none": ()}
    for mode, seconds in zip(layer.modes, again_s, strict=True):
        rerun = layer.forward if mode.name == "full" and mode.rerun is None else mode.rerun
        if rerun is not None:
            reruns[mode.name] = _segments(rerun, setting, seconds)
    return reruns


def layer_passes(model: Model, setting: Setting) -> tuple[LayerPasses, ...]:
    """Every distinct layer of a model; what lies around its blocks is not recomputed."""
    blocks = {model.calls[number].layer for number in block_calls(model)}
    table = model_table(model, setting)
    passes = []
    for kind, layer in enumerate(table.layers):
        again = _again(layer, table.again_s[:, kind, 0].tolist(), setting)
        passes.append(
            LayerPasses(
                _segments(layer.forward, setting, float(table.forward_s[kind, 0])),
                _segments(layer.backward, setting, float(table.backward_s[kind, 0])),
                {mode: segments if kind in blocks else () for mode, segments in again.items()},
                layer.parameters,
                layer.expert_parameters,
                layer.frozen,
            )
        )
    return tuple(passes)


def require_mode(passes: Sequence[LayerPasses], mode: str, model: str) -> None:
    """Refuse a mode of recompute whose work is no pass of the device alone."""
    if any(mode not in layer.again for layer in passes):
        raise InputError(
            model,
            f"recompute {mode}",
            "a trace has none, selective, full and modules; plan with layer",
        )
