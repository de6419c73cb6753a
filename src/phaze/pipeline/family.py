r"""What a pipeline family is: the coefficients of its batch time, the microbatches it holds, the
order of its passes.

A replica of a pipeline of S stages runs m microbatches. F and R are the forward and the backward
seconds of a stage, T = F + R. Every family's batch time has one form,

    batch time = alpha pace + beta sum D + E + Y,    pace = max T, or max F + max R where passes are
                                                     separate

where transfers block; where chunks overlap them the pace is max T' <= max T
(:mod:`phaze.placement.stage_pace`).

    family            alpha      beta       D          microbatches in flight at stage number s,
                      from the end
    icml24            m + S - 1  0          T          s
    gpipe             m - 1      1          T          m
                      (passes separate)
    1f1b              m - 1      1          T          min(m, s)
    interleaved v     m - 1/v    1/v        T          min(m, (2 (s - 1) + (v - 1) S + 1) / v)
    zb-h1             m          (S - 1)/S  max(F, B, F + B - W)
                      S
    zb-interleaved v  m          (S - 1)/S  max(F, B, F + B - W) / v
                      S
    zb-v              m          (S - 1)/S  max(B, 2 (B - W), fill terms of V) / 2
                      S
    dualpipe-v        m          (S - 1)/S  (max(2 F, (1 - e) F + B) + max(0, B - W)) / 2
                      S + 1/2

E is the end of a batch (synchronisation and optimizer step), Y the exposed reductions of tied
layers. Interleaved stages are cut into v *chunks* of equal time; that needs S to divide m and v to
divide the blocks of every stage.

The last four run the gradients of inputs, B seconds, and of weights, W seconds, at different times:
R = B + W, B taking all that is no weight gradient (transfers, exposed collectives). They keep all
activations of a microbatch until its weight gradients are done, and recompute nothing. For equal
stages D says exactly what the last event ends at, whatever F, B and W are, from so many
microbatches on: m >= S, under zb-v and dualpipe-v m >= 2 S (docs/placement.md has how it was
witnessed). The *fill terms of V*, e = 1/(S - 1), count where F > B, W > B or B > 2 W:

    2 (B - W),  e B + (1 - e) W,  e F + (1 - e) W,  (2 - e) F - (1 - e) B,  2 F - B - e W,  (2 - e)
                F + e B - 2 W,
    2 F - (2 + e) W

A V-shaped family folds a replica: a stage has chunks i and 2 S - 1 - i, and the last hands on to
itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from phaze.pipeline.event_lists_kernels import one_f_one_b

Number = TypeVar("Number", float, npt.NDArray[np.float64])
InFlight = Literal["number", "all", "capped", "depth"]
# The passes of every stage in their order, of (stages, microbatches, chunks).
EventLists = Callable[[int, int, int], npt.NDArray[np.int32]]
# Coefficients of F, B and W, and what 1/(S - 1) adds to each.
FillTerm = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of pipeline schedule, with its number of chunks a stage.

    Numbers: ``in_flight_rule`` says what of the table above a stage holds, ``extra_in_flight`` what
    it holds beyond S. ``pace_stages`` is how many times S counts in alpha, 0 or 1.
    ``separate_passes``: all forwards, then all backwards. ``fill_terms`` of D where the backward
    pass is split, each divided by the chunks. ``min_microbatches_per_stage``: the fewest of a
    replica, in multiples of its stages. ``v_shaped``: the last stage hands on to itself, and no
    microbatch goes from the last stage to the first. ``most_stages``: 0 if any number.
    ``event_lists``: the passes of every stage in their order.

    Names: ``title`` for people, ``torch_schedule`` that of PyTorch, ``megatron`` whether Megatron
    Core runs it, with ``reason`` for a launch file. ``interleaves``: it has any number of chunks
    from 2 on; ``chunked`` is the family that one without chunks is with them. ``implied``: a
    document need not name it. ``dominated_by`` names a family that is never worse in time or
    memory. ``note``: what an answer must say beside its numbers.
    """

    name: str
    in_flight_rule: InFlight
    title: str = field(default="", compare=False)
    event_lists: EventLists = field(default=one_f_one_b, compare=False)
    pace_stages: int = 0
    separate_passes: bool = False
    chunks: int = 1
    fill_terms: tuple[FillTerm, ...] = ()
    extra_in_flight: float = 0.0
    min_microbatches_per_stage: int = 0
    v_shaped: bool = False
    most_stages: int = 0
    interleaves: bool = field(default=False, compare=False)
    chunked: str = field(default="", compare=False)
    implied: bool = field(default=False, compare=False)
    dominated_by: str = field(default="", compare=False)
    torch_schedule: str = field(default="", compare=False)
    megatron: bool = field(default=False, compare=False)
    reason: str = field(default="", compare=False)
    note: str = field(default="", compare=False)

    @property
    def split(self) -> bool:
        """Whether the gradients of inputs and of weights run at different times."""
        return bool(self.fill_terms)

    @property
    def whole_rounds(self) -> bool:
        """Whether the microbatches of a replica must be a multiple of its stages."""
        return self.chunks > 1 and not self.v_shaped

    @property
    def wraparound_transfers(self) -> int:
        """How often a microbatch goes from the last stage to the first, a pass."""
        return 0 if self.v_shaped else self.chunks - 1

    @property
    def by_depth(self) -> bool:
        """Whether what a stage holds depends on the depth of the pipeline too."""
        return self.chunks > 1 or self.in_flight_rule == "depth"

    @property
    def fill(self) -> float:
        """How many times filling the pipeline counts where no backward pass is split: once a
        chunk."""
        return 1 / self.chunks

    def alpha(self, microbatches: int, stages: int) -> float:
        """How many times the pace counts: m + S - 1, m, or m - beta."""
        if self.pace_stages:
            return microbatches + stages - 1.0
        return float(microbatches) if self.split else microbatches - self.fill

    def beta(self, stages: int) -> float:
        """How many times the sum of D over the stages counts."""
        if self.split:
            return (stages - 1) / stages
        return 0.0 if self.pace_stages else self.fill

    def coefficients(self, stages: int) -> npt.NDArray[np.float64]:
        """The fill terms of D at a depth by row: what F, B and W count; none where D is T."""
        terms = np.array(self.fill_terms).reshape(-1, 6)
        near = 1 / (stages - 1) if stages > 1 else 0.0
        return np.asarray((terms[:, :3] + near * terms[:, 3:]) / self.chunks)

    def uncapped(self, number: Number, stages: Number) -> Number:
        """Microbatches that the stage of a number, from the end, holds at once if there are so
        many."""
        if self.in_flight_rule == "depth":
            return stages + self.extra_in_flight
        if self.chunks == 1:
            return number
        return (2 * (number - 1) + (self.chunks - 1) * stages + 1) / self.chunks

    def in_flight(self, microbatches: int, number: int, stages: int) -> float:
        """Microbatches that the stage of that number holds at once; parts of them with chunks."""
        if self.in_flight_rule == "all":
            return float(microbatches)
        uncapped = self.uncapped(float(number), float(stages))
        return uncapped if self.in_flight_rule == "number" else min(float(microbatches), uncapped)

    def divides(self, microbatches: int, stages: int) -> bool:
        """Whether a replica of so many stages can run so many microbatches."""
        return bool(self.runs(np.array([microbatches]), stages)[0])

    def runs(self, microbatches: npt.NDArray[np.int64], stages: int) -> npt.NDArray[np.bool_]:
        """The same of each number of microbatches."""
        enough = microbatches >= self.min_microbatches_per_stage * stages
        if self.most_stages and stages > self.most_stages:
            return np.zeros_like(enough)
        return enough & (microbatches % stages == 0) if self.whole_rounds else enough

    def with_chunks(self, chunks: int) -> "Family":
        """The family with so many chunks a stage; a ValueError where it has not as many."""
        if self.interleaves:
            if chunks == 1:
                raise ValueError(f"give chunks of 2 or more to {self.name}")
            return replace(self, chunks=chunks)
        if chunks > self.chunks and self.chunks > 1:
            raise ValueError(f"{self.name} has {self.chunks} chunks a stage, not {chunks}")
        if chunks > 1 and self.chunks == 1:
            raise ValueError(f"{self.name} has no chunks; with {chunks} it is {self.chunked}")
        return self

    def variants(self, blocks: int, chunks: Sequence[int] | None) -> list["Family"]:
        """The family with every number of chunks that two or more stages of ``blocks`` can have, of
        ``chunks`` if given; none where there are too few blocks."""
        if self.interleaves:
            return [
                self.with_chunks(v)
                for v in range(2, blocks // 2 + 1)
                if chunks is None or v in chunks
            ]
        return [self] if self.chunks == 1 or blocks >= self.chunks else []
