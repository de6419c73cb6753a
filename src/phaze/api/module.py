"""A model of your own as an object: ``phaze.plan(phaze.Model(module, inputs), ...)``."""

from typing import Any

from phaze.graph.supply.module import ModuleSupply


class Model(ModuleSupply):
    """An ``nn.Module`` with example inputs: a tensor, a tuple or a dict of arguments.

    ``loss`` is a function of the module's result, where that is no loss. The first dimension of the first input is the
    microbatch, its second the sequence. The module is copied without its weights; it may be on the meta device. Traces
    live as long as this value.

        model = phaze.Model(Decoder(), torch.zeros(1, 2048, dtype=torch.long))
        phaze.plan(model, chip="h100", devices=64, batch="4M-tokens")
    """

    __slots__ = ()

    def __init__(self, module: Any, inputs: Any, loss: Any = None, name: str = "module") -> None:
        super().__init__(module, inputs, loss, name)
