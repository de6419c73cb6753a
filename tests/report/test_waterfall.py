"""The waterfall: its steps sum to the batch, and each says what it claims to."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.mapping import product
from phaze.evaluate.layers import Setting
from phaze.graph.zoo import load_family
from phaze.hardware.bundled import preset_names
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.report.view_model import searched
from phaze.report.waterfall import CAUSES, Products, plan_parts
from phaze.search.chips import enumerate_space
from phaze.values import replace
from tests.report.runs import made_run
from tests.search.made import traced_task

GPT = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 512}
NAMES = list(CAUSES)


@pytest.mark.parametrize("seed", range(6))
def test_steps_of_a_search_sum_to_the_batch(seed: int, tmp_path: Path) -> None:
    run = made_run(tmp_path, (traced_task(seed),))
    chip = enumerate_space(run.job.space).chip(
        run.result["chip"]["number"], run.result["chip"]["hbm_bytes"]
    )
    story = searched(run.job.models[0], run.result["models"][0], chip, "made")
    assert sum(step.seconds for step in story.steps) == pytest.approx(
        story.plan["batch_s"], rel=1e-12
    )
    for step in story.steps:
        if step.name == "tensor-vector overlap":
            assert step.seconds <= 0
        elif step.name != "stage imbalance":
            assert step.seconds >= -1e-12 * story.plan["batch_s"], step


@settings(max_examples=40)
@given(
    sizes=st.tuples(*[st.integers(1, 5000)] * 3),
    batch=st.integers(1, 64),
    name=st.sampled_from(["tpu-v4", "a100-80gb", "tpu-v4-paper"]),
)
def test_no_hindrance_of_a_product_is_negative(
    sizes: tuple[int, int, int], batch: int, name: str
) -> None:
    for chip in (load_chip(name, form="cores"), load_chip(name)):
        parts = Products(chip, IDEAL, {}).parts(product(batch, *sizes))
        assert (parts >= 0).all()
        assert parts[2] == 0 or not chip.lumped_share, "an ideal chip of cores sustains its peak"


def test_infinitely_fast_memory_leaves_no_memory_step() -> None:
    chip = load_chip("tpu-v4-paper")
    fast = replace(
        chip,
        hbm=replace(chip.hbm, bandwidth_bytes_per_s=1e30),
        global_buffer=replace(chip.global_buffer, bandwidth_bytes_per_s=1e30),
        clusters=replace(chip.clusters, buffer_bytes_per_s=1e30),
    )
    wanted = product(1, 4096, 4096, 16)
    slow_parts, fast_parts = (Products(one, IDEAL, {}).parts(wanted) for one in (chip, fast))
    assert fast_parts[3] == pytest.approx(0, abs=1e-15)
    assert slow_parts[3] > 0
    assert slow_parts[:3] == pytest.approx(fast_parts[:3])


def test_a_perfect_host_adds_nothing_and_a_slow_one_does() -> None:
    model = load_family("gpt", GPT, tensor=2, microbatch=2)
    setting = Setting(load_chip("a100-80gb"), load_cluster("selene"), load_stack("ideal"))
    host = NAMES.index("CPU launch overhead")
    parts, table = plan_parts(model, setting)
    for one, passes_s in zip(parts, (table.forward_s + table.backward_s)[:, 0], strict=True):
        assert one.causes[host] == pytest.approx(0, abs=1e-12)
        assert one.causes.sum() == pytest.approx(passes_s, rel=1e-12)
        assert (one.causes >= -1e-15).all()
    slow = replace(setting, stack=replace(setting.stack, host_s=1e-3))
    assert all(one.causes[host] > 0 for one in plan_parts(model, slow)[0])


@pytest.mark.parametrize(
    "name", sorted([name for name in preset_names("stacks") if name != "icml24"])
)
def test_no_step_of_a_stack_that_hides_collectives_is_negative(name: str) -> None:
    model = load_family("gpt", GPT, tensor=4, microbatch=2, sequence_parallel=True)
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), load_stack(name))
    for one in plan_parts(model, setting)[0]:
        assert (one.causes >= -1e-15).all(), dict(zip(NAMES, one.causes, strict=True))


def test_cores_that_overlap_gain_side_by_side_and_hide_collectives() -> None:
    model = load_family("gpt", GPT, tensor=4, microbatch=2)
    stack = replace(load_stack("ideal"), schedule="overlap")
    setting = Setting(load_chip("a100-80gb"), load_cluster("selene"), stack)
    parts, table = plan_parts(model, setting)
    for one, passes_s in zip(parts, (table.forward_s + table.backward_s)[:, 0], strict=True):
        assert one.causes.sum() == pytest.approx(passes_s, rel=1e-12)
        others = [
            x for name, x in zip(NAMES, one.causes, strict=True) if name != "tensor-vector overlap"
        ]
        assert min(others) >= -1e-12
    assert min(one.causes[NAMES.index("tensor-vector overlap")] for one in parts) < 0


def test_only_a_measured_chip_has_a_sustained_rate() -> None:
    model = load_family("gpt", GPT, tensor=1, microbatch=2)
    chip, cluster, stack = (
        load_chip("a100-80gb", form="cores"),
        load_cluster("selene"),
        load_stack("ideal"),
    )
    sustained = NAMES.index("sustained GEMM rate")
    measured = plan_parts(model, Setting(chip, cluster, stack))[0]
    ideal = plan_parts(model, Setting(chip, cluster, stack, "ideal"))[0]
    assert sum(one.causes[sustained] for one in measured) > 0
    assert sum(one.causes[sustained] for one in ideal) == 0


def test_tensor_parallel_layers_communicate() -> None:
    setting = Setting(load_chip("a100-80gb"), load_cluster("selene"), load_stack("ideal"))
    at = NAMES.index("exposed TP communication")
    alone, wide = (
        plan_parts(load_family("gpt", GPT, tensor=t, microbatch=2), setting)[0] for t in (1, 2)
    )
    assert sum(one.causes[at] for one in alone) == 0
    assert sum(one.causes[at] for one in wide) > 0
