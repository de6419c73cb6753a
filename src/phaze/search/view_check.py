"""The answer of a run checked again: ``result.json`` is a view, written anew from what was checked
and compared.

An answer names a chip, a memory and for each model a configuration of running it. Everything else
in it follows by the reference path (:func:`phaze.search.result.answer_view`), so one value changed,
added or left out is seen, whatever it is.
"""

import json
from collections.abc import Mapping
from typing import Any

from phaze.search.certificate import Certificate, Near
from phaze.search.code import code_digest
from phaze.search.reference import way_of
from phaze.search.reference_path import ReferencePath
from phaze.search.result import answer_view, result_view, written
from phaze.search.state import TIE, WITHIN
from phaze.search.task import Configuration
from phaze.search.witness import chip_of, proved_score


def unequal(document: Any, true: Any, where: str = "") -> list[str]:
    """Where a document is not the true one, to the last digit and the kind of every value."""
    if isinstance(true, dict) and isinstance(document, dict):
        wrong = [
            f"{where}.{key}: nothing of that name belongs here".lstrip(".")
            for key in document
            if key not in true
        ]
        for key, value in true.items():
            place = f"{where}.{key}".lstrip(".")
            wrong += (
                unequal(document[key], value, place)
                if key in document
                else [f"{place}: it is missing"]
            )
        return wrong
    if isinstance(true, list) and isinstance(document, list):
        wrong = (
            [f"{where}: {len(document)} rows, but {len(true)}"]
            if len(document) != len(true)
            else []
        )
        for index, (stated, other) in enumerate(zip(document, true, strict=False)):
            wrong += unequal(stated, other, f"{where}[{index}]")
        return wrong
    same = type(document) is type(true) and json.dumps(document) == json.dumps(true)
    return [] if same else [f"{where}: {_short(document)}, but {_short(true)}"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_text(
    text: str, document: Mapping[str, Any], true: Mapping[str, Any], name: str
) -> list[str]:
    """What is wrong with a file that must be ``true``, byte for byte."""
    wrong = unequal(dict(document), dict(true))
    if not wrong and text != written(true):
        wrong.append(f"{name}: its values are right, and it is not written as phaze writes it")
    return wrong


def _chosen(
    plain: ReferencePath, result: Mapping[str, Any]
) -> tuple[int, int, list[Configuration]] | str:
    """Chip, memory and configurations that an answer names, or what is wrong with them."""
    job, number, hbm_bytes = plain.job, result["chip"]["number"], result["chip"]["hbm_bytes"]
    place = plain.chips.index_of(number) if type(number) is int and 0 <= number < 2**62 else None
    if place is None:
        return f"chip.number: {number!r} is not a chip of the space"
    if hbm_bytes not in job.hbm_bytes:
        return f"chip.hbm_bytes: {hbm_bytes!r} is not a memory of the study"
    if [model["name"] for model in result["models"]] != [task.name for task in job.models]:
        return "models: not those of the study"
    tasks, configurations = plain.networks.tasks_of(place), []
    for task, model in zip(tasks, result["models"], strict=True):
        configuration = way_of(task, model)
        if configuration is None:
            return (
                f"models[{task.name}]: the study knows no such microbatch, width, recompute "
                "and ZeRO"
            )
        configurations.append(configuration)
    return place, job.hbm_bytes.index(hbm_bytes), configurations


def regenerated(plain: ReferencePath, result: Mapping[str, Any]) -> dict[str, Any] | str:
    """The answer that a result names, scheduled and placed anew, or what is wrong with what it
    names."""
    chosen = _chosen(plain, result)
    if isinstance(chosen, str):
        return chosen
    number, hbm, configurations = chosen
    tasks, provisional = plain.networks.tasks_of(number), result.get("provisional") is True
    return answer_view(
        plain.job,
        plain.scale,
        plain.chips,
        tasks,
        (number, hbm),
        configurations,
        provisional=provisional,
    )


def check_view(
    plain: ReferencePath, text: str, result: Mapping[str, Any], certificate: Mapping[str, Any]
) -> list[str]:
    """What of ``result.json`` is not the view of its certificate.

    Of its own table of the proof counts, gap and bound must agree with each other and with the
    space; how many chips were evaluated and how many are near ties says what the search did, which
    nothing depends on.
    """
    answer, named = regenerated(plain, result), certificate["answer"]
    if isinstance(answer, str):
        return [answer]
    place = plain.chips.index_of(result["chip"]["number"])
    if named is not None and (place is None or named["chip"] != chip_of(plain.chips, place)):
        return ["chip: result.json names another one than certificate.json"]
    score, stated = float(answer["objective"]["score"]), dict(result["certificate"])
    proved = proved_score(
        plain.scale, score, [float(model["batch_s"]) for model in answer["models"]]
    )
    if abs(proved - certificate["best"]) > TIE * proved:
        return [f"objective.score: {proved!r}, and certificate.json has {certificate['best']!r}"]
    wrong = _check_counts(plain, stated, score)
    if result["code_digest"] != code_digest():
        return [
            (
                "result.json was made by another version of phaze; python -m phaze.check "
                f"says that {PROVED}"
            )
        ]
    view = {**result_view(plain.job, answer, EMPTY, code_digest()), "certificate": stated}
    return wrong or check_text(text, result, view, "result.json")


PROVED = "its certificate holds"
EMPTY = Certificate(0.0, 0.0, 0.0, {}, 0, Near(0, 0))


def _check_counts(plain: ReferencePath, stated: Mapping[str, Any], score: float) -> list[str]:
    """What of the table of a proof contradicts the space, or itself."""
    closed, left_out, chips = stated["closed"], plain.chips.left_out, plain.chips.total
    wrong = [
        f"certificate.closed.{key}: {closed[key]}, but {count}"
        for key, count in left_out.items()
        if closed[key] != count
    ]
    counts = [closed[key] for key in closed if key not in left_out]
    whole = all(type(count) is int and count >= 0 for count in (*counts, stated["chips"]))
    if not whole or sum(counts) != chips or stated["chips"] != chips:
        wrong.append(f"certificate.closed: it does not count {chips} chips")
    lower, near = float(stated["lower_bound"]), stated["near"]
    if stated["asked_gap"] != plain.job.gap:
        wrong.append(f"certificate.asked_gap: {stated['asked_gap']}, but {plain.job.gap}")
    if not 0 <= lower <= score or stated["gap"] != max(0.0, 1.0 - lower / score):
        wrong.append("certificate.gap: it is not that of lower_bound and score")
    if near["within"] != WITHIN or not 1 <= near["at_least"] <= near["at_most"] <= chips:
        wrong.append("certificate.near: no such counts")
    return wrong
