r"""Where the time of a batch goes, from the peak of all devices to what is reached, in steps that
sum to it.

One pass of a layer on its device is taken apart by asking again with one hindrance less
(:func:`product_parts`):

    peak        FLOP / peak FLOP/s
    edges       products on arrays of this shape, memories infinitely fast, minus the above
    sustained   the same at the share of its peak that chip and software hold, measured or by its
                power limit, minus it
    memory      the same with the memories it has, minus the above
    starting    start-up of every operator, where it was measured
    vector      what vector cores do that products do not cover: all operators, each on all cores,
                minus the above
    network     tensor-parallel collectives that nothing hides
    side by side    schedule minus that sum: what cores of both kinds gain by working at once, never
                    above 0
    host        what the host adds; adding up gradients: what that takes

A stage i has a_i devices; D is their sum, m = ceil(M / d) the microbatches of a replica, A(x) = sum
a_i x_i / D the mean over the devices of a replica, C_i the seconds of stage i without transfers, j
the slowest stage. With W = sum a_i peak_i the batch on K devices is (:func:`account`)

    M W / K                     at the peak of all devices
    + m W / D - M W / K         devices left over, microbatches rounded up
    + m A(x)                    for each x of the above but the first, and for recomputing
    + m (C_j - A(C))            stage imbalance
    + transfer + bubble + synchronisation + optimizer + tied        as the plan's breakdown has them
    = batch time
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.mapped import arrays_alone_s, arrays_at_peak_s, hbm_bytes_per_s, mapped
from phaze.cost.mapping import Product
from phaze.cost.table import expert_starts, products_run
from phaze.cost.work import Work, works_of
from phaze.evaluate.flow import placed_layers
from phaze.evaluate.layer_table import LayerTable
from phaze.evaluate.layers import EXACT, SchedulingEffort, Setting, model_table, pass_cost
from phaze.graph.fuse import fuse_layer
from phaze.graph.ir import Model, OperatorGraph
from phaze.graph.rewrites import run_layer
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.placement.settings import stack_rules
from phaze.report.step_time import ENDS, RECOMPUTED, ROUNDING, Step

Floats = NDArray[np.float64]

CAUSES: Mapping[str, str] = MappingProxyType(
    {
        "peak": "matrix products at the peak of every device",
        "tile quantisation": "tiles that do not fill the arrays, filling and draining them",
        "sustained GEMM rate": "the share of its peak that chip and software hold",
        "memory-bound GEMMs": "products that wait for HBM, the global buffer or a core's buffer",
        "kernel start-up": "the measured start-up time of every operator",
        "non-matmul ops": "softmax, norms and other work that no product covers",
        "exposed TP communication": "collectives inside a layer that no computation overlaps",
        "tensor-vector overlap": "what tensor and vector cores gain by working at once",
        "CPU launch overhead": "operators that the host cannot launch fast enough",
        "gradient accumulation": "gradients of a microbatch added to those before it",
    }
)


@dataclass(frozen=True, slots=True)
class LayerParts:
    """One distinct layer: both passes by cause, and the seconds that recomputing it takes."""

    causes: Floats
    again_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Split:
    """How a batch lies on the devices: all devices, microbatches of the batch and of one
    replica."""

    devices: int
    microbatches: int
    rounds: int


@dataclass(slots=True)
class Products:
    """Products of one chip taken apart, each distinct one once."""

    chip: Chip
    constants: Constants
    known: dict[Product, Floats]

    def parts(self, product: Product) -> Floats:
        """peak, edges, sustained, memory; they sum to the product's time on all cores."""
        if product not in self.known:
            chip, constants = self.chip, self.constants
            peak_s = 2 * product.macs / chip.peak_flops
            if product.empty:
                written = product.c_bytes if product.batch * product.m * product.n else 0.0
                times = [0.0, 0.0, 0.0, written / hbm_bytes_per_s(chip, constants)]
            else:
                alone_s, whole_s = (
                    arrays_alone_s(product, chip, constants),
                    mapped(product, chip, constants).time_s,
                )
                times = [peak_s, arrays_at_peak_s(product, chip), alone_s, whole_s]
            self.known[product] = np.diff(times, prepend=0.0)
        return self.known[product]


def product_parts(works: Sequence[Work], products: Products) -> Floats:
    """The sum over the products of some works, as the first four causes."""
    found = np.zeros(len(CAUSES))
    for work in works:
        for product in products_run(work, products.constants):
            found[:4] += products.parts(product)
    return found


def _cause(name: str) -> int:
    return list(CAUSES).index(name)


