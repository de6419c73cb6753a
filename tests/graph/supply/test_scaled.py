"""Graphs between two traced microbatches are those that a trace gives there, or they are traced."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.graph.supply import supply as supplying
from phaze.graph.supply.cache import GraphCache
from phaze.graph.supply.point import Facts, RankPoint
from phaze.graph.supply.scaled import GraphScale, UnscaledError, sampled
from phaze.graph.supply.supply import Bundled, TracedSupply
from phaze.graph.supply.tracing import Workshop

POINTS = [
    RankPoint(width, size, 2048, "fused", spread)
    for width in (1, 2, 8)
    for spread in ((False, True) if width > 1 else (False,))
    for size in (1, 2, 4, 8, 16)
]


@pytest.fixture(scope="module")
def graphs() -> dict[RankPoint, Model]:
    """Graphs of a decoder whose vocabulary (32,000) is looked up in part at small microbatches and
    as a whole at large ones."""
    supply = Bundled("llama2-7b")
    return {point: supply.model(point) for point in POINTS}


def test_microbatches_between_two_traces_have_the_graphs_that_a_trace_gives(
    graphs: dict[RankPoint, Model],
) -> None:
    sampling = sampled(POINTS)
    assert len(sampling.first) == 16 and len(sampling.scaled) == 9
    found = sampling.predicted({point: graphs[point] for point in sampling.first})
    assert found == {point: graphs[point] for point in sampling.scaled}


def test_a_microbatch_of_one_is_always_traced(graphs: dict[RankPoint, Model]) -> None:
    assert all(point.microbatch > 1 for point in sampled(POINTS).scaled)
    with pytest.raises(UnscaledError, match="different operators"):
        GraphScale(1, 16, 4).model(graphs[POINTS[0]], graphs[POINTS[4]])


def test_two_microbatches_are_both_traced() -> None:
    few = [point for point in POINTS if point.microbatch in (1, 2, 16)]
    assert sampled(few).first == tuple(few) and not sampled(few).scaled


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        ((30, 240), None, 60),
        ((7, 7), None, 7),
        ((100, 6400), None, 400),
        ((50, 330), None, 90),
        ((30, 100), 100, 60),
    ],
    ids=["in proportion", "the same", "squared", "a part of it", "rows of a table"],
)
def test_a_size_grows_as_two_traces_say(
    low: tuple[int, int], high: int | None, wanted: int
) -> None:
    most = None if high is None else (high, high)
    assert GraphScale(2, 16, 4).size(*low, most) == wanted


@pytest.mark.parametrize(
    "sizes", [(30, 20), (10, 231), (2, 17)], ids=["shrinks", "more than in proportion", "broken"]
)
def test_a_size_that_no_rule_gives_is_traced(sizes: tuple[int, int]) -> None:
    with pytest.raises(UnscaledError):
        GraphScale(2, 16, 4).size(*sizes)


def test_where_the_check_differs_by_one_number_every_microbatch_is_traced(
    graphs: dict[RankPoint, Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = {point: graph for point, graph in graphs.items() if point.tensor == 1}
    check = next(point for point in odd if point.microbatch == 4)
    first = odd[check].layers[0]
    odd[check] = replace(
        odd[check],
        layers=(replace(first, shared_bytes=first.shared_bytes + 8), *odd[check].layers[1:]),
    )
    assert _traced(odd, tmp_path / "odd", monkeypatch) == [4, 1]
    assert _traced({p: graphs[p] for p in odd}, tmp_path / "even", monkeypatch) == [4]


def _traced(
    graphs: Mapping[RankPoint, Model], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """How many points are traced, round by round, until all of ``graphs`` are there; a second
    command traces none."""
    asked: list[int] = []

    def trace(
        shop: Workshop,
        points: Sequence[RankPoint],
        keep: Callable[[RankPoint, Mapping[str, Any]], None],
        watch: object,
    ) -> dict[RankPoint, InputError]:
        asked.append(len(points))
        for point in points:
            keep(point, store.document_of(graphs[point]))
        return {}

    monkeypatch.setattr(Workshop, "trace", trace)
    monkeypatch.setattr(supplying, "need_torch", lambda *rest, **more: None)
    kept = GraphCache(folder)
    known = kept.remember("my.py:build", Facts("my.py:build", 2048, None, False, (1,)), [])
    for _ in range(2):
        supply = TracedSupply("my.py:build", kept, workers=1, cached=known)
        assert not supply.prepare(list(graphs))
        assert {point: supply.model(point) for point in graphs} == graphs
    return asked
