"""A run or a plan in the forms that other tools read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, identified, notes
from phaze.errors import InputError, unknown_name

if TYPE_CHECKING:
    from phaze.export.chakra import TracedPlan
    from phaze.export.frame import Frame
    from phaze.export.source import PlannedSplit
    from phaze.report.view_model import Story
    from phaze.schedule.solve import Scheduler

OTHERS = ("chakra", "perfetto", "csv", "parquet")
"""Forms that are no launch files."""


def _is_plan(run: str) -> bool:
    return run == "-" or Path(run).is_file()


def _chosen(names: Sequence[str], model: str | None, where: str) -> int:
    if model is None and len(names) == 1:
        return 0
    if model is None:
        raise InputError(
            where, f"this run has {len(names)} models", f"say which: --model {names[0]}"
        )
    if model not in names:
        raise unknown_name("--model", "model of this run", model, names)
    return names.index(model)


def _split(run: str, model: str | None) -> "PlannedSplit":
    from phaze.evaluate.job_file import reopened
    from phaze.export.load_run import read_plan, run_of
    from phaze.export.source import planned_split, searched_split
    from phaze.study.load import question_in

    if _is_plan(run):
        document, where = read_plan(run)
        return planned_split(document, reopened(document, where))
    finished = run_of(Path(run))
    names = [task.name for task in finished.job.models]
    index = _chosen(names, model, run)
    study, result = question_in(Path(run)).study, finished.result
    return searched_split(
        finished.job.models[index], result["models"][index], study, str(result["chip"]["name"])
    )


def _stories(run: str, model: str | None) -> "list[Story]":
    """The plan, or the models of a run: all of them, or the one that is named."""
    from phaze.evaluate.job_file import reopened
    from phaze.export.load_run import read_plan, run_of
    from phaze.report.page.search_page import tasks_on
    from phaze.report.view_model import planned, searched
    from phaze.search.reopened import place_of

    if _is_plan(run):
        document, where = read_plan(run)
        plan_job = reopened(document, where)
        return [
            planned(
                plan_job.model,
                plan_job.setting,
                document,
                plan_job.job.devices,
                plan_job.job.batch,
                where,
            )
        ]
    finished = run_of(Path(run))
    chips, wanted = finished.opened, finished.result["chip"]
    place = place_of(chips, int(wanted["number"]), run)
    chip, tasks = (
        chips.chip(place, int(wanted["hbm_bytes"])),
        tasks_on(finished.job, chips, place),
    )
    pairs = list(zip(tasks, finished.result["models"], strict=True))
    pairs = pairs if model is None else [pairs[_chosen([task.name for task in tasks], model, run)]]
    scheduler: Scheduler = "list" if finished.result.get("provisional") else "exact"
    return [searched(task, row, chip, run, scheduler) for task, row in pairs]


def _frame(run: str) -> "Frame":
    from phaze.export.frame import chips_frame, stages_frame
    from phaze.export.load_run import read_plan, run_of
    from phaze.search.reopened import place_of

    if _is_plan(run):
        return stages_frame(read_plan(run)[0])
    finished = run_of(Path(run))
    chip = finished.result["chip"]
    chips, place = finished.opened, place_of(finished.opened, int(chip["number"]), run)
    return chips_frame(chips, finished.closed, finished.evaluated, int(chip["hbm_bytes"]), place)


def _text(run: str, to: str, model: str | None) -> str:
    if to == "perfetto":
        from phaze.documents import dumps
        from phaze.export.perfetto import trace

        return dumps(trace(_stories(run, model))) + "\n"
    if to == "csv":
        from phaze.export.frame import csv_text

        return csv_text(_frame(run))
    from phaze.export.flag import launch_text
    from phaze.export.frameworks import BY_KEY

    return launch_text(BY_KEY[to], _split(run, model))


def _module_beside(
    launch: Path, split: "PlannedSplit", module: "Callable[[PlannedSplit], tuple[str, str] | None]"
) -> str | None:
    """Write the Python file that a launch file needs beside it; its path, or None where the plan
    needs none."""
    from phaze.files import write_whole

    needed = module(split)
    if needed is None:
        return None
    name, text = needed
    write_whole(launch.parent / name, text)
    return str(launch.parent / name)


def _traced(run: str, model: str | None) -> "TracedPlan":
    """A plan, or a model of a run, with what its traces are made of."""
    from phaze.evaluate.job_file import reopened
    from phaze.export.chakra import TracedPlan
    from phaze.export.load_run import read_plan, run_of
    from phaze.search.reference import way_of
    from phaze.search.reopened import place_of

    if _is_plan(run):
        document, where = read_plan(run)
        answered = reopened(document, where)
        return TracedPlan(
            answered.model.name, answered.model, answered.setting, document, answered.job.batch
        )
    finished = run_of(Path(run))
    index = _chosen([task.name for task in finished.job.models], model, run)
    task, answer, wanted = (
        finished.job.models[index],
        finished.result["models"][index],
        finished.result["chip"],
    )
    way = way_of(task, answer)
    if way is None:
        raise InputError(task.name, "its configuration is none of the study's", "search again")
    place = place_of(finished.opened, int(wanted["number"]), run)
    chip = finished.opened.chip(place, int(wanted["hbm_bytes"]))
    job, traced = task.training, task.graphs[way.graph].model
    return TracedPlan(
        task.name, traced, task.setting(chip), {"zero": answer["zero"], **answer["plan"]}, job.batch
    )


def _traces(run: str, model: str | None, out: str | None) -> dict[str, Any]:
    """Write the traces of all ranks into a folder; how many files and bytes."""
    from phaze.documents import dumps
    from phaze.export.chakra import chakra
    from phaze.files import folder_for, write_whole

    if out is None:
        raise InputError("--to chakra", "these are files, one a rank", "name a folder with --out")
    folder, files, size = Path(out), 0, 0
    folder_for(folder)
    for name, content in chakra(_traced(run, model)):
        whole = content if isinstance(content, bytes) else (dumps(content) + "\n").encode()
        write_whole(folder / name, whole)
        files, size = files + 1, size + len(whole)
    return {"bytes": size, "files": files}


def exported(run: str, to: str, out: str | None, model: str | None) -> Answer:
    """What was written, or its text."""
    from phaze.export.frameworks import BY_KEY
    from phaze.files import write_whole

    if to not in (*BY_KEY, *OTHERS):
        raise unknown_name("--to", "form", to, (*BY_KEY, *OTHERS))

    document: dict[str, Any] = {"to": to, "out": out}
    if to == "chakra":
        document |= _traces(run, model, out)
    elif to == "parquet":
        from phaze.export.parquet import parquet_bytes

        if out is None:
            raise InputError("--to parquet", "this is not text", "name a file with --out")
        content = parquet_bytes(_frame(run))
        write_whole(Path(out), content)
        document["bytes"] = len(content)
    else:
        text = _text(run, to, model)
        document["bytes"] = len(text.encode())
        if out is None:
            document["text"] = text
        else:
            write_whole(Path(out), text)
            module = BY_KEY[to].module if to in BY_KEY else None
            if module is not None:
                document["module"] = _module_beside(Path(out), _split(run, model), module)

    if out is None:
        return Answer(document, notes(text.removesuffix("\n")))
    beside = f" and {document['module']}" if document.get("module") else ""
    return identified(Answer(document, notes(f"Written: {out}{beside}")), Path(run))
