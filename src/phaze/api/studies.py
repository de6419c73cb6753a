"""The commands that search a study, as functions: search and front."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from phaze.api.given import asked, shards
from phaze.api.opened import asked_study, settled, study_settings, traced
from phaze.api.renamed import renamed
from phaze.api.run_values import Fronted, Searched, searched, write_page
from phaze.api.values import identified, sheet
from phaze.report.progress import on_standard_error

ENDED = "This run had ended: its folder has the answer, and nothing was searched again; phaze verify checks it."
PAGE = "report.html"

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from phaze.api.opened import Models, Study
    from phaze.front.run import FrontProgress
    from phaze.report.progress import Progress


def folder_of(out: str | Path | None, name: str) -> "tuple[Path, TemporaryDirectory[str] | None]":
    """The folder of an answer, ``{name}`` in it being the study's; without ``out`` one that goes with the value."""
    if out is not None:
        return Path(str(out).replace("{name}", name)), None
    from tempfile import TemporaryDirectory

    kept = TemporaryDirectory(prefix="phaze-")
    return Path(kept.name) / name, kept


def _stopped(limit_s: float, loaded_s: float, folder: Path) -> str:
    """What a search says whose time was up."""
    said = [f"Stopped after {limit_s:g} s: the same command resumes, phaze report {folder} makes the page."]
    if loaded_s > limit_s:
        said.insert(0, f"Loading the models alone took {loaded_s:.1f} s, longer than the limit.")
    return " ".join(said)


def _ended(out: str | Path, raw: Mapping[str, Any], page: bool) -> Searched | None:
    """The answer of a run that has ended with a study of bundled names alone, without building its question."""
    from phaze.hardware.write import toml_text
    from phaze.search.finished import finished_as, names_files

    folder = folder_of(out, str(raw.get("name")))[0]
    if names_files(raw) or (page and not (folder / PAGE).is_file()):
        return None
    known = finished_as(folder, toml_text(raw))
    return None if known is None else searched(known, folder, None, ENDED)


@renamed(time_s="time")
@asked
def search(
    study: "Study | None" = None,
    *,
    model: "Models | None" = None,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    time: float | None = None,
    gap: float | None = None,
    rules: str | None = None,
    attention: str | None = None,
    precision: str | None = None,
    shard: str | int | Sequence[int] | None = None,
    headroom: str | float | None = None,
    devices: int | None = None,
    batch: int | str | None = None,
    sequence: int | str | None = None,
    tokens: int | str | None = None,
    terms: str | None = None,
    tp_plan: str | Path | None = None,
    fresh: bool = False,
    allow_code: bool = False,
    page: bool = False,
) -> Searched:
    """The best chip and plan together, with a certificate, as ``phaze search``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also be among a study's values.
        model: Instead of a study, a model or several of them.
        out: The folder, ``{name}`` in it being the study's name; without it a temporary one, removed with the value.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        workers: Worker processes; 0: one for each core.
        engine: ``"local"``, processes of this machine, or ``"ray"``, a Ray cluster.
        address: With ``"ray"``: ``"auto"`` (the cluster of this machine), ``"local"``, or ``"HOST:PORT"``.
        time: Time limit in seconds; then the best so far is the answer, with its proved gap.
        gap: Relative gap to prove, 0.001 for 0.1 %; default: the study's.
        rules: Set of defaults, ``"cluster"`` or ``"icml24"``; default: the study's.
        attention: ``"eager"``, ``"fused"`` or ``"best"``; without it as the stack runs it.
        precision: ``"bf16"``, ``"fp8"`` or a recipe that stack and space have; without it the stack's.
        shard: Hybrid sharding: over how many of the ranks with the same weights state is sharded, 0 or ``"all"``: all.
        headroom: Share of memory that is left free, ``0.06`` or ``"6%"``.
        devices: Number of devices.
        batch: Global batch in sequences, or ``"4M-tokens"``.
        sequence: Sequence length in tokens, or ``"32k"`` (k = 1024).
        tokens: Tokens to train on, or ``"15T"``: adds days, cost, energy and carbon.
        terms: A file ``phaze.ownership/1`` with the prices for ``tokens``.
        tp_plan: A tensor-parallel plan (``phaze.tensor-plan/1``) of your own model.
        fresh: Trace your own models again, ignoring the cache.
        allow_code: Let the study name Python code as a model, which then runs.
        page: Write its page, report.html, into the folder too.

    Returns:
        The run: ``chip``, ``models``, ``gap``, ``frame()`` of every chip, ``page()``.

    Raises:
        InfeasibleError: No chip of the space fits the models.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> run = phaze.search(study, settings=["search.gap=0.01"])
        >>> run.gap <= 0.01, run.chip["tensor_cores"] > 0
        (True, True)
    """
    chosen = study_settings(
        settings, rules=rules, gap=gap, attention=attention, precision=precision, shard=shards(shard),
        headroom=headroom, devices=devices, batch=batch, sequence=sequence, tokens=tokens, terms=terms,
    )  # fmt: skip
    with on_standard_error() as progress:
        progress.step("phaze search")
        began = monotonic()
        from phaze.hardware.write import toml_text

        tensor_plan = None if tp_plan is None else str(tp_plan)
        asked_for, origin = asked_study(study, model, chosen, tensor_plan, allow_code)
        ended = None if out is None else _ended(out, asked_for, page)
        if ended is not None:
            return ended
        from phaze.search.finished import finished_in
        from phaze.study.load import question_of, study_of

        raw = traced(asked_for, origin, fresh, progress)
        progress.step("loading the models' graphs")
        checked = study_of(raw, origin.where)
        folder, kept = folder_of(out, checked.name)
        question = question_of(checked, reader=origin.reader)
        papers = question.papers(toml_text(raw))
        known = finished_in(folder, papers, question.job.digest)
        if known is not None and (not page or (folder / PAGE).is_file()):
            return searched(known, folder, kept, ENDED)
        loaded_s = monotonic() - began
        from dataclasses import replace

        from phaze.report.search_sheet import shown_on
        from phaze.search.deadline import left_of
        from phaze.search.engines import engine_of
        from phaze.search.folder import run_in
        from phaze.search.progress_file import ProgressFile, both

        job = replace(question.job, limit_s=left_of(time, began))
        progress.step("bounding every chip of the space")
        with engine_of(engine, address, workers, os.cpu_count() or 1) as crew:
            watched = ProgressFile(folder)
            done = run_in(folder, papers, job, crew, both(shown_on(progress), watched.watch))
            watched.end()
        work = done.state.known.sentence
        if time is not None and done.state.stopped:  # the page takes its own time
            work = f"{_stopped(time, loaded_s, folder)} {work}"
        run = searched(done.document, folder, kept, work, not done.state.stopped)
        if page and not (time is not None and done.state.stopped):
            progress.step("writing the page")
            write_page(folder, folder / PAGE, question, done.state.known.solved)
    return run


