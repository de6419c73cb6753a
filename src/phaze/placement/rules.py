"""Rules as values: the settings that say how stages are timed and synchronised, for the families
that may run."""

from dataclasses import dataclass
from typing import Literal

from phaze.pipeline.families import ICML24
from phaze.pipeline.family import Family

StageRule = Literal["layers", "icml24"]
EndRule = Literal["slowest", "first"]
Prefetch = Literal["stage", "layer"]
# The name of a mode of recompute: none, selective, full, or what a stack offers between (modules
# joined by +).
Mode = str
Order = Literal["", "pipeline", "data"]
MODES: tuple[Mode, ...] = ("none", "selective", "full")
ORDERS: tuple[Order, ...] = ("pipeline", "data")
ZEROS = (0, 1, 2, 3)


@dataclass(frozen=True, slots=True)
class Rules:
    """One setting, named only in documents.

    ``stage``: the edges of a stage are transfers apart from it (``layers``), or arrive while it
    runs (``icml24``), at ``link_bytes_per_s``. ``end``: E is that of the slowest stage or of the
    first; the first with a link takes 4 (d - 1)/d w / link, all others what prices say. ``modes``:
    what recompute "best" chooses from. ``unsplit_stages``: a stage without a sharded layer takes
    one device. ``last_stage_recomputes``: in icml24 it never does. ``orders`` of stages and
    replicas, and ``zeros``, stages of ZeRO, that are allowed.

    What a second of a communication adds to the work that it runs beside, 1 where it is waited for:
    ``reduction_cost`` of gradients behind the last backward pass, in pieces of ``bucket``
    parameters (None: 40 million, or a million a replica if more), ``gather_cost`` of weights behind
    the first forward pass, ``sharded_cost`` of the collectives of ZeRO 2 and 3 behind every pass.
    ``norm``: all devices agree on the norm of the gradients; ``host_s``: what the host needs
    between two steps. ``piece_start_s``: what a chunk beyond the first adds to each pass of its
    stage. ``overlapped_transfers``: those of interleaved 1F1B run behind other chunks as far as
    these take as long, but for what runs while the pipeline fills or empties; all other families
    wait for theirs. ``exchange_beside``: exchanges of experts run behind another microbatch, and no
    stage runs them again. ``gradient_wire`` and ``weight_wire``: bytes of a gradient and of a gathered
    weight on the wire, over ``sent_bytes``. ``prefetch``: ZeRO's collectives of a microbatch
    overlap with the pass of a whole stage, or those of each layer with that of a layer, when two
    layers are held at once. ``plain_layers``: no parameters are tied, and a full recompute runs
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
    reduction_cost: float = 1.0
    gather_cost: float = 1.0
    sharded_cost: float = 1.0
    bucket: float | None = None
    norm: bool = False
    host_s: float = 0.0
    piece_start_s: float = 0.0
    plain_layers: bool = False
    overlapped_transfers: bool = False
    exchange_beside: bool = False
    gradient_wire: float = 1.0
    weight_wire: float = 1.0
    prefetch: Prefetch = "stage"

    def overlaps(self, family: Family) -> bool:
        """Whether a family sends behind the work of other chunks: a stack's word is for interleaved
        1F1B alone."""
        return self.overlapped_transfers and family.chunks > 1 and not family.split

    def unpaired_share(self, family: Family, microbatches: int, stages: int) -> float:
        """rho: the share of a stage's pieces that run beside no other, (v - 1) S of m v; 1 where
        transfers block."""
        if not self.overlaps(family):
            return 1.0
        return (family.chunks - 1) * stages / (microbatches * family.chunks - 1)

    def alone_share(self, family: Family, microbatches: int, stages: int) -> float:
        """The share of a stage's passes whose exchanges of experts have no other microbatch beside
        them: rho of interleaved 1F1B, none but one pass of each kind in a single stage, all under
        other families."""
        if family.split or family.pace_stages:
            return 1.0
        if family.chunks > 1:
            return (family.chunks - 1) * stages / (microbatches * family.chunks - 1)
        return 0.0 if stages == 1 else 1.0

    @property
    def flat_link_bytes_per_s(self) -> float | None:
        """The link that E is counted over as published, 4 (d - 1)/d w / link: that of the first
        stage alone."""
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
