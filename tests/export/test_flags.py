"""The tables of flags: what is written of a plan is read back as its run, in every framework and
kind of plan."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.export.flag import Framework, lines
from phaze.export.frameworks import BY_KEY, FRAMEWORKS
from phaze.export.launch import Launch
from phaze.export.source import PlannedSplit
from tests.export.launching import read_back, written
from tests.export.maxtext_splits import MAXTEXT
from tests.export.splits import DEEPSPEED, MEGATRON, TORCHTITAN

KINDS: Mapping[str, Mapping[str, PlannedSplit]] = {
    "megatron": MEGATRON, "torchtitan": TORCHTITAN, "maxtext": MAXTEXT, "deepspeed": DEEPSPEED,
}  # fmt: skip
# What a file of a framework cannot state, and a run therefore takes from the command line.
UNSTATED = {
    "megatron": {"devices"},
    "torchtitan": set(),
    "maxtext": set(),
    "deepspeed": {"sequence"},
}
MODES = ("none", "full", "selective", "alternate", "offload", "layernorm+mlp")
PRECISIONS = ("bf16", "fp32", "fp8", "fp8-delayed", "fp8-tensorwise", "fp8-block", "mxfp8", "nvfp4")
FAMILIES = ("", "gpipe", "zb-interleaved", "zb-v", "dualpipe-v")


def stated(key: str, launch: Launch) -> dict[str, Any]:
    """The fields of a launch, all that a run may leave out filled in."""
    usual = {"context": 1, "context_way": "ring", "expert": 1, "expert_tensor": 1, "blocks": None}
    job = {
        name: getattr(launch, name)
        for name in ("batch", "sequence", "devices", "precision", "optimizer", "shards")
    }
    plan = {**usual, **launch.plan}
    family = plan.pop("family", None) or ("interleaved" if plan["chunks"] > 1 else "1f1b")
    whole = {
        **job,
        **plan,
        "attention": launch.attention,
        "family": family if plan["pipeline"] > 1 else "1f1b",
    }
    return {name: value for name, value in whole.items() if name not in UNSTATED[key]}


def planned(key: str, split: PlannedSplit, blocks: bool) -> dict[str, Any]:
    """The same fields of a plan, as far as the framework tells them apart."""
    zero, attention, sequence_parallel = (
        split.zero,
        split.attention,
        split.sequence_parallel and split.tensor > 1,
    )
    if key == "torchtitan":
        # FSDP shares gradients with the state: there is no ZeRO 1 in it; one replica shares
        # nothing.
        zero, attention = (
            0 if split.data * split.context == 1 else 2 if zero == 1 else zero,
            "fused",
        )
    if key == "maxtext" and zero == 3 and split.data * split.context == 1:
        zero = 0  # an axis of one rank shares nothing
    if key == "deepspeed":
        sequence_parallel = False  # AutoTP has none
    whole = {
        "tensor": split.tensor,
        "pipeline": split.pipeline,
        "microbatch": split.microbatch,
        "chunks": split.chunks,
        "sequence_parallel": sequence_parallel,
        "recompute": split.recompute[0],
        "zero": zero,
        "shards": split.shards,
        "context": split.context,
        "context_way": split.context_way if split.context > 1 else "ring",
        "expert": split.expert,
        "expert_tensor": split.expert_tensor if split.expert > 1 else 1,
        "blocks": [count for count, _, _ in split.stages] if blocks else None,
        "family": split.schedule if split.pipeline > 1 else "1f1b",
        "batch": split.batch,
        "sequence": split.sequence,
        "devices": split.processes,
        "precision": "fp8-delayed" if split.precision == "fp8" else split.precision,
        "optimizer": split.optimizer,
        "attention": attention,
    }
    return {name: value for name, value in whole.items() if name not in UNSTATED[key]}


def assert_read_back(key: str, split: PlannedSplit) -> None:
    fields = stated(key, read_back(key, written(key, split)))
    assert fields == planned(key, split, fields["blocks"] is not None)


def pipelines(draw: st.DrawFn, split: PlannedSplit) -> dict[str, Any]:
    pipeline, family = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from(FAMILIES))
    family = family if pipeline > 1 else ""
    chunks = (
        1 if family == "gpipe" or pipeline == 1 else 2 if family else draw(st.sampled_from((1, 2)))
    )
    blocks = [draw(st.sampled_from((4, 4, 8))), *[4] * (pipeline - 1)]
    stages = tuple((count, rank == 0, rank == pipeline - 1) for rank, count in enumerate(blocks))
    widths, modes = (split.tensor,) * pipeline, (split.recompute[0],) * pipeline
    shape = {"pipeline": pipeline, "family": family, "chunks": chunks, "stages": stages}
    return {
        **shape,
        "devices": widths,
        "recompute": modes,
        "order": draw(st.sampled_from(("data", "pipeline"))),
    }


def batches(draw: st.DrawFn, split: PlannedSplit) -> dict[str, Any]:
    data = split.expert * draw(st.sampled_from((1, 2, 4, 8)))
    microbatch, rounds = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 4, 8)))
    return {"data": data, "microbatch": microbatch, "batch": data * microbatch * rounds, "shard": 0}


def sharing(draw: st.DrawFn, split: PlannedSplit) -> dict[str, Any]:
    context, zero, shard = (
        draw(st.sampled_from(sizes)) for sizes in ((1, 2, 8), (0, 1, 2, 3), (0, 2, 4))
    )
    ranks = split.data * context
    divides = shard > 0 and shard < ranks and ranks % shard == 0 and zero > 0
    way = draw(st.sampled_from(("ring", "all_gather", "ulysses", "hierarchical")))
    return {"context": context, "context_way": way, "zero": zero, "shard": shard if divides else 0}


def kernels(draw: st.DrawFn, split: PlannedSplit) -> dict[str, Any]:
    return {
        "recompute": (draw(st.sampled_from(MODES)),) * split.pipeline,
        "attention": "fused" if split.context > 1 else draw(st.sampled_from(("fused", "eager"))),
        "precision": draw(st.sampled_from(PRECISIONS)),
        "optimizer": draw(st.sampled_from(("adam", "adam", "sgd"))),
        "hides_synchronisation": draw(st.booleans()),
    }


@st.composite
def plans(draw: st.DrawFn, key: str) -> PlannedSplit:
    """A plan of a kind that the framework can launch, with another pipeline, batch, sharing or
    other kernels."""
    split: PlannedSplit = draw(st.sampled_from(list(KINDS[key].values())))
    for change in (batches, pipelines, sharing, kernels):
        if draw(st.booleans()):
            split = replace(split, **change(draw, split))
    return split


@pytest.mark.parametrize("key", KINDS)
def test_every_kind_of_launch_file_gives_the_run_that_it_came_from(key: str) -> None:
    for split in KINDS[key].values():
        assert_read_back(key, split)


@pytest.mark.parametrize("key", KINDS)
@settings(max_examples=150)
@given(data=st.data())
def test_a_launch_file_gives_the_run_of_any_plan_that_can_be_launched(
    key: str, data: st.DataObject
) -> None:
    split = data.draw(plans(key))
    try:
        written(key, split)
    except InputError:
        reject()
    assert_read_back(key, split)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.key)
def test_every_field_that_a_flag_states_is_read(framework: Framework) -> None:
    read: set[str] = {"stack"}
    for split in KINDS[framework.key].values():
        launch = read_back(framework.key, written(framework.key, split))
        job = {name for name in launch.__slots__ if getattr(launch, name)}
        read |= {*job, *launch.plan, *(f"sizes.{size}" for size in launch.sizes)}
    fields = {flag.field for flag in framework.flags} - {""}
    # A run of Megatron-LM states its devices and the vocabulary beside the flags that are exported.
    assert fields - read <= (
        {"devices", "model", "sizes.vocabulary"} if framework.key == "megatron" else set()
    )


@pytest.mark.parametrize("key", KINDS)
def test_every_line_has_a_reason_and_its_flag_stands_once(key: str) -> None:
    for split in KINDS[key].values():
        names = [line.name for line in lines(BY_KEY[key], split)]
        assert len(set(names)) == len(names)
        assert all(line.reason for line in lines(BY_KEY[key], split))
