"""How a mode of recompute is written: none, selective, full, or modules of the stack, as a list or
joined by +, and with ``offload`` beside them where what is kept waits in the memory of the host.

A plan that names modules is offered that union of them alone; one that names no modules needs none
of the stack's; a plan whose modes are sought ("best") chooses among the efficient unions
(:func:`phaze.graph.saved.modes.unions`).
"""

from collections.abc import Sequence
from typing import Any, get_args

from phaze.errors import InputError, unknown_name
from phaze.graph.saved.modes import ALTERNATE, JOIN, OFFLOAD
from phaze.hardware.chip import Chip
from phaze.hardware.stack import RecomputeModule, Stack
from phaze.placement.rules import MODES
from phaze.values import replace

KNOWN: tuple[str, ...] = get_args(RecomputeModule)
BEST = "best"


def joined(modules: Sequence[str]) -> str:
    """The name of a union of modules, each once, in the order of the alphabet."""
    return JOIN.join(sorted(set(modules)))


def parts_of(name: str) -> list[str]:
    """The modules of a mode; none where it is none, selective, full or best."""
    return [] if name in (*MODES, BEST) else name.split(JOIN)


def with_offload(mode: str) -> str:
    """The mode with what it keeps in the memory of the host."""
    return joined([part for part in mode.split(JOIN) if part != "none"] + [OFFLOAD])


def mode_given(value: Any) -> Any:
    """A mode as a document gives it, as its name; what is none of the known ones is a
    ValueError."""
    parts = value if isinstance(value, list) else [value]
    if isinstance(value, str) and value not in MODES:
        parts = value.split(JOIN)
    if OFFLOAD in parts and all(isinstance(part, str) for part in parts):
        others = [part for part in parts if part != OFFLOAD]
        return with_offload(mode_given(others) if others else "none")
    if not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"use one of {', '.join(MODES)}, or modules: {', '.join(KNOWN)}")
    if parts[0] in MODES and len(parts) == 1:
        return parts[0]
    wrong = next((part for part in parts if part not in KNOWN), None)
    if wrong is not None:
        raise ValueError(
            f"'{wrong}' is not a module: use one of {', '.join(MODES)}, or modules: "
            f"{', '.join(KNOWN)}"
        )
    if ALTERNATE in parts and len(set(parts)) > 1:
        raise ValueError(
            f"'{ALTERNATE}' goes with no other module: every second block is recomputed in full"
        )
    return joined(parts)


def mode_named(text: str, where: str) -> str:
    """A mode of a command line, modules joined by commas or +, as its name."""
    if text in (*MODES, BEST):
        return text
    try:
        return str(mode_given(text.replace(",", JOIN)))
    except ValueError:
        modes = (*MODES, BEST, *KNOWN, OFFLOAD)
        wrong = next(
            (part for part in text.replace(",", JOIN).split(JOIN) if part not in modes), text
        )
        raise unknown_name(where, "way to recompute", wrong, modes) from None


def require_host(mode: str, chip: Chip, where: str) -> None:
    """Refuse to offload from a chip whose link to the host is not known."""
    if OFFLOAD in mode.split(JOIN) and chip.host_bytes_per_s is None:
        raise InputError(
            where,
            f"'{mode}' and {chip.name} has no [host] bandwidth",
            "give a chip that has one, or another mode",
        )


def stack_recomputing(stack: Stack, recompute: str, where: str) -> Stack:
    """The stack with the modes that a choice needs; an InputError if it cannot recompute a
    module."""
    if recompute == BEST:
        return stack
    parts = parts_of(recompute)
    if OFFLOAD in parts and stack.hidden_offload is None:
        raise InputError(
            where,
            f"the stack {stack.name} cannot offload activations",
            "leave it out, or give it hidden_offload",
        )
    for part in parts:
        if part not in (*stack.recompute_modules, *MODES, OFFLOAD):
            modules = ", ".join(stack.recompute_modules) or "none"
            raise InputError(
                where,
                f"the stack {stack.name} cannot recompute '{part}'",
                f"its modules: {modules}",
            )
    return replace(stack, recompute_modules=(), recompute_named=(recompute,) if parts else ())
