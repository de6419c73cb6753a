"""Timelines for ui.perfetto.dev: every event of a copy, in order, and the end that the plan has."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import PhazeError
from phaze.pipeline.families import GPIPE, ONE_F_ONE_B
from phaze.pipeline.family import Family
from phaze.placement.answer import checked_document, document_of, place, require_true
from phaze.placement.plan import Plan
from phaze.report.plan_trace import MOST, plan_trace
from tests.placement.placement_cases import published, random_cluster_problem


def _events(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == name]


@pytest.mark.parametrize("family", [ONE_F_ONE_B, GPIPE], ids=["1f1b", "gpipe"])
def test_a_timeline_has_every_pass_and_ends_with_the_simulation(family: Family) -> None:
    seen = 0
    for seed in range(30):
        problem = random_cluster_problem(seed, True)
        problem = replace(problem, rules=replace(problem.rules, families=(family,)))
        plan = place(problem)
        if isinstance(plan, Plan):
            seen += 1
            trace = plan_trace([("plan", problem, plan)])
            rounds = problem.rounds(plan.data)
            assert (
                len(_events(trace, "forward"))
                == len(_events(trace, "backward"))
                == rounds * len(plan.stages)
            )
            last = max(
                event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X"
            )
            assert last == pytest.approx(1e6 * plan.simulated_s, rel=1e-6)
    assert seen > 10


def test_microbatches_in_the_middle_of_a_long_timeline_are_left_out_and_said_to_be() -> None:
    case = replace(published()[9].problem, microbatches=10**8)
    plan = place(case)
    assert isinstance(plan, Plan)
    trace = plan_trace([("long", case, plan)])
    assert len(trace["traceEvents"]) < 2 * MOST
    assert "microbatches in the middle left out" in trace["traceEvents"][0]["args"]["name"]


def test_place_and_plan_write_timelines(phaze: Any, tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    assert phaze("place", "examples/profile.json", "--perfetto", str(out)).code == 0
    assert _events(json.loads(out.read_text(encoding="utf-8")), "forward")
    assert phaze("plan", "--fixed", "examples/run.json", "--perfetto", str(out)).code == 0
    assert _events(json.loads(out.read_text(encoding="utf-8")), "optimizer")
    ran = phaze(
        "place", "examples/profile.json", "--perfetto", str(tmp_path / "none" / "trace.json")
    )
    assert (ran.code, "trace.json: the file cannot be written" in ran.err) == (2, True)


@pytest.mark.parametrize("rules", ["icml24", "cluster"])
def test_no_plan_is_printed_that_its_checker_objects_to(rules: str) -> None:
    problem = published()[9].problem if rules == "icml24" else random_cluster_problem(3, True)
    plan = place(problem)
    assert isinstance(plan, Plan)
    assert checked_document(problem, plan)["feasible"]
    with pytest.raises(PhazeError, match="does not pass its check"):
        require_true(problem, {**document_of(plan), "batch_s": 1.001 * plan.batch_s})
