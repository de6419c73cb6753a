r"""Rules as values: the pipeline families, and the settings that say how stages are timed and synchronised.

A replica of a pipeline of S stages runs m microbatches. F and R are the forward and the backward seconds of a stage,
T = F + R. Every family's batch time has one form,

    batch time = alpha pace + beta sum D + E + Y,        pace = max T, or max F + max R where passes are apart

where transfers block; where chunks overlap them the pace is max T' <= max T (:mod:`phaze.placement.stage_pace`).

    family            alpha      beta       D          microbatches in flight at stage number s, from the end
    icml24            m + S - 1  0          T          s
    gpipe             m - 1      1          T          m                                                (passes apart)
    1f1b              m - 1      1          T          min(m, s)
    interleaved v     m - 1/v    1/v        T          min(m, (2 (s - 1) + (v - 1) S + 1) / v)
    zb-h1             m          (S - 1)/S  max(F, B, F + B - W)                                        S
    zb-interleaved v  m          (S - 1)/S  max(F, B, F + B - W) / v                                    S
    zb-v              m          (S - 1)/S  max(B, 2 (B - W), forms of V) / 2                           S
    dualpipe-v        m          (S - 1)/S  (max(2 F, (1 - e) F + B) + max(0, B - W)) / 2               S + 1/2

E is the end of a batch (synchronisation and optimizer step), Y the exposed reductions of tied layers. Interleaved
stages are cut into v *chunks* of equal time; that needs S to divide m and v to divide the blocks of every stage.

The last four run the gradients of inputs, B seconds, and of weights, W seconds, at different times: R = B + W, B taking
all that is no weight gradient (transfers, exposed collectives). They keep all activations of a microbatch until its
weight gradients are done, and recompute nothing. For equal stages D says exactly what the last event ends at, whatever
F, B and W are, from so many microbatches on: m >= S, under zb-v and dualpipe-v m >= 2 S (docs/placement.md has how it
was witnessed). The *forms of V*, e = 1/(S - 1), count where F > B, W > B or B > 2 W:

    2 (B - W),  e B + (1 - e) W,  e F + (1 - e) W,  (2 - e) F - (1 - e) B,  2 F - B - e W,  (2 - e) F + e B - 2 W,
    2 F - (2 + e) W

zb-v and dualpipe-v fold a replica into a V: a stage has chunks i and 2 S - 1 - i, and the last hands on to itself.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", float, npt.NDArray[np.float64])
Flying = Literal["number", "all", "capped", "depth"]
StageRule = Literal["layers", "icml24"]
EndRule = Literal["slowest", "first"]
Reduction = Literal["share", "layers"]
Prefetch = Literal["stage", "layer"]
# The name of a mode of recompute: none, selective, full, or what a stack offers between (modules joined by +).
Mode = str
Order = Literal["", "pipeline", "data"]
MODES: tuple[Mode, ...] = ("none", "selective", "full")
ORDERS: tuple[Order, ...] = ("pipeline", "data")
ZEROS = (0, 1, 2, 3)
# Coefficients of F, B and W, and what 1/(S - 1) adds to each.
Form = tuple[float, float, float, float, float, float]
ZERO_BUBBLE: tuple[Form, ...] = ((1, 1, -1, 0, 0, 0), (1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0))
ZERO_BUBBLE_V: tuple[Form, ...] = (
    (0, 1, 0, 0, 0, 0),
    (0, 2, -2, 0, 0, 0),
    (0, 0, 1, 0, 1, -1),
    (0, 0, 1, 1, 0, -1),
    (2, -1, 0, -1, 1, 0),
    (2, -1, 0, 0, 0, -1),
    (2, 0, -2, -1, 1, 0),
    (2, 0, -2, 0, 0, -1),
)
DUAL_PIPE_V: tuple[Form, ...] = (
    (2, 0, 0, 0, 0, 0),
    (2, 1, -1, 0, 0, 0),
    (1, 1, 0, -1, 0, 0),
    (1, 2, -1, -1, 0, 0),
)


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of pipeline schedule; ``pace_stages`` is how many times S counts in alpha, 0 or 1.

    ``forms`` of D where the backward pass is split, each divided by the chunks; ``more_flying`` is what stages hold
    beyond S. ``rounds_a_stage``: the fewest microbatches of a replica, in multiples of its stages. ``folded``: the last
    stage hands on to itself, and no microbatch goes from the last stage to the first. ``most_stages``: 0 if any number.
    """

    name: str
    flying: Flying
    pace_stages: int = 0
    fill: float = 1.0
    apart: bool = False
    chunks: int = 1
    forms: tuple[Form, ...] = ()
    more_flying: float = 0.0
    rounds_a_stage: int = 0
    folded: bool = False
    most_stages: int = 0

    @property
    def split(self) -> bool:
        """Whether the gradients of inputs and of weights run at different times."""
        return bool(self.forms)

    @property
    def whole_rounds(self) -> bool:
        """Whether the microbatches of a replica must be a multiple of its stages."""
        return self.chunks > 1 and not self.folded

    @property
    def around(self) -> int:
        """How often a microbatch goes from the last stage to the first, a pass."""
        return 0 if self.folded else self.chunks - 1

    @property
    def by_depth(self) -> bool:
        """Whether what a stage holds depends on the depth of the pipeline too."""
        return self.chunks > 1 or self.flying == "depth"

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
        """The forms of D at a depth by row: what F, B and W count; none where D is T."""
        forms, near = np.array(self.forms).reshape(-1, 6), 1 / (stages - 1) if stages > 1 else 0.0
        return np.asarray((forms[:, :3] + near * forms[:, 3:]) / self.chunks)

    def uncapped(self, number: Number, stages: Number) -> Number:
        """Microbatches that the stage of a number, from the end, holds at once if there are so many."""
        if self.flying == "depth":
            return stages + self.more_flying
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
        return bool(self.runs(np.array([microbatches]), stages)[0])

    def runs(self, microbatches: npt.NDArray[np.int64], stages: int) -> npt.NDArray[np.bool_]:
        """The same of each number of microbatches."""
        enough = microbatches >= self.rounds_a_stage * stages
        if self.most_stages and stages > self.most_stages:
            return np.zeros_like(enough)
        return enough & (microbatches % stages == 0) if self.whole_rounds else enough


