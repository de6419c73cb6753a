"""Exchanges of experts and of keys and values: bytes by level against counting, monotone in bytes
and bandwidth."""

from collections.abc import Callable
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.collective import collective
from phaze.cost.exchange import (
    Members,
    Routed,
    deduplicated_bytes,
    exchange_cost,
    exchange_s,
    expert_exchange,
    gathered_s,
    plain_bytes,
    ring_step_s,
    seen_by,
)
from phaze.hardware.bundled import preset_names
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import load_cluster
from phaze.values import replace

CLUSTERS = [load_cluster(name) for name in preset_names("clusters")]
clusters = st.sampled_from(CLUSTERS)
routed = st.builds(Routed, st.floats(1, 1e6), st.integers(1, 8), st.floats(1, 1e5))


def _members(cluster: Cluster, data: st.DataObject) -> Members:
    return tuple(
        data.draw(st.integers(1, min(4, level.size)), label=level.name) for level in cluster.levels
    )


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 3))
def test_plain_bytes_are_those_of_rows_sent_one_by_one(sizes: list[int], top_k: int) -> None:
    members = tuple(sizes)
    ranks = prod(members)
    counted = [0.0] * len(members)
    for other in range(1, ranks):  # rank 0 sends a row of each of its tokens to every rank alike
        level, unit = 0, members[0]
        while other >= unit:
            level, unit = level + 1, unit * members[level + 1]
        counted[level] += 7.0 * ranks * top_k / ranks
    assert plain_bytes(members, Routed(ranks, top_k, 7.0)) == pytest.approx(counted)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4))
def test_deduplicated_bytes_are_the_mean_over_all_routings(
    inner: int, nodes: int, top_k: int
) -> None:
    routings = list(product(range(nodes), repeat=top_k))
    crossing = sum(len({node for node in nodes_of if node != 0}) for nodes_of in routings) / len(
        routings
    )
    found = deduplicated_bytes((inner, nodes), Routed(10.0, top_k, 3.0))
    assert found[1] == pytest.approx(10.0 * 3.0 * crossing)
    assert found[0] == pytest.approx(10.0 * 3.0 * top_k * (inner - 1) / inner)


def test_limited_routing_reaches_no_more_nodes_than_it_may() -> None:
    free = deduplicated_bytes((8, 8), Routed(1.0, 8, 1.0))[1]
    limited = deduplicated_bytes((8, 8), Routed(1.0, 8, 1.0, groups=8, top_groups=4))[1]
    spread = deduplicated_bytes((8, 16), Routed(1.0, 8, 1.0, groups=8, top_groups=4))[1]
    assert limited == pytest.approx(4 * 7 / 8)
    assert limited < free
    assert spread == pytest.approx(15 * (1 - (15 / 16) ** 8))


@given(clusters, st.data(), routed)
def test_a_plain_exchange_is_a_direct_all_to_all(
    cluster: Cluster, data: st.DataObject, sent: Routed
) -> None:
    members = _members(cluster, data)
    found = expert_exchange(cluster, members, sent, "calibrated").time_s
    ranks, seen = prod(members), seen_by(cluster, members)
    best = collective("all_to_all", sent.bytes, ranks, seen)
    assert best.time_s <= found * (1 + 1e-12)
    assert found == pytest.approx(best.time_s) if best.way == "direct" else found >= best.time_s


@given(clusters, st.data(), routed)
def test_deduplication_never_sends_more_between_nodes(
    cluster: Cluster, data: st.DataObject, sent: Routed
) -> None:
    members = _members(cluster, data)
    plain, fewer = plain_bytes(members, sent), deduplicated_bytes(members, sent)
    assert all(few <= many * (1 + 1e-12) for few, many in zip(fewer[1:], plain[1:], strict=True))
    assert sum(plain) == pytest.approx(sent.bytes * (1 - 1 / prod(members)))


