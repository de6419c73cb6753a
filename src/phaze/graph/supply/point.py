"""Where a model is requested: a tensor width, microbatch, sequence, kind of attention, with or
without sequence parallelism; and what is known of a model before it is traced anywhere."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from phaze.errors import InputError
from phaze.graph.ir import Attention
from phaze.graph.positions import require_positions

# The widths that are tried where nothing says others, as far as they divide the model.
USUAL_WIDTHS = (1, 2, 4, 8)


class RankVariant(TypedDict, total=False):
    """How a rank runs; where nothing is stated by eager attention and without sequence
    parallelism."""

    attention: Attention
    sequence_parallel: bool


@dataclass(frozen=True, slots=True, order=True)
class RankPoint:
    """One rank of a model at a width, microbatch and sequence."""

    tensor: int
    microbatch: int
    sequence: int
    attention: Attention = "eager"
    sequence_parallel: bool = False

    @property
    def split(self) -> bool:
        """Whether sequence parallelism splits anything: one rank alone has nothing to split
        with."""
        return self.sequence_parallel and self.tensor > 1

    def document(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        shards = ", sequence parallel" if self.sequence_parallel else ""
        return (
            f"tensor {self.tensor}, microbatch {self.microbatch}, sequence {self.sequence}, "
            f"{self.attention}{shards}"
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model that can be traced: its usual ``sequence``, the ``longest`` (None:
    any), whether it is ``fixed``, the widths that divide it, and ``refused``: why each other usual
    width does not. ``basis`` says where its tensor-parallel plan comes from; ``plan`` is that plan
    (``phaze.tensor-plan/1``) where it is not its library's own. ``rotary``: positions beyond
    ``longest`` are extended.
    """

    name: str
    sequence: int
    longest: int | None
    fixed: bool
    widths: tuple[int, ...]
    refused: tuple[tuple[int, str], ...] = ()
    basis: str = ""
    plan: Mapping[str, Any] | None = None
    rotary: bool = False

    @property
    def shards(self) -> bool:
        """Whether it can be run with sequence parallelism."""
        return self.plan is None or bool(self.plan.get("sequence_parallel", True))

    def length(self, requested: int | None) -> int:
        """The sequence to use: its own if none is requested."""
        length = self.sequence if requested is None else requested
        if self.fixed and self.sequence == 1 != length:
            raise InputError(
                "--sequence",
                f"{self.name} has no sequence: it is planned in samples",
                "leave it out",
            )
        if self.fixed and length != self.sequence:
            raise InputError(
                "--sequence", f"{self.name} always has {self.sequence} positions, not {length}"
            )
        if length < 1:
            raise InputError("--sequence", f"{length} is out of range", "it must be at least 1")
        require_positions(self.name, length, self.longest, self.rotary)
        return length

    def document(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "sequence": self.sequence,
            "longest": self.longest,
            "fixed": self.fixed,
            "widths": list(self.widths),
            "refused": [list(row) for row in self.refused],
            "basis": self.basis,
            "plan": None if self.plan is None else dict(self.plan),
            "rotary": self.rotary,
        }


def facts_of(raw: Mapping[str, Any]) -> Facts:
    """What :meth:`Facts.document` wrote."""
    return Facts(
        str(raw["name"]),
        int(raw["sequence"]),
        None if raw["longest"] is None else int(raw["longest"]),
        bool(raw["fixed"]),
        tuple(int(width) for width in raw["widths"]),
        tuple((int(width), str(reason)) for width, reason in raw["refused"]),
        str(raw["basis"]),
        None if raw["plan"] is None else dict(raw["plan"]),
        bool(raw["rotary"]),
    )


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank that is requested; None: width 1, microbatch 1, the model's own sequence, eager
    attention, and no sequence parallelism, or all as the file of a graph has it."""

    tensor: int | None = None
    microbatch: int | None = None
    sequence: int | None = None
    attention: Attention | None = None
    sequence_parallel: bool | None = None

    def stated(self) -> dict[str, Any]:
        """What of it is requested."""
        return {key: value for key, value in asdict(self).items() if value is not None}
