"""How long a sequence may be: as many positions as a model has, or more where rotary ones are
extended.

Rotary positions are computed, not looked up: at a longer sequence the same operators run, and
training code scales the rates of their angles. A graph at such a length says so.
"""

from phaze.errors import InputError


def extended(length: int, positions: int | None, rotary: bool) -> tuple[str, ...]:
    """What a graph at a length says of its positions; nothing where it has as many."""
    if positions is None or length <= positions or not rotary:
        return ()
    return (f"rotary positions are extended from {positions:,} to {length:,}",)


def require_positions(name: str, length: int, positions: int | None, rotary: bool) -> None:
    """Refuse a sequence that is longer than a model has positions, unless these can be extended."""
    if positions is not None and length > positions and not rotary:
        problem = f"{name} has {positions} positions, {length} were requested"
        raise InputError("--sequence", problem, f"its positions end there: use at most {positions}")
