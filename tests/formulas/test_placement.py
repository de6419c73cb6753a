"""The tables of docs/placement.md are those of the solver: evaluated on plans of random
problems."""

from dataclasses import replace
from math import fsum
from typing import Any

import pytest

from phaze.pipeline.families import (
    DUALPIPE_V,
    GPIPE,
    ICML24,
    ONE_F_ONE_B,
    ZB_H1,
    interleaved,
    zb_interleaved,
)
from phaze.pipeline.family import Family
from phaze.placement.answer import document_of
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import fastest_plan
from tests.formulas.stated import DOCS, cells, evaluate
from tests.placement.placement_cases import (
    mixed_problem,
    random_cluster_problem,
    random_icml24_problem,
    split_problem,
)

FAMILIES: tuple[tuple[str, Family], ...] = (
    ("icml24", ICML24),
    ("gpipe", GPIPE),
    ("1f1b", ONE_F_ONE_B),
    ("interleaved, v chunks", interleaved(3)),
    ("zb-h1", ZB_H1),
    ("zb-interleaved, v chunks", zb_interleaved(2)),
    ("dualpipe-v", DUALPIPE_V),
)


@pytest.mark.parametrize(("row", "family"), FAMILIES, ids=[name for name, _ in FAMILIES])
def test_a_family_counts_paces_and_stages_as_its_row_says(row: str, family: Family) -> None:
    alpha, beta, _, filled, flying, _ = cells("placement.md", row)
    for stages, rounds in ((2, 4), (3, 9), (4, 16)):
        names: dict[str, float] = {
            "m": rounds,
            "S": stages,
            "v": family.chunks,
            "e": 1 / (stages - 1),
        }
        assert evaluate(alpha, names) == pytest.approx(family.alpha(rounds, stages))
        assert evaluate(beta, names) == pytest.approx(family.beta(stages))
        for number in range(1, stages + 1):
            held = evaluate(flying, names | {"s": number})
            assert held == pytest.approx(family.in_flight(rounds, number, stages))
        for forward, inputs, weights in ((1.0, 2.0, 3.0), (3.0, 1.0, 0.5), (2.0, 4.0, 0.0)):
            if family.split:
                parts = names | {"F": forward, "B": inputs, "W": weights}
                greatest = (family.coefficients(stages) @ (forward, inputs, weights)).max()
                assert evaluate(filled, parts) == pytest.approx(greatest)


def _plans(problems: list[PlacementProblem]) -> list[tuple[PlacementProblem, dict[str, Any]]]:
    found = [(problem, fastest_plan(problem)) for problem in problems]
    return [(problem, dict(document_of(plan))) for problem, plan in found if plan is not None]


def _end_s(document: dict[str, Any]) -> float:
    return fsum(
        document["breakdown"][name] for name in ("synchronisation_s", "optimizer_s", "tied_s")
    )


