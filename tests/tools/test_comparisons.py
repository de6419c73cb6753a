"""What ``make bench`` rests on: ratios, peers' methods that give our answers, and peers that are
not there."""

import importlib.util
from dataclasses import asdict
from io import StringIO

import pytest
from rich.console import Console
from tools.bench import clock, cost, peer, placement
from tools.bench.device_table import least_batch_s
from tools.bench.inputs import PLACEMENTS, SCHEDULES, core_part, schedule_problem
from tools.bench.line import Line, Section, Took, same, took
from tools.bench.loops import nest_of
from tools.bench.plain_cpsat import Outcome, solve_plain
from tools.bench.run import document_of
from tools.bench.schedule import verdict
from tools.bench.table import seconds, show_bench

from phaze.cost.mapping import product
from phaze.cost.products import map_product
from phaze.placement.solve import fastest_plan
from phaze.schedule.solve import solve
from tests.placement.placement_cases import random_icml24_problem


def printed(document: dict[str, object]) -> str:
    text = StringIO()
    show_bench(Console(file=text, width=80, highlight=False), document)
    return text.getvalue()


def test_a_ratio_is_their_least_time_over_our_most() -> None:
    line = Line("x", "y", "published", Took(0.001, 0.002), Took(1.0, 3.0))
    assert line.ratio == pytest.approx(500.0)
    assert Line("x", "y", "measured", took(0.1), None, missing="not installed").ratio is None


def test_answers_are_compared_as_shares_of_ours() -> None:
    assert same(2.0, 2.0, 0.0) == ("same", True)
    assert same(100.0, 103.0, 0.05) == ("+3 %", True)
    assert same(100.0, 94.0, 0.05) == ("-6 %", False)
    assert same(float("inf"), float("inf"), 0.0) == ("same", True)
    assert not same(1.0, float("inf"), 0.05)[1]


def test_times_are_read_at_a_glance() -> None:
    shown = [seconds(value) for value in (48.6e-6, 2.27e-3, 0.07, 63.0, 1046.5, 142000.0, 1e6)]
    assert shown == ["48.6 us", "2.27 ms", "70 ms", "63 s", "17.4 min", "39.4 h", "11.6 d"]


def test_the_table_with_devices_finds_the_same_batch_time() -> None:
    feasible = 0
    for seed in range(150):
        problem = random_icml24_problem(seed, chain=True)
        plan, theirs = fastest_plan(problem), least_batch_s(problem)
        feasible += plan is not None
        assert theirs == pytest.approx(float("inf") if plan is None else plan.batch_s, rel=1e-9), (
            seed
        )
    assert feasible > 50


def test_the_smallest_placement_agrees_and_beats_the_published_solver() -> None:
    lines = placement.section(PLACEMENTS[:1]).lines
    assert [line.input for line in lines] == ["26 layers, width 1"] * 3
    assert [line.agree for line in lines] == [None, None, True]
    assert all(line.ratio is not None for line in lines)


def test_plain_cpsat_proves_the_same_makespan() -> None:
    problem = schedule_problem(SCHEDULES[0])
    assert len(problem.operators) == 12
    ours, theirs = solve(problem), solve_plain(problem, 60.0)
    assert theirs.ended and ours.optimal
    assert theirs.makespan_s == pytest.approx(ours.makespan_s, rel=1e-6)
    assert verdict(ours, theirs, 0.0) == ("same", True)


def test_a_schedule_that_contradicts_ours_is_seen() -> None:
    ours = solve(schedule_problem(SCHEDULES[0]))
    best = ours.makespan_s
    assert verdict(ours, Outcome(0.9 * best, 0.9 * best, True), 0.01) == ("-10 %", False)
    assert not verdict(ours, Outcome(1.05 * best, 1.04 * best, False), 0.01)[1], (
        "its bound is above our optimum"
    )
    assert not verdict(ours, Outcome(1.05 * best, 0.9 * best, True), 0.01)[1], (
        "its end is beyond its gap"
    )
    assert verdict(ours, Outcome(1.05 * best, 0.9 * best, False), 0.01) == ("+5 %", True)
    assert verdict(ours, Outcome(best, 0.9 * best, False), 0.01) == ("unproved", True)
    assert verdict(ours, Outcome(float("inf"), 0.0, False), 0.01) == ("none", True)


