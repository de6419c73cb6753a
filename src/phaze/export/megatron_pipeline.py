"""Pipelines as Megatron-LM cuts them, by the parser of Megatron Core 0.19.2, both ways.

A pipeline is told as a layout, ``--pipeline-model-parallel-layout``: E what lies before the blocks,
t a block, L what lies after them, ``|`` between stages; with chunks, the stages of the first chunk
of all ranks come first.
"""

import re
from typing import Any

from phaze.errors import InputError
from phaze.export.flag import SAME, Flag, Limit
from phaze.export.launch import stages_of
from phaze.export.megatron_model import BERT, SCRIPTS
from phaze.export.source import PlannedSplit
from phaze.export.values import Values
from phaze.pipeline.families import FAMILIES

FIRST, LAST = "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"
LAYOUT = "--pipeline-model-parallel-layout"
PART = "--num-layers-per-virtual-pipeline-stage"


def layout(split: PlannedSplit) -> str:
    """The pipeline as a layout string; chunk c of rank r is the stage c * ranks + r of the
    string."""
    order = [stage for _ in range(split.chunks) for stage in split.stages]
    parts = []
    for number, (blocks, before, after) in enumerate(order):
        embeds = number == 0 and (before or split.chunks > 1)
        ends = number == len(order) - 1 and (after or split.chunks > 1)
        parts.append(_stage(blocks // split.chunks, embeds, ends))
    return "|".join(parts)


def _stage(blocks: int, before: bool, after: bool) -> str:
    run = "" if blocks == 0 else "t" if blocks == 1 else f"t*{blocks}"
    return f"{'E' if before else ''}{run}{'L' if after else ''}"


def layout_parts(text: str, where: str) -> list[int]:
    """Blocks of every part of a pipeline layout (``Et*3|t*4|t*4|t*3L``)."""
    plain = re.sub(
        r"\(([^()]*)\)\*([0-9]{1,4})", lambda match: match[1] * int(match[2]), text.replace(",", "")
    )
    plain = re.sub(r"([A-Za-z|])\*([0-9]{1,4})", lambda match: match[1] * int(match[2]), plain)
    parts = plain.split("|")
    strange = sorted(set(plain) - set("EtL|"))
    if (
        strange
        or not plain
        or "E" not in parts[0]
        or "L" not in parts[-1]
        or plain.count("E") + plain.count("L") != 2
    ):
        seen = f"'{text}' is not a layout of one decoder" + (
            f" ({', '.join(strange)})" if strange else ""
        )
        raise InputError(where, seen, "E first, t a block, L last, | between stages")
    return [part.count("t") for part in parts]


def _needs_layout(split: PlannedSplit) -> bool:
    """Whether Megatron-LM would cut the pipeline otherwise without being told."""
    first, last = split.stages[0], split.stages[-1]
    is_even = (
        len({blocks for blocks, _, _ in split.stages}) == 1
        and first[1]
        and last[2]
        and split.chunks == 1
    )
    return split.pipeline > 1 and not is_even


def _layout_reason(split: PlannedSplit) -> str:
    if split.chunks > 1:
        return f"{split.chunks} virtual stages a rank, the first of every rank first"
    return "uneven stages: E before the blocks, t a block, L after them"


PIPELINE = (
    Flag("--pipeline-model-parallel-size", "pipeline", SAME,
         lambda split: "no pipeline" if split.pipeline == 1 else "stages of a replica", default=1),
    Flag(LAYOUT, "blocks", lambda split: f'"{layout(split)}"', _layout_reason,
    needed=_needs_layout),
    Flag("--num-virtual-stages-per-pipeline-rank", "chunks"),
    Flag(PART, "chunks"),
    Flag(FIRST, "blocks"),
    Flag(LAST, "blocks"),
)  # fmt: skip


def _uneven_chunk(split: PlannedSplit) -> str:
    number, blocks = next(
        (number, blocks)
        for number, (blocks, _, _) in enumerate(split.stages)
        if blocks % split.chunks
    )
    return f"stage {number} has {blocks} blocks in {split.chunks} chunks"


PIPELINE_LIMITS = (
    Limit(lambda split: split.pipeline > 1 and not FAMILIES[split.schedule].megatron,
          "the pipeline schedule {split.schedule}",
          "{version} runs 1F1B, interleaved or not; plan with --family 1f1b,interleaved"),
    Limit(lambda split: _needs_layout(split) and SCRIPTS.get(split.model) == BERT,
          "its stages are uneven",
          "Megatron-LM's layouts are for decoders; plan with even stages"),
    Limit(lambda split: split.pipeline > 1 and split.chunks > 1 and split.rounds % split.pipeline != 0,
          (
              "{split.rounds} microbatches of a replica are not a multiple of its "
              "{split.pipeline} stages"
          ),
          "Megatron-LM needs one; plan with another batch or without chunks"),
    Limit(lambda split: split.pipeline > 1 and any(blocks % split.chunks for blocks, _,
    _ in split.stages),
          _uneven_chunk,
          "plan with chunks that divide the blocks of a stage"),
)  # fmt: skip


def stated_stages(values: Values) -> dict[str, Any]:
    """Chunks, and the blocks of every stage where the flags state them."""
    pipeline, layers = values.number("--pipeline-model-parallel-size"), values.count("--num-layers")
    if LAYOUT in values:
        where = f"{values.where}: layout"
        blocks, chunks = stages_of(layout_parts(values.word(LAYOUT), where), pipeline, where)
        return {"chunks": chunks, "blocks": blocks}
    chunks, part = values.number("--num-virtual-stages-per-pipeline-rank"), values.count(PART)
    if part is not None:
        if layers is None or layers % (pipeline * part):
            seen = f"parts of {part} layers do not divide {layers} layers over {pipeline} stages"
            raise values.fault(PART, seen, "give --num-layers, a multiple")
        chunks = layers // (pipeline * part)
    first, last = (
        [] if count is None else [count] for count in (values.count(FIRST), values.count(LAST))
    )
    if not first and not last:
        return {"chunks": chunks}
    inner = pipeline - len(first) - len(last)
    rest = (layers or 0) - sum(first) - sum(last)
    if inner < 1 or rest < inner or rest % inner:
        raise values.fault(FIRST, "the other stages do not come out even", "")
    return {"chunks": chunks, "blocks": [*first, *[rest // inner] * inner, *last]}