def test_a_batch_takes_what_the_table_of_families_says() -> None:
    seen = set()
    problems = [mixed_problem(seed, True) for seed in range(200)] + [
        split_problem(seed, True) for seed in range(120)
    ]
    for problem, document in _plans(
        [replace(problem, zero=min(problem.zero, 1)) for problem in problems]
    ):
        chunks, stages = document.get("chunks", 1), document["stages"]
        names = {family.name for family in problem.rules.families if family.chunks == chunks}
        name = document.get("family") or next(iter(names))
        row = f"{name}, v chunks" if name in ("interleaved", "zb-interleaved") else name
        if (document.get("family") is None and len(names) > 1) or row == "zb-v":
            continue
        alpha, beta, pace, filled, *_ = cells("placement.md", row)
        depth = len(stages)
        known: dict[str, float] = {
            "m": -(-problem.microbatches // document["data"]),
            "S": depth,
            "v": chunks,
        }
        known |= {"e": 1 / (depth - 1) if depth > 1 else 0.0}
        known |= {f"max {x}": max(stage[key] for stage in stages) for x, key in _OF_STAGE}
        total = 0.0
        for stage in stages if evaluate(beta, known) else ():
            own = {x: stage[key] for x, key in _OF_STAGE}
            own["W"] = stage.get("weight_s", 0.0)
            own["B"] = own["R"] - own["W"]
            total += evaluate(filled, known | own)
        stated_s = (
            evaluate(alpha, known) * evaluate(pace, known)
            + evaluate(beta, known) * total
            + _end_s(document)
        )
        assert document["batch_s"] == pytest.approx(stated_s, rel=1e-9), row
        seen.add((row, depth > 1))
    assert {row for row, deep in seen if deep} >= {"icml24", "gpipe", "1f1b", "zb-h1"}


_OF_STAGE = (("T", "time_s"), ("F", "forward_s"), ("R", "backward_s"))


def test_the_batch_time_and_memory_of_the_paper_are_those_of_its_table() -> None:
    (batch,), (memory,) = cells("placement.md", "step time"), cells("placement.md", "memory")
    deep = 0
    for problem, document in _plans([random_icml24_problem(seed, True) for seed in range(60)]):
        graph = problem.graph(document["tensor"])
        layers = {layer.id: layer for layer in graph.layers}
        stages, link = document["stages"], problem.rules.link_bytes_per_s
        assert link is not None
        first = fsum(layers[i].parameter_bytes for i in stages[0]["layers"])
        names = {
            "M": problem.microbatches,
            "d": document["data"],
            "S": len(stages),
            "B": link,
            "w(X1)": first,
        }
        names["max T"] = max(stage["time_s"] for stage in stages)
        assert evaluate(batch, names) == pytest.approx(document["batch_s"], rel=1e-9)
        for i, stage in enumerate(stages):
            held = [layers[j] for j in stage["layers"]]
            entering = fsum(
                e.size_bytes for e in graph.edges
                if graph.layers[e.head].id in stage["layers"] and graph.layers[e.tail].id not in stage["layers"]
            )  # fmt: skip
            known = {
                "Σw": fsum(la.parameter_bytes for la in held),
                "ΣA": fsum(la.activation_bytes for la in held),
            }
            known |= {
                "s": len(stages) - i,
                "Z": entering if stage["recompute"] == "full" else known["ΣA"],
            }
            text = memory.split(" <= ")[0].replace(
                "2 Σw (Adam: 3 Σw)", "3 Σw" if problem.state.optimizer else "2 Σw"
            )
            assert evaluate(text, known) == pytest.approx(stage["memory_bytes"], rel=1e-9)
        deep += len(stages) > 1
    assert deep > 5


def test_memory_on_a_network_of_levels_is_that_of_the_table() -> None:
    rows = [row for row in _rows("memory") if row.startswith("N (")]
    assert len(rows) == 1
    text, seen = rows[0].split(" <= ")[0], set()
    for problem, document in _plans([random_cluster_problem(seed, True) for seed in range(120)]):
        of = {layer.id: layer for layer in problem.graph(document["tensor"]).layers}
        d, z, state = document["data"], problem.zero, problem.state
        rounds, stages = -(-problem.microbatches // d), document["stages"]
        for i, stage in enumerate(stages):
            if stage["recompute"] not in ("none", "selective") or any(
                of[j].tied for j in stage["layers"]
            ):
                continue
            held = [of[j] for j in stage["layers"]]
            kept = [
                layer.selective_bytes
                if stage["recompute"] == "selective" and layer.selective_bytes is not None
                else layer.activation_bytes
                for layer in held
            ]
            living = [
                la.activation_bytes - k + la.live_bytes for la, k in zip(held, kept, strict=True)
            ]
            buffers = {(la.kind, 0 if la.kind >= 0 else la.id): la.buffer_bytes for la in held}
            names = {
                "N": fsum(layer.parameter_bytes for layer in held) / problem.sent_bytes,
                "n": max(layer.parameter_bytes for layer in held) / problem.sent_bytes,
                "weight": state.weight, "gradient": state.gradient, "optimizer": state.optimizer,
                **{f"d{k}": float(d if z >= k else 1) for k in (1, 2, 3)},
                "reserve": problem.reserve_bytes, "buffers": fsum(buffers.values()),
                "Σk": fsum(kept),
                "max(A - k + live)": max(living),
                "q": rounds if problem.rules.families[0] == GPIPE else min(rounds, len(stages) - i),
            }  # fmt: skip
            assert evaluate(text, names) == pytest.approx(stage["memory_bytes"], rel=1e-9)
            seen.add((z, stage["recompute"], d > 1))
    assert {z for z, _, replicated in seen if replicated} == {0, 1, 2, 3}


def _rows(first: str) -> list[str]:
    """The second cell of every row that begins with ``first``."""
    lines = (DOCS / "placement.md").read_text().splitlines()
    return [line.split("|")[2].strip() for line in lines if line.startswith(f"| {first} |")]