def test_scale_sim_takes_our_cycles_and_the_passes_it_does_not_overlap() -> None:
    part, shapes = core_part(True), [(128, 200, 130), (300, 128, 256)]
    cases = [(label, *shape) for shape in shapes for label, _ in cost.SIMULATED]
    question = {"rows": part.rows, "columns": part.columns, "cases": cases}
    rows = peer.ask("tools.bench.scalesim_peer", "scalesim", question)["rows"]
    expected = [
        cost.streamed_cycles(flow, shape, part)[1] for shape in shapes for _, flow in cost.SIMULATED
    ]
    assert [cycles for cycles, *_ in rows] == expected


def test_zigzag_takes_our_cycles_where_the_array_or_hbm_decides() -> None:
    pytest.importorskip("zigzag", reason="in the extra [peers]")
    lines = cost._zigzag([cost._case((512, 512, 64), True)])
    assert [line.agree for line in lines] == [True, True]
    assert all(line.theirs is not None for line in lines)


def test_zigzag_takes_our_cycles_for_our_loops_on_a_share_of_the_global_buffer() -> None:
    pytest.importorskip("zigzag", reason="in the extra [peers]")
    shape, part = (512, 1024, 1024), core_part(False)
    asked = {"part": asdict(part), "shape": shape, "loops": nest_of(shape, part).loops}
    ((cycles, *_),) = peer.ask("tools.bench.zigzag_peer", "zigzag", {"cases": [asked]})["rows"]
    assert cycles == pytest.approx(nest_of(shape, part).cycles, rel=0.03)


def test_a_nest_covers_the_product_and_costs_no_less_than_the_best_mapping() -> None:
    for whole in (True, False):
        part = core_part(whole)
        for shape in ((512, 512, 64), (300, 1000, 700), (64, 4096, 4096), (1, 1, 1)):
            nest = nest_of(shape, part)
            extents = dict.fromkeys("mnk", 1)
            for name, extent in nest.loops:
                extents[name] *= extent
            m, n, k = shape
            assert extents["m"] >= m
            assert extents["n"] * part.columns >= n
            assert extents["k"] * part.rows >= k
            assert nest.cycles >= map_product(product(1, *shape), part).time_s * part.clock_hz * (
                1 - 1e-12
            )
            assert nest.ends > 0


def test_a_peer_that_is_not_installed_is_said_and_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> None:
        assert name in ("zigzag", "scalesim")

    monkeypatch.setattr(importlib.util, "find_spec", absent)
    monkeypatch.setattr(clock, "warm", clock.once)
    found = cost.section(shapes=((64, 64, 64), (128, 64, 64)), simulated=((64, 64, 64),))
    lacking = [line for line in found.lines if line.missing]
    assert len(lacking) == 5
    assert {line.missing for line in lacking} == {
        "not installed: pip install -e '.[peers]' in phaze's folder"
    }
    document = document_of(
        [found], {"processor": "p", "cores": 2, "system": "s", "python": "3.11", "load": None}
    )
    assert document["agree"]
    assert "not installed: pip install -e '.[peers]' in phaze's folder" in printed(document)


def test_a_peer_that_fails_is_said() -> None:
    with pytest.raises(peer.PeerError, match="failed: "):
        peer.ask("tools.bench.scalesim_peer", "scalesim", {"no": "cases"})


def test_the_sheet_fits_80_columns_and_marks_what_contradicts() -> None:
    lines = (
        Line(
            "98 layers, 4 widths",
            "published, as built",
            "published",
            took(0.0022),
            Took(63.0, 82.0),
        ),
        Line(
            "36 ops, bert-large bw",
            "its program, HiGHS",
            "measured",
            took(0.17),
            took(5.0, 5.0, True),
            "none",
            True,
        ),
        Line(
            "512x1024x1024",
            "zigzag-dse 3.9.1",
            "measured",
            took(5e-5, memory_bytes=9000),
            took(5.0, memory_bytes=2**28),
            "-20 %",
            False,
            (10, 8),
            "cycles",
        ),
        Line("bert-large, 29,360 chips", "published mapper", "estimated", took(2.9), took(1.5e5)),
    )
    where = {"processor": "p", "cores": 2, "system": "s", "python": "3.11", "load": 0.5}
    document = document_of([Section("cost", lines, ("A note.",))], where)
    text = printed(document)
    assert not document["agree"]
    assert max(len(line) for line in text.splitlines()) <= 80
    for shown in (
        "63-82 s",
        "28,636x",
        "> 5 s",
        "> 29x",
        "-20 % !",
        "~41.7 h",
        "contradict",
        "< 0.1",
        "256",
    ):
        assert shown in text, shown
