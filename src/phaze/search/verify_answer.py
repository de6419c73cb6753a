"""The answer of a run checked again: ``result.json`` is a view, written anew from what was checked and compared.

An answer names a chip, a memory and for each model a configuration of running it. Everything else in it follows by the
plain path (:func:`phaze.search.result.answer_view`), so one value changed, added or left out is seen, whatever it is.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from phaze.hardware.chip import Chip
from phaze.schedule.solve import Scheduler
from phaze.search.certificate import Certificate, Near
from phaze.search.reference import plan_objections, way_of
from phaze.search.result import answer_view, code_digest, result_view, written
from phaze.search.state import TIE, WITHIN
from phaze.search.task import Configuration, ModelTask
from phaze.search.verify import NEAR, Plain
from phaze.search.witness import chip_of


def unequal(said: Any, true: Any, where: str = "") -> list[str]:
    """Where a document is not the true one, to the last digit and the kind of every value."""
    if isinstance(true, dict) and isinstance(said, dict):
        wrong = [f"{where}.{key}: nothing of that name belongs here".lstrip(".") for key in said if key not in true]
        for key, value in true.items():
            place = f"{where}.{key}".lstrip(".")
            wrong += unequal(said[key], value, place) if key in said else [f"{place}: it is missing"]
        return wrong
    if isinstance(true, list) and isinstance(said, list):
        wrong = [f"{where}: {len(said)} rows, but {len(true)}"] if len(said) != len(true) else []
        for at, (one, other) in enumerate(zip(said, true, strict=False)):
            wrong += unequal(one, other, f"{where}[{at}]")
        return wrong
    same = type(said) is type(true) and json.dumps(said) == json.dumps(true)
    return [] if same else [f"{where}: {_short(said)}, but {_short(true)}"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_text(text: str, said: Mapping[str, Any], true: Mapping[str, Any], name: str) -> list[str]:
    """What is wrong with a file that must be ``true``, byte for byte."""
    wrong = unequal(dict(said), dict(true))
    if not wrong and text != written(true):
        wrong.append(f"{name}: its values are right, and it is not written as phaze writes it")
    return wrong


def _check_plan(
    task: ModelTask, configuration: Configuration, model: Mapping[str, Any], chip: Chip, scheduler: Scheduler
) -> list[str]:
    """A model's plan by the checker of placements, which shares nothing with the solver."""
    where = f"models[{task.name}].plan"
    return [
        f"{where}: {sentence}"
        for sentence in plan_objections(task, configuration, chip, model["plan"], model["zero"], scheduler)
    ]


def _chosen(plain: Plain, result: Mapping[str, Any]) -> tuple[int, int, list[Configuration]] | str:
    """Chip, memory and configurations that an answer names, or what is wrong with them."""
    job, number, hbm_bytes = plain.job, result["chip"]["number"], result["chip"]["hbm_bytes"]
    if type(number) is not int or not 0 <= number < len(plain.opened):
        return f"chip.number: {number!r} is no chip of the space"
    if hbm_bytes not in job.hbm_bytes:
        return f"chip.hbm_bytes: {hbm_bytes!r} is no memory of the study"
    if [model["name"] for model in result["models"]] != [task.name for task in job.models]:
        return "models: not those of the study"
    tasks, configurations = plain.networks.tasks_of(number), []
    for task, model in zip(tasks, result["models"], strict=True):
        configuration = way_of(task, model)
        if configuration is None:
            return f"models[{task.name}]: the study knows no such microbatch, width, recompute and ZeRO"
        configurations.append(configuration)
    return number, job.hbm_bytes.index(hbm_bytes), configurations


