"""What no framework here can launch, whatever its release."""

from phaze.export.flag import Limit
from phaze.export.source import PlannedSplit
from phaze.hardware.stack import StateBytes


def has_special_state(split: PlannedSplit) -> bool:
    """Whether the optimizer's state has other types than the usual."""
    return split.state is not None and split.state != StateBytes()


def modes(split: PlannedSplit) -> str:
    """What the stages recompute, in words."""
    return ", ".join(sorted(set(split.recompute)))


COMMON = (
    Limit(lambda split: len(set(split.devices)) > 1,
          lambda split: (
              f"its stages have {min(split.devices)} to "
              f"{max(split.devices)} devices each"
          ),
          "{name} gives every stage the same; search with one width, widths = [1]"),
    Limit(lambda split: split.batch % (split.microbatch * split.data) != 0,
          (
              "a batch of {split.batch} is not a multiple of microbatch {split.microbatch} x "
              "{split.data} replicas"
          ),
          "{name} needs one; plan with another batch or microbatch"),
    Limit(lambda split: len(set(split.recompute)) > 1,
          lambda split: f"its stages recompute differently ({modes(split)})",
          (
              "{name} recomputes alike on every stage: phaze plan --recompute full, in a "
              "study recompute = [true]"
          )),
)  # fmt: skip
