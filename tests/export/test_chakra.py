"""Traces for ASTRA-sim: read by Google's protocol buffers, replayed rank by rank; their computation
is the plan's."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from phaze import api
from phaze.export.chakra_wire import varint
from tests.export.chakra_schema import read_trace

Trace = list[dict[str, Any]]
GPT = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 512}
# What Chakra's own reader found in the same traces: tests/export/against_chakra.py.
RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "recorded" / "chakra.json").read_text()
)
RUN = {
    "schema": "phaze.run/1",
    "gpt": GPT,
    "chip": "a100-80gb",
    "cluster": "selene",
    "devices": 8,
    "batch": 16,
}
PLANS: Mapping[str, dict[str, Any]] = {
    "replicas": {"tensor": 1, "pipeline": 1, "data": 8, "microbatch": 1, "zero": 0},
    "ZeRO 1": {"tensor": 1, "pipeline": 1, "data": 8, "microbatch": 1, "zero": 1},
    "ZeRO 3": {"tensor": 1, "pipeline": 1, "data": 8, "microbatch": 1, "zero": 3},
    "hybrid sharding": {
        "tensor": 1,
        "pipeline": 1,
        "data": 8,
        "microbatch": 1,
        "zero": 3,
        "shard": 4,
    },
    "recompute": {"tensor": 1, "pipeline": 1, "data": 8, "microbatch": 1, "recompute": "full"},
    "tensor": {"tensor": 4, "pipeline": 1, "data": 2, "microbatch": 2},
    "sequence parallel": {
        "tensor": 2,
        "pipeline": 1,
        "data": 4,
        "microbatch": 2,
        "sequence_parallel": True,
    },
    "a pipeline": {"tensor": 1, "pipeline": 4, "data": 2, "microbatch": 2},
    "chunks": {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2, "chunks": 2},
    "all of them": {
        "tensor": 2,
        "pipeline": 2,
        "data": 2,
        "microbatch": 2,
        "zero": 1,
        "recompute": "full",
    },
}


@pytest.fixture(scope="module")
def traces(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[api.Planned, list[Trace], dict[str, Any]]]:
    """The plan of a kind, its traces by rank, and its groups, each made once."""

    @cache
    def made(name: str) -> tuple[api.Planned, list[Trace], dict[str, Any]]:
        folder = tmp_path_factory.mktemp("chakra")
        plan = api.price({**RUN, "plan": PLANS[name]})
        (folder / "plan.json").write_text(json.dumps(plan.document))
        told = api.export(folder / "plan.json", to="chakra", out=folder / "traces")
        assert told["files"] == 9
        files = [folder / "traces" / f"phaze.{rank}.et" for rank in range(8)]
        groups = json.loads((folder / "traces" / "comm_groups.json").read_text())
        return plan, [read_trace(path) for path in files], groups

    return made


def replayed(traces: list[Trace], groups: Mapping[str, list[int]]) -> float:
    """The last microsecond of a replay in which the network takes no time: one computation at a
    time on a rank, in order; a collective starts when all ranks of its group have come to it, a
    receive ends when it was sent."""
    ends: dict[tuple[int, int], float] = {}
    sent: dict[tuple[int, int, int], float] = {}
    arrived: dict[tuple[str, int], dict[int, float]] = {}
    turn: Counter[tuple[int, str]] = Counter()
    met: dict[tuple[int, int], tuple[str, int]] = {}
    waiting = {(rank, node["id"]): node for rank, trace in enumerate(traces) for node in trace}
    free = [0.0] * len(traces)
    while waiting:
        moved = False
        for (rank, number), node in list(waiting.items()):
            if any((rank, dep) not in ends for dep in node["deps"]):
                continue
            ready = max([ends[rank, dep] for dep in node["deps"]], default=0.0)
            if node["kind"] == "COMP_NODE":
                ends[rank, number] = free[rank] = max(ready, free[rank]) + node["micros"]
            elif node["kind"] == "COMM_COLL_NODE":
                group = node["pg_name"]
                if (rank, number) not in met:
                    met[rank, number] = (group, turn[rank, group])
                    turn[rank, group] += 1
                    arrived.setdefault(met[rank, number], {})[rank] = ready
                here = arrived[met[rank, number]]
                if set(here) != set(groups[group]):
                    continue
                ends[rank, number] = max(here.values())
            elif node["kind"] == "COMM_SEND_NODE":
                assert node["comm_src"] == rank
                sent[rank, node["comm_dst"], node["comm_tag"]] = ends[rank, number] = ready
            else:
                assert node["comm_dst"] == rank
                key = (node["comm_src"], rank, node["comm_tag"])
                if key not in sent:
                    continue
                ends[rank, number] = max(ready, sent[key])
            del waiting[rank, number]
            moved = True
        assert moved, "the ranks wait for each other"
    return max(ends.values())


@pytest.mark.parametrize("name", PLANS)
def test_ranks_never_wait_for_each_other_and_computation_is_the_plans(
    name: str, traces: Callable[[str], tuple[api.Planned, list[Trace], dict[str, Any]]]
) -> None:
    plan, found, groups = traces(name)
    end_s = replayed(found, groups) / 1e6
    parts = plan["breakdown"]
    whole_s = sum(
        parts[key] for key in ("forward_s", "backward_s", "recompute_s", "bubble_s", "optimizer_s")
    )
    if plan["tensor"] == 1:
        # The plan's formula has all stages as slow as the slowest, what lies around the blocks
        # shared by all chunks.
        near = 2e-3 if plan["pipeline"] == 1 else 2e-2 if plan["chunks"] == 1 else 6e-2
        assert end_s == pytest.approx(whole_s, rel=near, abs=2e-5)
    else:  # whose collectives are no computation
        assert 0.2 * whole_s < end_s < whole_s
    assert all(rank < 8 for members in groups.values() for rank in members)


def summary(nodes: list[tuple[str, int, int, int]]) -> dict[str, list[int]]:
    """Of each kind of node: how many, and sums of what they wait for, of their microseconds and of
    their bytes."""
    found: dict[str, list[int]] = {}
    for kind, *values in nodes:
        row = found.setdefault(kind, [0, 0, 0, 0])
        found[kind] = [row[0] + 1, *(a + b for a, b in zip(row[1:], values, strict=True))]
    return dict(sorted(found.items()))


@pytest.mark.parametrize("name", PLANS)
def test_chakras_own_reader_found_the_same_nodes(
    name: str, traces: Callable[[str], tuple[api.Planned, list[Trace], dict[str, Any]]]
) -> None:
    _, found, _ = traces(name)
    nodes = [
        (one["kind"], sum(one["deps"]), one["micros"], one.get("comm_size", 0)) for one in found[5]
    ]
    ours, theirs = summary(nodes), RECORDED[name]
    assert list(ours) == list(theirs)
    for (
        kind,
        row,
    ) in theirs.items():  # microseconds hang on constants of the chip, which may be refitted
        assert [ours[kind][at] for at in (0, 1, 3)] == [row[at] for at in (0, 1, 3)]


def test_gradients_are_reduced_once_over_the_ranks_with_the_same_weights(
    traces: Callable[[str], tuple[api.Planned, list[Trace], dict[str, Any]]],
) -> None:
    _, found, groups = traces("replicas")
    reduced = [node for node in found[3] if node["kind"] == "COMM_COLL_NODE"]
    graph = api.graph(gpt=GPT)
    assert {node["comm_type"] for node in reduced} == {0}
    assert {tuple(groups[node["pg_name"]]) for node in reduced} == {tuple(range(8))}
    # Tied parameters are held twice where they are used twice, and reduced as often.
    assert sum(node["comm_size"] for node in reduced) >= 2 * graph["summary"]["parameters"]
    _, shared, _ = traces("ZeRO 1")
    kinds = Counter(node["comm_type"] for node in shared[0] if node["kind"] == "COMM_COLL_NODE")
    assert set(kinds) == {7, 2}
    assert kinds[7] == kinds[2]


def test_every_send_is_received_with_its_bytes(
    traces: Callable[[str], tuple[api.Planned, list[Trace], dict[str, Any]]],
) -> None:
    for name in ("a pipeline", "chunks", "all of them"):
        _, found, _ = traces(name)
        ends = {
            kind: Counter(
                (node["comm_src"], node["comm_dst"], node["comm_tag"], node["comm_size"])
                for trace in found
                for node in trace
                if node["kind"] == kind
            )
            for kind in ("COMM_SEND_NODE", "COMM_RECV_NODE")
        }
        assert ends["COMM_SEND_NODE"] == ends["COMM_RECV_NODE"]
        assert set(ends["COMM_SEND_NODE"].values()) == {1}


def test_numbers_are_written_seven_bits_a_byte() -> None:
    assert (varint(0), varint(127), varint(128), varint(300)) == (
        b"\x00",
        b"\x7f",
        b"\x80\x01",
        b"\xac\x02",
    )


def test_what_a_trace_cannot_say_is_said(tmp_path: Path, phaze: Callable[..., Any]) -> None:
    plan = api.price({**RUN, "plan": PLANS["replicas"]})
    (tmp_path / "plan.json").write_text(json.dumps(plan.document))
    ran = phaze("export", tmp_path / "plan.json", "--to", "chakra")
    assert (ran.code, "name a folder with --out" in ran.err) == (2, True)
