"""The commands that search or compare along something, as functions: sweep and compare."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from phaze.api.function import api
from phaze.api.load_study import requested_study, study_settings, traced, traced_study
from phaze.api.run_values import Compared, Swept
from phaze.api.studies import folder_of
from phaze.api.values import identified, sheet
from phaze.errors import InputError
from phaze.options.studies import CompareOptions, Study, SweepOptions
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.api.load_study import Study


@api
def sweep(study: Study = None, **options: Unpack[SweepOptions]) -> Swept:
    """The certified best at every value of one key of a study, as ``phaze sweep``.

    Returns:
        The sweep: ``points`` and ``page()``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> sweep = phaze.sweep(study, over="training.devices=32,64", settings=["search.gap=0.01"])
        >>> [point["value"] for point in sweep.points]
        [32.0, 64.0]
    """
    with on_standard_error() as progress:
        progress.step("phaze sweep")
        from phaze.search.engines import engine_of
        from phaze.study.own_models import with_tables
        from phaze.study.raw import with_settings
        from phaze.sweep.over import over_of
        from phaze.sweep.run import sweep as sweep_points

        raw, origin = requested_study(
            study,
            options["model"],
            study_settings(options, CompareOptions),
            allow_code=options["allow_code"],
        )
        axis = over_of(options["over"], with_tables(raw), origin.where, options["points"])
        traced(with_settings(raw, [axis.points[0].setting]), origin, options["fresh"], progress)
        folder, temporary = folder_of(options["out"], str(raw["name"]))

        def tell(done: int, of: int, value: str) -> None:
            progress.count(done, of, f"searching at {axis.key} = {value}, points done")

        with engine_of(
            options["engine"], options["address"], options["workers"], os.cpu_count() or 1
        ) as crew:
            document = sweep_points(folder, raw, origin, axis, crew, tell)
        shown = sheet("phaze.report.sweep_sheet", "sweep_sections", document, str(folder))
        sweep = identified(Swept(document, shown, folder, temporary), folder)
        if options["page"]:
            progress.step("writing the page")
            sweep.page()
    return sweep


@api
def compare(study: Study = None, **options: Unpack[CompareOptions]) -> Compared:
    """Throughput of every model of a study on several chips, against its baseline, as ``phaze
    compare``.

    Returns:
        The comparison: ``rows``, one for each chip, model and placement.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> compared = phaze.compare(study, chips=["tpu-v4-paper"])
        >>> {row["model"] for row in compared.rows}
        {'bert-large'}
    """
    with on_standard_error() as progress:
        progress.step("phaze compare")
        from phaze.search.question_files import STUDY
        from phaze.study.compared import compared

        if study is None and not options["model"] and options["runs"]:
            study = Path(options["runs"][0]) / STUDY
            if not study.is_file():
                raise InputError(
                    "--run",
                    f"{options['runs'][0]} holds no finished run",
                    "give the folder of a search",
                )
        chosen = study_settings(options, CompareOptions)
        raw, origin = traced_study(
            study,
            options["model"],
            chosen,
            options["fresh"],
            progress,
            allow_code=options["allow_code"],
        )
        progress.step("placing the models on each chip")
        others = None if options["rows"] is None else str(options["rows"])
        document = compared(
            raw,
            origin,
            list(options["chips"]),
            [str(run) for run in options["runs"]],
            options["basis"],
            others,
        )
    return identified(
        Compared(document, sheet("phaze.report.compare_sheet", "comparison_sections", document))
    )
