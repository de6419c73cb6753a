"""The faults of the published code as they are put back: each changes what it says, and phaze
itself takes none."""

from collections.abc import Callable
from dataclasses import fields, replace
from math import prod
from pathlib import Path

import pytest
from examples.paper.bridge.faults import Faults, faulty
from examples.paper.bridge.inputs import STUDY, faults_of, faulty_study, read_study
from examples.paper.bridge.quotients import CASES, QUOTIENTS, Case, Quotients, bridge_table
from examples.paper.cases import MODELS, _job

from phaze.errors import InputError
from phaze.graph import store
from phaze.graph.ir import Model, Operator
from phaze.graph.zoo import load_model
from phaze.hardware.library import load_chip
from tests.conftest import Ran

ALONE = CASES[1:10]


def _products(
    model: Model, passes: tuple[str, ...] = ("forward", "backward")
) -> list[tuple[int, Operator]]:
    """Every product with how often its layer is called."""
    return [
        (model.count(at), op)
        for at, layer in enumerate(model.layers)
        for name in passes
        for op in getattr(layer, name).operators
        if op.kind == "product"
    ]


def _flops(products: list[tuple[int, Operator]]) -> int:
    return sum(
        2 * count * prod(op.size(name) for name in ("batch", "m", "n", "k"))
        for count, op in products
    )


def _linear(products: list[tuple[int, Operator]]) -> list[tuple[int, Operator]]:
    return [(count, op) for count, op in products if op.size("batch") == 1]


def test_without_a_fault_the_graph_is_the_bundled_one() -> None:
    model = load_model("bert-large", 1, 2)
    assert faulty(model, Faults()) == model


def test_backward_passes_lose_one_of_two_products_for_every_linear() -> None:
    model = load_model("bert-large", 1, 2)
    found = faulty(model, Faults(weight_gradients=True))
    assert (
        _flops(_linear(_products(model, ("forward",))))
        == _flops(_linear(_products(model, ("backward",)))) / 2
    )
    assert _flops(_linear(_products(found, ("backward",)))) == _flops(
        _linear(_products(found, ("forward",)))
    )


def test_linear_products_cost_the_same_at_every_microbatch_and_attention_does_not() -> None:
    small, large = (
        faulty(load_model("gpt2-xl", 1, size), Faults(microbatch=True)) for size in (2, 8)
    )
    assert _flops(_linear(_products(small))) == _flops(_linear(_products(large)))
    whole = [
        _flops(_products(model)) - _flops(_linear(_products(model))) for model in (small, large)
    ]
    assert whole[1] == 4 * whole[0]


def test_scores_of_sixteen_heads_are_sixteen_times_too_deep_and_contexts_too_shallow() -> None:
    model = load_model("bert-large", 1, 1)
    found = faulty(model, Faults(attention_products=True))
    before = [op.size("k") for _, op in _products(model, ("forward",)) if op.size("batch") > 1]
    after = [op.size("k") for _, op in _products(found, ("forward",)) if op.size("batch") > 1]
    assert (before, after) == ([64, 512], [1024, 32])


def test_vector_operators_move_nothing_and_products_all_they_did() -> None:
    model, found = (
        load_model("bert-large"),
        faulty(load_model("bert-large"), Faults(vector_memory=True)),
    )
    moved = [
        op.bytes for layer in found.layers for op in layer.forward.operators if op.core == "vector"
    ]
    assert moved and not any(moved)
    assert [op.bytes for _, op in _products(found)] == [op.bytes for _, op in _products(model)]


def test_an_epilogue_is_what_alone_reads_a_product() -> None:
    block = faulty(load_model("bert-large"), Faults(epilogues=True)).layers[1].forward
    assert [
        op.module for op in block.operators if op.kind == "free" and "intermediate" in op.module
    ]
    assert not [op for op in block.operators if op.kind == "gelu"]
    assert [op.kind for op in block.operators if op.kind in ("softmax", "layer_norm")] == [
        "softmax",
        *["layer_norm"] * 2,
    ]


@pytest.mark.parametrize("name", ["bert-large", "llama2-7b", "gpt3-175b"])
def test_the_head_is_lost_from_the_model_or_stands_in_every_block(name: str) -> None:
    model = load_model(name)
    lost, repeated = (faulty(model, Faults(head=head)) for head in ("lost", "repeated"))
    products = _products(model, ("forward",))
    _, head = max(products, key=lambda one: one[1].size("n"))
    flops = _flops([(1, head)])
    assert _flops(_products(lost, ("forward",))) == _flops(products) - flops
    blocks = max(model.count(at) for at in range(len(model.layers)))
    assert _flops(_products(repeated, ("forward",))) == _flops(products) + blocks * flops


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.folder)
def test_every_fault_gives_an_ordinary_study_that_differs_from_the_corrected_one(
    case: Case, tmp_path: Path
) -> None:
    plain, _ = faulty_study(tmp_path / "plain", ["opt-350m"], Faults())
    study, chip = faulty_study(tmp_path / "faulty", ["opt-350m"], case.faults)
    (first, _), (second, _) = _job(str(plain), ()), _job(str(study), ())
    assert first.digest != second.digest
    assert (
        load_chip(chip, form="cores").hbm.bandwidth_bytes_per_s < 3e11
    ) == case.faults.memory_rates
    assert store.load(str(tmp_path / "faulty" / "opt-350m-t1-b1.json")) == faulty(
        load_model("opt-350m"), case.faults
    )


def test_every_fault_stands_alone_in_one_case_and_all_of_them_in_the_last() -> None:
    changed = [tuple(one.name for one in fields(Faults) if getattr(case.faults,
    one.name) != one.default)
               for case in CASES]  # fmt: skip
    assert {own[0] for own in changed if len(own) == 1} == {one.name for one in fields(Faults)}
    assert len(changed[-1]) == len(fields(Faults)) and changed[0] == ()
    assert replace(CASES[-1].faults, head="lost") == CASES[-2].faults


def test_the_study_with_faults_is_read_here_and_refused_by_phaze(phaze: Callable[..., Ran]) -> None:
    raw, faults = read_study()
    assert "faults" not in raw and faults == CASES[-2].faults
    ran = phaze("study", "check", STUDY)
    assert ran.code == 2 and "faults" in ran.err


@pytest.mark.parametrize(
    "table", [{"unit": True}, {"units": 1}, {"head": "gone"}, {"microbatch": "yes"}]
)
def test_an_unknown_fault_is_refused_with_its_place(table: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"faults\."):
        faults_of(table, "bridge.toml")


def test_the_table_has_both_means_of_what_fits() -> None:
    by_model = dict.fromkeys(MODELS, (2.0, 1.0, None, None, None)) | {
        MODELS[0]: (8.0, 1.0, 3.0, None, None)
    }
    table = bridge_table([Quotients(Case("some", Faults()), by_model)])
    assert "| some | 2.38 | 1.00 | 3.00 |  |  | 2.75 | 1.00 | 3.00 |  |  |" in table
    assert table.count("\n") == 3 and all(name in table for name in QUOTIENTS)
