"""Families of split backward passes from the graph to the plan: the halves of a layer, what stacks
run, given plans."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.evaluate.answer import fixed_document
from phaze.evaluate.families import stack_running, stack_with_families
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.layers import Setting, model_table
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Job, request_of
from phaze.evaluate.run_file import job_of
from phaze.graph.zoo import load_model
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.pipeline.families import named_family
from phaze.values import replace
from tests.conftest import Ran

EAGER = load_stack("torchtitan-eager")
RUN = {
    "schema": "phaze.run/1", "model": "llama3-8b", "chip": "h100", "cluster": "dgx-h100",
    "stack": "torchtitan-eager",
    "devices": 64, "batch": 256,
    "plan": {"tensor": 2, "pipeline": 4, "data": 8, "microbatch": 1, "sequence_parallel": True,
    "zero": 1},
}  # fmt: skip


def run(stack: str = "torchtitan-eager", **plan: Any) -> dict[str, Any]:
    return {**RUN, "stack": stack, "plan": {**dict(RUN["plan"]), **plan}}  # type: ignore[call-overload]


def asked(stack: str = "torchtitan-eager", **more: Any) -> Job:
    return Job(
        "llama3-8b",
        None,
        "a100-80gb",
        32,
        32,
        stack=stack,
        tensor=(2,),
        microbatch=(1,),
        zero=0,
        **more,
    )


def test_gradients_of_weights_are_a_part_of_the_backward_pass() -> None:
    chip = load_chip("h100")
    setting = Setting(chip, load_cluster("dgx-h100", chip=chip), EAGER)
    table = model_table(load_model("llama3-8b", tensor=2, sequence_parallel=True), setting)
    assert table.weight_s is not None
    assert (table.weight_s >= 0).all() and (table.weight_s <= table.backward_s).all()
    table = model_table(load_model("llama3-8b", attention="fused"), setting)
    # Of the products of a block as many FLOP are weight gradients as the forward pass has,
    # attention aside.
    assert table.weight_s is not None
    assert 0.6 < table.weight_s[1, 0] / table.forward_s[1, 0] < 1.0
    other = replace(setting, stack=load_stack("megatron-core"))
    assert model_table(load_model("llama3-8b"), other).weight_s is None


def test_a_faster_memory_never_lengthens_a_half() -> None:
    chip = load_chip("h100")
    faster = replace(
        chip, hbm=replace(chip.hbm, bandwidth_bytes_per_s=2 * chip.hbm.bandwidth_bytes_per_s)
    )
    cluster, stack = load_cluster("dgx-h100", chip=chip), replace(EAGER, host_s=0.0)
    slow, fast = (
        model_table(load_model("llama3-8b"), Setting(own, cluster, stack)) for own in (chip, faster)
    )
    assert slow.weight_s is not None and fast.weight_s is not None
    assert slow.weight_s[1] >= fast.weight_s[1]
    assert (slow.backward_s - slow.weight_s)[1] >= (fast.backward_s - fast.weight_s)[1]


def test_a_stack_gives_the_families_that_it_runs() -> None:
    assert stack_with_families(EAGER, None, "x").families == EAGER.families
    assert stack_with_families(EAGER, ["best"], "x").families == EAGER.families
    assert stack_with_families(EAGER, ["zb-v", "1f1b"], "x").families == ("1f1b", "zb-v")
    with pytest.raises(InputError, match=r"--family: .*'zbv'.*zb-v"):
        stack_with_families(EAGER, ["zbv"], "--family")
    with pytest.raises(
        InputError, match="megatron-core does not run zb-v; its families: 1f1b, inter"
    ):
        stack_with_families(load_stack("megatron-core"), ["zb-v"], "--family")
    with pytest.raises(InputError, match="icml24 does not run zb-h1; its families: icml24"):
        stack_running(load_stack("icml24"), "zb-h1", "plan.family")


def test_families_and_chunks_go_together() -> None:
    assert named_family(None, 1).name == "1f1b"
    assert named_family(None, 3).name == "interleaved"
    assert (named_family("zb-v", 1).chunks, named_family("zb-v", 2).chunks) == (2, 2)
    assert named_family("zb-interleaved", 3).chunks == 3
    for name, chunks in (
        ("zb-v", 3),
        ("zb-h1", 2),
        ("1f1b", 2),
        ("interleaved", 1),
        ("zb-interleaved", 1),
    ):
        with pytest.raises(ValueError, match="chunks"):
            named_family(name, chunks)


def test_a_given_plan_is_priced_under_its_family() -> None:
    seconds = {}
    for family in ("1f1b", "zb-interleaved", "zb-v", "dualpipe-v"):
        chunks = 2 if family == "zb-interleaved" else 1
        job = job_of(run(family=family, chunks=chunks), "run")
        problem, plan = fixed_plan(job)
        document = fixed_document(job, problem, plan, "calibrated")
        seconds[family] = plan.batch_s
        assert document.get("family") == (None if family == "1f1b" else family)
        assert ("weight_s" in document["stages"][0]) == (family != "1f1b")
        assert plan.simulated_s <= plan.batch_s * (1 + 1e-3)
    assert seconds["zb-v"] < seconds["1f1b"]
    assert seconds["zb-interleaved"] < seconds["1f1b"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"family": "zb-v", "stack": "megatron-core"},
            "plan.family: the stack megatron-core does not run zb-v",
        ),
        ({"family": "zb-v", "recompute": "full"}, "recompute: full under zb-v"),
        ({"family": "zb-v", "chunks": 4}, "zb-v has 2 chunks a stage, not 4"),
        ({"family": "zb-w"}, "plan.family"),
    ],
)
def test_what_no_family_runs_is_refused_in_a_sentence(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        fixed_plan(job_of(run(**changes), "run"))


def test_a_plan_is_sought_among_the_families_that_are_allowed() -> None:
    found = {}
    for names in (("1f1b",), ("zb-v",), None):
        request = request_of(asked(family=names))
        best = planned(request).best
        assert best.plan is not None
        found[names] = best.plan
        assert best.plan.lower_bound_s == best.plan.batch_s
    assert found[None].batch_s <= min(found["1f1b",].batch_s, found["zb-v",].batch_s) * (1 + 1e-12)
    assert found["zb-v",].family == ("zb-v" if len(found["zb-v",].stages) > 1 else "1f1b")
    assert found["1f1b",].family == "1f1b"


@pytest.mark.parametrize("family", ["interleaved", "zb-v"])
def test_the_experts_split_runs_1f1b_beside_a_plan_of_other_families(
    family: str, phaze: Callable[..., Ran]
) -> None:
    job = "--model bert-large --devices 8 --batch 32 --sequence 128 --tensor 1 --microbatch 1"
    where = "--chip a100-80gb --stack torchtitan-eager"
    ran = phaze("plan", *job.split(), *where.split(), "--family", family, "--json")
    assert ran.code == 0, ran.err
    experts = json.loads(ran.out)["experts"]
    assert experts["pipeline"] == 8 and "family" not in experts["plan"]
