"""A model of your own as an object: ``phaze.plan(phaze.Model(module, inputs), ...)``."""

from typing import Any

from phaze.graph.supply.module import ModuleSupply


class Model(ModuleSupply):
    """An ``nn.Module`` with example inputs: a tensor, a tuple or a dict of arguments.

    The first dimension of the first input is the microbatch, its second the sequence in tokens. The
    module is copied without its weights; it may be on the meta device. Traces live as long as this
    value.

    Args:
        module: The ``nn.Module``.
        inputs: Example inputs: a tensor, a tuple of arguments, or a dict of keyword arguments.
        loss: A function of the module's result that returns a scalar; default: the result is the
            loss.
        name: What answers call it.

    Examples:
        >>> import phaze, torch
        >>> layers = [torch.nn.Linear(256, 256) for _ in range(4)]
        >>> model = phaze.Model(torch.nn.Sequential(*layers), torch.zeros(1, 64, 256),
        ...     loss=lambda y: y.mean())
        >>> phaze.graph(model)["summary"]["parameters"] == 4 * (256 * 256 + 256)
        True
    """

    __slots__ = ()

    def __init__(self, module: Any, inputs: Any, loss: Any = None, name: str = "module") -> None:
        super().__init__(module, inputs, loss, name)
