"""Each rule: graph in, graph out; and what all of them keep."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.graph import opset, store
from phaze.graph.fuse import Rule, contract, fuse, fuse_graph, rules
from phaze.graph.fuse.partition import FusionPartition, bits
from phaze.graph.fuse.structure import Fusions
from phaze.graph.ir import Access, Model, Operator, OperatorGraph
from tests.graph.made import graph, graphs, models, operator

ALL_RULES = (rules.chains, rules.clusters, rules.siblings, rules.epilogues, rules.bias_sums)


def shown(found: OperatorGraph) -> list[str]:
    """A graph as text: ``kind+kind(reads)->writes`` for each operator, in order."""
    return [
        f"{'+'.join(part.kind for part in contract.leaves(op))}"
        f"({','.join(str(a.tensor) for a in op.reads)})->{','.join(str(a.tensor) for a in op.writes)}"
        for op in found.operators
    ]


def test_a_chain_of_elementwise_operators_becomes_one() -> None:
    before = graph(
        [
            operator(0, "product", [0, 1], [10]),
            operator(1, "add", [10, 2], [11]),
            operator(2, "gelu", [11], [12]),
            operator(3, "dropout", [12], [13, 14]),
            operator(4, "product", [13, 3], [15]),
        ],
        [14, 15],
    )
    after = rules.chains(before)
    assert shown(after) == [
        "product(0,1)->10",
        "add+gelu+dropout(10,2)->13,14",
        "product(13,3)->15",
    ]
    chain = after.operators[1]
    assert (chain.id, chain.kind, chain.core) == (1, "fused", "vector")
    assert chain.bytes == 4 * 16


def test_a_chain_stops_where_a_value_has_two_readers() -> None:
    before = graph(
        [
            operator(0, "add", [0], [10]),
            operator(1, "gelu", [10], [11]),
            operator(2, "product", [10, 1], [12]),
        ]
    )
    assert rules.chains(before) is before


def test_a_scatter_clears_the_place_it_writes_to() -> None:
    before = graph(
        [
            operator(0, "fill", [], [10]),
            operator(1, "gelu", [0], [11]),
            operator(2, "scatter", [10, 2, 11], [12]),
            operator(3, "add", [12], [13]),
        ]
    )
    assert shown(rules.chains(before)) == ["gelu(0)->11", "fill+scatter(2,11)->12", "add(12)->13"]


def test_a_scatter_into_a_part_does_not_clear_the_rest() -> None:
    before = graph([operator(0, "fill", [], [10], 64), operator(1, "scatter", [10, 2, 3], [12])])
    assert rules.chains(before) is before


def test_values_that_are_a_series_are_made_where_they_are_scattered_and_nothing_else_joins() -> (
    None
):
    before = graph(
        [
            operator(0, "gelu", [0], [9]),
            operator(1, "fill", [], [10], 64),
            operator(2, "scatter", [2, 9, 10], [12]),
        ]
    )
    assert shown(rules.chains(before)) == ["gelu(0)->9", "fill+scatter(2,9)->12"]


def test_a_saved_value_still_leaves_the_chip() -> None:
    before = graph([operator(0, "add", [0], [10]), operator(1, "gelu", [10], [11])], [10, 11])
    assert shown(rules.chains(before)) == ["add+gelu(0)->10,11"]


def test_a_cluster_takes_branches_and_reductions_in() -> None:
    """RMS norm: the square is summed, its root scales the input again."""
    before = graph(
        [
            operator(0, "power", [0], [10]),
            operator(1, "reduce", [10], [11]),
            operator(2, "root", [11], [12]),
            operator(3, "multiply", [0, 12], [13]),
            operator(4, "multiply", [13, 1], [14]),
        ]
    )
    assert shown(rules.clusters(before)) == ["power+reduce+root+multiply+multiply(0,1)->14"]


def test_a_cluster_does_not_close_a_cycle_through_a_product() -> None:
    before = graph(
        [
            operator(0, "gelu", [0], [10]),
            operator(1, "product", [10, 1], [11]),
            operator(2, "add", [10, 11], [12]),
        ]
    )
    assert rules.clusters(before) is before


def test_kernels_of_their_own_stay_alone() -> None:
    before = graph([operator(0, "add", [0], [10]), operator(1, "scatter", [10, 2], [11])])
    assert rules.clusters(before) is before


def test_siblings_that_read_the_same_become_one() -> None:
    before = graph(
        [
            operator(0, "reduce", [0], [10]),
            operator(1, "copy", [0], [11]),
            operator(2, "add", [2, 3], [12]),
        ]
    )
    after = rules.siblings(before)
    assert shown(after) == ["reduce+copy(0)->10,11", "add(2,3)->12"]
    assert [a.bytes for a in after.operators[0].reads] == [32]


def test_siblings_with_a_path_between_stay_apart() -> None:
    before = graph(
        [
            operator(0, "gelu", [0], [10]),
            operator(1, "product", [10, 1], [11]),
            operator(2, "add", [0, 11], [12]),
        ]
    )
    assert rules.siblings(before) is before


def sized(op: Operator, **sizes: int) -> Operator:
    return Operator(op.id, op.kind, op.core, tuple(sizes.items()), op.reads, op.writes, op.module)


def test_a_product_takes_its_epilogue_in() -> None:
    product = sized(operator(0, "product", [0, 1], [10]), batch=1, m=4, n=8, k=2)
    before = graph([product, sized(operator(1, "gelu", [10], [11]), elements=32)], [10, 11])
    after = rules.epilogues(before)
    assert shown(after) == ["product+gelu(0,1)->10,11"]
    assert after.operators[0].core == "both"
    assert opset.flops(after.operators[0]) == 2 * 4 * 8 * 2


def test_the_later_of_two_products_takes_the_epilogue() -> None:
    """A gated MLP: both halves meet in one element-wise operator."""
    sizes = {"batch": 1, "m": 4, "n": 8, "k": 2}
    before = graph(
        [
            sized(operator(0, "product", [0, 1], [10]), **sizes),
            sized(operator(1, "product", [0, 2], [11]), **sizes),
            sized(operator(2, "multiply", [10, 11], [12]), elements=32),
        ]
    )
    assert shown(rules.epilogues(before)) == ["product(0,1)->10", "product+multiply(0,2,10)->12"]


def test_a_softmax_or_another_size_is_no_epilogue() -> None:
    product = sized(operator(0, "product", [0, 1], [10]), batch=1, m=4, n=8, k=2)
    softmax = graph([product, sized(operator(1, "softmax", [10], [11]), elements=32, rows=4)])
    larger = graph([product, sized(operator(1, "add", [10, 2], [11]), elements=64)])
    assert rules.epilogues(softmax) is softmax
    assert rules.epilogues(larger) is larger


def test_the_gradient_of_a_bias_is_summed_by_the_weight_gradient() -> None:
    before = graph([operator(0, "product", [0, 2], [10]), operator(1, "reduce", [0], [11])])
    after = rules.bias_sums(before)
    assert shown(after) == ["product+reduce(0,2)->10,11"]
    assert after.operators[0].core == "both"


def test_slices_of_one_tensor_are_read_as_a_whole() -> None:
    halves = [operator(0, "copy", [0], [10], 30), operator(1, "add", [0, 10], [11], 30)]
    (both,) = rules.chains(graph(halves)).operators
    assert [a.bytes for a in both.reads] == [120]
    again = [operator(0, "copy", [0], [10], 60), operator(1, "add", [0, 10], [11], 60)]
    (both,) = rules.chains(graph(again)).operators
    assert [a.bytes for a in both.reads] == [128]


def paths(found: OperatorGraph) -> set[tuple[int, int]]:
    """Pairs of members (before fusion) whose operators are connected, or are one."""
    partition = FusionPartition.of(found)
    names = [[part.id for part in contract.leaves(op)] for op in found.operators]
    pairs = {(a, b) for own in names for a in own for b in own}
    for i, below in enumerate(partition.below):
        pairs |= {(a, b) for j in bits(below) for a in names[i] for b in names[j]}
    return pairs


@pytest.mark.parametrize("rule", ALL_RULES)
@given(before=graphs(24))
@settings(max_examples=60, deadline=None)
def test_a_rule_keeps_work_paths_operands_and_order(rule: Rule, before: OperatorGraph) -> None:
    after = rule(before)
    place = {op.id: i for i, op in enumerate(after.operators)}
    assert all(place[a] < place[b] for a, b in after.edges())
    assert sorted(p.id for op in after.operators for p in contract.leaves(op)) == [
        op.id for op in before.operators
    ]
    for work in (opset.flops, opset.vector_operations):
        assert sum(map(work, after.operators)) == sum(map(work, before.operators))
    assert paths(before) <= paths(after)
    assert (after.inputs, after.outputs, after.tensors) == (
        before.inputs,
        before.outputs,
        before.tensors,
    )
    assert sum(op.bytes for op in after.operators) <= sum(op.bytes for op in before.operators)
    for op in after.operators:
        inner = {a.tensor for part in op.parts for a in part.writes}
        outer = {
            a.tensor for other in after.operators if other is not op for a in other.reads
        } | set(after.outputs)
        if op.parts:
            assert {a.tensor for a in op.writes} == inner & outer
            assert {a.tensor for a in op.reads} == {
                a.tensor for p in op.parts for a in p.reads
            } - inner
            runnable = contract.in_order(op.parts)
            assert [part.id for part in runnable] == [part.id for part in op.parts]


@given(graphs(30))
@settings(max_examples=60, deadline=None)
def test_a_level_is_stable_and_more_fusion_never_leaves_more_operators(
    before: OperatorGraph,
) -> None:
    none, some, full = (fuse_graph(before, name) for name in ("none", "elementwise", "full"))
    assert none is before
    assert len(full.operators) <= len(some.operators) <= len(before.operators)
    assert fuse_graph(some, "elementwise") == some


@given(graphs(24), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_what_is_known_of_a_structure_fuses_graphs_of_other_sizes_as_they_are_fused_alone(
    drawn: OperatorGraph, random: Random
) -> None:
    # Fills, so that scatters may clear the places they write to, or not, as sizes say.
    kinds = {op.id: "fill" if op.kind == "copy" else op.kind for op in drawn.operators}
    known = Fusions()
    for _ in range(4):
        resized = []
        for op in drawn.operators:
            sizes = tuple((name, random.randint(1, 64)) for name, _ in op.sizes)
            reads, writes = (
                tuple(Access(a.tensor, random.randint(1, 64)) for a in own)
                for own in (op.reads, op.writes)
            )
            resized.append(replace(op, kind=kinds[op.id], sizes=sizes, reads=reads, writes=writes))
        before = replace(drawn, operators=tuple(resized))
        for level in ("chains", "elementwise", "full"):
            assert fuse_graph(before, level, known) == fuse_graph(before, level)
    assert len(known.recipes) <= 3 * 2 ** sum(kind == "scatter" for kind in kinds.values())


@given(models())
@settings(max_examples=20, deadline=None)
def test_a_fused_model_is_stored_and_sums_up_as_before(model: Model) -> None:
    fused = fuse(model, "full")
    assert store.loads(store.dumps(fused), "file") == fused
    before, after = (store.document_of(m)["summary"] for m in (model, fused))
    for key in ("parameters", "forward_flops", "backward_flops", "saved_bytes", "collectives"):
        assert before[key] == after[key]
    assert all(layer.full.rerun is layer.forward for layer in fused.layers)


def test_changed_work_would_be_noticed() -> None:
    before = graph([operator(0, "product", [0, 1], [10]), operator(1, "gelu", [10], [11])])
    fewer = graph([operator(0, "product", [0, 1], [10])])
    longer = graph([operator(0, "product", [0, 1], [10]), operator(1, "gelu", [10], [11], 9)])
    for wrong in (fewer, longer):
        with pytest.raises(AssertionError):
            contract.check_conserved(before, wrong)
    with pytest.raises(ValueError, match="cycle"):
        partition = FusionPartition.of(
            graph(
                [
                    operator(0, "add", [0], [10]),
                    operator(1, "add", [10], [11]),
                    operator(2, "add", [10, 11], [12]),
                ]
            )
        )
        partition.merge(0, 2)
