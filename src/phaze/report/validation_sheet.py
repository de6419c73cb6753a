"""Published runs compared with predictions: a row for every set, or for every run of some."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any

from phaze.report.numbers import counted, percent, signed_percent
from phaze.report.sections import Notes, Section, Table
from phaze.units import Unit, show
from phaze.validate.best import BestBesideRun, plan_of
from phaze.validate.compare import Quantity, ScoredSet, within_jobs, wrong_choices
from phaze.validate.statistics import Score

NAMES: Mapping[Quantity, str] = MappingProxyType(
    {"seconds": "Iteration time", "memory_bytes": "Memory of the fullest device"}
)


def _figures(name: str, score: Score) -> tuple[str, ...]:
    rank = "" if score.rank is None else f"{score.rank:.2f}"
    return (
        name,
        str(score.rows),
        percent(score.median),
        percent(score.nine_tenths),
        signed_percent(score.bias),
        signed_percent(score.worst),
        percent(score.within),
        rank,
        percent(score.regret),
    )


def _between(ends: tuple[float, float] | None, form: str) -> str:
    return "" if ends is None else " to ".join(form.format(end) for end in ends)


def _order(compared: Sequence[ScoredSet]) -> list[Section]:
    """How plans of one job are ordered, with intervals, where there are jobs of several plans."""
    cells = []
    for dataset in compared:
        score = dataset.scores.get(("seconds", False))
        if score is None or score.regret_interval is None:
            continue
        wrong = f"{len(wrong_choices(dataset.predictions))} of {score.jobs}"
        rank = "" if score.rank is None else f"{score.rank:.2f}"
        ranks, regrets = (
            _between(score.rank_interval, "{:.2f}"),
            _between(score.regret_interval, "{:.1%}"),
        )
        cells.append((dataset.name, wrong, rank, ranks, percent(score.regret), regrets))
    columns = ("", "best missed", "rank", "80 % of draws", "regret", "80 % of draws")
    return [Table(columns, cells, "Order of plans in groups of equal job")] if cells else []


def _left_out(compared: Sequence[ScoredSet]) -> list[str]:
    lines = []
    for dataset in compared:
        total = len(dataset.predictions) + len(dataset.left_out)
        for reason, count in Counter(reason for _, reason in dataset.left_out).items():
            lines.append(f"{dataset.name}: {count} of {total} rows left out, precision {reason}.")
    return lines


def scores_sections(compared: Sequence[ScoredSet]) -> list[Section]:
    """A table for each quantity, rows with free choices in one of their own."""
    columns = ("", "rows", "median", "90th", "bias", "worst", "within", "rank", "regret")
    sections: list[Section] = []
    for quantity, title in NAMES.items():
        for free in (False, True):
            scores = [(dataset.name, dataset.scores.get((quantity, free))) for dataset in compared]
            cells = [_figures(name, score) for name, score in scores if score is not None]
            caption = "the best of what the rows leave open" if free else ""
            sections += [Table(columns, cells, title, caption)] if cells else []
    lines = _left_out(compared)
    return [*sections, *_order(compared), *([Notes(lines)] if lines else [])]


def _plan(plan: Mapping[str, Any], free: Sequence[str] = ()) -> str:
    """Tensor x pipeline x data, and the microbatch; choices that were free are marked."""
    marks = {key: "*" if key in free else "" for key in plan}
    text = (
        f"{plan['tensor']}x{plan['pipeline']}x{plan['data']} "
        f"b{plan['microbatch']}{marks['microbatch']}"
    )
    if plan.get("chunks", 1) > 1:
        text += f" v{plan['chunks']}{marks['chunks']}"
    spread = " sp" if plan.get("sequence_parallel") else ""
    return f"{text} {plan.get('recompute', 'none')}{marks.get('recompute', '')}{spread}"


def runs_sections(compared: Sequence[ScoredSet], every: bool) -> list[Section]:
    """The scores of all sets, below every row where those are wanted; a star marks what a row does
    not state."""
    sections: list[Section] = []
    for dataset in compared if every else ():
        for quantity, name in NAMES.items():
            rows = [run for run in dataset.predictions if getattr(run.row, quantity) is not None]
            unit: Unit = "s" if quantity == "seconds" else "B"
            cells = [
                (
                    run.row.id,
                    _plan({**run.row.run["plan"], **run.chosen}, run.row.free),
                    show(getattr(run.row, quantity), unit),
                    show(getattr(run, quantity), unit),
                    signed_percent(run.error if quantity == "seconds" else run.memory_error),
                )
                for run in rows
            ]
            columns = ("", "plan", "measured", "ours", "error")
            sections += (
                [Table(columns, cells, dataset.title, name.lower(), texts=2)] if cells else []
            )
    return [Notes([], _headline(compared)), *sections, *scores_sections(compared)]


def _headline(compared: Sequence[ScoredSet]) -> str:
    """How far predictions of step time are off, over all runs that state their plan."""
    runs = [run for dataset in compared for run in dataset.predictions if not run.row.free]
    errors = [abs(run.error) for run in runs if run.error is not None]
    if not errors:
        return "No measured step time is priced"
    total = f"{counted(len(errors), 'published run')} of {counted(len(compared), 'set')}"
    off = f"Step times are off by {median(errors):.1%} in the median, over {total}"
    between = within_jobs([run for run in runs if run.error is not None])
    return off if between is None else f"{off}; between plans of one job by {between:.1%}"


def best_sections(sets: Sequence[tuple[str, Sequence[BestBesideRun], int]]) -> list[Section]:
    """The plan that was run and the best one, job by job; of every set its title, jobs, and how
    many were left out."""
    every = [job.gain for _, jobs, _ in sets for job in jobs if job.gain is not None]
    headline = (
        f"The best plans are faster than those that were run by {median(every):.1%} in the median"
        if every
        else ""
    )
    sections: list[Section] = [
        Notes([], headline or "No job has both a measured run and a best plan")
    ]
    for title, jobs, left_out in sets:
        gains = [job.gain for job in jobs if job.gain is not None]
        notes = [f"median gain {median(gains):.1%} over {len(gains)} jobs"] if gains else []
        notes += (
            [f"{left_out} jobs left out: their precision is not priced yet"] if left_out else []
        )
        rows = [row for job in jobs for row in _job_rows(job)]
        sections.append(
            Table(("", "plan", "measured", "ours", "gain"), rows, title, notes=notes, texts=2)
        )
    return sections


def _job_rows(job: BestBesideRun) -> list[tuple[str, ...]]:
    row = job.run.row
    run = _plan({**row.run["plan"], **job.run.chosen}, row.free)
    best = "nothing fits" if job.best is None else _plan(plan_of(job.best))
    best_s = "" if job.best_s is None else show(job.best_s, "s")
    measured = "" if row.seconds is None else show(row.seconds, "s")
    size = f"{row.run['devices']} devices, batch {row.run['batch']}"
    return [
        (row.id, f"run  {run}", measured, show(job.run.seconds, "s"), ""),
        (size, f"best {best}", "", best_s, signed_percent(job.gain)),
    ]
