"""``phaze.plan``: the fastest split of a training job over devices that exist."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from phaze.api.against import degrees_tried, launched_job, named_model, with_given
from phaze.api.ask import budget_of, planned_value, priced
from phaze.api.given import asked as asking
from phaze.api.given import numbers, parts, shards, told
from phaze.api.graphs import Sizes, length_of, sizes_of
from phaze.api.opened import announce, with_plan
from phaze.api.renamed import renamed
from phaze.api.single import Source, write_trace
from phaze.api.values import NothingFitsError, Planned, Shown, identified, sheet
from phaze.errors import InfeasibleError, InputError
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.api.module import Model
    from phaze.evaluate.request import Asked
    from phaze.evaluate.what_if import Over as Axis
    from phaze.hardware.calibration import Basis
    from phaze.report.progress import Progress

Degrees = str | int | Sequence[int]


def _former_basis(model: Any = None, *, basis: str, **options: Any) -> dict[str, Any]:
    """Constants by the name of their basis, as they were given before."""
    return {"model": model, **options, "datasheet": basis == "datasheet"}


@renamed(
    microbatches="microbatch",
    widths="tensor",
    contexts="context",
    shards="shard",
    families="family",
    ways="context_way",
    basis=_former_basis,
)
@asking
def plan(
    model: "str | Model | None" = None,
    *,
    chip: str | None = None,
    devices: int | None = None,
    batch: int | str | None = None,
    gpt: Sizes | None = None,
    llama: Sizes | None = None,
    cluster: str | None = None,
    stack: str | None = None,
    sequence: int | str | None = None,
    microbatch: Degrees | None = None,
    tensor: Degrees | None = None,
    zero: int | None = None,
    recompute: str = "best",
    attention: Literal["eager", "fused", "best"] | None = None,
    datasheet: bool = False,
    chunks: Degrees | None = None,
    headroom: str | float = "6%",
    tokens: int | str | None = None,
    terms: str | Path | None = None,
    fresh: bool = False,
    context: Degrees | None = None,
    expert: Degrees | None = None,
    precision: str | None = None,
    shard: Degrees | None = None,
    family: str | Sequence[str] | None = None,
    context_way: str | Sequence[str] | None = None,
    imbalance: float | None = None,
    capacity: float | None = None,
    against: str | Path | None = None,
    what_if: bool = False,
    over: Sequence[str] = (),
    certificate: str | Path | None = None,
    fixed: Source | None = None,
    html: str | Path | None = None,
    perfetto: str | Path | None = None,
    tp_plan: str | Path | None = None,
    allow_code: bool = False,
) -> Planned:
    """The fastest plan of a training job on existing devices, proved optimal, as ``phaze plan``.

    Args:
        model: A built-in name, ``"own.py:build"``, a ``config.json``, or a :class:`phaze.Model`. One of ``model``,
            ``gpt`` and ``llama`` is given.
        chip: A preset or the path of a chip file.
        devices: Number of devices; with ``against`` those of the launch file.
        batch: Global batch in sequences, or ``"4M-tokens"``; with ``against`` that of the launch file.
        gpt: Sizes of a Megatron-style decoder: hidden, layers, heads, vocabulary, sequence; values or a text,
            ``"hidden=4096,layers=36,..."``.
        llama: Sizes of a Llama-style decoder.
        cluster: A preset or path; default: that of the chip.
        stack: The training framework, a preset or path; default: that of the cluster.
        sequence: Sequence length in tokens, or ``"32k"`` (k = 1024); without it the model's.
        microbatch: Sequences of a microbatch that may be chosen: a number, several, or ``"1,2,4"``; without it 1 to 16.
            So are other lists of degrees.
        tensor: Tensor-parallel degrees that may be chosen.
        zero: ZeRO stage, 0 to 3; default: the fastest.
        recompute: ``"best"``, ``"none"``, ``"selective"``, ``"full"``, or modules; optionally with ``"offload"``.
        attention: ``"eager"``, ``"fused"`` or ``"best"``; without it the stack's.
        datasheet: Use data-sheet constants only, no measured ones.
        chunks: Virtual stages (VPP, interleaved chunks) that may be chosen.
        headroom: Share of a device's memory that is left free, ``"6%"`` or ``0.06``.
        tokens: Tokens to train on, or ``"15T"``: adds days, cost, energy and carbon.
        terms: A file ``phaze.ownership/1`` with the prices for ``tokens``.
        fresh: Trace your own model again, ignoring the cache.
        context: Context-parallel degrees that may be chosen.
        expert: Expert-parallel degrees that may be chosen.
        precision: ``"bf16"``, ``"fp32"``, ``"fp8"`` (the stack's recipe) or a recipe by name; without it the stack's.
        shard: Hybrid sharding: over how many of the ranks with the same weights ZeRO may shard, 0 or ``"all"``
            for all of them; default: all.
        family: Pipeline families that may be chosen, of those that the stack runs; without it all of them.
        context_way: Context-parallel methods that may be chosen: ``"ring"``, ``"all_gather"``, ``"ulysses"``,
            ``"hierarchical"``; without it the fastest.
        imbalance: Tokens of the most loaded expert rank over the mean, at least 1.
        capacity: Token limit of an expert rank, over the mean; tokens beyond it are dropped.
        against: Your current plan, to compare with the best: a run (``phaze.run/1``) or a launch file of
            Megatron-LM, torchtitan, MaxText or DeepSpeed; ``against`` of the document.
        what_if: Plan other devices, batches, sequences and chips as well: ``what_if`` of the document.
        over: Axes to plan along as well, such as ``"devices=64..1024"`` or ``"chip=h200,b200"``: ``what_if``.
        certificate: A folder for the certificate of the plan, for :func:`phaze.verify`.
        fixed: Instead: a run (``phaze.run/1``), a file or its values, whose given plan is evaluated, whether it fits or
            not, as :func:`phaze.price` does.
        html: A file for the plan's page.
        perfetto: A file for its timeline, for ui.perfetto.dev.
        tp_plan: A tensor-parallel plan (``phaze.tensor-plan/1``) of your own model.
        allow_code: Let ``fixed`` or ``against`` name Python code as the model, which then runs.

    Returns:
        The plan: ``batch_s`` (step time in seconds), ``document`` (``phaze.plan/1``), ``frame()`` of its stages.

    Raises:
        InputError: A value that cannot be used, with what is allowed.
        InfeasibleError: No choice fits into memory, with the shortage and what would fix it.

    Examples:
        >>> import phaze
        >>> plan = phaze.plan("llama2-7b", chip="h100", devices=16, batch="1M-tokens", tensor=[1, 2])
        >>> plan["proved"], plan["tensor"] * plan["pipeline"] * plan["data"] <= 16
        (True, True)
        >>> "--tensor-model-parallel-size" in plan.export("megatron")
        True
    """
    basis: Basis = "datasheet" if datasheet else "calibrated"
    with on_standard_error() as progress:
        progress.step("phaze plan")
        budget = budget_of(tokens, terms)
        if fixed is not None:
            if over:
                raise InputError("--over", "a fixed plan is priced as it is", "leave out --fixed")
            if certificate is not None:
                raise InputError("--certificate", "a fixed plan is priced, nothing is chosen", "leave out --fixed")
            return identified(_paged(priced(fixed, basis, perfetto, budget, allow_code), html, progress))
        from phaze.evaluate.headroom import parse_headroom
        from phaze.evaluate.request import Asked
        from phaze.graph.split_context import way_named
        from phaze.units import parse_batch

        length, launched = length_of(sequence), None
        code_runs = allow_code or model is not None  # a model that is given is named by the caller
        size: Any = None if batch is None else told("--batch", batch, parse_batch)
        if against is not None:
            named = _named(model, gpt, llama, length) if (model, gpt, llama) != (None, None, None) else {}
            launched = launched_job(
                str(against), named, chip, cluster, stack, devices, size, length, precision, code_runs
            )
            run = launched.run
            chip, cluster, stack, devices = run["chip"], run["cluster"], run.get("stack"), run["devices"]
            size, length, precision = run["batch"], run.get("sequence"), run.get("precision")
            name, sizes = named_model(run)
        if chip is None or devices is None or size is None:
            raise InputError("plan", "a job needs a chip, devices and a batch", "add --chip, --devices and --batch")
        if launched is None:
            name, sizes = named_model(_named(model, gpt, llama, length))
        own = model is not None and not isinstance(model, str)
        asked = Asked(
            model=name if own else with_plan(name, None if tp_plan is None else str(tp_plan)),
            sizes=sizes,
            chip=chip,
            devices=devices,
            batch=size,
            cluster=cluster,
            stack=stack,
            sequence=length,
            microbatches=numbers("--microbatch", microbatch),
            widths=numbers("--tensor", tensor),
            zero=zero,
            recompute=recompute,
            attention=attention,
            basis=basis,
            chunks=numbers("--chunks", chunks),
            headroom=parse_headroom(str(headroom), "--headroom"),
            budget=budget,
            fresh=fresh,
            allow_code=code_runs,
            supply=model if own else None,  # type: ignore[arg-type]
            contexts=numbers("--context", context) or degrees_tried(launched, "context"),
            expert=numbers("--expert", expert) or degrees_tried(launched, "expert"),
            precision=precision,
            shards=shards(shard),
            families=None if family is None else tuple(parts(family)),
            ways=None if context_way is None else tuple(way_named(way) for way in parts(context_way)),
            imbalance=imbalance,
            capacity=capacity,
        )
        folder = None if certificate is None else Path(certificate)
        try:
            answer = planned_answer(asked, perfetto, progress, what_if, over, folder)
        except InfeasibleError:
            if html is not None:
                progress.say(f"Nothing fits, so there is no plan to make a page of: {html} was not written.\n")
            raise
        if launched is not None:
            answer = with_given(answer, launched, basis, progress)
        return identified(_paged(answer, html, progress), folder)


def _named(model: "str | Model | None", gpt: Sizes | None, llama: Sizes | None, sequence: int | None) -> dict[str, Any]:
    """The one model that was given, as a run states it."""
    families = {key: value for key, value in (("gpt", gpt), ("llama", llama)) if value is not None}
    if (model is not None) + len(families) != 1:
        raise InputError("plan", "there must be one model", "give one of --model, --gpt, --llama")
    if model is not None:
        return {"model": model if isinstance(model, str) else model.name}
    return {key: sizes_of(key, value, sequence) for key, value in families.items()}


def _paged(value: Planned, html: str | Path | None, progress: "Progress") -> Planned:
    """The value, its page written if one was asked for."""
    if html is not None:
        progress.step("writing the page")
        value.page(html)
    return value


def planned_answer(
    asked: "Asked",
    perfetto: str | Path | None,
    progress: "Progress",
    others: bool,
    over: Sequence[str],
    certificate: Path | None,
) -> Planned:
    """The plan, with other jobs and a certificate where they are wanted; the shortage is raised."""
    from phaze.evaluate.answer import planned_document, shortage_document
    from phaze.evaluate.job_file import asked_job
    from phaze.evaluate.levers import sought_levers
    from phaze.evaluate.plan_order import planned, rank_of
    from phaze.evaluate.request import request_of
    from phaze.evaluate.usual_plans import usual_plans
    from phaze.export.launch_files import with_launches
    from phaze.graph.supply.tracing import OPENING

    along = _along(over)
    progress.step(OPENING)
    request = request_of(asked, progress.counting("tracing"))
    progress.clear()
    if asked.sizes is None and asked.supply is None:
        announce(asked.model, asked.sequence)
    progress.count(0, 1, "bounding choices of tensor, context and expert degree, microbatch")
    found = planned(request, lambda done, total: progress.count(done, total, progress.what))
    progress.step("comparing plans")
    best = found.best
    if best.plan is None:
        progress.step("looking for what would make it fit")
        short = sought_levers(request, found.candidates)
        title = f"{asked.model} on {asked.devices:,} x {asked.chip}, {request.setting.cluster.label}"
        document = shortage_document(short, request.setting)
        shown = identified(Shown(document, sheet("phaze.report.plan_sheet", "show_shortage", title, short, True)))
        raise NothingFitsError(document["shortage"]["sentence"], document, shown.draw)
    if perfetto is not None:
        write_trace(perfetto, [(asked.model, best.problem, best.plan)])
    whole = planned_document(request, found, *usual_plans(request, found), asked)
    whole["job"] = asked_job(asked, request, best)
    document = with_launches(whole, partial(rank_of, request))
    if others or along:
        from phaze.evaluate.what_if import what_if

        usual = what_if(asked, document, progress.step) if others else []
        document["what_if"] = usual + (what_if(asked, document, progress.step, along) if along else [])
    if certificate is not None:
        from phaze.api.plan_certificate import write_certificate

        progress.step("writing the certificate")
        write_certificate(str(certificate), request, asked.model, best, document)
    return planned_value(document, request.setting.chip.hbm.size_bytes)


def _along(over: Sequence[str]) -> "list[Axis]":
    """What ``over`` names; nothing is read where it is not given."""
    if not over:
        return []
    from phaze.evaluate.what_if import over_of

    return [over_of(text) for text in over]