@asked
def front(
    study: "Study | None" = None,
    *,
    model: "Models | None" = None,
    of: str | Sequence[str],
    within: Sequence[str] = (),
    gap: float = 0.0,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
    time: float | None = None,
    rules: str | None = None,
    fresh: bool = False,
    allow_code: bool = False,
    page: bool = False,
) -> Fronted:
    """The Pareto front of two or three metrics, each design with a certificate, as ``phaze front``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also be among a study's values.
        model: Instead of a study, a model or several of them.
        of: Two or three of throughput, area, power, price, embodied, energy, cost, carbon.
        within: Limits on metrics, such as ``"power=300"`` (W).
        gap: Relative gap to which each design is proved, 0.01 for 1 %; 0 is exact.
        out: The folder, ``{name}`` in it being the study's name; without it a temporary one, removed with the value.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        workers: Worker processes; 0: one for each core.
        time: Time limit in seconds; then the designs so far are the answer.
        rules: Set of defaults, ``"cluster"`` or ``"icml24"``; default: the study's.
        fresh: Trace your own models again, ignoring the cache.
        allow_code: Let the study name Python code as a model, which then runs.
        page: Write its page, front.html, into the folder too.

    Returns:
        The front: ``points``, ``frame()``, ``page()``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> front = phaze.front(study, of=("throughput", "area"), within=["area=200"], gap=0.01)
        >>> len(front.points) > 1
        True
    """
    with on_standard_error() as progress:
        progress.step("phaze front")
        began = monotonic()
        from dataclasses import replace

        from phaze.front.folder import front_in
        from phaze.front.metrics import asked_of
        from phaze.hardware.write import toml_text
        from phaze.search.deadline import left_of
        from phaze.study.load import question_of, study_of

        chosen = study_settings(settings, rules=rules, gap=gap)
        raw, origin = settled(study, model, chosen, fresh, progress, allow_code=allow_code)
        progress.step("loading the models' graphs")
        checked = study_of(raw, origin.where)
        weighed = asked_of(of, within)
        folder, kept = folder_of(out, checked.name)
        question = question_of(checked, reader=origin.reader).fronted(weighed.document())
        job = replace(question.job, limit_s=left_of(time, began))
        processes = workers or os.cpu_count() or 1
        done = front_in(folder, question.papers(toml_text(raw)), job, weighed, processes, _shown_on(progress))
        work = f"{done.opened:,} were evaluated. {done.work}"
        draw = sheet("phaze.front.sheet", "show_front", done.document, str(folder), work)
        front = identified(Fronted(done.document, draw, folder, kept), folder)
        if page:
            front.page()
    return front


def _shown_on(progress: "Progress") -> "Callable[[FrontProgress], None]":
    def watch(standing: "FrontProgress") -> None:
        what = f"looking for designs that none beats ({standing.designs:,} so far), chips evaluated"
        progress.count(standing.opened, standing.opened + standing.left, what, at_most=True)

    return watch
