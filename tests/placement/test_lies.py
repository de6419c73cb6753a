"""For every rule of both plan checkers a lie that breaks this rule and no other: each is refused, by that rule.

The document is the true one of a problem; the problem, or one thing that nothing else follows from, is then another.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from phaze.cost.memory import State
from phaze.hardware.cluster import Cluster, Level
from phaze.hardware.stack import Stack
from phaze.placement import check, cluster_check
from phaze.placement.answer import document_of
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import ModeCut
from phaze.placement.cluster_pipeline import price as cluster_price
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.cluster_problem import ClusterProblem, Extra
from phaze.placement.pipeline import Cut, price
from phaze.placement.problem import Edge, Layer, LayerGraph, Problem

Document = dict[str, Any]
Change = Callable[[Document], None]
LAYERS = tuple(Layer(i, 1.0 + i % 2, 2.0, 100.0, 50.0, False) for i in range(4))
CHAIN = LayerGraph(1, LAYERS, tuple(Edge(i, i + 1, 8.0) for i in range(3)))
FLAT = Problem(8, 5000.0, 4.0, 6, "sgd", "none", (CHAIN,))
STACK = Stack("made", "made", "none", 0.0, False, 0.0, False, 30.0, 16.0, 5.0)
LEVELS = (Level("inner", "switch", 2, 8.0, 0.0), Level("outer", "switch", 4, 2.0, 0.1))
CLUSTER = ClusterProblem(
    8, 9000.0, 6, "none", "1f1b", 0, State(2.0, 2.0, 12.0), 2.0, 20.0, Cluster("made", "made", 8, LEVELS), STACK,
    (CHAIN,), ((Extra(),) * 4,),
)  # fmt: skip
PRICES = RingPrices(CLUSTER.cluster)


def _flat_document() -> Document:
    return copy.deepcopy(dict(document_of(price(FLAT, 1, 2, [Cut((0, 1), False), Cut((2, 3), False)]))))


def _cluster_document() -> Document:
    cuts = [ModeCut((0, 1), "none"), ModeCut((2, 3), "none")]
    return copy.deepcopy(dict(document_of(cluster_price(CLUSTER, Shape(1, 2, 2, "pipeline"), cuts, PRICES))))


def _graph(graph: LayerGraph) -> Mapping[str, Any]:
    return {"graphs": (graph,)}


def _put(*path: str | int, value: Any = None, add: float | None = None) -> Change:
    def change(document: Document) -> None:
        at: Any = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value if add is None else at[path[-1]] + add

    return change


def _both(*changes: Change) -> Change:
    def change(document: Document) -> None:
        for one in changes:
            one(document)

    return change


def _nothing(_: Document) -> None:
    pass


# An edge without bytes takes no time and no memory: only its direction can be wrong.
BACK = replace(CHAIN, edges=(*CHAIN.edges, Edge(3, 0, 0.0)))
SAME = tuple(replace(layer, forward_s=1.0) for layer in LAYERS)
SWAPPED = LayerGraph(1, (LAYERS[2], *LAYERS[1:2], LAYERS[0], LAYERS[3]), ())
FLAT_LIES: dict[str, tuple[Mapping[str, Any], Change, str]] = {
    "it is no plan": ({}, _put("schema", value="phaze.plan/2"), "not a feasible plan"),
    "it does not fit": ({}, _put("feasible", value=False), "not a feasible plan"),
    "true is no number of copies": ({}, _put("data", value=True), "data True is out of range"),
    "more copies than microbatches": ({"microbatches": 1}, _nothing, "data 2 is out of range"),
    "a width that is not there": ({}, _put("tensor", value=2), "width 2"),
    "an edge runs backwards": (_graph(BACK), _nothing, "runs backwards"),
    "a layer stands twice": ({}, _put("stages", 1, "layers", value=[2, 3, 3]), "every layer once"),
    "an empty stage": ({}, lambda d: d["stages"].append({**d["stages"][1], "layers": []}), "every layer once"),
    "recompute that was not asked for": ({}, _put("stages", 0, "recompute", value="full"), "recompute is 'full'"),
    "recompute that is missing": ({"recompute": "full"}, _nothing, "recompute is 'none'"),
    "recompute in the last stage": (
        {"recompute": "best"}, _put("stages", 1, "recompute", value="full"), "stages[1].recompute",
    ),
    "layers in another order": ({}, _put("stages", 0, "layers", value=[1, 0]), "order in which they run"),
    "another depth": ({}, _put("pipeline", value=3), "pipeline is 3"),
    "a forward time": ({}, _put("stages", 0, "forward_s", add=1e-6), "stages[0].forward_s"),
    "a backward time": ({}, _put("stages", 1, "backward_s", add=1e-6), "stages[1].backward_s"),
    "a stage's time": ({}, _put("stages", 1, "time_s", add=1e-6), "stages[1].time_s"),
    "a stage's memory": ({}, _put("stages", 1, "memory_bytes", add=1e-3), "stages[1].memory_bytes"),
    "a stage's devices": ({}, _put("stages", 1, "devices", value=2), "stages[1].devices"),
    **{f"memory.{name}": ({}, _put("stages", 0, "memory", name, add=1e-3), f"memory.{name}")
       for name in ("parameters", "gradients", "activations", "in_flight", "optimizer", "reserve")},
    "more memory than there is": ({"hbm_bytes": 590.0}, _nothing, "bytes and there are"),
    "more devices than there are": ({"devices": 3}, _nothing, "more devices"),
    "a bound above the batch": ({}, _put("lower_bound_s", value=1e6), "exceeds the batch"),
    "a negative bound": ({}, _put("lower_bound_s", value=-1.0), "exceeds the batch"),
    "a bound and a batch that agree": ({}, _put("simulated_s", add=-1e-6), "simulated_s is"),
    "a breakdown that does not add up": ({}, _put("breakdown", "transfer_s", add=1e-6), "does not sum"),
    "another batch, hidden in transfers": (
        {}, _both(_put("batch_s", add=1e-3), _put("breakdown", "transfer_s", add=1e-3)), "batch_s is",
    ),
    "the bubble, hidden in transfers": (
        {}, _both(_put("breakdown", "bubble_s", add=-1e-3), _put("breakdown", "transfer_s", add=1e-3)), "bubble_s",
    ),
    "synchronisation, hidden in transfers": (
        {}, _both(_put("breakdown", "synchronisation_s", add=-1e-3), _put("breakdown", "transfer_s", add=1e-3)),
        "synchronisation_s",
    ),
    **{f"breakdown.{name}": (
        {}, _both(_put("breakdown", name, add=1e-3), _put("breakdown", "transfer_s", add=-1e-3)), "slowest stage",
    ) for name in ("forward_s", "backward_s", "recompute_s")},
    "time for the optimizer": (
        {}, _both(_put("breakdown", "optimizer_s", value=1e-3), _put("breakdown", "transfer_s", add=-1e-3)),
        "optimizer_s",
    ),
}  # fmt: skip
CLUSTER_LIES: dict[str, tuple[Mapping[str, Any], Change, str]] = {
    "it is no plan": ({}, _put("schema", value="phaze.plan/2"), "no plan under rules cluster"),
    "other rules": ({}, _put("rules", value="icml24"), "no plan under rules cluster"),
    "feasible is one": ({}, _put("feasible", value=1), "no plan under rules cluster"),
    "true is no number of copies": ({}, _put("data", value=True), "out of range"),
    "more copies than microbatches": ({"microbatches": 1}, _nothing, "out of range"),
    "an edge runs backwards": (_graph(BACK), _nothing, "runs backwards"),
    "a layer stands twice": ({}, _put("stages", 1, "layers", value=[2, 3, 3]), "every layer once"),
    "a way to save that is not allowed": ({}, _put("stages", 0, "recompute", value="full"), "not allowed"),
    "layers in another order": ({}, _put("stages", 0, "layers", value=[1, 0]), "order in which they run"),
    "another depth": ({}, _put("pipeline", value=3), "pipeline or order"),
    "another order": ({}, _put("order", value="tensor"), "pipeline or order"),
    "more devices than there are": ({"devices": 3}, _nothing, "more devices"),
    "no chunks": ({}, _put("chunks", value=0), "chunks are out of range"),
    "chunks that microbatches do not fill": ({"microbatches": 5}, _put("chunks", value=2), "no multiple"),
    "chunks under gpipe": ({"schedule": "gpipe"}, _put("chunks", value=2), "chunks are out of range"),
    "a forward time": ({}, _put("stages", 0, "forward_s", add=1e-6), "stages[0]: forward_s"),
    "a backward time": ({}, _put("stages", 1, "backward_s", add=1e-6), "stages[1]: backward_s"),
    "a stage's time": ({}, _put("stages", 1, "time_s", add=1e-6), "stages[1]: time_s"),
    "a stage's memory": ({}, _put("stages", 1, "memory_bytes", add=1e-3), "stages[1]: memory_bytes"),
    "a stage's devices": ({}, _put("stages", 1, "devices", value=2), "stages[1].devices"),
    **{f"memory.{name}": ({}, _put("stages", 0, "memory", name, add=1e-3), f"memory.{name}")
       for name in ("parameters", "gradients", "activations", "in_flight", "optimizer", "reserve")},
    "more memory than there is": ({"hbm_bytes": 1500.0}, _nothing, "feasible is wrong"),
    "it would fit": ({}, _put("feasible", value=False), "feasible is wrong"),
    "a bound above the batch": ({}, _put("lower_bound_s", value=1e6), "exceeds the batch"),
    "a negative bound": ({}, _put("lower_bound_s", value=-1.0), "exceeds the batch"),
    "another batch": ({}, _put("batch_s", add=1e-6), "batch_s should be"),
    "other events": ({}, _put("simulated_s", add=1e-6), "simulated_s should be"),
    "a breakdown that does not add up": ({}, _put("breakdown", "transfer_s", add=1e-6), "does not sum"),
    "a breakdown of other terms": ({}, lambda d: d["breakdown"].update(idle_s=0.0), "does not sum"),
}  # fmt: skip
TERMS = ("forward_s", "backward_s", "recompute_s", "synchronisation_s", "bubble_s", "optimizer_s", "tied_s")


def test_the_documents_without_a_lie_are_right() -> None:
    assert check.objections(FLAT, _flat_document()) == []
    assert cluster_check.objections(CLUSTER, _cluster_document(), PRICES) == []


@pytest.mark.parametrize("name", FLAT_LIES)
def test_a_lie_under_icml24_is_refused_by_its_rule_alone(name: str) -> None:
    changes, change, said = FLAT_LIES[name]
    document = _flat_document()
    change(document)
    found = check.objections(replace(FLAT, **changes), document)
    assert found
    assert all(said in one for one in found), found


@pytest.mark.parametrize("name", CLUSTER_LIES)
def test_a_lie_under_cluster_is_refused_by_its_rule_alone(name: str) -> None:
    changes, change, said = CLUSTER_LIES[name]
    document = _cluster_document()
    change(document)
    found = cluster_check.objections(replace(CLUSTER, **changes), document, PRICES)
    assert found
    assert all(said in one for one in found), found


@pytest.mark.parametrize("name", TERMS)
def test_a_term_of_a_breakdown_cannot_be_hidden_in_another(name: str) -> None:
    document = _cluster_document()
    document["breakdown"][name] += 1e-3
    document["breakdown"]["transfer_s"] -= 1e-3
    found = cluster_check.objections(CLUSTER, document, PRICES)
    assert any(f"breakdown.{name}" in one for one in found), found


def test_a_tie_that_costs_nothing_is_refused_by_its_seconds() -> None:
    ends = Extra(tied="word", tied_bytes=8.0)
    tied = replace(CLUSTER, extras=((ends, Extra(), Extra(), ends),))
    cuts = [ModeCut((0, 1), "none"), ModeCut((2, 3), "none")]
    true = copy.deepcopy(dict(document_of(cluster_price(tied, Shape(1, 2, 2, "pipeline"), cuts, PRICES))))
    tied_s = true["breakdown"]["tied_s"]
    assert tied_s > 0 and cluster_check.objections(tied, true, PRICES) == []
    # Left out everywhere it is missing in both times; hidden in another term it is missing in its own.
    free = _cluster_document()
    assert set(cluster_check.objections(tied, free, PRICES)) == {
        "the breakdown does not sum to the batch time",
        f"batch_s should be {true['batch_s']}",
        f"simulated_s should be {true['simulated_s']}",
    }
    hidden = copy.deepcopy(true)
    hidden["breakdown"] |= {"tied_s": 0.0, "transfer_s": true["breakdown"]["transfer_s"] + tied_s}
    assert set(cluster_check.objections(tied, hidden, PRICES)) == {
        f"breakdown.tied_s should be {tied_s}",
        f"breakdown.transfer_s should be {true['breakdown']['transfer_s']}",
    }


@pytest.mark.parametrize("share", [0.0, 1.1])
def test_events_too_many_to_run_again_end_within_the_batch(share: float) -> None:
    many = replace(FLAT, microbatches=3 * check.MOST_EVENTS)
    document = copy.deepcopy(dict(document_of(price(many, 1, 2, [Cut((0, 1), False), Cut((2, 3), False)]))))
    assert check.objections(many, document) == []
    document["simulated_s"] = share * document["batch_s"]
    found = check.objections(many, document)
    assert len(found) == 1
    assert "out of range" in found[0]