def _pass_parts(
    graph: OperatorGraph,
    setting: Setting,
    products: Products,
    backward: bool,
    effort: SchedulingEffort,
) -> Floats:
    """A pass under a stack's schedule rule."""
    if not graph.operators:
        return np.zeros(len(CAUSES))
    works, constants = works_of(graph, setting.residency), setting.constants
    cost = pass_cost(graph, setting, backward, effort)
    work_s = float(cost.times_s.sum())
    starts = {
        "tensor": constants.start_up_s,
        "both": constants.start_up_s,
        "vector": constants.vector_start_up_s,
    }
    found = product_parts(works, products)
    found[_cause("kernel start-up")] = sum(
        starts.get(work.core, 0.0)
        + expert_starts(work.products) * (constants.expert_start_s or 0.0)
        for work in works
    )
    # Time gained by working at once; what pieces of a collective hide behind products is no exposed
    # communication.
    gained = max(0.0, work_s + cost.open_s - cost.device_s)
    hidden = min(gained, cost.open_s) if setting.stack.piecewise_collectives else 0.0
    found[_cause("exposed TP communication")] = cost.open_s - hidden
    found[_cause("non-matmul ops")] = work_s - found[: _cause("non-matmul ops")].sum()
    found[_cause("tensor-vector overlap")] = hidden - gained
    found[_cause("CPU launch overhead")] = cost.pass_s - found.sum()
    return found


def plan_parts(
    model: Model, setting: Setting, effort: SchedulingEffort = EXACT
) -> tuple[list[LayerParts], LayerTable]:
    """The layers of a model in a setting, and their seconds."""
    products = Products(setting.chip, setting.constants, {})
    effort = effort if effort.parts is not None else replace(effort, parts={})
    table, parts = model_table(model, setting, effort), []
    every = stack_rules(setting.stack, setting.cluster).plain_layers
    graph = placed_layers(model, table, precision=setting.precision)
    placed = {model.calls[layer.id].layer: layer for layer in graph.layers}
    for kind, layer in enumerate(model.layers):
        fused = fuse_layer(run_layer(layer, setting.stack, setting.precision), setting.stack.fusion)
        causes = _pass_parts(fused.forward, setting, products, False, effort)
        causes = causes + _pass_parts(fused.backward, setting, products, True, effort)
        forward_s, backward_s = placed[kind].forward_s, placed[kind].backward_s
        causes[_cause("gradient accumulation")] = forward_s + backward_s - causes.sum()
        full_s = None if every else placed[kind].full_s
        again = {
            "selective": placed[kind].selective_s,
            **{x.name: x.again_s for x in placed[kind].more},
        }
        parts.append(LayerParts(causes, {**again, "full": forward_s if full_s is None else full_s}))
    return parts, table


def _again(stage: Mapping[str, Any], layers: Sequence[LayerParts]) -> float:
    mode = stage["recompute"]
    return sum(one.again_s.get(mode, 0.0) for one in layers)


def account(
    plan: Mapping[str, Any], parts: Sequence[LayerParts], calls: Sequence[int], split: Split
) -> list[Step]:
    """The steps of a plan (``phaze.plan/1``); ``calls`` say which of ``parts`` each layer number
    is."""
    stages = plan["stages"]
    own = [[parts[calls[layer]] for layer in stage["layers"]] for stage in stages]
    devices = np.array([float(stage["devices"]) for stage in stages])
    causes = np.array([np.sum([one.causes for one in layers], axis=0) for layers in own])
    again = np.array([_again(stage, layers) for stage, layers in zip(stages, own, strict=True)])
    times, mean = causes.sum(axis=1) + again, devices / devices.sum()
    slowest = int(np.argmax([stage["time_s"] for stage in stages]))
    work = float(devices @ causes[:, 0])
    at_peak, used = (
        split.microbatches * work / split.devices,
        split.rounds * work / float(devices.sum()),
    )
    steps = [
        Step("GEMM FLOPs at peak", at_peak, CAUSES["peak"]),
        Step("idle devices", used - at_peak, "devices without work, microbatches rounded up"),
    ]
    means = split.rounds * (mean @ causes)
    steps += [Step(name, float(means[at]), CAUSES[name]) for at, name in enumerate(CAUSES) if at]
    steps.append(
        Step(
            "activation recomputation",
            float(split.rounds * (mean @ again)),
            RECOMPUTED,
        )
    )
    imbalance = float(split.rounds * (times[slowest] - mean @ times))
    steps.append(
        Step(
            "stage imbalance",
            imbalance,
            "devices that wait for the slowest stage, microbatch by microbatch",
        )
    )
    steps += [
        Step(name, plan["breakdown"].get(key, 0.0), meaning)
        for key, (name, meaning) in ENDS.items()
    ]
    return [step for step in steps if abs(step.seconds) > ROUNDING * plan["batch_s"]]
