"""Single problems as functions: the schedule of operators on a chip, the placement of layers on
devices."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Unpack

from phaze.api.function import api
from phaze.api.graphs import length_of
from phaze.api.load_study import announce, with_plan
from phaze.api.values import NothingFitsError, Placed, Scheduled, sheet
from phaze.errors import InputError, PhazeError, one_line
from phaze.options.jobs import Source, TimelineOptions
from phaze.options.option import Option
from phaze.options.runs import ScheduleOptions
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.placement.plan import Plan
    from phaze.placement.problem import PlacementProblem
    from phaze.report.progress import Progress
    from phaze.schedule.solve import PartMemo

Sources = Source | Sequence[Source]
T = TypeVar("T")
# A file, its problem and the answer, and the answer's document.
Answered = tuple[str, Any, Any, Mapping[str, Any]]


def _each(
    sources: Sources, answer: Callable[[Source], Answered], what: str, progress: "Progress"
) -> tuple[list[Answered], list[Mapping[str, Any]]]:
    """The answers of one source or of several, and all documents in order; of several a bad one is
    its sentence."""
    several = isinstance(sources, list | tuple)
    every: Sequence[Source] = sources if several else [sources]  # type: ignore[assignment, list-item]
    answers, documents = list[Answered](), list[Mapping[str, Any]]()
    for done, source in enumerate(every):
        progress.count(done, len(every), what)
        try:
            answers.append(answer(source))
            documents.append(answers[-1][3])
        except PhazeError as fault:
            if not several or fault.exit_code != InputError.exit_code:
                raise
            sentence = one_line(str(fault))
            progress.say(f"phaze: {sentence}\n")
            documents.append({"error": sentence})
    return answers, documents


@api
def place(
    profile: Annotated[
        Sources,
        Option(
            "Profiles of layers and devices (phaze.profile/1); - reads one from standard input.",
            argument=True,
            repeatable=True,
            python="A file, its values, or a list of them; of a list the value is the first, "
            "``more`` the rest, and "
            'what cannot be used is ``{"error": ...}``.',
        ),
    ],
    **options: Unpack[TimelineOptions],
) -> Placed:
    """The fastest split of measured layers over devices, proved, as ``phaze place``.

    Returns:
        The placement: ``batch_s`` in seconds, and its stages.

    Raises:
        InfeasibleError: No split fits into memory.

    Examples:
        >>> import phaze
        >>> layer = {"forward_s": 1.0, "backward_s": 2.0, "parameter_bytes": 8,
        ...     "activation_bytes": 4, "sharded": False}
        >>> width = {"layers": [{"id": 0, **layer}, {"id": 1, **layer}], "edges": [{"from": 0,
        ...     "to": 1, "bytes": 1}]}
        >>> machine = {"devices": 2, "hbm_bytes": 1000, "link_bytes_per_s": 1e9, "microbatches": 4}
        >>> values = {"schema": "phaze.profile/1", "rules": "icml24", "optimizer": "adam",
        ...     "recompute": False}
        >>> placed = phaze.place({**values, **machine, "widths": {"1": width}})
        >>> len(placed["stages"]), placed.batch_s > 0
        (1, True)
    """
    from phaze.placement.shortage import Shortage

    with on_standard_error() as progress:
        progress.step("phaze place")
        answers, documents = _each(profile, _placed, "placing profiles", progress)
    short = [plan for _, _, plan, _ in answers if isinstance(plan, Shortage)]
    if options["perfetto"] is not None:
        write_trace(
            options["perfetto"],
            [(where, problem, plan) for where, problem, plan, _ in answers if plan not in short],
        )

    shown = sheet(
        "phaze.report.placement_sheet", "place_sections", [answer[:3] for answer in answers]
    )
    if short and not isinstance(profile, list | tuple):
        raise NothingFitsError(short[0].sentence, dict(documents[0]), shown)
    code = 2 if len(answers) < len(documents) else 3 if short else 0
    return Placed(documents[0], shown, exit_code=code, more=tuple(documents[1:]))


def _placed(source: Source) -> Answered:
    from phaze.documents import notation_of, parse
    from phaze.files import read_text
    from phaze.placement.answer import checked_document
    from phaze.placement.answer import place as place_problem
    from phaze.placement.profile import problem_of

    if isinstance(source, Mapping):
        raw, where = dict(source), "profile"
    else:
        text, where = read_text(str(source))
        raw = parse(text, notation_of(str(source), text), where)
    problem = problem_of(raw, where)
    try:
        plan = place_problem(problem)
    except InputError as fault:
        raise InputError(f"{where}: {fault.where}", fault.problem, fault.remedy) from None
    return where, problem, plan, checked_document(problem, plan)


def write_trace(path: str | Path, plans: "Sequence[tuple[str, PlacementProblem, Plan]]") -> None:
    """Write the timelines of plans to a file for ui.perfetto.dev."""
    from phaze.documents import dumps
    from phaze.files import write_whole
    from phaze.report.plan_trace import plan_trace

    write_whole(Path(path), dumps(plan_trace(plans)) + "\n")


@api
def schedule(
    operators: Annotated[
        Sources | None,
        Option(
            "Operators (phaze.operators/1); - reads one from standard input.",
            argument=True,
            repeatable=True,
            python=(
                "A file, its values, or a list of them. One of ``operators`` and ``model`` "
                "is given."
            ),
        ),
    ] = None,
    **options: Unpack[ScheduleOptions],
) -> Scheduled:
    """The least makespan of operators on one chip, with a proof, as ``phaze schedule``.

    Returns:
        The schedule: ``makespan_s`` in seconds, ``lower_bound_s`` and every operator's start.

    Examples:
        >>> import phaze
        >>> layer = phaze.schedule(model="bert-large", chip="tpu-v4", stack="ideal")
        >>> layer["optimal"], layer.makespan_s >= layer["lower_bound_s"]
        (True, True)
    """
    if (options["model"] is None) == (not operators):
        remedy = "e.g. --model llama2-7b --chip tpu-v4"
        raise InputError("schedule", "give either files of operators or --model", remedy)
    with on_standard_error() as progress:
        progress.step("phaze schedule")
        memo: PartMemo = {}
        if operators:
            answers, documents = _each(
                operators,
                lambda source: _scheduled(source, options["scheduler"], memo),
                "scheduling files",
                progress,
            )
        else:
            answers = _layer_schedules(options, memo, progress)
            documents = [answer[3] for answer in answers]
    if options["perfetto"] is not None:
        from phaze.documents import dumps
        from phaze.files import write_whole
        from phaze.report.trace import schedule_trace

        write_whole(
            Path(options["perfetto"]),
            dumps(schedule_trace([answer[:3] for answer in answers])) + "\n",
        )

    shown = sheet(
        "phaze.report.schedule_sheet", "schedules_sections", [answer[:3] for answer in answers]
    )
    code = 2 if len(answers) < len(documents) else 0
    return Scheduled(documents[0], shown, exit_code=code, more=tuple(documents[1:]))


def _layer_schedules(
    options: ScheduleOptions, memo: "PartMemo", progress: "Progress"
) -> list[Answered]:
    """The passes of a layer of a model on a chip, each scheduled."""
    from phaze.evaluate.pass_schedule import PASSES, layer_passes, setting_of
    from phaze.graph.supply.point import Rank
    from phaze.graph.supply.rank import rank_of
    from phaze.graph.supply.supply import SuppliedGraph, supply_of
    from phaze.graph.supply.tracing import OPENING
    from phaze.schedule.solve import solve

    if options["chip"] is None:
        raise InputError("--model", "there is no chip", "add --chip tpu-v4")
    model, tensor_plan, length = (
        options["model"],
        options["tp_plan"],
        length_of(options["sequence"]),
    )
    place = (
        with_plan(model, None if tensor_plan is None else str(tensor_plan))
        if isinstance(model, str)
        else ""
    )
    setting = setting_of(
        options["chip"], options["cluster"], options["stack"], options["basis"], options["rules"]
    )
    progress.step(OPENING)
    if model is None or isinstance(model, str):
        supply = supply_of(place, allow_code=True, fresh=options["fresh"])
    else:
        supply = model
    kernels = options["attention"] or (
        None if isinstance(supply, SuppliedGraph) else setting.stack.attention
    )
    rank = Rank(
        options["tensor"],
        options["microbatch"],
        length,
        kernels,
        options["sequence_parallel"] or None,
    )
    traced = rank_of(supply, rank, watch=progress.counting("tracing"))
    progress.clear()
    if place:
        announce(place, length)
    progress.step("scheduling operators")
    wanted = PASSES if options["pass_"] is None else (options["pass_"],)
    answers: list[Answered] = []
    for layer_pass in layer_passes(traced, options["layer"], wanted, setting):
        solved = solve(layer_pass.problem, options["scheduler"], parts=memo)
        answers.append(
            (layer_pass.title, layer_pass.shown, solved, {**solved.document(), "of": layer_pass.of})
        )
    return answers


def _scheduled(
    source: Source, scheduler: Literal["exact", "list", "cpsat", "ilp"], memo: "PartMemo"
) -> Answered:
    from phaze.documents import check
    from phaze.schedule.files import OperatorsFile, load_problem
    from phaze.schedule.solve import solve

    where = "operators" if isinstance(source, Mapping) else str(source)
    problem = (
        check(OperatorsFile, source, where).value()
        if isinstance(source, Mapping)
        else load_problem(where)
    )
    schedule = solve(problem, scheduler, parts=memo)
    if schedule.effort.method == "large":
        many = (
            f"{len(problem.operators):,} operators are many: a list schedule and a bound, no proof."
        )
        sys.stderr.write(f"phaze: {where}: {many}\n")
    return where, problem, schedule, schedule.document()
