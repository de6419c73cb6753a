"""Every pipeline family as a value. A new one is a value here, its name in
:mod:`phaze.pipeline.names`, the order of its passes (:mod:`phaze.pipeline.event_lists_kernels`),
and the same once more in the checker (``phaze.check.families``)."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.pipeline.event_lists_kernels import (
    all_forwards_first,
    dualpipe_v,
    looped_zero_bubble,
    zero_bubble_v,
)
from phaze.pipeline.family import Family, FillTerm
from phaze.pipeline.names import NAMES

ZERO_BUBBLE: tuple[FillTerm, ...] = ((1, 1, -1, 0, 0, 0), (1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0))
ZERO_BUBBLE_V: tuple[FillTerm, ...] = (
    (0, 1, 0, 0, 0, 0),
    (0, 2, -2, 0, 0, 0),
    (0, 0, 1, 0, 1, -1),
    (0, 0, 1, 1, 0, -1),
    (2, -1, 0, -1, 1, 0),
    (2, -1, 0, 0, 0, -1),
    (2, 0, -2, -1, 1, 0),
    (2, 0, -2, 0, 0, -1),
)
DUAL_PIPE_V: tuple[FillTerm, ...] = (
    (2, 0, 0, 0, 0, 0),
    (2, 1, -1, 0, 0, 0),
    (1, 1, 0, -1, 0, 0),
    (1, 2, -1, -1, 0, 0),
)
IN_TURN = "one forward and one backward in turn"
FOLDED = (
    "what follows the blocks counts on the last stage; folded into a V, a pipeline ends on "
    "its first"
)

ICML24 = Family("icml24", "number", "the paper's pipeline", pace_stages=1, implied=True)
GPIPE = Family(
    "gpipe",
    "all",
    "GPipe",
    all_forwards_first,
    separate_passes=True,
    chunked="interleaved",
    dominated_by="1f1b",
    torch_schedule="GPipe",
    reason="all forwards, then all backwards",
)
ONE_F_ONE_B = Family(
    "1f1b",
    "capped",
    "1F1B",
    chunked="interleaved",
    implied=True,
    torch_schedule="1F1B",
    megatron=True,
    reason=IN_TURN,
)
# One stage has no schedule: what every family may do instead.
ONE_STAGE = Family("1f1b", "capped", "1F1B", most_stages=1, implied=True)
INTERLEAVED = Family(
    "interleaved",
    "capped",
    "interleaved 1F1B",
    chunks=2,
    interleaves=True,
    implied=True,
    torch_schedule="Interleaved1F1B",
    megatron=True,
    reason=IN_TURN,
)
ZB_H1 = Family(
    "zb-h1",
    "depth",
    "zero bubble (ZB-H1)",
    looped_zero_bubble,
    fill_terms=ZERO_BUBBLE,
    min_microbatches_per_stage=1,
    chunked="zb-interleaved",
)
ZB_INTERLEAVED = Family(
    "zb-interleaved",
    "depth",
    "interleaved zero bubble",
    looped_zero_bubble,
    chunks=2,
    interleaves=True,
    fill_terms=ZERO_BUBBLE,
    min_microbatches_per_stage=1,
    torch_schedule="InterleavedZeroBubble",
    reason="gradients of weights fill the bubble; blocks must not be compiled",
)
ZB_V = Family(
    "zb-v",
    "depth",
    "zero bubble in a V (ZB-V)",
    zero_bubble_v,
    chunks=2,
    fill_terms=ZERO_BUBBLE_V,
    min_microbatches_per_stage=2,
    v_shaped=True,
    torch_schedule="ZBVZeroBubble",
    reason=(
        "stages folded into a V, gradients of weights fill the bubble; blocks must not be compiled"
    ),
    note=FOLDED,
)
DUALPIPE_V = Family(
    "dualpipe-v",
    "depth",
    "DualPipeV",
    dualpipe_v,
    chunks=2,
    fill_terms=DUAL_PIPE_V,
    extra_in_flight=0.5,
    min_microbatches_per_stage=2,
    v_shaped=True,
    torch_schedule="DualPipeV",
    reason="forward and backward of two chunks in turn; blocks must not be compiled",
    note=(
        f"{FOLDED}; forward and backward of two microbatches in one take as long as one "
        "after the other"
    ),
)
FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (GPIPE, ONE_F_ONE_B, INTERLEAVED, ZB_H1, ZB_INTERLEAVED, ZB_V, DUALPIPE_V)
    }
)
SPLIT_FAMILIES = tuple(name for name in NAMES if FAMILIES[name].split)


def interleaved(chunks: int) -> Family:
    """1F1B with so many chunks a stage."""
    return INTERLEAVED.with_chunks(chunks) if chunks > 1 else ONE_F_ONE_B


def zb_interleaved(chunks: int) -> Family:
    """Zero bubble H1 with so many chunks a stage."""
    return ZB_INTERLEAVED.with_chunks(chunks) if chunks > 1 else ZB_H1


def named_family(name: str | None, chunks: int) -> Family:
    """The family of a plan that states it and its chunks, 1F1B or interleaved 1F1B if it names
    none; a ValueError where they do not go together."""
    if name is None:
        return interleaved(chunks)
    return ICML24 if name == ICML24.name else FAMILIES[name].with_chunks(chunks)
