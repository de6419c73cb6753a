"""A placement in the terminal: its stages with memory bars, where the time goes, or what it would take to fit."""

from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape

from phaze.placement.plan import Plan, Stage
from phaze.placement.problem import Problem
from phaze.placement.shortage import Levers, Shortage
from phaze.report.run_sheet import part_words
from phaze.report.terminal import bar, facts, paragraph, table
from phaze.units import show

MOST_ROWS = 40
"""Stages that fit a terminal."""
BAR_WIDTH = 14
"""Columns of a bar beside five others."""


def _span(ids: tuple[int, ...]) -> str:
    """``(1, 2, 3, 7)`` as ``1..3, 7``, cut to what a column holds."""
    parts: list[list[int]] = []
    for id_ in ids:
        if parts and id_ == parts[-1][-1] + 1:
            parts[-1].append(id_)
        else:
            parts.append([id_])
    text = ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}..{part[-1]}" for part in parts)
    return text if len(text) <= 18 else f"{text[:15]}..."


def _rows(stages: tuple[Stage, ...], hbm_bytes: float) -> Iterator[tuple[str, ...]]:
    cut = len(stages) > MOST_ROWS
    for number, stage in enumerate(stages, start=1):
        if cut and MOST_ROWS // 2 < number <= len(stages) - MOST_ROWS // 2:
            if number == MOST_ROWS // 2 + 1:
                yield ("...", "", "", "", "", "", "")
            continue
        need = stage.memory.total_bytes
        yield (
            str(number),
            _span(stage.layers),
            bar(need / hbm_bytes, BAR_WIDTH),
            show(need, "B"),
            str(stage.devices),
            stage.recompute,
            show(stage.time_s, "s"),
        )


def _show_stages(console: Console, stages: tuple[Stage, ...], hbm_bytes: float) -> None:
    columns = ("stage", "layers", f"of {show(hbm_bytes, 'B')}", "memory", "devices", "recompute", "time")
    console.print(table(columns, _rows(stages, hbm_bytes), left=3))


def _show_breakdown(console: Console, plan: Plan) -> None:
    console.print("\n[bold]Where the time goes[/bold]")
    parts = {name.removesuffix("_s"): value for name, value in asdict(plan.breakdown).items() if value > 0}
    for name, value in parts.items():
        share = value / plan.batch_s if plan.batch_s else 0.0
        line = f"  {part_words(name):<26}{bar(share, 30)} {show(value, 's'):>10} {share:>5.1%}"
        console.print(line, markup=False)


def _inside(plan: Plan) -> str:
    texts = {
        "": "",
        "pipeline": ", the stages of a replica adjacent",
        "data": ", the replicas of a stage adjacent",
    }
    return texts[plan.order] if len(plan.stages) > 1 and plan.data > 1 else ""


def _show_plan(console: Console, path: str, problem: Problem, plan: Plan) -> None:
    used = plan.data * sum(stage.devices for stage in plan.stages)
    proof = "nothing is faster" if plan.lower_bound_s >= plan.batch_s else f"not below {show(plan.lower_bound_s, 's')}"
    rounds = -(-problem.microbatches // plan.data)
    console.print(f"[bold]{escape(path)}[/bold]")
    rows = [
        ("step time", f"{show(plan.batch_s, 's')} ({proof}; simulated {show(plan.simulated_s, 's')})"),
        ("plan", f"TP {plan.tensor}, PP {len(plan.stages)}, DP {plan.data}{_inside(plan)}"),
        ("devices", f"{used:,} of {problem.devices:,}"),
        ("microbatches", f"{problem.microbatches:,}, at most {rounds:,} a replica"),
    ]
    console.print(facts(rows))
    console.print()
    _show_stages(console, plan.stages, problem.hbm_bytes)
    _show_breakdown(console, plan)


def _lever_rows(levers: Levers, tried: bool) -> Iterator[tuple[str, str]]:
    shrinks = "" if tried else " (estimated: {} shrink with it)"
    texts = {
        "hbm_bytes": levers.hbm_bytes and f"at least {show(levers.hbm_bytes, 'B')} a device",
        "devices": levers.devices and f"at least {levers.devices:,}",
        "tensor": levers.tensor and f"TP {levers.tensor}{shrinks.format('sharded layers')}",
        "microbatch": levers.microbatch_divisor
        and f"{levers.microbatch_divisor} times smaller{shrinks.format('activations')}",
        "recompute": levers.recompute
        and (f"{levers.recompute}, on every stage" if tried else 'true or "best", instead of as given'),
        "optimizer": levers.optimizer and f"{levers.optimizer}",
        "zero": levers.zero and f"stage {levers.zero}: state sharded over the replicas",
    }
    for name, text in texts.items():
        yield name.removesuffix("_bytes"), text if isinstance(text, str) else "does not help alone"


def show_shortage(console: Console, path: str, shortage: Shortage, tried: bool = False) -> None:
    """Print why nothing fits and what would; ``tried``: every lever was tried out on traced layers."""
    console.print(f"[bold]{escape(path)}[/bold]")
    paragraph(console, f"{shortage.sentence}.")
    stage = shortage.tightest
    if stage is not None:
        rows = [(name.replace("_", " "), show(value, "B")) for name, value in asdict(stage.memory).items() if value]
        console.print(f"\n[bold]Its fullest stage[/bold], layers {_span(stage.layers)}")
        console.print(facts(rows))
    console.print("\n[bold]What would make it fit, each alone[/bold]")
    console.print(facts(_lever_rows(shortage.levers, tried)))


def show_answer(console: Console, path: str, problem: Problem, found: Plan | Shortage) -> None:
    """Print a plan or a shortage."""
    if isinstance(found, Shortage):
        show_shortage(console, path, found)
    else:
        _show_plan(console, path, problem, found)
