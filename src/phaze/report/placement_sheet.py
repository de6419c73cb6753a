"""Plans of profiles, and of any plan what it would take to fit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from phaze.placement.plan import Plan, Stage
from phaze.placement.problem import PlacementProblem
from phaze.placement.shortage import Shortage
from phaze.report.lever_text import lever_rows
from phaze.report.sections import Cell, Figures, Group, Meter, Notes, Section, Table
from phaze.report.step_time import step_time
from phaze.units import show

MOST_STAGES = 16
"""Stages of a pipeline that fit a terminal; of a longer one those in the middle are left out."""
FIT = "What would make it fit, each alone"
TIME = "Where the time goes"


def _shown(count: int) -> list[int]:
    """The stages that are shown: all of a short pipeline, the ends of a long one."""
    if count <= MOST_STAGES:
        return list(range(count))
    return [*range(MOST_STAGES // 2), *range(count - MOST_STAGES // 2, count)]


def _left_out(count: int) -> list[str]:
    hidden = count - MOST_STAGES
    return [f"({hidden} stages in the middle are not shown)"] if hidden > 0 else []


def missing_sections(document: Mapping[str, Any]) -> list[Section]:
    """What the fullest stage of a given plan holds and lacks, and what would make it fit."""
    shortage = document.get("shortage")
    if shortage is None:
        return []
    missing = show(shortage["missing_bytes"], "B")
    terms = [
        (name.replace("_", " "), show(size, "B"))
        for name, size in shortage["terms"].items()
        if size
    ]
    terms += [
        ("in all", show(shortage["needed_bytes"], "B")),
        ("there is", show(shortage["available_bytes"], "B")),
    ]
    levers = lever_rows(shortage.get("levers") or {}, "given")
    need = Figures(
        terms, f"It does not fit: stage {shortage['stage']} lacks {missing}", "what it holds"
    )
    return [need, *([Figures(levers, FIT)] if levers else [])]


def _span(ids: tuple[int, ...]) -> str:
    """``(1, 2, 3, 7)`` as ``1..3, 7``, cut to what a column holds."""
    parts: list[list[int]] = []
    for number in ids:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    text = ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}..{part[-1]}" for part in parts)
    return text if len(text) <= 18 else f"{text[:15]}..."


def _placed_stages(stages: tuple[Stage, ...], hbm_bytes: float) -> Table:
    rows: list[Sequence[Cell]] = []
    for index in _shown(len(stages)):
        stage = stages[index]
        need = stage.memory.total_bytes
        rows.append(
            (
                str(index + 1),
                _span(stage.layers),
                stage.recompute,
                Meter(need / hbm_bytes),
                show(need, "B"),
                str(stage.devices),
                show(stage.time_s, "s"),
            )
        )
    columns = (
        "stage",
        "layers",
        "recompute",
        f"of {show(hbm_bytes, 'B')}",
        "memory",
        "devices",
        "time",
    )
    return Table(columns, rows, notes=_left_out(len(stages)), texts=4)


def _order(plan: Plan) -> str:
    texts = {
        "": "",
        "pipeline": ", the stages of a replica adjacent",
        "data": ", the replicas of a stage adjacent",
    }
    return texts[plan.order] if len(plan.stages) > 1 and plan.data > 1 else ""


def _placed(path: str, problem: PlacementProblem, plan: Plan) -> list[Section]:
    used = plan.data * sum(stage.devices for stage in plan.stages)
    proof = (
        "nothing is faster"
        if plan.lower_bound_s >= plan.batch_s
        else f"not below {show(plan.lower_bound_s, 's')}"
    )
    rounds = -(-problem.microbatches // plan.data)
    rows = [
        (
            "step time",
            f"{show(plan.batch_s, 's')} ({proof}; simulated {show(plan.simulated_s, 's')})",
        ),
        ("plan", f"TP {plan.tensor}, PP {len(plan.stages)}, DP {plan.data}{_order(plan)}"),
        ("devices", f"{used:,} of {problem.devices:,}"),
        ("microbatches", f"{problem.microbatches:,}, at most {rounds:,} a replica"),
    ]
    stated = {"batch_s": plan.batch_s, "breakdown": asdict(plan.breakdown)}
    return [
        Figures(rows, path),
        _placed_stages(plan.stages, problem.hbm_bytes),
        Group(step_time(stated), TIME),
    ]


def shortage_sections(title: str, shortage: Shortage, tried: bool = False) -> list[Section]:
    """Why nothing fits and what would; ``tried``: every lever was tried out on traced layers."""
    sections: list[Section] = [Notes([f"{shortage.sentence}."], title)]
    stage = shortage.tightest
    if stage is not None:
        memory = asdict(stage.memory).items()
        rows = [(name.replace("_", " "), show(need, "B")) for name, need in memory if need]
        sections.append(Figures(rows, "Its fullest stage", f"layers {_span(stage.layers)}"))
    levers = lever_rows(asdict(shortage.levers), "tried" if tried else "estimated")
    return [*sections, Figures(levers, FIT)]


def place_sections(
    answers: Sequence[tuple[str, PlacementProblem, Plan | Shortage]],
) -> list[Section]:
    """Plans or shortages of profiles, each under its path."""
    sections: list[Section] = []
    for path, problem, answer in answers:
        if isinstance(answer, Shortage):
            sections += shortage_sections(path, answer)
        else:
            sections += _placed(path, problem, answer)
    return sections