def regenerated(plain: Plain, result: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The answer that a result names, recomputed, and what is wrong with it as an answer."""
    chosen = _chosen(plain, result)
    if isinstance(chosen, str):
        return {}, [chosen]
    (number, hbm, configurations), job = chosen, plain.job
    tasks, chip = plain.networks.tasks_of(number), plain.opened.chip(number, job.hbm_bytes[hbm])
    if not all(
        _fits(plain, task, configuration, number, hbm)
        for task, configuration in zip(tasks, configurations, strict=True)
    ):
        return {}, ["models: what is said to run does not fit into the chip's memory, or the chip is too dear"]
    provisional, wrong = result.get("provisional") is True, list[str]()
    true = answer_view(job, plain.scale, plain.opened, tasks, (number, hbm), configurations, provisional=provisional)
    for task, configuration, model in zip(tasks, configurations, true["models"], strict=True):
        wrong += _check_plan(task, configuration, model, chip, "list" if provisional else "exact")
    if provisional:  # it claims to be feasible, and of the optimum only what its gap says
        return true, wrong
    return true, wrong + _check_best(plain, number, hbm, float(true["objective"]["score"]))


def _fits(plain: Plain, task: ModelTask, configuration: Configuration, number: int, hbm: int) -> bool:
    """Whether a configuration of a model has a plan on the chip at all, and the chip with its memory is within the
    price."""
    if not float(plain.rates(number, hbm).rate) < np.inf:
        return False
    return plain.fits(task, configuration, plain.job.hbm_bytes[hbm])


def _check_best(plain: Plain, number: int, hbm: int, score: float) -> list[str]:
    """No other configuration of the models on the chip is better, and no smaller memory is as good."""
    job, wrong = plain.job, []
    *leaner, best = (float(plain.scale.score(np.array(own))) for own in plain.values(number, range(hbm + 1)))
    if abs(score - best) > NEAR * best:
        wrong.append(f"objective.score: {score!r}, but the best configuration of running it has {best!r}")
    return wrong + [
        f"chip.hbm_bytes: {job.hbm_bytes[at]} are enough"
        for at, other in enumerate(leaner)
        if other <= score * (1 + TIE / 2)
    ]


def check_result(
    plain: Plain,
    text: str,
    result: Mapping[str, Any],
    answer: Mapping[str, Any],
    proof: tuple[Certificate, str],
) -> list[str]:
    """What is wrong with the whole file: not the view of this answer and this certificate, made by this code."""
    certificate, code = proof
    return check_text(text, result, result_view(plain.job, answer, certificate, code), "result.json")


def check_view(
    plain: Plain, text: str, result: Mapping[str, Any], certificate: Mapping[str, Any], chips: int
) -> list[str]:
    """What of ``result.json`` is not the view of a certificate that was proved.

    Of its own table of the proof counts, gap and bound must agree with each other and with the space; how many chips
    were evaluated and how many are near ties says what the search did, which nothing depends on.
    """
    chosen = _chosen(plain, result)
    if isinstance(chosen, str):
        return [chosen]
    (number, hbm, configurations), job = chosen, plain.job
    if certificate["answer"]["chip"] != chip_of(plain.opened, number):
        return ["chip: result.json names another one than certificate.json"]
    provisional = result.get("provisional") is True
    answer = answer_view(
        job,
        plain.scale,
        plain.opened,
        plain.networks.tasks_of(number),
        (number, hbm),
        configurations,
        provisional=provisional,
    )
    score, said = float(answer["objective"]["score"]), dict(result["certificate"])
    times = np.array([float(model["batch_s"]) for model in answer["models"]])
    relative = len(times) > 1 and job.objective.mean == "geometric"
    proved = float(np.exp((np.array(plain.scale.weights) * np.log(times)).sum())) if relative else score
    if abs(proved - certificate["best"]) > TIE * proved:
        return [f"objective.score: {proved!r}, and certificate.json has {certificate['best']!r}"]
    wrong = _check_counts(plain, said, score, chips)
    if result["code_digest"] != code_digest():
        return [f"result.json was made by another version of phaze; python -m phaze.check says that {PROVED}"]
    view = {**result_view(job, answer, EMPTY, code_digest()), "certificate": said}
    return wrong or check_text(text, result, view, "result.json")


PROVED = "its certificate holds"
EMPTY = Certificate(0.0, 0.0, 0.0, {}, 0, Near(0, 0), "")


def _check_counts(plain: Plain, said: Mapping[str, Any], score: float, chips: int) -> list[str]:
    """What of the table of a proof contradicts the space, or itself."""
    closed, left_out = said["closed"], plain.opened.left_out
    wrong = [
        f"certificate.closed.{key}: {closed[key]}, but {count}"
        for key, count in left_out.items()
        if closed[key] != count
    ]
    counts = [closed[key] for key in closed if key not in left_out]
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) != chips or said["chips"] != chips:
        wrong.append(f"certificate.closed: it does not count {chips} chips")
    lower, near = float(said["lower_bound"]), said["near"]
    if said["asked_gap"] != plain.job.gap:
        wrong.append(f"certificate.asked_gap: {said['asked_gap']}, but {plain.job.gap}")
    if not 0 <= lower <= score or said["gap"] != max(0.0, 1.0 - lower / score):
        wrong.append("certificate.gap: it is not that of lower_bound and score")
    if near["within"] != WITHIN or not 1 <= near["at_least"] <= near["at_most"] <= chips:
        wrong.append("certificate.near: no such counts")
    return wrong
