"""One design of a finished front, opened again from its folder: its plans found anew by the
reference path."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from phaze.errors import InputError
from phaze.front.metrics import metrics_of
from phaze.front.run import job_for, scales_for
from phaze.front.schema import front_in
from phaze.report.page.design_page import OpenedDesign
from phaze.report.page.search_page import tasks_on
from phaze.search.boxes.opening import reopened
from phaze.search.reference import way_of
from phaze.search.result import answer_view
from phaze.study.load import question_in
from phaze.study.resolved import resolved

AGAIN = "find the front again"
# A step that is found anew is the same sum in another order.
AGREEMENT = 1e-9


def _same(stated: Mapping[str, Any], recomputed: Mapping[str, Any], where: str) -> None:
    """Refuse a design whose model does not take what the front says."""
    if abs(recomputed["batch_s"] - stated["batch_s"]) > AGREEMENT * stated["batch_s"]:
        seen = (
            f"{stated['name']} takes {stated['batch_s']:.9g} s in it and by this phaze "
            f"{recomputed['batch_s']:.9g} s"
        )
        raise InputError(where, seen, AGAIN)


def design_in(folder: Path, place: int) -> OpenedDesign:
    """The design at a place of a front's list."""
    front, _ = front_in(folder)
    where, count = f"{folder / 'front.json'}: points[{place}]", len(front["points"])
    if not 0 <= place < count:
        raise InputError("--design", f"there is no design {place}", f"give 0 to {count - 1}")
    point = front["points"][place]
    metrics = metrics_of(
        front["of"], [f"{name}={value!r}" for name, value in front["within"].items()]
    )
    question = question_in(folder, metrics.document())
    if question.job.digest != front["study_digest"]:
        raise InputError(
            str(folder / "study.toml"),
            "the front next to it is of another study or another phaze",
            AGAIN,
        )
    job = job_for(question.job, metrics)
    called, hbm_bytes = point["chip"].get("number"), point["chip"]["hbm_bytes"]
    chips = reopened(job.space, np.array([called] if type(called) is int else [], np.int64))
    number = chips.index_of(called) if type(called) is int else None
    if (
        number is None
        or hbm_bytes not in job.hbm_bytes
        or chips.name(number) != point["chip"]["name"]
    ):
        raise InputError(where, "there is no such chip in the space", AGAIN)
    tasks = tasks_on(job, chips, number)
    if [task.name for task in tasks] != [model["name"] for model in point["models"]]:
        raise InputError(where, "its models are not those of the study", AGAIN)
    ways = [way_of(task, model) for task, model in zip(tasks, point["models"], strict=True)]
    chosen = [way for way in ways if way is not None]
    if len(chosen) < len(ways):
        raise InputError(where, "a model was not studied at this width and microbatch", AGAIN)
    view = answer_view(
        job,
        scales_for(job, metrics)[0],
        chips,
        tasks,
        (number, job.hbm_bytes.index(hbm_bytes)),
        chosen,
    )
    for stated, recomputed in zip(point["models"], view["models"], strict=True):
        _same(stated, recomputed, where)
    result = {"name": front["name"], **view}
    return OpenedDesign(
        job, chips, result, front, place, [row.row for row in resolved(question.study, job)]
    )
