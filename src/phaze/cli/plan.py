"""``phaze plan``: how to split a training job over devices, or what a given split takes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from phaze.cli.against import degrees_tried
from phaze.cli.answer import Answer, answering, identified, told
from phaze.cli.place import Perfetto, write_trace
from phaze.cli.plan_options import (
    Against,
    Attention,
    Batch,
    Capacity,
    Certificate,
    ChipName,
    Chunks,
    ClusterName,
    Context,
    ContextWay,
    Datasheet,
    Devices,
    Expert,
    Family,
    Fixed,
    Fresh,
    Gpt,
    Headroom,
    Html,
    Imbalance,
    Llama,
    Microbatch,
    ModelName,
    Over,
    Precision,
    Recompute,
    Sequence,
    Shard,
    StackName,
    Tensor,
    Terms,
    Tokens,
    WhatIf,
    Zero,
    shards_of,
)
from phaze.cli.tensor_plan import TpPlan, announce, with_plan
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.evaluate.request import Asked, AskedAttention
    from phaze.evaluate.training_run import Budget
    from phaze.evaluate.what_if import Over as Axis
    from phaze.hardware.calibration import Basis
    from phaze.report.progress import Progress


@answering
def plan(
    model: ModelName = None,
    gpt: Gpt = None,
    llama: Llama = None,
    chip: ChipName = None,
    devices: Devices = None,
    batch: Batch = None,
    cluster: ClusterName = None,
    stack: StackName = None,
    sequence: Sequence = None,
    microbatch: Microbatch = None,
    tensor: Tensor = None,
    expert: Expert = None,
    context: Context = None,
    context_way: ContextWay = None,
    imbalance: Imbalance = None,
    capacity: Capacity = None,
    chunks: Chunks = None,
    family: Family = None,
    zero: Zero = None,
    shard: Shard = None,
    recompute: Recompute = "best",
    attention: Attention = None,
    precision: Precision = None,
    headroom: Headroom = "6%",
    tokens: Tokens = None,
    terms: Terms = None,
    datasheet: Datasheet = False,
    fresh: Fresh = False,
    fixed: Fixed = None,
    against: Against = None,
    what_if: WhatIf = False,
    over: Over = None,
    html: Html = None,
    certificate: Certificate = None,
    perfetto: Perfetto = None,
    tp_plan: TpPlan = None,
    *,
    progress: "Progress",
) -> Answer:
    """Plan a training job on given devices: TP, PP, DP, CP, EP, VPP, ZeRO, microbatch, recompute. Will it fit?

    Examples: phaze plan --model llama2-7b --chip a100-80gb --devices 64 --batch 4M-tokens --tokens 2T ·
    phaze plan --model my_model.py:build --chip h100 --devices 64 --batch 512 · phaze plan --fixed run.json ·
    phaze plan --model mixtral-8x7b --chip h100 --devices 64 --batch 512 --expert 1,8 --context 1,2 ·
    phaze plan --model llama3-8b --chip h100 --devices 64 --batch 256 --stack torchtitan-eager --family 1f1b,zb-v ·
    phaze plan --against launch.sh --model llama3-8b --chip h100 --devices 64 ·
    phaze plan --model llama3-8b --chip h100 --devices 64 --batch 512 --over devices=64..256 --over chip=h200,b200 ·
    phaze plan --model llama2-7b --chip a100-80gb --devices 64 --batch 512 --certificate runs/proof
    """
    basis: Basis = "datasheet" if datasheet else "calibrated"
    budget = budget_of(tokens, terms)
    if fixed is not None:
        if over:
            raise InputError("--over", "a fixed plan is priced as it is", "leave out --fixed")
        if certificate is not None:
            raise InputError("--certificate", "a fixed plan is priced, nothing is chosen", "leave out --fixed")
        from phaze.cli.plan_fixed import fixed_answer

        return identified(_paged(fixed_answer(fixed, basis, perfetto, budget), html, progress))
    from phaze.evaluate.headroom import parse_headroom
    from phaze.evaluate.request import Asked
    from phaze.graph.split_context import way_named
    from phaze.units import parse_batch, parse_length

    length = None if sequence is None else told("--sequence", sequence, parse_length)
    launched = None
    if against is not None:
        from phaze.cli.against import launched_job, named_model

        named = {"model": model} if model is not None else _family(gpt, llama, length)
        told_batch = None if batch is None else told("--batch", batch, parse_batch)
        launched = launched_job(against, named, chip, cluster, stack, devices, told_batch, length, precision)
        chip, cluster, stack = launched.run["chip"], launched.run["cluster"], launched.run.get("stack")
        devices, batch = launched.run["devices"], str(launched.run["batch"])
        name, sizes = named_model(launched.run)
        length, precision = launched.run.get("sequence"), launched.run.get("precision")
    if chip is None or devices is None or batch is None:
        raise InputError("plan", "a job needs a chip, devices and a batch", "add --chip, --devices and --batch")
    if launched is None:
        name, sizes = _model(model, gpt, llama, length)
    asked = Asked(
        model=with_plan(name, tp_plan),
        sizes=sizes,
        chip=chip,
        devices=devices,
        batch=told("--batch", batch, parse_batch),
        cluster=cluster,
        stack=stack,
        sequence=length,
        microbatches=_numbers("--microbatch", microbatch),
        widths=_numbers("--tensor", tensor),
        zero=zero,
        recompute=recompute,
        attention=cast("AskedAttention | None", attention),
        basis=basis,
        chunks=_numbers("--chunks", chunks),
        headroom=parse_headroom(headroom, "--headroom"),
        budget=budget,
        fresh=fresh,
        contexts=_numbers("--context", context) or degrees_tried(launched, "context"),
        expert=_numbers("--expert", expert) or degrees_tried(launched, "expert"),
        precision=precision,
        shards=shards_of(shard),
        families=None if family is None else tuple(name.strip() for name in family.split(",")),
        ways=None if context_way is None else tuple(way_named(own.strip()) for own in context_way.split(",")),
        imbalance=imbalance,
        capacity=capacity,
    )
    answer = planned_answer(asked, perfetto, progress, what_if, over or [], certificate)
    if launched is not None:
        from phaze.cli.against import with_given

        answer = with_given(answer, launched, basis, progress)
    folder = None if certificate is None or answer.exit_code else Path(certificate)
    return identified(_paged(answer, html, progress), folder)


def _family(gpt: str | None, llama: str | None, sequence: int | None) -> dict[str, Any]:
    """A family by its sizes as a run states it; nothing if none was given."""
    if gpt is None and llama is None:
        return {}
    family, sizes = _model(None, gpt, llama, sequence)
    return {family: sizes}


def budget_of(tokens: str | None, terms: str | None) -> "Budget | None":
    """Tokens to train on and their terms, if any were given."""
    if tokens is None:
        if terms is not None:
            raise InputError("--terms", "there is nothing to price", "add --tokens 15T")
        return None
    from phaze.evaluate.training_run import Budget
    from phaze.hardware.ownership import load_run_terms
    from phaze.units import parse_tokens

    return Budget(told("--tokens", tokens, parse_tokens), load_run_terms(terms or "default"))


def _paged(answer: Answer, html: str | None, progress: "Progress") -> Answer:
    """The answer, its page written if one was asked for; where nothing fits there is none, and a line says so."""
    document = answer.documents[0]
    if html is not None and "batch_s" not in document:
        progress.say(f"Nothing fits, so there is no plan to make a page of: {html} was not written.\n")
    elif html is not None:
        from phaze.export.launch_files import launch_texts
        from phaze.files import folder_for, write_whole
        from phaze.report.page.plan_page import plan_page

        progress.step("writing the page")
        folder_for(Path(html).parent)
        write_whole(Path(html), plan_page(document, "plan", launch_texts(document, "plan")))
    return answer


def _model(
    model: str | None, gpt: str | None, llama: str | None, sequence: int | None
) -> tuple[str, dict[str, Any] | None]:
    given = [(family, text) for family, text in (("gpt", gpt), ("llama", llama)) if text is not None]
    if (model is not None) + len(given) != 1:
        raise InputError("plan", "there must be one model", "give one of --model, --gpt, --llama")
    if model is not None:
        return model, None
    from phaze.graph.sources import parse_sizes

    family, text = given[0]
    return family, parse_sizes(text, family, sequence)


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        numbers = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise InputError(option, f"'{text}' is no list of numbers", "give whole numbers such as 1,2,4") from None
    if not numbers or numbers[0] < 1:
        raise InputError(option, f"'{text}' is out of range", "give numbers above 0")
    return numbers


def _along(over: list[str]) -> "list[Axis]":
    """What ``--over`` names; nothing is read where it is not given."""
    if not over:
        return []
    from phaze.evaluate.what_if import over_of

    return [over_of(text) for text in over]


def planned_answer(
    asked: "Asked", perfetto: str | None, progress: "Progress", others: bool, over: list[str], certificate: str | None
) -> Answer:
    """What the command and the function answer: the plan, with other jobs and a certificate where they are wanted, or
    the shortage."""
    from phaze.evaluate.answer import planned_document, shortage_document
    from phaze.evaluate.job_file import asked_job
    from phaze.evaluate.levers import sought_levers
    from phaze.evaluate.plan_order import planned
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
    hbm_bytes = request.setting.chip.hbm.size_bytes
    best = found.best
    if best.plan is None:
        progress.step("looking for what would make it fit")
        short = sought_levers(request, found.candidates)

        def explain(console: "Console") -> None:
            from phaze.report.plan_sheet import show_shortage

            where = f"{asked.devices:,} x {asked.chip}, {request.setting.cluster.label}"
            show_shortage(console, f"{asked.model} on {where}", short, tried=True)

        return Answer((shortage_document(short, request.setting),), explain, 3)
    if perfetto is not None:
        write_trace(perfetto, [(asked.model, best.problem, best.plan)])
    document = with_launches(
        {
            **planned_document(request, found, *usual_plans(request, found), asked),
            "job": asked_job(asked, request, best),
        }
    )
    if others or along:
        from phaze.evaluate.what_if import what_if

        usual = what_if(asked, document, progress.step) if others else []
        document["what_if"] = usual + (what_if(asked, document, progress.step, along) if along else [])
    if certificate is not None:
        from phaze.api.plan_certificate import write_certificate

        progress.step("writing the certificate")
        write_certificate(certificate, request, asked.model, best, document)

    def show(console: "Console") -> None:
        from phaze.report.alternatives_sheet import show_alternatives
        from phaze.report.run_sheet import show_run, show_what_if

        show_run(console, document, hbm_bytes)
        show_alternatives(console, document)
        show_what_if(console, document)

    return Answer((document,), show)
