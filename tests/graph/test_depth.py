"""A deeper model from one with two calls of each repeated layer."""

from dataclasses import replace

import pytest

from phaze.graph.depth import deepen, runs
from phaze.graph.ir import Call, Edge, Model, Tie
from tests.graph.test_store import small_model


def chain(blocks: int) -> Model:
    """Prologue, equal blocks, epilogue; the first block also feeds the others (a position bias),
    ends are tied."""
    layer = small_model().layers[0]
    last = blocks + 1
    calls = [
        Call(0, "prologue"),
        *(Call(1, f"h.{i}.block") for i in range(blocks)),
        Call(2, "epilogue"),
    ]
    edges = [Edge(i, i + 1, 10 + (i == 0), 10) for i in range(last)]
    edges += [Edge(0, i, 7, 0) for i in range(2, last)]
    edges += [Edge(i, last, 5, 5) for i in range(1, blocks)]
    return replace(
        small_model(),
        layers=(layer, replace(layer, name="h.*"), replace(layer, name="epilogue")),
        calls=tuple(calls),
        edges=tuple(sorted(edges, key=lambda e: (e.source, e.target))),
        ties=(Tie("embedding", (0, last), 8, 2), Tie("all", tuple(range(1, last)), 8, 2)),
    )


def out_of_all(model: Model, size: int) -> Model:
    """``model`` with the edges into the last call all of one size."""
    last = len(model.calls) - 1
    edges = tuple(
        replace(e, bytes=size, gradient_bytes=size) if e.target == last else e for e in model.edges
    )
    return replace(model, edges=edges)


@pytest.mark.parametrize("blocks", [2, 3, 7])
def test_a_chain_with_skips_grows_as_if_it_had_been_that_long(blocks: int) -> None:
    assert runs(chain(2)) == (1,)
    assert deepen(out_of_all(chain(2), 5), [blocks]) == out_of_all(chain(blocks), 5)


def test_a_run_of_one_keeps_its_ends() -> None:
    short = deepen(
        replace(chain(2), edges=(Edge(0, 1, 4, 4), Edge(1, 2, 4, 4), Edge(2, 3, 6, 6))), [1]
    )
    assert [call.module for call in short.calls] == ["prologue", "h.0.block", "epilogue"]
    assert short.edges == (Edge(0, 1, 4, 4), Edge(1, 2, 6, 6))
    assert short.ties[0].calls == (0, 2)


def test_only_runs_of_two_grow() -> None:
    with pytest.raises(ValueError, match="runs of two"):
        deepen(chain(3), [5])
    with pytest.raises(ValueError, match="runs of two"):
        deepen(chain(2), [0])
