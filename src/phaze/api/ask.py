"""The commands as functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from phaze.api.module import Model
from phaze.api.values import (
    Placed,
    Planned,
    Searched,
    Sheeted,
    searched,
)
from phaze.cli.plan_certificate import write_certificate
from phaze.documents import notation_of, parse
from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.answer import fixed_document, planned_document, shortage_document
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.evaluate.job_file import asked_job, reopened, run_job
from phaze.evaluate.levers import sought_levers
from phaze.evaluate.plan_file import require_shown_plan
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Asked, AskedAttention, request_of
from phaze.evaluate.run_file import job_of as run_job_of
from phaze.evaluate.run_file import read_run, with_tensor_plan
from phaze.evaluate.training_run import Budget
from phaze.evaluate.usual_plans import usual_plans
from phaze.evaluate.what_if import over_of, what_if
from phaze.export.launch_files import with_launches
from phaze.export.opened import read_plan
from phaze.files import read_text
from phaze.graph.split_context import way_named
from phaze.hardware.calibration import Basis
from phaze.hardware.files import ChipFile
from phaze.hardware.library import chip_of_file
from phaze.hardware.ownership import load_run_terms, load_terms
from phaze.hardware.sheet import sheet_document, sheet_of
from phaze.hardware.silicon.design import chip_in
from phaze.hardware.silicon.files import changed_file, read_chip
from phaze.placement.answer import document_of
from phaze.placement.answer import place as place_problem
from phaze.placement.problem import RecomputeChoice
from phaze.placement.profile import problem_of
from phaze.placement.shortage import Shortage
from phaze.report.chip_sheet import show_sheet
from phaze.report.plan_sheet import show_answer
from phaze.report.progress import on_standard_error
from phaze.report.run_sheet import show_alternatives, show_run
from phaze.search.result_file import read_result
from phaze.units import parse_batch, parse_length, parse_tokens

Source = str | Path | Mapping[str, Any]
T = TypeVar("T")


def _raw(source: Source, name: str) -> tuple[Mapping[str, Any], str]:
    """Plain values of a file or of a mapping, and what to call them."""
    if isinstance(source, Mapping):
        return source, name
    text, where = read_text(str(source))
    return parse(text, notation_of(str(source), text), where), where


def _planned(document: Mapping[str, Any], hbm_bytes: int) -> Planned:
    def draw(console: Any) -> None:
        show_run(console, document, hbm_bytes)
        if document.get("alternatives"):
            show_alternatives(console, document)

    return Planned(document, draw)


def plan(
    model: str | Model | None = None,
    *,
    chip: str,
    devices: int,
    batch: int | str,
    gpt: Mapping[str, Any] | None = None,
    llama: Mapping[str, Any] | None = None,
    cluster: str | None = None,
    stack: str | None = None,
    sequence: int | str | None = None,
    microbatches: Sequence[int] | None = None,
    widths: Sequence[int] | None = None,
    zero: int | None = None,
    recompute: RecomputeChoice = "best",
    attention: AskedAttention | None = None,
    basis: Basis = "calibrated",
    chunks: Sequence[int] | None = None,
    headroom: float = USUAL_HEADROOM,
    tokens: int | str | None = None,
    terms: str | None = None,
    fresh: bool = False,
    contexts: Sequence[int] | None = None,
    expert: Sequence[int] | None = None,
    precision: str | None = None,
    shards: Sequence[int] | None = None,
    families: Sequence[str] | None = None,
    ways: Sequence[str] | None = None,
    imbalance: float | None = None,
    capacity: float | None = None,
    over: Sequence[str] = (),
    certificate: str | Path | None = None,
) -> Planned:
    """The fastest split of a training job over devices that exist, proved, as ``phaze plan``.

    Args:
        model: A built-in name, ``"own.py:build"``, a ``config.json``, or a :class:`phaze.Model`. One of ``model``,
            ``gpt`` and ``llama`` is given.
        chip: A preset or the path of a chip file.
        devices: How many devices there are.
        batch: Sequences of a global batch, or ``"4M-tokens"``.
        gpt: Sizes of a Megatron-style decoder: hidden, layers, heads, vocabulary, sequence.
        llama: Sizes of a Llama-style decoder.
        cluster: A preset or path; without it the usual cluster of the chip.
        stack: The training framework, a preset or path; without it the usual one of the chip.
        sequence: Tokens of a sequence, or ``"32k"``; without it the model's.
        microbatches: Sequences of a microbatch that may be chosen.
        widths: Tensor-parallel degrees that may be chosen.
        zero: The stage of ZeRO, 0 to 3; without it the best is chosen.
        recompute: ``"best"``, ``"none"``, ``"selective"``, ``"full"``, or modules; with ``"offload"`` beside it.
        attention: ``"eager"``, ``"fused"`` or ``"best"``; without it the stack's.
        basis: ``"calibrated"`` (constants fitted on measurements where there are any) or ``"datasheet"``.
        chunks: Model chunks of a stage (interleaving) that may be chosen.
        headroom: Share of a device's memory that is left free.
        tokens: Tokens to train on, or ``"15T"``: adds days, cost, energy and carbon.
        terms: A file ``phaze.ownership/1`` with the prices for ``tokens``.
        fresh: Trace a model of your own again, whatever the cache holds.
        contexts: Context-parallel degrees that may be chosen.
        expert: Expert-parallel degrees that may be chosen.
        precision: ``"bf16"``, ``"fp32"``, ``"fp8"`` (the stack's recipe) or a recipe by name; without it the stack's.
        shards: Hybrid sharding: how many of the ranks with the same weights may share out ZeRO's state, 0 for
            all of them; without it all.
        families: Pipeline families that may be chosen, of those that the stack runs; without it all of them.
        ways: How ranks may share a sequence: ``"ring"``, ``"all_gather"``, ``"ulysses"``,
            ``"hierarchical"``; without it the fastest.
        imbalance: Tokens of the fullest rank of experts over the mean, from 1 on.
        capacity: Tokens that it takes at most, over the mean; beyond it they are dropped.
        over: Axes to plan along as well, such as ``"devices=64..1024"`` or ``"chip=h200,b200"``: ``what_if``.
        certificate: A folder for what proves the plan, which :func:`phaze.verify` checks.

    Returns:
        The plan: ``batch_s`` (seconds of a global batch), ``document`` (``phaze.plan/1``), ``frame()`` of its stages.

    Raises:
        InputError: A value that cannot be used, with what is allowed.
        InfeasibleError: No choice fits into memory, with the shortage and what would fix it.

    Examples:
        >>> import phaze
        >>> plan = phaze.plan("llama2-7b", chip="h100", devices=16, batch="1M-tokens", widths=[1, 2])
        >>> plan["proved"], plan["tensor"] * plan["pipeline"] * plan["data"] <= 16
        (True, True)
        >>> "--tensor-model-parallel-size" in plan.export("megatron")
        True
    """
    given = [(name, sizes) for name, sizes in (("gpt", gpt), ("llama", llama)) if sizes is not None]
    if (model is not None) + len(given) != 1:
        raise InputError("plan", "there must be one model", "give one of model, gpt, llama")
    name, sizes = (model, None) if model is not None else given[0]
    asked = Asked(
        name.name if isinstance(name, Model) else str(name), sizes, chip, devices,
        _told("batch", batch, parse_batch), cluster, stack,
        None if sequence is None else _told("sequence", sequence, parse_length),
        None if microbatches is None else tuple(microbatches), None if widths is None else tuple(widths),
        zero, recompute, attention, basis, None if chunks is None else tuple(chunks), headroom,
        _budget(tokens, terms), fresh, model if isinstance(model, Model) else None,
        None if contexts is None else tuple(contexts), None if expert is None else tuple(expert), precision,
        None if shards is None else tuple(shards),
        None if families is None else tuple(families),
        None if ways is None else tuple(way_named(way) for way in ways), imbalance, capacity,
    )  # fmt: skip
    with on_standard_error() as progress:
        progress.step("opening the model")
        request = request_of(asked, progress.counting("tracing"))
        progress.step("planning choices of tensor, context and expert degree, microbatch and sequence parallelism")
        found = planned(request)
    if found.best.plan is None:
        document = shortage_document(sought_levers(request, found.candidates), request.setting)
        raise InfeasibleError(document["shortage"]["sentence"], document)
    document = {
        **planned_document(request, found, *usual_plans(request, found), asked),
        "job": asked_job(asked, request, found.best),
    }
    document = with_launches(document)
    if over:
        document["what_if"] = what_if(asked, document, lambda _: None, [over_of(text) for text in over])
    if certificate is not None:
        write_certificate(str(certificate), request, asked.model, found.best, document)
    return _planned(document, request.setting.chip.hbm.size_bytes)


def _told(name: str, value: int | str, parse: Callable[[str], T]) -> int | T:
    """A number as it is, a text as ``parse`` has it."""
    try:
        return parse(value) if isinstance(value, str) else value
    except ValueError as fault:
        raise InputError(name, f"'{value}' cannot be used", str(fault)) from None


def _budget(tokens: int | str | None, terms: str | None) -> Budget | None:
    if tokens is None:
        if terms is not None:
            raise InputError("terms", "there is nothing to price", "add tokens='15T'")
        return None
    return Budget(_told("tokens", tokens, parse_tokens), load_run_terms(terms or "default"))


def price(run: Source, basis: Basis = "calibrated") -> Planned:
    """What a given plan takes, whether it fits or not, as ``phaze plan --fixed``.

    Args:
        run: A run (``phaze.run/1``): a file, or its values.
        basis: ``"calibrated"`` or ``"datasheet"`` constants.

    Returns:
        The plan priced: seconds, memory of every stage in bytes, and ``shortage`` where it does not fit.

    Examples:
        >>> import phaze
        >>> gpt = {"hidden": 1024, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 512}
        >>> split = {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2}
        >>> run = {"schema": "phaze.run/1", "gpt": gpt, "chip": "a100-80gb", "cluster": "selene"}
        >>> priced = phaze.price({**run, "devices": 8, "batch": 32, "plan": split})
        >>> priced["feasible"], priced.batch_s > 0
        (True, True)
    """
    raw, where = (with_tensor_plan(dict(run)), "run") if isinstance(run, Mapping) else read_run(str(run))
    job = run_job_of(raw, where)
    problem, found = fixed_plan(job, basis)
    document = {**fixed_document(job, problem, found, basis), "job": run_job(raw, job, basis)}
    return _planned(document, job.chip.hbm.size_bytes)


def place(profile: Source) -> Placed:
    """The fastest split of measured layers over devices, proved, as ``phaze place``.

    Args:
        profile: Layers and devices (``phaze.profile/1``): a file, or its values.

    Returns:
        The placement: ``batch_s`` in seconds, and its stages.

    Raises:
        InfeasibleError: No split fits into memory.

    Examples:
        >>> import phaze
        >>> layer = {"forward_s": 1.0, "backward_s": 2.0, "parameter_bytes": 8, "activation_bytes": 4, "sharded": False}
        >>> width = {"layers": [{"id": 0, **layer}, {"id": 1, **layer}], "edges": [{"from": 0, "to": 1, "bytes": 1}]}
        >>> machine = {"devices": 2, "hbm_bytes": 1000, "link_bytes_per_s": 1e9, "microbatches": 4}
        >>> values = {"schema": "phaze.profile/1", "rules": "icml24", "optimizer": "adam", "recompute": False}
        >>> placed = phaze.place({**values, **machine, "widths": {"1": width}})
        >>> len(placed["stages"]), placed.batch_s > 0
        (1, True)
    """
    raw, where = _raw(profile, "profile")
    problem = problem_of(dict(raw), where)
    found = place_problem(problem)
    if isinstance(found, Shortage):
        raise InfeasibleError(found.sentence, dict(document_of(found)))
    return Placed(document_of(found), lambda console: show_answer(console, where, problem, found))


def chip(name: str, **changes: Any) -> Sheeted:
    """A chip with its area, power and cost, as ``phaze chips NAME``.

    Args:
        name: A preset or the path of a chip file.
        changes: Fields of a chip of cores to replace (``tensor_cores=16``), or keys of the file of a chip of clusters,
            a table's one by one (``clock="1.5 GHz", clusters={"count": 66}``).

    Returns:
        Its sheet; areas in mm2, powers in W, costs in USD. ``chip`` is the chip itself.

    Examples:
        >>> import phaze
        >>> slow = phaze.chip("h100", clock="1.2 GHz")
        >>> slow["peak_flops"] < phaze.chip("h100")["peak_flops"]
        True
    """
    file = read_chip(name)
    if isinstance(file, ChipFile):
        changes = {"process": None, **changes} if "technology" in changes else changes
        device = replace(chip_of_file(file), **changes)
    else:
        device = chip_in(changed_file(file, changes, name))
    found = sheet_of(device, load_terms())
    return Sheeted(sheet_document(found), lambda console: show_sheet(console, found, None, {}), found.chip)


def load(path: str | Path) -> Searched | Planned:
    """A finished search from its folder, or a plan from what ``phaze plan ... --json`` printed.

    Args:
        path: The folder of a run, or the file of a plan.

    Returns:
        What :func:`phaze.search` or :func:`plan` returned.

    Examples:
        >>> import json, pathlib, tempfile
        >>> import phaze
        >>> plan = phaze.plan("bert-large", chip="a100-80gb", devices=8, batch=64, widths=[1], microbatches=[4])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
        >>> _ = path.write_text(json.dumps(plan.document))
        >>> phaze.load(path).batch_s == plan.batch_s
        True
    """
    if Path(path).is_dir():
        return searched(read_result(Path(path)), Path(path))
    document, where = read_plan(str(path))
    require_shown_plan(document, where)
    return _planned(document, reopened(document, where).setting.chip.hbm.size_bytes)
