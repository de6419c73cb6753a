"""Given plans: against measured runs, against the published memory figures, and the rules of
interleaving."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from phaze.cost.collective import collective, kind_named
from phaze.errors import InputError, PhazeError
from phaze.evaluate.answer import fixed_document
from phaze.evaluate.fixed import balanced_cuts, even_cuts, fixed_plan
from phaze.evaluate.flow import block_calls
from phaze.evaluate.layers import Setting, model_table, pass_cost
from phaze.evaluate.overlap import companions
from phaze.evaluate.run_file import job_of
from phaze.graph.recompute import needed_again
from phaze.graph.zoo import load_family, load_model
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.hardware.overlap import Overlap, Runs
from phaze.values import replace

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "measured_runs.json").read_text())
GIB = 2**30
SMALL = {"hidden": 1024, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 1024}


def run(**changes: Any) -> dict[str, Any]:
    """A small job, with keys of the plan or of the run replaced."""
    raw: dict[str, Any] = {
        "schema": "phaze.run/1",
        "gpt": SMALL,
        "chip": "a100-80gb",
        "cluster": "selene",
        "devices": 16,
        "batch": 64,
        "plan": {"tensor": 2, "pipeline": 4, "data": 2, "microbatch": 1},
    }
    for key, value in changes.items():
        (raw if key in raw or key in ("stack", "optimizer") else raw["plan"])[key] = value
    return raw


@pytest.fixture(scope="module")
def errors() -> dict[str, float]:
    return {
        row["id"]: fixed_plan(job_of(row["run"], row["id"]))[1].batch_s / row["measured_s"] - 1
        for row in ROWS
    }


def test_measured_iterations_are_met(errors: dict[str, float]) -> None:
    assert median(map(abs, errors.values())) < 0.04
    assert max(map(abs, errors.values())) < 0.10
    assert abs(mean(errors.values())) < 0.03


def test_memory_is_that_of_korthikanti_figure_1() -> None:
    # GiB a device, 22B model on 8 devices, as read off the figure by Calculon's authors
    # (validation.py, seqsel_fig1)
    raw = copy.deepcopy(next(row["run"] for row in ROWS if row["id"] == "kor_t5_22B_full"))
    raw["plan"]["recompute"] = "none"
    memory = fixed_plan(job_of(raw, "22B"))[1].stages[0].memory
    state = memory.parameters + memory.gradients + memory.optimizer
    assert state / GIB == pytest.approx(45.5625, rel=0.05)
    assert memory.activations / GIB == pytest.approx(59.25, rel=0.05)
    raw["plan"].update(recompute="selective", sequence_parallel=True)
    saved = fixed_plan(job_of(raw, "22B"))[1].stages[0].memory.activations
    blocks = load_family("gpt", raw["gpt"], tensor=8, microbatch=4, sequence_parallel=True)
    kept = sum(
        blocks.layers[blocks.calls[call].layer].selective.saved_bytes
        for call in block_calls(blocks)
    )
    assert kept / GIB == pytest.approx(9.5625, rel=0.05)
    assert saved >= kept


def test_the_breakdown_sums_to_the_batch_time() -> None:
    for changes in (
        {},
        {"chunks": 2},
        {"recompute": "full"},
        {"recompute": "selective", "sequence_parallel": True},
    ):
        _, plan = fixed_plan(job_of(run(**changes), "run"))
        total = sum(getattr(plan.breakdown, name) for name in plan.breakdown.__slots__)
        assert total == pytest.approx(plan.batch_s, rel=1e-12)


def test_interleaving_shortens_the_bubble_and_hands_on_more_often() -> None:
    once, twice = (fixed_plan(job_of(run(chunks=chunks), "run"))[1] for chunks in (1, 2))
    # Starting a chunk and sending more often lengthen every stage a little.
    assert twice.breakdown.bubble_s == pytest.approx(once.breakdown.bubble_s / 2, rel=0.1)
    # The slowest stage is the last: two pieces come in, and one goes round to the first stage,
    # perhaps farther.
    assert twice.breakdown.transfer_s >= once.breakdown.transfer_s * 3 * (1 - 1e-12)
    assert twice.breakdown.forward_s == once.breakdown.forward_s
    assert twice.stages[0].memory.in_flight > once.stages[0].memory.in_flight


def test_a_device_holds_as_many_pieces_as_interleaving_lets_in() -> None:
    _, once = fixed_plan(job_of(run(), "run"))
    _, twice = fixed_plan(job_of(run(chunks=2), "run"))
    kept = once.stages[0].memory.in_flight / 3
    assert twice.stages[0].memory.in_flight == pytest.approx(((2 * 3 + 4 + 1) / 2 - 1) * kept)
    assert twice.stages[3].memory.in_flight > 0 == once.stages[3].memory.in_flight


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"chunks": 3}, "3 chunks and a stage of 2 layers"),
        (
            {"chunks": 2, "batch": 60},
            "a multiple of the 4 stages as microbatches of a replica, and there are 30",
        ),
    ],
)
def test_chunks_that_no_framework_could_run_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fixed_plan(job_of(run(**changes), "run"))


@pytest.mark.parametrize(
    "changes", [{}, {"chunks": 2}, {"zero": 2, "chunks": 2}, {"gpt": {**SMALL, "layers": 2048}}]
)
def test_the_checker_looks_at_every_given_plan(changes: dict[str, Any]) -> None:
    job = job_of(run(**changes), "run")
    problem, plan = fixed_plan(job)
    document = fixed_document(job, problem, plan, "calibrated")
    assert document["feasible"] is ("gpt" not in changes)
    wrong = replace(plan, batch_s=plan.batch_s * 1.001)
    with pytest.raises(PhazeError, match="does not pass its check"):
        fixed_document(job, problem, wrong, "calibrated")


def test_no_layer_is_lost_and_no_stage_is_empty() -> None:
    model = load_family("gpt", {**SMALL, "layers": 7}, tensor=1)
    for stages in range(1, 8):
        cuts = even_cuts(model, stages, "none")
        assert [layer for cut in cuts for layer in cut.layers] == list(range(len(model.calls)))
        assert all(cut.layers for cut in cuts)
    with pytest.raises(InputError, match="8 stages and 7 blocks"):
        even_cuts(model, 8, "none")


def test_an_encoder_and_a_decoder_are_cut_evenly_together() -> None:
    model = load_model("t5-large", 1, 1)
    blocks = block_calls(model)
    assert len(blocks) == 48
    assert len(model.calls) == 51  # and what lies before, between and after
    for stages in (1, 2, 3, 5, 8, 48):
        cuts = even_cuts(model, stages, "none")
        assert [layer for cut in cuts for layer in cut.layers] == list(range(51))
        shares = [sum(layer in blocks for layer in cut.layers) for cut in cuts]
        assert max(shares) - min(shares) <= 1
        assert min(shares) >= 1
    with pytest.raises(InputError, match="49 stages and 48 blocks"):
        even_cuts(model, 49, "none")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: raw.update(devices=8), "be at most the 8 devices"),
        (lambda raw: raw.update(chip="a100"), "unknown chip 'a100'"),
        (
            lambda raw: raw["plan"].update(pipelin=2),
            "unknown key 'pipelin'; did you mean 'pipeline'",
        ),
        (lambda raw: raw["plan"].update(tensor=3, devices=64), "unknown key 'devices'"),
        (lambda raw: raw["plan"].update(tensor=0), "it must be greater than 0"),
        (
            lambda raw: raw.update(model="bert-large"),
            "exactly one of gpt, llama, moe, model, graph",
        ),
        (lambda raw: raw["gpt"].update(heads=7), "does not divide"),
        (lambda raw: raw["plan"].update(pipeline=1, tensor=1, recompute="some"), "is not a module"),
    ],
)
def test_a_wrong_run_is_one_sentence(change: Callable[[dict[str, Any]], None], said: str) -> None:
    raw = copy.deepcopy(run())
    change(raw)
    with pytest.raises(InputError, match="run") as caught:
        fixed_plan(job_of(raw, "run"))
    assert said in str(caught.value)


def test_more_bandwidth_and_clock_never_slow_a_layer() -> None:
    model = load_family("gpt", SMALL, tensor=2, microbatch=2)
    slow = Setting(load_chip("a100-40gb"), load_cluster("selene"), load_stack("megatron-2021"))
    fast = Setting(load_chip("a100-80gb"), load_cluster("selene"), load_stack("megatron-2021"))
    before, after = model_table(model, slow), model_table(model, fast)
    assert (after.forward_s <= before.forward_s).all()
    assert (after.backward_s <= before.backward_s).all()


def test_a_collective_hides_behind_the_weight_gradient_of_its_own_map() -> None:
    model = load_family("gpt", SMALL, tensor=2, microbatch=2)
    block = model.layers[model.calls[block_calls(model)[0]].layer]
    beside = companions(block.backward)
    assert len(beside) == 2
    assert all(len(products) == 1 for products in beside.values())
    setting = Setting(load_chip("a100-80gb"), load_cluster("selene"), load_stack("megatron-2021"))
    share = setting.stack.software_share
    hiding = Setting(
        setting.chip, setting.cluster, replace(load_stack("megatron-2022"), software_share=share)
    )
    kind = model.layers.index(block)
    hidden, shown = model_table(model, hiding), model_table(model, setting)
    assert hidden.backward_s[kind] < shown.backward_s[kind]
    assert hidden.forward_s[kind] == shown.forward_s[kind]


def test_collectives_cut_into_pieces_hide_behind_their_neighbours_all_but_one_piece() -> None:
    model = load_family("gpt", SMALL, tensor=4, microbatch=2, sequence_parallel=True)
    block = model.layers[model.calls[block_calls(model)[0]].layer]
    beside = companions(block.forward, pieces=True, weights=False)
    assert len(beside) == 4
    assert all(beside.values())
    whole = load_stack("ideal")
    chip, cluster = load_chip("a100-80gb"), load_cluster("selene")
    open_s, hidden_s = (
        pass_cost(block.forward, Setting(chip, cluster, stack), backward=False).pass_s
        for stack in (whole, replace(whole, overlap=Overlap(tensor=Runs(runs=True))))
    )
    sent = [op for op in block.forward.operators if op.core == "network"]
    waits = [collective(kind_named(op.kind), op.size("bytes"), 4, cluster).time_s for op in sent]
    assert open_s - hidden_s <= 0.75 * sum(waits) * (1 + 1e-12)
    assert hidden_s < open_s


def test_a_second_forward_pass_is_trimmed_to_what_backward_reads() -> None:
    model = load_family("llama", {**SMALL, "mlp": 4096}, tensor=1, microbatch=2)
    block = model.layers[model.calls[block_calls(model)[0]].layer]
    again = needed_again(block)
    read = {access.tensor for op in block.backward.operators for access in op.reads}
    made = {access.tensor for op in again.operators for access in op.writes}
    lost = [
        op for op in block.forward.operators if op.id not in {kept.id for kept in again.operators}
    ]
    assert any(
        op.kind == "product" for op in lost
    )  # the map back from the MLP: nothing reads its result
    assert not read & {access.tensor for op in lost for access in op.writes}
    assert read & made


def test_balanced_stages_hold_every_layer_and_beat_even_ones_beside_a_large_vocabulary() -> None:
    sizes = {**SMALL, "layers": 16, "vocabulary": 131072, "mlp": 4096}
    model = load_family("llama", sizes, tensor=1, microbatch=1)
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), load_stack("nanotron"))
    table = model_table(model, setting)
    passes_s = (table.forward_s + table.backward_s)[:, 0]
    times = [float(passes_s[call.layer]) for call in model.calls]
    for stages in range(1, 9):
        cuts = balanced_cuts(model, table, stages, "none")
        assert len(cuts) == stages
        assert all(cut.layers for cut in cuts)
        assert [layer for cut in cuts for layer in cut.layers] == list(range(len(model.calls)))
    worst = [
        max(sum(times[i] for i in cut.layers) for cut in cuts)
        for cuts in (balanced_cuts(model, table, 4, "none"), even_cuts(model, 4, "none"))
    ]
    assert worst[0] < worst[1]
