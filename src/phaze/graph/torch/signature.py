"""When two block calls are equal: class, parameters, arguments, and every operator with its shapes
and settings."""

from torch import nn

from phaze.graph.torch.regions import TracedRegion
from phaze.graph.torch.walk import PassWalk


def signature(walk: PassWalk, region: TracedRegion) -> object:
    """A value that is equal for equal blocks: the same operators, and the same results are used.
    Storages count by their order of first use, so two blocks that read the same shapes differently
    wired differ."""
    module = region.module
    assert isinstance(module, nn.Module)
    parameters = tuple(
        (name, tuple(p.shape), str(p.dtype), p.requires_grad)
        for name, p in module.named_parameters()
    )
    arguments = tuple(
        (tuple(leaf.shape), str(leaf.dtype), leaf.requires_grad) for leaf in region.takes
    )
    order: dict[int, int] = {}
    operators = tuple(
        (
            step.name,
            step.settings,
            tuple(
                (order.setdefault(o.storage, len(order)), o.shape, o.element_bytes)
                for o in step.reads
            ),
            tuple((order.setdefault(o.storage, len(order)), o.shape) for o in step.writes),
        )
        for step in walk.recorder.log.forward.get(region.number, ())
    )
    assert region.pattern is not None
    used = tuple(
        any(result is result_used for result_used in region.gives) for result in region.pattern[1]
    )
    return (
        type(module).__qualname__,
        module.training,
        parameters,
        arguments,
        operators,
        used,
        len(region.gives),
    )