@given(
    clusters,
    st.data(),
    routed,
    st.booleans(),
    st.sampled_from(["bandwidth", "latency", "tokens", "top_k"]),
)
def test_a_faster_network_and_fewer_rows_never_take_longer(
    cluster: Cluster, data: st.DataObject, sent: Routed, deduplicated: bool, what: str
) -> None:
    members = _members(cluster, data)
    levels, less = cluster.levels, sent
    if what == "bandwidth":
        levels = tuple(
            replace(level, bandwidth_bytes_per_s=2 * level.bandwidth_bytes_per_s)
            for level in levels
        )
    if what == "latency":
        levels = tuple(replace(level, latency_s=0.5 * level.latency_s) for level in levels)
    if what == "tokens":
        less = replace(sent, tokens=sent.tokens / 2)
    if what == "top_k":
        less = replace(sent, top_k=max(1, sent.top_k - 1))
    better = replace(cluster, levels=levels)
    prices: tuple[Callable[[Cluster, Routed], float], ...] = (
        lambda c, r: expert_exchange(c, members, r, "calibrated", deduplicated).time_s,
        lambda c, r: ring_step_s(c, members, r.bytes, "calibrated"),
        lambda c, r: sum(gathered_s(c, members, r.bytes, "calibrated")),
    )
    for price in prices:
        assert price(better, less) <= price(cluster, sent) * (1 + 1e-12)


def test_a_group_of_one_exchanges_nothing() -> None:
    cluster = load_cluster("dgx-h100")
    one = (1,) * len(cluster.levels)
    assert exchange_s(cluster, one, (0.0,) * len(one), "calibrated").time_s == 0
    assert expert_exchange(cluster, one, Routed(10, 2, 3), "calibrated", True).time_s == 0
    assert ring_step_s(cluster, one, 1e6, "calibrated") == 0
    assert gathered_s(cluster, one, 1e6, "calibrated") == (0, 0)


def test_a_ring_between_nodes_pays_the_network() -> None:
    cluster = load_cluster("dgx-h100")
    inside, across = (
        (8, *([1] * (len(cluster.levels) - 1))),
        (4, 2, *([1] * (len(cluster.levels) - 2))),
    )
    sizes = np.array([2.0**26])
    assert ring_step_s(cluster, across, float(sizes[0]), "calibrated") > 5 * ring_step_s(
        cluster, inside, float(sizes[0]), "calibrated"
    )


def test_gathering_back_takes_a_gather_and_a_scatter() -> None:
    cluster = load_cluster("dgx-h100")
    members = (8, *([1] * (len(cluster.levels) - 1)))
    forward, backward = gathered_s(cluster, members, 2**20, "calibrated")
    assert backward == pytest.approx(2 * forward)
    assert forward == pytest.approx(
        collective("all_gather", 8 * 2**20, 8, seen_by(cluster, members)).time_s
    )


def test_exchanges_of_a_graph_are_priced_by_their_sizes() -> None:
    cluster = load_cluster("dgx-h100")
    inside = (4, *([1] * (len(cluster.levels) - 1)))
    routed = expert_exchange(cluster, inside, Routed(1.0, 8, 2**17), "calibrated").time_s
    assert exchange_cost("all_to_all", (2**20, 4, 2, 8), cluster, "calibrated").time_s == routed
    assert exchange_cost("ring", (2**20, 4, 2, 1), cluster, "calibrated").time_s == pytest.approx(
        3 * ring_step_s(cluster, inside, 2**20, "calibrated")
    )
    gather, both = gathered_s(cluster, inside, 2**20, "calibrated")
    assert exchange_cost("context_gather", (2**20, 4, 2, 1), cluster, "calibrated").time_s == gather
    assert (
        exchange_cost("context_scatter", (2**20, 4, 2, 1), cluster, "calibrated").time_s
        == both - gather
    )
    for kind in ("all_to_all", "ring", "context_gather", "context_scatter"):
        assert exchange_cost(kind, (2**20, 1, 1, 1), cluster, "calibrated").time_s == 0


def test_deduplicating_pays_between_nodes_and_not_inside_one() -> None:
    cluster = load_cluster("dgx-h100")
    across = [
        exchange_cost("all_to_all", (2**26, 64, 1, 8), cluster, "calibrated", d).time_s
        for d in (False, True)
    ]
    inside = [
        exchange_cost("all_to_all", (2**26, 8, 1, 8), cluster, "calibrated", d).time_s
        for d in (False, True)
    ]
    assert across[1] < across[0]
    assert inside[1] == pytest.approx(inside[0])
