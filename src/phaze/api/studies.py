"""The commands that search a study, as functions: search and front."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

from phaze.api.function import api
from phaze.api.load_study import requested_study, study_settings, traced, traced_study
from phaze.api.run_values import Fronted, Searched, searched, write_page
from phaze.api.values import identified, sheet
from phaze.options.studies import FrontOptions, SearchOptions, Study
from phaze.report.progress import on_standard_error

ENDED = (
    "This run had ended: its folder has the answer, and nothing was searched again; phaze "
    "verify checks it."
)
PAGE = "report.html"

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from phaze.api.load_study import Study
    from phaze.front.run import FrontProgress
    from phaze.report.progress import Progress


def folder_of(out: str | Path | None, name: str) -> "tuple[Path, TemporaryDirectory[str] | None]":
    """The folder of an answer, ``{name}`` in it being the study's; without ``out`` one that goes
    with the value."""
    if out is not None:
        return Path(str(out).replace("{name}", name)), None
    from tempfile import TemporaryDirectory

    temporary = TemporaryDirectory(prefix="phaze-")
    return Path(temporary.name) / name, temporary


def _stopped(limit_s: float, loaded_s: float, folder: Path) -> str:
    """What a search says whose time was up."""
    sentences = [
        (
            f"Stopped after {limit_s:g} s: the same command resumes, phaze report {folder} "
            "makes the page."
        )
    ]
    if loaded_s > limit_s:
        sentences.insert(
            0, f"Loading the models alone took {loaded_s:.1f} s, longer than the limit."
        )
    return " ".join(sentences)


def _ended(out: str | Path, raw: Mapping[str, Any], page: bool) -> Searched | None:
    """The answer of a run that has ended with a study of bundled names alone, without building its
    question."""
    from phaze.hardware.write import toml_text
    from phaze.search.finished import finished_as, names_files

    folder = folder_of(out, str(raw.get("name")))[0]
    if names_files(raw) or (page and not (folder / PAGE).is_file()):
        return None
    finished = finished_as(folder, toml_text(raw))
    return None if finished is None else searched(finished, folder, None, ENDED)


@api
def search(study: Study = None, **options: Unpack[SearchOptions]) -> Searched:
    """The best chip and plan together, with a certificate, as ``phaze search``.

    Returns:
        The run: ``chip``, ``models``, ``gap``, ``frame()`` of every chip, ``page()``.

    Raises:
        InfeasibleError: No chip of the space fits the models.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> run = phaze.search(study, settings=["search.gap=0.01"])
        >>> run.gap <= 0.01, run.chip["tensor_cores"] > 0
        (True, True)
    """
    chosen = study_settings(options, SearchOptions)
    with on_standard_error() as progress:
        progress.step("phaze search")
        began = monotonic()
        from phaze.hardware.write import toml_text

        tensor_plan = None if options["tp_plan"] is None else str(options["tp_plan"])
        asked_for, origin = requested_study(
            study, options["model"], chosen, tensor_plan, options["allow_code"]
        )
        ended = (
            None if options["out"] is None else _ended(options["out"], asked_for, options["page"])
        )
        if ended is not None:
            return ended
        from phaze.search.finished import finished_in
        from phaze.study.load import question_of, study_of

        raw = traced(asked_for, origin, options["fresh"], progress)
        progress.step("loading the models' graphs")
        checked = study_of(raw, origin.where)
        folder, temporary = folder_of(options["out"], checked.name)
        question = question_of(checked, reader=origin.reader)
        papers = question.papers(toml_text(raw))
        finished = finished_in(folder, papers, question.job.digest)
        if finished is not None and (not options["page"] or (folder / PAGE).is_file()):
            return searched(finished, folder, temporary, ENDED)
        loaded_s = monotonic() - began
        from dataclasses import replace

        from phaze.report.search_sheet import shown_on
        from phaze.search.deadline import left_of
        from phaze.search.engines import engine_of
        from phaze.search.folder import run_in
        from phaze.search.progress_file import ProgressFile, both

        job = replace(question.job, limit_s=left_of(options["time"], began))
        progress.step("bounding every chip of the space")
        with engine_of(
            options["engine"], options["address"], options["workers"], os.cpu_count() or 1
        ) as crew:
            watched = ProgressFile(folder)
            done = run_in(folder, papers, job, crew, both(shown_on(progress), watched.watch))
            watched.end()
        work = done.state.memo.sentence
        if options["time"] is not None and done.state.stopped:  # the page takes its own time
            work = f"{_stopped(options['time'], loaded_s, folder)} {work}"
        run = searched(done.document, folder, temporary, work, not done.state.stopped)
        if options["page"] and not (options["time"] is not None and done.state.stopped):
            progress.step("writing the page")
            write_page(folder, folder / PAGE, question, done.state.memo.solved)
    return run


@api
def front(study: Study = None, **options: Unpack[FrontOptions]) -> Fronted:
    """The Pareto front of two or three metrics, each design with a certificate, as ``phaze front``.

    Returns:
        The front: ``points``, ``frame()``, ``page()``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> front = phaze.front(study, of=("throughput", "area"), within=["area=200"], gap=0.01)
        >>> len(front.points) > 1
        True
    """
    with on_standard_error() as progress:
        progress.step("phaze front")
        began = monotonic()
        from dataclasses import replace

        from phaze.front.folder import front_in
        from phaze.front.metrics import metrics_of
        from phaze.hardware.write import toml_text
        from phaze.search.deadline import left_of
        from phaze.study.load import question_of, study_of

        chosen = study_settings(options, FrontOptions)
        raw, origin = traced_study(
            study,
            options["model"],
            chosen,
            options["fresh"],
            progress,
            allow_code=options["allow_code"],
        )
        progress.step("loading the models' graphs")
        checked = study_of(raw, origin.where)
        weighed = metrics_of(options["of"], options["within"])
        folder, temporary = folder_of(options["out"], checked.name)
        question = question_of(checked, reader=origin.reader).fronted(weighed.document())
        job = replace(question.job, limit_s=left_of(options["time"], began))
        processes = options["workers"] or os.cpu_count() or 1
        done = front_in(
            folder, question.papers(toml_text(raw)), job, weighed, processes, _shown_on(progress)
        )
        work = f"{done.evaluated:,} were evaluated. {done.work}"
        shown = sheet(
            "phaze.report.front_sheet", "printed_sections", done.document, str(folder), work
        )
        front = identified(Fronted(done.document, shown, folder, temporary), folder)
        if options["page"]:
            front.page()
    return front


def _shown_on(progress: "Progress") -> "Callable[[FrontProgress], None]":
    def watch(standing: "FrontProgress") -> None:
        what = f"looking for designs that none beats ({standing.designs:,} so far), chips evaluated"
        progress.count(standing.evaluated, standing.evaluated + standing.left, what, at_most=True)

    return watch
