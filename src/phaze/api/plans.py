"""``phaze.plan``: the fastest split of a training job over devices that exist."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from phaze.api.against import degrees_tried, launched_job, named_model, with_given
from phaze.api.function import api_renamed
from phaze.api.graphs import length_of, sizes_of
from phaze.api.load_study import announce, with_plan
from phaze.api.pricing import budget_of, planned_value, priced
from phaze.api.single import write_trace
from phaze.api.values import Answer, NothingFitsError, Planned, identified, sheet
from phaze.errors import InfeasibleError, InputError
from phaze.options.arguments import parsed
from phaze.options.jobs import ModelSource, PlanOptions, Sizes
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.evaluate.plan import PlanRequest
    from phaze.evaluate.plan_order import PlannedChoice
    from phaze.evaluate.request import Job
    from phaze.evaluate.what_if import PlanAxis as Axis
    from phaze.export.launch_run import Launched
    from phaze.hardware.calibration import Basis
    from phaze.report.progress import Progress

# What a launch file states of a job.
LAUNCHED = ("chip", "cluster", "stack", "devices", "batch", "sequence", "precision")


def _former_basis(model: Any = None, *, basis: str, **options: Any) -> dict[str, Any]:
    """Constants by the name of their basis, as they were given before."""
    return {"model": model, **options, "datasheet": basis == "datasheet"}


@api_renamed(basis=_former_basis)
def plan(model: ModelSource = None, **options: Unpack[PlanOptions]) -> Planned:
    """The fastest plan of a training job on existing devices, proved optimal, as ``phaze plan``.

    Returns:
        The plan: ``batch_s`` (step time in seconds), ``document`` (``phaze.plan/1``), ``frame()``
        of its stages.

    Raises:
        InputError: A value that cannot be used, with what is allowed.
        InfeasibleError: No choice fits into memory, with the shortage and what would fix it.

    Examples:
        >>> import phaze
        >>> plan = phaze.plan("llama2-7b", chip="h100", devices=16, batch="1M-tokens", tensor=[1,
        ...     2])
        >>> plan["proved"], plan["tensor"] * plan["pipeline"] * plan["data"] <= 16
        (True, True)
        >>> "--tensor-model-parallel-size" in plan.export("megatron")
        True
    """
    basis: Basis = "datasheet" if options["datasheet"] else "calibrated"
    certificate = options["certificate"]
    with on_standard_error() as progress:
        progress.step("phaze plan")
        if options["fixed"] is not None:
            return identified(_fixed(options, basis))
        job, launched = _job(model, options, basis)
        folder = None if certificate is None else Path(certificate)
        try:
            answer = planned_answer(
                job, options["perfetto"], progress, options["what_if"], options["over"], folder
            )
        except InfeasibleError:
            if options["html"] is not None:
                progress.say(
                    "Nothing fits, so there is no plan to make a page of: "
                    f"{options['html']} was not written.\n"
                )
            raise
        if launched is not None:
            answer = with_given(answer, launched, basis, progress)
        return identified(answer, folder)


def _fixed(options: PlanOptions, basis: "Basis") -> Planned:
    """The plan of a run, as it is."""
    run, budget = options["fixed"], budget_of(options["tokens"], options["terms"])
    assert run is not None
    if options["over"]:
        raise InputError("--over", "a fixed plan is priced as it is", "leave out --fixed")
    if options["certificate"] is not None:
        raise InputError(
            "--certificate", "a fixed plan is priced, nothing is chosen", "leave out --fixed"
        )
    return priced(run, basis, options["perfetto"], budget, options["allow_code"])


def _job(model: ModelSource, options: PlanOptions, basis: "Basis") -> "tuple[Job, Launched | None]":
    """The job to plan, every option read, and the launch file that it is compared with."""
    from dataclasses import fields

    from phaze.evaluate.request import Job
    from phaze.graph.split_context import way_named
    from phaze.units import parse_batch

    stated: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    readers: dict[str, Callable[[Any], Any]] = {
        "batch": lambda value: parsed("--batch", value, parse_batch),
        "sequence": length_of,
        "context_way": lambda value: tuple(way_named(way) for way in value),
    }
    stated |= {key: read(stated[key]) for key, read in readers.items() if key in stated}
    stated["budget"] = budget_of(options["tokens"], options["terms"])
    # A model that is given is named by the caller.
    stated["allow_code"] = options["allow_code"] or model is not None
    length, launched = stated.get("sequence"), None
    if options["against"] is not None:
        with_model = (model, options["gpt"], options["llama"]) != (None, None, None)
        named = _named(model, options["gpt"], options["llama"], length) if with_model else {}
        launched = launched_job(str(options["against"]), named, stated)
        stated |= {key: launched.run[key] for key in LAUNCHED if key in launched.run}
        for key in ("context", "expert"):
            stated[key] = stated.get(key) or degrees_tried(launched, key)
        name, sizes = named_model(launched.run)
    if not {"chip", "devices", "batch"} <= set(stated):
        raise InputError(
            "plan", "a job needs a chip, devices and a batch", "add --chip, --devices and --batch"
        )
    if launched is None:
        name, sizes = named_model(_named(model, options["gpt"], options["llama"], length))
    plan, is_own = options["tp_plan"], model is not None and not isinstance(model, str)
    place = name if is_own else with_plan(name, None if plan is None else str(plan))
    stated |= {"model": place, "sizes": sizes, "basis": basis, "supply": model if is_own else None}
    return Job(
        **{field.name: stated[field.name] for field in fields(Job) if field.name in stated}
    ), launched


def _named(
    model: ModelSource, gpt: Sizes | None, llama: Sizes | None, sequence: int | None
) -> dict[str, Any]:
    """The one model that was given, as a run states it."""
    families = {key: value for key, value in (("gpt", gpt), ("llama", llama)) if value is not None}
    if (model is not None) + len(families) != 1:
        raise InputError("plan", "there must be one model", "give one of --model, --gpt, --llama")
    if model is not None:
        return {"model": model if isinstance(model, str) else model.name}
    return {key: sizes_of(key, value, sequence) for key, value in families.items()}


def _beside_others(
    job: "Job", request: "PlanRequest", choice: "PlannedChoice"
) -> "tuple[Job, PlanRequest, PlannedChoice]":
    """The same, or with exchanges of experts behind another microbatch where the stack offers that
    and a plan is faster so."""
    from phaze.evaluate.plan_order import planned
    from phaze.evaluate.stated_overlap import stack_exchanging

    exchange = request.setting.stack.overlap.exchange
    asked = job.expert_overlap is not None or exchange.runs or not exchange.offered
    if asked or max(request.expert) == 1:
        return job, request, choice
    beside = replace(job, expert_overlap=True)
    stack = stack_exchanging(request.setting.stack, True, "expert_overlap")
    machine = replace(request.job.machine, stack=stack)
    other = replace(
        request,
        setting=replace(request.setting, stack=stack),
        job=replace(request.job, machine=machine),
    )
    faster = planned(other, None, choice.best.rank[0])
    if faster.candidates and faster.best.rank < choice.best.rank:
        return beside, other, faster
    return job, request, choice


def planned_answer(
    job: "Job",
    perfetto: str | Path | None,
    progress: "Progress",
    others: bool,
    over: Sequence[str],
    certificate: Path | None,
) -> Planned:
    """The plan, with other jobs and a certificate where they are wanted; the shortage is raised."""
    from phaze.evaluate.answer import planned_document, shortage_document
    from phaze.evaluate.heuristic_plans import heuristic_plans
    from phaze.evaluate.job_file import planned_job
    from phaze.evaluate.levers import sought_levers
    from phaze.evaluate.plan_order import planned, rank_of
    from phaze.evaluate.request import request_of
    from phaze.export.launch_files import with_launches
    from phaze.graph.supply.tracing import OPENING

    along = _along(over)
    progress.step(OPENING)
    request = request_of(job, progress.counting("tracing"))
    progress.clear()
    if job.sizes is None and job.supply is None:
        announce(job.model, job.sequence)
    progress.count(0, 1, "bounding choices of tensor, context and expert degree, microbatch")
    choice = planned(request, lambda done, total: progress.count(done, total, progress.what))
    job, request, choice = _beside_others(job, request, choice)
    progress.step("comparing plans")
    best = choice.best
    if best.plan is None:
        progress.step("looking for what would make it fit")
        short = sought_levers(request, choice.candidates)
        title = f"{job.model} on {job.devices:,} x {job.chip}, {request.setting.cluster.label}"
        document = shortage_document(short, request.setting)
        shown = identified(
            Answer(
                document,
                sheet("phaze.report.placement_sheet", "shortage_sections", title, short, True),
            )
        )
        raise NothingFitsError(document["shortage"]["sentence"], document, shown.sections)
    if perfetto is not None:
        write_trace(perfetto, [(job.model, best.problem, best.plan)])
    whole = planned_document(request, choice, *heuristic_plans(request, choice), job)
    whole["job"] = planned_job(job, request, best)
    document = with_launches(whole, partial(rank_of, request))
    if others or along:
        from phaze.evaluate.what_if import what_if

        usual = what_if(job, document, progress.step) if others else []
        document["what_if"] = usual + (
            what_if(job, document, progress.step, along) if along else []
        )
    if certificate is not None:
        from phaze.api.plan_certificate import write_certificate

        progress.step("writing the certificate")
        write_certificate(str(certificate), request, job.model, best, document)
    return planned_value(document)


def _along(over: Sequence[str]) -> "list[Axis]":
    """What ``over`` names; nothing is read where it is not given."""
    if not over:
        return []
    from phaze.evaluate.what_if import over_of

    return [over_of(text) for text in over]
