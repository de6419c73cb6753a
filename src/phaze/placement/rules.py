r"""Rules as values: the pipeline families, and the settings that say how stages are timed and synchronised.

A replica of a pipeline of S stages runs m microbatches. F and R are the forward and the backward seconds of a stage,
T = F + R. Every family's batch time has one form,

    batch time = alpha pace + beta sum T + E + Y,        pace = max T, or max F + max R where passes are apart

    family          alpha        beta   passes apart   microbatches in flight at stage number s, from the end
    icml24          m + S - 1    0      no             s
    gpipe           m - 1        1      yes            m
    1f1b            m - 1        1      no             min(m, s)
    interleaved v   m - 1/v      1/v    no             min(m, (2 (s - 1) + (v - 1) S + 1) / v)

E is the end of a batch (synchronisation and optimizer step), Y the exposed reductions of tied layers. Interleaved
stages are cut into v *chunks* of equal time; that needs S to divide m and v to divide the blocks of every stage. A
family of split backward passes has the same form with a sum of other terms than T.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", float, npt.NDArray[np.float64])
Flying = Literal["number", "all", "capped"]
StageRule = Literal["layers", "icml24"]
EndRule = Literal["slowest", "first"]
Reduction = Literal["share", "layers"]
# The name of a mode of recompute: none, selective, full, or what a stack offers between (modules joined by +).
Mode = str
Order = Literal["", "pipeline", "data"]
MODES: tuple[Mode, ...] = ("none", "selective", "full")
ORDERS: tuple[Order, ...] = ("pipeline", "data")
ZEROS = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of pipeline schedule; ``pace_stages`` is how many times S counts in alpha, 0 or 1."""

    name: str
    flying: Flying
    pace_stages: int = 0
    fill: float = 1.0
    apart: bool = False
    chunks: int = 1

    def alpha(self, microbatches: int, stages: int) -> float:
        """How many times the pace counts: m + S - 1, or m - beta."""
        return microbatches + stages - 1.0 if self.pace_stages else microbatches - self.fill

    @property
    def beta(self) -> float:
        """How many times the sum of the stage times counts."""
        return 0.0 if self.pace_stages else self.fill

    def uncapped(self, number: Number, stages: Number) -> Number:
        """Microbatches that the stage of a number, from the end, holds at once if there are so many."""
        if self.chunks == 1:
            return number
        return (2 * (number - 1) + (self.chunks - 1) * stages + 1) / self.chunks

    def in_flight(self, microbatches: int, number: int, stages: int) -> float:
        """Microbatches that the stage of that number holds at once; parts of them with chunks."""
        if self.flying == "all":
            return float(microbatches)
        held = self.uncapped(float(number), float(stages))
        return held if self.flying == "number" else min(float(microbatches), held)

    def divides(self, microbatches: int, stages: int) -> bool:
        """Whether a replica of so many stages can run so many microbatches."""
        return self.chunks == 1 or microbatches % stages == 0


ICML24 = Family("icml24", "number", pace_stages=1)
GPIPE = Family("gpipe", "all", apart=True)
ONE_F_ONE_B = Family("1f1b", "capped")


def interleaved(chunks: int) -> Family:
    """1F1B with so many chunks a stage."""
    return Family("interleaved", "capped", fill=1 / chunks, chunks=chunks) if chunks > 1 else ONE_F_ONE_B


@dataclass(frozen=True, slots=True)
class Rules:
    """One setting, named only in documents.

    ``stage``: the edges of a stage are transfers apart from it (``layers``), or arrive while it runs (``icml24``), at
    ``link_bytes_per_s``. ``end``: E is that of the slowest stage or of the first; the first with a link takes 4 (d -
    1)/d w / link, all others what prices say. ``modes``: what recompute "best" chooses from. ``unsplit_stages``: a
    stage without a sharded layer takes one device. ``last_stage_recomputes``: in icml24 it never does. ``orders`` of
    stages and replicas, and ``zeros``, stages of ZeRO, that are allowed. ``hidden``: share of the collectives over
    replicas that is overlapped, as far as there is work beside them. ``reduction``: what is exposed of the reduction of
    gradients at the end, a ``share`` or by ``layers``. ``piece_start_s``: what a chunk beyond the first adds to each
    pass of its stage. ``overlapped_transfers``: those of interleaved chunks run behind other chunks; what filling and
    emptying the pipeline shows of them is left out. ``plain_layers``: no parameters are tied, and a full recompute runs
    every layer of a stage again, not its blocks alone.
    """

    name: str
    families: tuple[Family, ...]
    stage: StageRule = "layers"
    end: EndRule = "slowest"
    modes: tuple[Mode, ...] = MODES
    unsplit_stages: bool = False
    last_stage_recomputes: bool = True
    orders: tuple[Order, ...] = ORDERS
    zeros: tuple[int, ...] = ZEROS
    link_bytes_per_s: float | None = None
    hidden: float = 0.0
    reduction: Reduction = "share"
    piece_start_s: float = 0.0
    plain_layers: bool = False
    overlapped_transfers: bool = False

    def sent(self, chunks: int) -> int:
        """Exposed transfers of a microbatch across a boundary, a pass: one a chunk, none where chunks overlap them."""
        return 0 if self.overlapped_transfers and chunks > 1 else chunks

    def around(self, chunks: int) -> int:
        """Exposed transfers of a microbatch from the last stage to the first, a pass."""
        return 0 if self.overlapped_transfers else chunks - 1

    @property
    def flat_link_bytes_per_s(self) -> float | None:
        """The link that E is counted over as published, 4 (d - 1)/d w / link: that of the first stage alone."""
        return self.link_bytes_per_s if self.end == "first" else None


def icml24_rules(link_bytes_per_s: float) -> Rules:
    """What the ICML 2024 paper did: one flat link."""
    return Rules(
        name="icml24",
        families=(ICML24,),
        stage="icml24",
        end="first",
        modes=("none", "full"),
        unsplit_stages=True,
        last_stage_recomputes=False,
        orders=("",),
        zeros=(0,),
        link_bytes_per_s=link_bytes_per_s,
        plain_layers=True,
    )
