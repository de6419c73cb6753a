"""What would make a job or a plan fit, each change alone, in words."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from phaze.units import show

# Estimated on layers whose times are given; tried out on traced ones; of a given plan.
Manner = Literal["estimated", "tried", "given"]
WORDS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "hbm_bytes": lambda value: f"at least {show(value, 'B')} a device",
        "devices": lambda value: f"at least {value:,}",
        "tensor": lambda value: f"TP {value}",
        "microbatch_divisor": lambda value: f"{value} times smaller",
        "recompute": lambda value: (
            f"{value}, {'stage by' if value == 'best' else 'on every'} stage"
        ),
        "zero": lambda value: f"stage {value}: state sharded over the replicas",
    }
)
REMARKS: Mapping[Manner, Mapping[str, str]] = MappingProxyType(
    {
        "estimated": {
            "tensor": " (estimated: sharded layers shrink with it)",
            "microbatch_divisor": " (estimated: activations shrink with it)",
        },
        "tried": {},
        "given": {
            "devices": ", the pipeline deeper, as many replicas",
            "tensor": ", as many replicas as there are devices for",
        },
    }
)


def lever_rows(levers: Mapping[str, Any], manner: Manner) -> list[tuple[str, str]]:
    """Each lever with its least change that helps."""
    rows = []
    for name, value in levers.items():
        words = "does not help alone"
        if value is not None:
            words = WORDS.get(name, str)(value) + REMARKS[manner].get(name, "")
        rows.append((name.removesuffix("_bytes").removesuffix("_divisor"), words))
    return rows
