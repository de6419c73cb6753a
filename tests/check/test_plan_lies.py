"""For every rule of the plan checker a lie that breaks this rule and no other: each is refused, by
that rule.

The document is the true one of a problem; the problem, or one thing that nothing else follows from,
is then another.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from phaze.check import events
from phaze.cost.memory import ParameterState
from phaze.cost.network_prices import NetworkPrices
from phaze.hardware.cluster import cluster_of, switch_level
from phaze.pipeline.families import GPIPE, ONE_F_ONE_B, interleaved
from phaze.placement.answer import document_of
from phaze.placement.layers import LayerEdge, LayerGraph, PlacedLayer
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import Rules
from phaze.placement.settings import icml24_problem
from phaze.placement.structure import StageCut
from tests.check.documents import objections
from tests.placement.placement_cases import with_layers

Document = dict[str, Any]
Change = Callable[[Document], None]
Lie = tuple[Mapping[str, Any], Change, str]
LAYERS = tuple(PlacedLayer(i, 1.0 + i % 2, 2.0, 100.0, 50.0, False) for i in range(4))
CHAIN = LayerGraph(1, LAYERS, tuple(LayerEdge(i, i + 1, 8.0) for i in range(3)))
FLAT = icml24_problem(
    (CHAIN,),
    devices=8,
    hbm_bytes=5000.0,
    link_bytes_per_s=4.0,
    microbatches=6,
    optimizer="sgd",
    recompute="none",
)
LEVELS = (switch_level("inner", 2, 8.0, 0.0), switch_level("outer", 4, 2.0, 0.1))
CLUSTER = PlacementProblem(
    rules=Rules("cluster", (ONE_F_ONE_B,)),
    devices=8,
    hbm_bytes=9000.0,
    microbatches=6,
    recompute="none",
    state=ParameterState(2.0, 2.0, 12.0),
    cluster=cluster_of("made", "made", LEVELS),
    graphs=(CHAIN,),
    hbm_bytes_per_s=20.0,
    optimizer_traffic_bytes=30.0,
    reserve_bytes=5.0,
)
CHUNKS = replace(
    CLUSTER,
    rules=Rules("cluster", (ONE_F_ONE_B, interleaved(2)), piece_start_s=0.5),
    graphs=(replace(CHAIN, layers=tuple(replace(layer, block=True) for layer in LAYERS)),),
    microbatches=8,
)
ALL_AHEAD = replace(CLUSTER, rules=Rules("cluster", (GPIPE,)))
PRICES = NetworkPrices(CLUSTER.cluster)
PROBLEMS = {"icml24": FLAT, "cluster": CLUSTER, "chunks": CHUNKS, "gpipe": ALL_AHEAD}


def _prices(problem: PlacementProblem) -> NetworkPrices:
    return NetworkPrices(problem.cluster)


def _document(problem: PlacementProblem) -> Document:
    """Two stages in two replicas, in the last family of the problem."""
    shape = Shape(1, 2, 2, problem.rules.orders[0], problem.rules.families[-1].chunks)
    plan = price(
        problem, shape, [StageCut((0, 1), "none"), StageCut((2, 3), "none")], _prices(problem)
    )
    return copy.deepcopy(dict(document_of(plan)))


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
BACK = replace(CHAIN, edges=(*CHAIN.edges, LayerEdge(3, 0, 0.0)))
TERMS = (
    "forward_s",
    "backward_s",
    "recompute_s",
    "synchronisation_s",
    "bubble_s",
    "optimizer_s",
    "tied_s",
)
LIES: dict[str, Lie] = {
    "it is not a plan": ({}, _put("schema", value="phaze.plan/2"), "not a plan under rules"),
    "other rules": ({}, _put("rules", value="other"), "not a plan under rules"),
    "feasible is one": ({}, _put("feasible", value=1), "not a plan under rules"),
    "true is not a number of replicas": (
        {},
        _put("data", value=True),
        "data or family is out of range",
    ),
    "more replicas than microbatches": (
        {"microbatches": 1},
        _nothing,
        "data or family is out of range",
    ),
    "no replica": ({}, _put("data", value=0), "data or family is out of range"),
    "a width that is not there": (
        {},
        _put("tensor", value=2),
        "tensor or chunks are missing or out of range",
    ),
    "no stages": ({}, lambda document: document.pop("stages"), "missing or out of range"),
    "chunks that no family has": ({}, _put("chunks", value=5), "data or family is out of range"),
    "a family that the rules do not have": (
        {},
        _put("family", value="other"),
        "data or family is out of range",
    ),
    "an edge runs backwards": ({"graphs": (BACK,)}, _nothing, "runs backwards"),
    "a layer appears twice": ({}, _put("stages", 1, "layers", value=[2, 3, 3]), "every layer once"),
    "an empty stage": (
        {},
        lambda d: d["stages"].append({**d["stages"][1], "layers": []}),
        "every layer once",
    ),
    "recompute that was not asked for": (
        {},
        _put("stages", 0, "recompute", value="full"),
        "may not have the mode",
    ),
    "recompute that is missing": ({"recompute": "full"}, _nothing, "may not have the mode"),
    "layers in another order": (
        {},
        _put("stages", 0, "layers", value=[1, 0]),
        "order in which they run",
    ),
    "another depth": ({}, _put("pipeline", value=3), "pipeline or order"),
    "another order": ({}, _put("order", value="tensor"), "pipeline or order"),
    "more devices than there are": ({"devices": 3}, _nothing, "more than the 3"),
    "a forward time": ({}, _put("stages", 0, "forward_s", add=1e-6), "stages[0]: forward_s"),
    "a backward time": ({}, _put("stages", 1, "backward_s", add=1e-6), "stages[1]: backward_s"),
    "a stage's time": ({}, _put("stages", 1, "time_s", add=1e-6), "stages[1]: time_s"),
    "a stage's memory": (
        {},
        _put("stages", 1, "memory_bytes", add=1e-3),
        "stages[1]: memory_bytes",
    ),
    "a stage's devices": ({}, _put("stages", 1, "devices", value=2), "stages[1]: devices"),
    **{
        f"memory.{name}": (
            {},
            _put("stages", 0, "memory", name, add=1e-3),
            f"stages[0]: memory.{name}",
        )
        for name in ("parameters", "gradients", "activations", "in_flight", "optimizer", "reserve")
    },
    "more memory than there is": ({"hbm_bytes": 590.0}, _nothing, "feasible is wrong"),
    "memory that is kept free": ({"headroom": 0.95}, _nothing, "feasible is wrong"),
    "it would fit": ({}, _put("feasible", value=False), "feasible is wrong"),
    "a bound above the batch": ({}, _put("lower_bound_s", value=1e6), "exceeds the step"),
    "a negative bound": ({}, _put("lower_bound_s", value=-1.0), "exceeds the step"),
    "another batch": ({}, _put("batch_s", add=1e-6), "batch_s should be"),
    "other events": ({}, _put("simulated_s", add=-1e-6), "simulated_s should be"),
    "a breakdown that does not add up": (
        {},
        _put("breakdown", "transfer_s", add=1e-6),
        "does not sum",
    ),
    "a breakdown of other terms": ({}, lambda d: d["breakdown"].update(idle_s=0.0), "does not sum"),
    "a breakdown without a term": ({}, lambda d: d["breakdown"].pop("tied_s"), "does not sum"),
    **{
        f"breakdown.{name}, hidden in transfers": (
            {},
            _both(_put("breakdown", name, add=1e-3), _put("breakdown", "transfer_s", add=-1e-3)),
            "the breakdown should be",
        )
        for name in TERMS
    },
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_document_without_a_lie_is_right(kind: str) -> None:
    problem = PROBLEMS[kind]
    assert objections(problem, _document(problem), _prices(problem)) == []


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refused_by_its_rule_alone(name: str, kind: str) -> None:
    problem, (changes, change, said) = PROBLEMS[kind], LIES[name]
    document = _document(problem)
    change(document)
    found = objections(replace(problem, **changes), document, _prices(problem))
    assert found
    assert all(said in one for one in found), found


def test_the_last_stage_recomputes_only_where_the_rules_let_it() -> None:
    lie = _document(FLAT)
    lie["stages"][1]["recompute"] = "full"
    found = objections(replace(FLAT, recompute="best"), lie, _prices(FLAT))
    assert found == ["stage 2 may not have the mode 'full'"]
    cuts = [StageCut((0, 1), "none"), StageCut((2, 3), "full")]
    problem = replace(CLUSTER, recompute="best")
    plan = price(problem, Shape(1, 2, 2, "pipeline"), cuts, _prices(problem))
    assert objections(problem, document_of(plan), _prices(problem)) == []


def test_chunks_that_microbatches_do_not_fill_are_refused() -> None:
    found = objections(replace(CHUNKS, microbatches=9), _document(CHUNKS), _prices(CHUNKS))
    assert found == ["interleaved cannot run so many microbatches in so many stages"]


def test_uneven_chunks_may_be_given_but_not_proved() -> None:
    cuts = [StageCut((0, 1, 2), "none"), StageCut((3,), "none")]
    plan = price(CHUNKS, Shape(1, 2, 2, "pipeline", 2), cuts, _prices(CHUNKS))
    document = dict(document_of(plan))
    assert objections(CHUNKS, document, _prices(CHUNKS)) == []
    document["lower_bound_s"] = document["batch_s"]
    found = objections(CHUNKS, document, _prices(CHUNKS))
    assert found == ["the blocks of a stage are not a multiple of its chunks"]


def test_a_stage_without_blocks_cannot_be_proved_to_have_chunks() -> None:
    problem = with_layers(CHUNKS, lambda layer, _: replace(layer, block=layer.id < 2))
    plan = price(
        problem,
        Shape(1, 2, 2, "pipeline", 2),
        [StageCut((0, 1), "none"), StageCut((2, 3), "none")],
        PRICES,
    )
    document = {**document_of(plan), "lower_bound_s": plan.batch_s}
    found = objections(problem, document, PRICES)
    assert found == ["the blocks of a stage are not a multiple of its chunks"]


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (
            "icml24",
            {"link_bytes_per_s": 5.0},
            {"forward_s", "backward_s", "time_s", "batch_s", "simulated_s"},
        ),
        ("cluster", {"reduction_cost": 0.0, "bucket": 0.0}, {"batch_s", "simulated_s"}),
        ("cluster", {"host_s": 0.9}, {"batch_s", "simulated_s"}),
        ("cluster", {"norm": True}, {"batch_s", "simulated_s"}),
        (
            "chunks",
            {"piece_start_s": 0.0},
            {"forward_s", "backward_s", "time_s", "batch_s", "simulated_s"},
        ),
        (
            "chunks",
            {"overlapped_transfers": True},
            {"forward_s", "backward_s", "forward_transfer_s", "backward_transfer_s"}
            | {"time_s", "batch_s", "simulated_s"},
        ),
    ],
)
def test_a_plan_of_another_value_of_the_rules_is_refused_by_what_follows_from_it(
    kind: str, change: dict[str, Any], said: set[str]
) -> None:
    problem = PROBLEMS[kind]
    other = replace(problem, rules=replace(problem.rules, **change))
    found = objections(other, _document(problem), _prices(problem))
    assert {one.split(" should")[0].split(": ")[-1] for one in found if " should" in one} - {
        "the breakdown"
    } == said


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_a_plan_of_another_stage_of_zero_is_refused_by_its_memory(zero: int) -> None:
    found = objections(replace(CLUSTER, zero=zero), _document(CLUSTER), _prices(CLUSTER))
    held = ("optimizer", "gradients", "parameters")[:zero]
    for stage in range(2):
        assert all(any(f"stages[{stage}]: memory.{name} " in one for one in found) for name in held)
    true = _document(replace(CLUSTER, zero=zero))
    assert objections(replace(CLUSTER, zero=zero), true, _prices(CLUSTER)) == []


def test_replicas_that_lie_elsewhere_are_refused_by_their_seconds() -> None:
    lie = _document(CLUSTER)
    lie["order"] = "data"
    found = objections(CLUSTER, lie, _prices(CLUSTER))
    assert any("batch_s should be" in one for one in found)
    assert any("forward_s should be" in one for one in found)


def test_a_tie_that_costs_nothing_is_refused_by_its_seconds() -> None:
    tied = with_layers(
        CLUSTER,
        lambda layer, _: (
            replace(layer, tied="word", tied_bytes=8.0) if layer.id in (0, 3) else layer
        ),
    )
    true = _document(tied)
    tied_s = true["breakdown"]["tied_s"]
    assert tied_s > 0
    assert objections(tied, true, _prices(tied)) == []
    # Left out everywhere it is missing in both times; hidden in another term it is missing in its
    # own.
    assert set(objections(tied, _document(CLUSTER), _prices(tied))) == {
        "the breakdown does not sum to the step time",
        f"batch_s should be {true['batch_s']}",
        f"simulated_s should be {true['simulated_s']}",
    }
    hidden = copy.deepcopy(true)
    hidden["breakdown"] |= {"tied_s": 0.0, "transfer_s": true["breakdown"]["transfer_s"] + tied_s}
    assert [one.split(" {")[0] for one in objections(tied, hidden, _prices(tied))] == [
        "the breakdown should be"
    ]


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_events_too_many_to_run_again_end_where_it_is_proved(share: float, kind: str) -> None:
    many = replace(PROBLEMS[kind], microbatches=3 * events.MOST_EVENTS, hbm_bytes=1e12)
    document = _document(many)
    assert objections(many, document, _prices(many)) == []
    document["simulated_s"] *= share if share < 1 or kind != "chunks" else 3.0
    found = objections(many, document, _prices(many))
    assert len(found) == 1
    assert "simulated_s should be" in found[0]
