"""Number formats that products run in: recipes of low precision, and what a chip makes of them.

A recipe says in which format the products of a block's linear maps run, what casting their operands
moves, and what is kept and sent; all else (router, logits, embeddings, norms, attention) stays in
16 bits. Bytes an element:

    recipe           products   cast of an activation: read, written twice (as it is and transposed)
                     weights
    fp8-delayed      8 bit      2, 1 + 1
                     2 + 1 + 1
    fp8-tensorwise   8 bit      2 for the largest value, then 2, 1 + 1
                     2 + 1 + 1
    fp8-block        8 bit      2, 1 + 1 and a 4-byte scale for 128
                     2 + 1 + 1
    mxfp8            8 bit      2, 1 + 1 and a 1-byte scale for 32
                     2 + 1 + 1
    nvfp4            4 bit      2 for the largest value, then 2, 1/2 + 1/2 and a 1-byte scale for
                     2 + 1/2
                                16; the transposed one of a rotated copy (2 read, 2 written)

    fp32             32 bit     none: all that is 16 bits else is 32
                     4

Weights are cast once a step; ``params``: the stack holds and gathers them in the low format alone,
without 16 bits. ``fp8`` is the first recipe of few bits that a stack names. A chip says how many
times faster than in 16 bits its arrays are in a format (``[formats]``; ``fp32``: of 32-bit
operands, as TF32 where arrays round them to that); a precision that chip or stack does not have is
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal, get_args

from pydantic import Field

from phaze.documents import Document
from phaze.errors import InputError, unknown_name

Precision = Literal[
    "fp32", "bf16", "fp8", "fp8-delayed", "fp8-tensorwise", "fp8-block", "mxfp8", "nvfp4"
]
FormatName = Literal["fp8", "mxfp8", "fp4"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
TITLES: Mapping[Precision, str] = MappingProxyType(
    {
        "fp32": "FP32",
        "bf16": "BF16",
        "fp8": "FP8",
        "fp8-delayed": "FP8 (delayed scaling)",
        "fp8-tensorwise": "FP8 (current scaling, one scale a tensor)",
        "fp8-block": "FP8 (blockwise scaling, one scale for 128 values)",
        "mxfp8": "MXFP8 (one scale for 32 values)",
        "nvfp4": "NVFP4 (one scale for 16 values)",
    }
)
"""A precision in an answer's words."""
PLAIN: Precision = "bf16"
WIDE: Precision = "fp32"
WIDE_BITS = 32
"""Of fp32, the widest format."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One recipe; bytes are those of an element.

    ``format``: the chip's word for it; ``bits`` of an operand. ``operand_bytes`` with its scales.
    ``looks_first``: the largest value is sought in a pass of its own. ``rotates``: operands of
    weight gradients are of a rotated copy.
    """

    name: Precision
    format: FormatName
    bits: int
    operand_bytes: float
    looks_first: bool = False
    rotates: bool = False

    @property
    def scale_known(self) -> bool:
        """Whether scales are those of earlier steps, so that the kernel that makes a tensor may
        write it in the format at once."""
        return self.name == "fp8-delayed"

    def weight_bytes(self, params: bool) -> float:
        """Bytes held for a weight: 16 bits and what products read of it, or that alone; 4 bits are
        held once."""
        held = self.operand_bytes * (1 if self.bits == 4 else 2)
        return held if params else 2.0 + held

    @property
    def weight_cast_bytes(self) -> float:
        """What casting a weight once a step moves."""
        return 2.0 + 2.0 * self.operand_bytes + (2.0 if self.looks_first else 0.0)


RECIPES: Mapping[Precision, Recipe] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe("fp8-delayed", "fp8", 8, 1.0),
            Recipe("fp8-tensorwise", "fp8", 8, 1.0, looks_first=True),
            Recipe("fp8-block", "fp8", 8, 1.0 + 4.0 / 128.0),
            Recipe("mxfp8", "mxfp8", 8, 1.0 + 1.0 / 32.0),
            Recipe("nvfp4", "fp4", 4, 0.5 + 1.0 / 16.0, looks_first=True, rotates=True),
        )
    }
)
Recipes = tuple[Precision, ...]
Ratios = tuple[tuple[str, float], ...]
Ratio = Annotated[float, Field(ge=1, le=64)]


class FormatsTable(Document):
    """How many times faster than in 16 bits the arrays are in a number format; without a key they
    have none."""

    fp8: Ratio | None = None
    mxfp8: Ratio | None = None
    fp4: Ratio | None = None
    fp32: Annotated[float, Field(ge=1 / 64, le=1)] | None = None

    @property
    def ratios(self) -> Ratios:
        """Each format that the arrays have, and its ratio."""
        return tuple((name, ratio) for name, ratio in self if ratio is not None)


class NotPricedError(InputError):
    """A precision that a chip or a stack does not have."""


def known_precision(name: str, where: str) -> Precision:
    """The precision of a name, or an InputError with those that there are."""
    for known in PRECISIONS:
        if known == name:
            return known
    raise unknown_name(where, "precision", name, PRECISIONS)


def resolved(precision: Precision, recipes: Recipes, stack: str, where: str) -> Precision:
    """The precision by its full name (``fp8`` is the stack's first recipe), or a refusal where the
    stack has none."""
    if precision == PLAIN:
        return precision
    low = [recipe for recipe in recipes if recipe in RECIPES]
    if precision not in recipes and not low:
        allowed = ", ".join((PLAIN, *recipes))
        raise NotPricedError(
            where, f"'{precision}' and the stack {stack} has no such recipe", f"allowed: {allowed}"
        )
    name = low[0] if precision == "fp8" else precision
    if name not in recipes:
        allowed = ", ".join((PLAIN, "fp8", *recipes))
        raise NotPricedError(
            where, f"'{precision}' is not a recipe of the stack {stack}", f"allowed: {allowed}"
        )
    return name


def format_of(precision: Precision) -> str | None:
    """The chip's word for what products of a precision run in; None: 16 bits."""
    if precision in ("fp8", WIDE):  # any recipe of 8 bits, and 32 bits, are called alike
        return precision
    recipe = RECIPES.get(precision)
    return None if recipe is None else recipe.format


def times_faster(precision: Precision, formats: Ratios) -> float:
    """How many times faster than in 16 bits arrays are in a precision's format."""
    return dict(formats).get(format_of(precision) or PLAIN, 1.0)


def require_format(precision: Precision, formats: Ratios, chip: str, where: str) -> None:
    """Refuse a precision whose format the chip's arrays do not have."""
    needed = format_of(precision)
    if needed is not None and needed not in dict(formats):
        known = ", ".join(name for name, _ in formats) or "none but 16 bits"
        problem = f"'{precision}' needs arrays of {needed}, and {chip} has {known}"
        raise NotPricedError(where, problem, "give bf16, or a chip whose [formats] has it")
