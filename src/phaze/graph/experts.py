"""Mixtures of experts: which graphs have them, and what is not planned of them yet."""

from phaze.graph.ir import Layer, Model

BALANCED = (
    "experts are taken as equally loaded: each of the E experts gets 1/E of the routed tokens"
)
NO_EXPERT_PARALLELISM = (
    "the model is a mixture of experts and expert parallelism is not planned: every "
    "tensor group holds all experts of "
    "its layers, so memory is higher, and communication another, than where experts are "
    "spread over devices"
)


def has_experts(model: Model) -> bool:
    """Whether a graph routes tokens to experts: its tracer says how, or its modules are called
    so."""
    if any(text.startswith("experts ") for text in model.approximations):
        return True
    return any(layer_has_experts(layer) for layer in model.layers)


def layer_has_experts(layer: Layer) -> bool:
    """Whether the experts of a mixture are in a layer: its modules are called so."""
    return any("experts" in op.module.split(".") for op in layer.forward.operators)


def notes_of(model: Model, planned: bool = False) -> tuple[str, ...]:
    """What a plan of a model must say beside its numbers: approximations of its graph, and what is
    not planned, unless experts that ranks shard were ``planned`` too."""
    shared = any(parameter.experts for layer in model.layers for parameter in layer.parameters)
    return (
        *model.approximations,
        *((NO_EXPERT_PARALLELISM,) if has_experts(model) and not (shared or planned) else ()),
    )
