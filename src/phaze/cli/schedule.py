"""``phaze schedule``: the best order of operators on one chip, for any number of files."""

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from phaze.cli.answer import Answer, answering, told
from phaze.cli.graph import SOURCES
from phaze.cli.tensor_plan import TpPlan, announce, with_plan
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.evaluate.pass_schedule import LayerPass
    from phaze.report.progress import Progress
    from phaze.schedule.problem import Problem, Schedule
    from phaze.schedule.solve import Known, Scheduler

Files = Annotated[
    list[str] | None, typer.Argument(help="Operators (phaze.operators/1); - reads one from standard input.")
]
By = Annotated[str, typer.Option("--scheduler", help="exact, list, cpsat, or ilp (the published program).")]
Perfetto = Annotated[str | None, typer.Option(help="Write a trace for ui.perfetto.dev to this file.")]
ModelName = Annotated[str | None, typer.Option("--model", help=f"Instead of files, a layer of a model. {SOURCES}")]
LayerName = Annotated[
    str | None, typer.Option("--layer", help="A layer or module (phaze graph lists them); else the most repeated.")
]
PassName = Annotated[
    Literal["forward", "backward"] | None, typer.Option("--pass", help="forward or backward; else both, in order.")
]
ChipName = Annotated[str | None, typer.Option("--chip", help="With --model: a preset, or the path of a chip file.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="With --model: else the chip's usual one.")]
StackName = Annotated[str | None, typer.Option("--stack", help="With --model: else the cluster's usual one.")]
RulesName = Annotated[
    str | None,
    typer.Option("--rules", help="With --model: serial, companions, links, icml24, overlap; else the stack's."),
]
BasisName = Annotated[str, typer.Option("--basis", help="With --model: calibrated, datasheet or ideal constants.")]
Tensor = Annotated[int | None, typer.Option(help="With --model: tensor-parallel degree, else 1.")]
Microbatch = Annotated[int | None, typer.Option(help="With --model: sequences in one microbatch, else 1.")]
Sequence = Annotated[str | None, typer.Option(help="With --model: positions, 4096 or 32k (k = 1024); else its own.")]
Attention = Annotated[
    Literal["eager", "fused"] | None, typer.Option(help="With --model: eager or fused; else as the stack runs it.")
]
Spread = Annotated[
    bool, typer.Option("--sequence-parallel", help="With --model: shard what tensor parallelism leaves.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace the model again, whatever the cache holds.")]


@answering
def schedule(
    files: Files = None,
    scheduler: By = "exact",
    perfetto: Perfetto = None,
    model: ModelName = None,
    layer: LayerName = None,
    pass_: PassName = None,
    chip: ChipName = None,
    cluster: ClusterName = None,
    stack: StackName = None,
    rules: RulesName = None,
    basis: BasisName = "calibrated",
    tensor: Tensor = None,
    microbatch: Microbatch = None,
    sequence: Sequence = None,
    attention: Attention = None,
    sequence_parallel: Spread = False,
    tp_plan: TpPlan = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Schedule operators on the cores of a chip: the least makespan, with a proof.

    The operators are those of files, or of a layer of a model, one line for each file or pass with --json. Examples:
    phaze schedule layer.json --perfetto trace.json · phaze schedule --model llama2-7b --chip tpu-v4 --pass backward ·
    phaze schedule --model my.py:build --chip h100 --tensor 4 --rules overlap
    """
    by = _scheduler(scheduler)
    if (model is None) == (not files):
        raise InputError(
            "schedule", "give either files of operators or --model", "e.g. --model llama2-7b --chip tpu-v4"
        )
    if model is None:
        return _files(files or [], by, perfetto, progress)
    from phaze.cli.estimate import basis_named
    from phaze.evaluate.pass_schedule import PASSES, layer_passes, setting_of
    from phaze.graph.supply.rank import Rank, rank_of
    from phaze.graph.supply.supply import GraphFile, supply_of
    from phaze.graph.supply.tracing import OPENING
    from phaze.units import parse_length

    if chip is None:
        raise InputError("--model", "there is no chip", "add --chip tpu-v4")
    place, length = with_plan(model, tp_plan), None if sequence is None else told("--sequence", sequence, parse_length)
    setting = setting_of(chip, cluster, stack, basis_named(basis), rules)
    progress.step(OPENING)
    supply = supply_of(place, fresh=fresh)
    kernels = attention or (None if isinstance(supply, GraphFile) else setting.stack.attention)
    rank = Rank(tensor, microbatch, length, kernels, True if sequence_parallel else None)
    traced = rank_of(supply, rank, watch=progress.counting("tracing"))
    progress.clear()
    announce(place, length)
    progress.step("scheduling operators")
    passes = layer_passes(traced, layer, PASSES if pass_ is None else (pass_,), setting)
    return _passes(passes, by, perfetto)


def _files(files: "list[str]", by: "Scheduler", perfetto: str | None, progress: "Progress") -> Answer:
    from phaze.errors import PhazeError, one_line

    documents: list[Any] = []
    answers: list[tuple[str, Problem, Schedule]] = []
    known: Known = {}
    for done, path in enumerate(files):
        progress.count(done, len(files), "scheduling files")
        try:
            problem, found = _answer(path, by, known)
        except PhazeError as fault:
            sentence = one_line(str(fault))
            progress.say(f"phaze: {sentence}\n")
            documents.append({"error": sentence})
            continue
        documents.append(found.document())
        if found.effort.method == "large":
            count = len(problem.operators)
            sys.stderr.write(f"phaze: {path}: {count:,} operators are many: a list schedule and a bound, no proof.\n")
        answers.append((path, problem, found))
    if perfetto is not None:
        _write_trace(perfetto, answers)
    return Answer(tuple(documents), lambda console: _show(console, answers), 2 if len(answers) < len(files) else 0)


def _passes(passes: "list[LayerPass]", by: "Scheduler", perfetto: str | None) -> Answer:
    """The schedules of a layer's passes."""
    from phaze.schedule.solve import solve

    known: Known = {}
    answers = [(one.title, one.shown, solve(one.problem, by, known=known)) for one in passes]
    if perfetto is not None:
        _write_trace(perfetto, answers)
    documents = [{**found.document(), "of": one.of} for one, (_, _, found) in zip(passes, answers, strict=True)]
    return Answer(tuple(documents), lambda console: _show(console, answers))


def _show(console: "Console", answers: "list[tuple[str, Problem, Schedule]]") -> None:
    from phaze.report.gantt import show_schedule

    for index, (path, problem, found) in enumerate(answers):
        if index:
            console.print()
        show_schedule(console, path, problem, found)


def _scheduler(name: str) -> "Scheduler":
    from typing import get_args

    from phaze.errors import unknown_name
    from phaze.schedule.solve import Scheduler

    known: tuple[Scheduler, ...] = get_args(Scheduler)
    for choice in known:
        if choice == name:
            return choice
    raise unknown_name("--scheduler", "scheduler", name, known)


def _answer(path: str, scheduler: "Scheduler", known: "Known") -> "tuple[Problem, Schedule]":
    from phaze.schedule.files import load_problem
    from phaze.schedule.solve import solve

    problem = load_problem(path)
    return problem, solve(problem, scheduler, known=known)


def _write_trace(path: str, answers: "list[tuple[str, Problem, Schedule]]") -> None:
    from pathlib import Path

    from phaze.documents import dumps
    from phaze.files import write_whole
    from phaze.report.trace import schedule_trace

    write_whole(Path(path), dumps(schedule_trace(answers)) + "\n")
