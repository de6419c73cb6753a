"""What a run or a plan says itself of what runs beside other work, in place of its stack."""

from typing import Annotated, Any

from pydantic import Field

from phaze.documents import Document
from phaze.errors import InputError
from phaze.hardware.gradients import Gradients
from phaze.hardware.overlap import Dispatcher, Exchange, Runs
from phaze.hardware.stack import Stack
from phaze.values import replace


class OverlapKeys(Document):
    """Keys of a run that its stack has too."""

    expert_overlap: Annotated[
        bool | None, Field(description="experts are exchanged behind another microbatch")
    ] = None
    tensor_overlap: Annotated[
        bool | None, Field(description="gathers and scatters of tensor groups run piece by piece")
    ] = None
    gradients: Annotated[
        Gradients | None, Field(description="width of gradients, held, sent and added")
    ] = None
    dispatcher: Annotated[Dispatcher | None, Field(description="how experts' tokens are sent")] = (
        None
    )

    @property
    def said(self) -> dict[str, Any]:
        """Those that are given."""
        values = {name: getattr(self, name) for name in OverlapKeys.model_fields}
        return {name: value for name, value in values.items() if value is not None}

    def stated(self, stack: Stack) -> Stack:
        """The stack as the run used it."""
        changed = {
            "tensor": None if self.tensor_overlap is None else Runs(runs=self.tensor_overlap),
            "dispatcher": self.dispatcher,
        }
        said = {key: value for key, value in changed.items() if value is not None}
        if said:
            stack = replace(stack, overlap=stack.overlap.model_copy(update=said))
        stack = stack_exchanging(stack, self.expert_overlap, "plan.expert_overlap")
        return stack if self.gradients is None else stack.with_gradients(self.gradients)


def stack_exchanging(stack: Stack, beside: bool | None, where: str) -> Stack:
    """The stack that exchanges experts behind another microbatch or does not, None: as it says."""
    if beside is None:
        return stack
    own: Exchange = stack.overlap.exchange
    if beside and not own.offered:
        raise InputError(
            where,
            f"the stack {stack.name} exchanges experts behind no other microbatch",
            "leave it out, or name a stack that does, with overlap.exchange offered",
        )
    exchange = own.model_copy(update={"runs": beside})
    return replace(stack, overlap=stack.overlap.model_copy(update={"exchange": exchange}))
