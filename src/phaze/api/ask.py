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
from phaze.documents import notation_of, parse
from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.answer import fixed_document, planned_document, shortage_document
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.evaluate.job_file import asked_job, reopened, run_job
from phaze.evaluate.levers import sought_levers
from phaze.evaluate.plan import best_first, candidates, usual_plans
from phaze.evaluate.plan_file import require_shown_plan
from phaze.evaluate.request import Asked, AskedAttention, request_of
from phaze.evaluate.run_file import job_of as run_job_of
from phaze.evaluate.run_file import read_run, with_tensor_plan
from phaze.evaluate.training_run import Budget
from phaze.export.launch_files import with_launches
from phaze.export.opened import read_plan
from phaze.files import read_text
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
) -> Planned:
    """The fastest split of a job over devices that exist.

    ``batch`` may be ``"4M-tokens"``, ``sequence`` ``"32k"``, ``tokens`` ``"15T"``: what training on them takes, on the
    ``terms`` of a file. ``fresh`` traces a model of your own again; ``model`` may be a :class:`phaze.Model` too.
    ``contexts`` and ``expert``: how many ranks may share a sequence, and share out the experts of a mixture.
    ``precision``: bf16, fp8 (the stack's recipe) or a recipe by name; without it the stack's.
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
    )  # fmt: skip
    with on_standard_error() as progress:
        progress.step("opening the model")
        request = request_of(asked, progress.counting("tracing"))
        progress.step("planning choices of tensor, context and expert degree, microbatch and sequence parallelism")
        found = best_first(request, list(candidates(request)))
    if found[0].plan is None:
        document = shortage_document(sought_levers(request, found), request.setting)
        raise InfeasibleError(document["shortage"]["sentence"], document)
    document = {
        **planned_document(request, found, *usual_plans(request, found), asked),
        "job": asked_job(asked, request, found[0]),
    }
    return _planned(with_launches(document), request.setting.chip.hbm.size_bytes)


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
    """What a given plan takes (``phaze.run/1``), fitting or not."""
    raw, where = (with_tensor_plan(dict(run)), "run") if isinstance(run, Mapping) else read_run(str(run))
    job = run_job_of(raw, where)
    problem, found = fixed_plan(job, basis)
    document = {**fixed_document(job, problem, found, basis), "job": run_job(raw, job, basis)}
    return _planned(document, job.chip.hbm.size_bytes)


def place(profile: Source) -> Placed:
    """The fastest split of measured layers (``phaze.profile/1``)."""
    raw, where = _raw(profile, "profile")
    problem = problem_of(dict(raw), where)
    found = place_problem(problem)
    if isinstance(found, Shortage):
        raise InfeasibleError(found.sentence, dict(document_of(found)))
    return Placed(document_of(found), lambda console: show_answer(console, where, problem, found))


def chip(name: str, **changes: Any) -> Sheeted:
    """A chip by preset name or path, with its area, power and cost.

    ``changes`` replace fields of a chip of cores (``tensor_cores=16``) and keys of the file of a chip of clusters, a
    table's one by one (``clock="1.5 GHz", clusters={"count": 66}``)."""
    file = read_chip(name)
    if isinstance(file, ChipFile):
        changes = {"process": None, **changes} if "technology" in changes else changes
        device = replace(chip_of_file(file), **changes)
    else:
        device = chip_in(changed_file(file, changes, name))
    found = sheet_of(device, load_terms())
    return Sheeted(sheet_document(found), lambda console: show_sheet(console, found, None, {}), found.chip)


def load(path: str | Path) -> Searched | Planned:
    """A finished run from its folder, or a plan from what ``phaze plan ... --json`` printed."""
    if Path(path).is_dir():
        return searched(read_result(Path(path)), Path(path))
    document, where = read_plan(str(path))
    require_shown_plan(document, where)
    return _planned(document, reopened(document, where).setting.chip.hbm.size_bytes)
