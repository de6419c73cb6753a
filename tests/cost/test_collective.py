"""Collectives: floors, monotony, the way that is chosen, and the paper's flat ring."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.collective import (
    KINDS,
    Kind,
    collective,
    collective_seconds,
    kind_named,
    members,
    ways,
)
from phaze.errors import InputError
from phaze.hardware.bundled import preset_names
from phaze.hardware.cluster import Cluster, grown
from phaze.hardware.library import load_cluster
from phaze.values import replace

CLUSTERS = [load_cluster(name) for name in preset_names("clusters")]
clusters = st.sampled_from(CLUSTERS)
kinds = st.sampled_from(KINDS)


@given(clusters, kinds, st.integers(1, 2**36), st.integers(2, 256))
def test_no_way_beats_the_bytes_over_the_fastest_link(
    cluster: Cluster, kind: Kind, size: int, ranks: int
) -> None:
    ranks = min(ranks, cluster.devices)
    best = collective(kind, size, ranks, cluster)
    fastest = max(level.bandwidth_bytes_per_s for level in cluster.levels)
    assert best.time_s >= 0.5 * size / fastest * (
        1 if kind != "all_to_all" else (ranks - 1) / ranks
    )
    assert best.time_s == min(way.time_s for way in ways(kind, size, ranks, cluster))


@given(
    clusters,
    kinds,
    st.lists(st.floats(0, 2**36), min_size=1, max_size=6),
    st.integers(1, 5000),
)
def test_many_sizes_at_once_take_what_each_takes_alone(
    cluster: Cluster, kind: Kind, sizes: list[float], ranks: int
) -> None:
    ranks = min(ranks, cluster.devices)
    alone = [collective(kind, size, ranks, cluster).time_s for size in sizes]
    assert collective_seconds(kind, np.array(sizes), ranks, cluster).tolist() == alone


@given(
    clusters,
    kinds,
    st.integers(1, 2**34),
    st.integers(2, 256),
    st.sampled_from(["bandwidth", "latency", "size"]),
)
def test_a_faster_network_and_fewer_bytes_never_take_longer(
    cluster: Cluster, kind: Kind, size: int, ranks: int, what: str
) -> None:
    ranks = min(ranks, cluster.devices)
    levels = cluster.levels
    if what == "bandwidth":
        levels = tuple(
            replace(level, bandwidth_bytes_per_s=2 * level.bandwidth_bytes_per_s)
            for level in levels
        )
    if what == "latency":
        levels = tuple(replace(level, latency_s=0.5 * level.latency_s) for level in levels)
    less = size // 2 if what == "size" else size
    better = collective(kind, less, ranks, replace(cluster, levels=levels)).time_s
    assert better <= collective(kind, size, ranks, cluster).time_s * (1 + 1e-12)


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda c: c.name)
def test_doubling_each_number_of_a_level_changes_some_collective(cluster: Cluster) -> None:
    if cluster.levels[-1].size == 1:  # an outer network that only more devices than usual reach
        cluster = grown(cluster, 2 * cluster.devices, "devices")
    tried = [
        (kind, size, ranks)
        for kind in KINDS
        for size in (2**10, 2**28)
        for ranks in (2, 8, cluster.devices)
    ]

    def seconds(c: Cluster) -> list[float]:
        return [collective(kind, size, ranks, c).time_s for kind, size, ranks in tried]

    for index, level in enumerate(cluster.levels):
        fields = ["bandwidth_bytes_per_s", *(["latency_s"] if level.latency_s else [])]
        for field in fields:
            doubled = replace(level, **{field: 2 * getattr(level, field)})
            levels = (*cluster.levels[:index], doubled, *cluster.levels[index + 1 :])
            assert seconds(replace(cluster, levels=levels)) != seconds(cluster), (level.name, field)


def test_ranks_fill_the_innermost_level_first() -> None:
    selene = load_cluster("selene")
    assert members(selene, 8) == [8, 1]
    assert members(selene, 12) == [8, 2]
    assert members(selene, 3072) == [8, 384]


def test_small_messages_go_their_own_way() -> None:
    node, selene = load_cluster("dgx-h100"), load_cluster("selene")
    assert collective("all_reduce", 2**16, 8, node).way == "small"
    assert (
        collective("all_reduce", 2**16, 8, node).time_s
        < collective("all_gather", 2**24, 8, node).time_s
    )
    assert (
        collective("all_reduce", 2**28, 8, replace(selene, library="any")).way == "halving-doubling"
    )
    assert (
        collective("all_reduce", 2**28, 8, selene).way
        == collective("all_reduce", 2**28, 7, selene).way
        == "ring"
    )


def test_switches_that_add_help_large_groups() -> None:
    rack = load_cluster("nvl72")
    assert collective("all_reduce", 2**33, 64, rack).way == "in-switch"
    assert collective("all_reduce", 2**33, 2, rack).way == "ring"
    assert all(way.way != "in-switch" for way in ways("all_gather", 2**33, 64, rack))
    assert all(
        way.way != "in-switch" for way in ways("all_reduce", 2**33, 64, load_cluster("dgx-b200"))
    )


@given(kinds, st.integers(1, 2**34), st.integers(2, 128))
def test_a_library_with_fewer_ways_is_never_faster(kind: Kind, size: int, ranks: int) -> None:
    for name in ("dgx-h100", "selene", "nvl72"):
        cluster = load_cluster(name)
        fewer = collective(kind, size, ranks, replace(cluster, library="nccl")).time_s
        assert collective(kind, size, ranks, replace(cluster, library="any")).time_s <= fewer * (
            1 + 1e-12
        )


def test_pieces_cost_most_in_the_middle() -> None:
    """2 sqrt(d W) beside W: nothing of the smallest and of the largest messages, and never less
    than nothing."""
    node = load_cluster("dgx-h100")
    plain = replace(node.levels[0], piece_s=0.0)
    bare = replace(node, levels=(plain, *node.levels[1:]))
    shares = [
        collective("all_gather", 2**power, 8, node).time_s
        / collective("all_gather", 2**power, 8, bare).time_s
        for power in (10, 24, 36)
    ]
    assert 1.0 <= shares[0] < shares[1] > shares[2] >= 1.0


def test_across_nodes_the_members_of_a_node_share_the_work() -> None:
    selene = load_cluster("selene")
    nccl = {way.way.split()[0] for way in ways("all_reduce", 2**30, 64, selene)}
    every = {
        way.way.split()[0] for way in ways("all_reduce", 2**30, 64, replace(selene, library="any"))
    }
    assert nccl == {"ring", "tree"}
    assert every >= {"ring", "tree", "hierarchical"}
    eight_wide = collective("all_reduce", 2**30, 64, selene).time_s
    one_wide = replace(selene, devices=384, levels=(replace(selene.levels[1], size=384),))
    assert collective("all_reduce", 2**30, 8, one_wide).time_s > 4 * eight_wide


def test_a_device_sends_its_own_bytes_through_its_own_way_out_of_a_node() -> None:
    selene = load_cluster("selene")
    network = 0.85 * 25e9
    assert collective("point_to_point", 2**30, 16, selene).time_s == pytest.approx(
        2**30 / network, rel=0.01
    )
    assert collective("point_to_point", 2**30, 8, selene).time_s < 2**30 / (0.9 * 300e9)
    assert collective("all_to_all", 2**30, 64, selene).time_s == pytest.approx(
        2**30 * 56 / 64 / network, rel=0.01
    )


def test_a_torus_uses_the_axes_that_a_group_spans() -> None:
    pod = load_cluster("tpu-v4-pod")
    line, plane, cube = (collective("all_gather", 2**30, n, pod) for n in (16, 256, 4096))
    assert line.way == plane.way == "torus"
    assert line.time_s > plane.time_s > cube.time_s


def test_the_flat_ring_is_the_papers() -> None:
    flat = load_cluster("paper-flat")
    assert (
        collective("all_reduce", 2.0**30, 1024, flat).time_s == 2 * 1023 / 1024 * 2.0**30 / 2.0**32
    )


def test_one_rank_or_no_bytes_take_no_time_and_nonsense_is_one_sentence() -> None:
    selene = load_cluster("selene")
    assert (
        collective("all_reduce", 2**20, 1, selene).time_s
        == collective("all_reduce", 0, 8, selene).time_s
        == 0
    )
    with pytest.raises(InputError, match="1 to 3072 devices"):
        collective("all_reduce", 1, 4000, selene)
    with pytest.raises(InputError, match="did you mean 'all_reduce'"):
        kind_named("allreduce")
    with pytest.raises(InputError, match="out of range"):
        collective("all_reduce", -1, 8, selene)
