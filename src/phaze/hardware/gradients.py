"""Gradients in 16 or in 32 bits: one key of a stack or a run that sets all that depends on it.

    bytes                                         bf16   fp32
    held of a gradient                            2      4
    on the wire                                   2      4
    moved by a product that adds to the sum       4      8      a result read and written
    moved to add a microbatch's gradient apart    4      8

A product that writes its result moves what it did; so does a stack that adds nothing apart.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

Gradients = Literal["bf16", "fp32"]
WIDTHS: Mapping[str, float] = MappingProxyType({"bf16": 2.0, "fp32": 4.0})
# Bytes that a product moves for a result that it writes: those beyond are a sum's.
WRITTEN = 2.0
NUMBERS = ("gradient_bytes", "state_bytes", "accumulation_inside", "accumulation_apart")
# Bytes of a gradient where a stack says nothing of it.
USUAL = 4.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def keys_of_gradients(gradients: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a stack that follow from the width of its gradients, of those that it has."""
    width = WIDTHS[gradients]
    if not all(_is_number(keys[name]) for name in NUMBERS if keys.get(name) is not None):
        return {}  # the check of the file says so
    before = keys.get("gradient_bytes") or USUAL
    found: dict[str, Any] = {"gradient_bytes": width, "gradient_wire_bytes": width}
    if keys.get("state_bytes"):
        found["state_bytes"] = keys["state_bytes"] + width - before
    if isinstance(keys.get("state"), Mapping):
        found["state"] = {**keys["state"], "gradient": width}
    inside, apart = keys.get("accumulation_inside", WRITTEN), keys.get("accumulation_apart", 8.0)
    if inside > WRITTEN:
        found["accumulation_inside"] = 2 * width
    elif apart > 0:
        found["accumulation_apart"] = 2 * width
    return found
