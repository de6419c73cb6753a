"""A traced layer as a stack runs it: in the precision of a job, its gradients added up and its
softmaxes run as the stack does. Each rewrite takes a layer and gives a layer.
"""

from phaze.graph.ir import Layer
from phaze.graph.rewrites.accumulation import KnownGradients, added_inside
from phaze.graph.rewrites.grouped import with_grouped
from phaze.graph.rewrites.low_precision import low_precision
from phaze.graph.rewrites.unfused_softmax import unfused_softmaxes
from phaze.graph.rewrites.wide_precision import WIDE_BYTES, wide_layer
from phaze.hardware.formats import RECIPES, WIDE, Precision
from phaze.hardware.stack import Stack


def run_layer(
    layer: Layer, stack: Stack, precision: Precision, gradients: KnownGradients | None = None
) -> Layer:
    """The layer as a stack runs it in a precision; ``gradients`` keeps operators that layers have
    in common."""
    layer = unfused_softmaxes(layer, stack.softmax_matrices)
    if precision == WIDE:
        return added_inside(wide_layer(layer), max(stack.accumulation_inside, WIDE_BYTES))
    layer = low_precision(
        added_inside(layer, stack.accumulation_inside, gradients),
        RECIPES.get(precision),
        stack.casts_apart,
    )
    return with_grouped(layer) if stack.grouped_share or stack.expert_start else layer