ICML24 = Family("icml24", "number", pace_stages=1)
GPIPE = Family("gpipe", "all", apart=True)
ONE_F_ONE_B = Family("1f1b", "capped")
# One stage has no schedule: what every family may do instead.
ONE_STAGE = Family("1f1b", "capped", most_stages=1)
ZB_H1 = Family("zb-h1", "depth", forms=ZERO_BUBBLE, rounds_a_stage=1)
ZB_V = Family("zb-v", "depth", chunks=2, forms=ZERO_BUBBLE_V, rounds_a_stage=2, folded=True)
DUALPIPE_V = Family("dualpipe-v", "depth", chunks=2, forms=DUAL_PIPE_V, more_flying=0.5, rounds_a_stage=2, folded=True)


# Names of families whose backward pass is split.
SPLIT = ("zb-h1", "zb-interleaved", "zb-v", "dualpipe-v")


def interleaved(chunks: int) -> Family:
    """1F1B with so many chunks a stage."""
    return Family("interleaved", "capped", fill=1 / chunks, chunks=chunks) if chunks > 1 else ONE_F_ONE_B


def zb_interleaved(chunks: int) -> Family:
    """Zero bubble H1 with so many chunks a stage."""
    if chunks == 1:
        return ZB_H1
    return Family("zb-interleaved", "depth", chunks=chunks, forms=ZERO_BUBBLE, rounds_a_stage=1)


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
    pass of its stage. ``overlapped_transfers``: those of interleaved 1F1B run behind other chunks as far as these take
    as long, but for what runs while the pipeline fills or empties; all other families wait for theirs.
    ``gradient_wire`` and ``weight_wire``: bytes of a gradient and of a gathered weight on the wire, over
    ``sent_bytes``. ``prefetch``: ZeRO's collectives of a microbatch overlap with the pass of a whole stage, or those of
    each layer with that of a layer, when two layers are held at once. ``plain_layers``: no parameters are tied, and a
    full recompute runs every layer of a stage again, not its blocks alone.
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
    gradient_wire: float = 1.0
    weight_wire: float = 1.0
    prefetch: Prefetch = "stage"

    def overlaps(self, family: Family) -> bool:
        """Whether a family sends behind the work of other chunks: a stack's word is for interleaved 1F1B alone."""
        return self.overlapped_transfers and family.chunks > 1 and not family.split

    def unpaired_share(self, family: Family, microbatches: int, stages: int) -> float:
        """rho: the share of a stage's pieces that run beside no other, (v - 1) S of m v; 1 where transfers block."""
        if not self.overlaps(family):
            return 1.0
        return (family.chunks - 1) * stages / (microbatches * family.chunks - 1)

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
