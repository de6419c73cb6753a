"""Valid profiles get a plan that passes its check, whatever their ties and sizes; what cannot be
priced is refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.placement.answer import checked_document, document_of, place
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.plan import Plan
from phaze.placement.profile import problem_of
from phaze.placement.shortage import Shortage
from phaze.placement.solve import fastest_plan
from phaze.placement.structure import StageCut
from tests.check.documents import objections
from tests.placement.profile_cases import random_profile


def placed(profile: dict[str, Any]) -> Plan | None:
    """The fastest plan if something fits, after its check."""
    problem = problem_of(profile, "profile")
    plan = fastest_plan(problem)
    if plan is not None:
        checked_document(problem, plan)
    return plan


def cluster_profile(layers: list[dict[str, Any]], sizes: list[int], **keys: Any) -> dict[str, Any]:
    edges = [{"from": i, "to": i + 1, "bytes": 1.0} for i in range(len(layers) - 1)]
    return {
        "schema": "phaze.profile/1",
        "rules": "cluster",
        "devices": 2,
        "hbm_bytes": 1e6,
        "microbatches": 4,
        "optimizer": "adam",
        "recompute": False,
        "cluster": [
            {
                "name": f"level{i}",
                "kind": "switch",
                "size": size,
                "bandwidth": 1600.0 / 4**i,
                "latency": 0.0,
            }
            for i, size in enumerate(sizes)
        ],
        "widths": {"1": {"layers": layers, "edges": edges}},
        **keys,
    }


def layer(number: int, seconds: float, **keys: Any) -> dict[str, Any]:
    return {
        "id": number,
        "forward_s": seconds,
        "backward_s": seconds,
        "parameter_bytes": 1.0,
        "activation_bytes": 1.0,
        "sharded": False,
        **keys,
    }


@pytest.mark.parametrize("zero", [0, 3])
def test_the_breakdown_may_show_either_of_two_stages_that_tie_for_the_slowest(zero: int) -> None:
    # Ten times 0.1 is a little less than 1 when added in a row and exactly 1 when added exactly;
    # only the last layer recomputes.
    last = layer(10, 0.9, selective_bytes=0.5, selective_s=0.2)
    rows = [*(layer(i, 0.1) for i in range(10)), last]
    problem = problem_of(
        cluster_profile(rows, [5], recompute="selective", zero=zero, devices=4), "profile"
    )
    cuts = [StageCut(tuple(range(10)), "selective"), StageCut((10,), "selective")]
    plan = price(problem, Shape(1, 2, 1, "pipeline"), cuts, NetworkPrices(problem.cluster))
    assert plan.stages[0].time_s == pytest.approx(plan.stages[1].time_s, rel=1e-12)
    assert plan.breakdown.recompute_s > 0
    assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == []


def test_levels_may_join_more_devices_than_64_bits_count() -> None:
    rows = [layer(i, 1.0, parameter_bytes=20.0) for i in range(3)]
    small = placed(cluster_profile(rows, [2, 4, 1], devices=8, hbm_bytes=250.0))
    # In 64 bits the sizes multiply to -2.
    huge = placed(cluster_profile(rows, [2, 2**32 + 1, 2**32 - 1], devices=8, hbm_bytes=250.0))
    assert small is not None
    assert huge is not None
    assert huge.batch_s == small.batch_s


def test_a_shortage_on_a_huge_cluster_is_an_answer() -> None:
    rows = [layer(i, 1.0) for i in range(2)]
    profile = cluster_profile(rows, [8, 2**40, 2**40], hbm_bytes=1.0, microbatches=2**40)
    problem = problem_of(profile, "profile")
    assert not isinstance(place(problem), Plan)


def test_a_shortage_of_tied_layers_of_which_one_is_split_is_an_answer() -> None:
    rows = [
        layer(0, 1.0, tied="word", tied_bytes=1.0),
        layer(1, 1.0, tied="word", tied_bytes=1.0, sharded=True),
    ]
    profile = cluster_profile(rows, [8], devices=8, hbm_bytes=1.0)
    profile["widths"] = {"2": profile["widths"]["1"]}
    assert isinstance(place(problem_of(profile, "profile")), Shortage)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"devices": 2**40, "microbatches": 2**40}, "microbatches"),
        ({"hbm_bytes_per_s": 1e-9}, "hbm_bytes_per_s"),
        ({"hbm_bytes": 1e-40}, "hbm_bytes"),
    ],
)
def test_numbers_beyond_what_can_be_priced_are_refused_by_name(
    change: dict[str, Any], path: str
) -> None:
    profile = cluster_profile([layer(0, 1.0)], [8, 2**40], **change)
    with pytest.raises(InputError, match=path):
        place(problem_of(profile, "profile"))


def test_a_level_without_bandwidth_and_a_layer_of_no_size_are_refused_by_name() -> None:
    profile = cluster_profile([layer(0, 1e-40)], [8])
    with pytest.raises(
        InputError, match="forward_s: 1e-40 cannot be used; it must be 0 or at least 1e-30"
    ):
        problem_of(profile, "profile")
    profile = cluster_profile([layer(0, 1.0)], [8])
    profile["cluster"][0]["bandwidth"] = 1e-300
    with pytest.raises(
        InputError, match=r"cluster\[0\]\.bandwidth: 1e-300 is out of range; it must be at least"
    ):
        problem_of(profile, "profile")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 10**9))
def test_every_plan_of_an_extreme_profile_passes_its_check(seed: int) -> None:
    placed(random_profile(seed))
