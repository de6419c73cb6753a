"""The commands that search or compare along something, as functions: sweep and compare."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from phaze.api.given import asked
from phaze.api.opened import asked_study, settled, study_settings, traced
from phaze.api.run_values import Compared, Swept
from phaze.api.studies import folder_of
from phaze.api.values import identified, sheet
from phaze.errors import InputError
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.api.opened import Models, Study


@asked
def sweep(
    study: "Study | None" = None,
    *,
    model: "Models | None" = None,
    over: str,
    points: int = 9,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
    engine: str = "local",
    address: str | None = None,
    rules: str | None = None,
    fresh: bool = False,
    allow_code: bool = False,
    page: bool = False,
) -> Swept:
    """The certified best at every value of one key of a study, as ``phaze sweep``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also be among a study's values.
        model: Instead of a study, a model or several of them.
        over: A key and its values, ``"training.devices=64,256"``, or a range, ``"training.devices=64..4096"``.
        points: Number of values of a range, in geometric progression.
        out: The folder, ``{name}`` in it being the study's name; without it a temporary one, removed with the value.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        workers: Worker processes; 0: one for each core.
        engine: ``"local"``, processes of this machine, or ``"ray"``, a Ray cluster.
        address: With ``"ray"``: ``"auto"`` (the cluster of this machine), ``"local"``, or ``"HOST:PORT"``.
        rules: Set of defaults, ``"cluster"`` or ``"icml24"``; default: the study's.
        fresh: Trace your own models again, ignoring the cache.
        allow_code: Let the study name Python code as a model, which then runs.
        page: Write its page, sweep.html, into the folder too.

    Returns:
        The sweep: ``points`` and ``page()``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> sweep = phaze.sweep(study, over="training.devices=32,64", settings=["search.gap=0.01"])
        >>> [point["value"] for point in sweep.points]
        [32.0, 64.0]
    """
    with on_standard_error() as progress:
        progress.step("phaze sweep")
        from phaze.search.engines import engine_of
        from phaze.study.own import with_tables
        from phaze.study.plain import with_settings
        from phaze.sweep.over import over_of
        from phaze.sweep.run import sweep as sweep_points

        raw, origin = asked_study(study, model, study_settings(settings, rules=rules), allow_code=allow_code)
        axis = over_of(over, with_tables(raw), origin.where, points)
        traced(with_settings(raw, [axis.points[0].setting]), origin, fresh, progress)
        folder, kept = folder_of(out, str(raw["name"]))

        def tell(at: int, of: int, value: str) -> None:
            progress.count(at, of, f"searching at {axis.key} = {value}, points done")

        with engine_of(engine, address, workers, os.cpu_count() or 1) as crew:
            document = sweep_points(folder, raw, origin, axis, crew, tell)
        draw = sheet("phaze.report.sweep_sheet", "show_sweep", document, str(folder))
        sweep = identified(Swept(document, draw, folder, kept), folder)
        if page:
            progress.step("writing the page")
            sweep.page()
    return sweep


@asked
def compare(
    study: "Study | None" = None,
    *,
    model: "Models | None" = None,
    chips: Sequence[str] = (),
    runs: Sequence[str | Path] = (),
    rows: str | Path | None = None,
    basis: str = "space",
    settings: Sequence[str] = (),
    rules: str | None = None,
    fresh: bool = False,
    allow_code: bool = False,
) -> Compared:
    """Throughput of every model of a study on several chips, against its baseline, as ``phaze compare``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also be among a study's values; without it and
            ``model`` that of the first of ``runs``.
        model: Instead of a study, a model or several of them.
        chips: Presets or paths of chip files.
        runs: Folders of searches whose chips are compared too.
        rows: A CSV of chips and plans: ``chip``, changed keys of its file, ``name``; for a plan
            ``model``, ``tensor``, ``pipeline`` and ``microbatch``.
        basis: Constants of all chips: ``"space"``, ``"baseline"``, ``"own"``, ``"datasheet"`` or ``"ideal"``.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        rules: Set of defaults, ``"cluster"`` or ``"icml24"``; default: the study's.
        fresh: Trace your own models again, ignoring the cache.
        allow_code: Let the study name Python code as a model, which then runs.

    Returns:
        The comparison: ``rows``, one for each chip, model and placement.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> compared = phaze.compare(study, chips=["tpu-v4-paper"])
        >>> {row["model"] for row in compared.rows}
        {'bert-large'}
    """
    with on_standard_error() as progress:
        progress.step("phaze compare")
        from phaze.search.question_files import STUDY
        from phaze.study.compared import compared

        if study is None and not model and runs:
            study = Path(runs[0]) / STUDY
            if not study.is_file():
                raise InputError("--run", f"{runs[0]} holds no finished run", "give the folder of a search")
        chosen = study_settings(settings, rules=rules)
        raw, origin = settled(study, model, chosen, fresh, progress, allow_code=allow_code)
        progress.step("placing the models on each chip")
        others = None if rows is None else str(rows)
        document = compared(raw, origin, list(chips), [str(run) for run in runs], basis, others)
    return identified(Compared(document, sheet("phaze.report.compare_sheet", "show_comparison", document)))
