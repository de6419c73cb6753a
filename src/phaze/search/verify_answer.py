"""The answer of a run checked again: the chip field by field, and every model's plan by scheduling and placing anew."""

from collections.abc import Mapping
from math import isclose
from typing import Any

import numpy as np

from phaze import __version__
from phaze.evaluate.flow import LayerSeconds, graph_of, placement_of
from phaze.hardware.chip import Chip
from phaze.placement.check import objections
from phaze.search.answer import Best
from phaze.search.cluster_plain import plan_objections, way_of
from phaze.search.cluster_task import ClusterTask
from phaze.search.result import chip_document, model_document, objective_document
from phaze.search.state import TIE
from phaze.search.task import ModelTask
from phaze.search.verify import NEAR, Plain

CHECKED = ("energy", "layers", "plan")


def _same(said: Any, true: Any) -> bool:
    if isinstance(true, bool) or not isinstance(true, int | float):
        return bool(said == true)
    number = isinstance(said, int | float) and not isinstance(said, bool)
    return number and isclose(said, true, rel_tol=NEAR, abs_tol=0.0)


def _differences(where: str, said: Mapping[str, Any], true: Mapping[str, Any]) -> list[str]:
    wrong = [
        f"{where}.{key}: {said.get(key)!r}, but {value!r}"
        for key, value in true.items()
        if not _same(said.get(key), value)
    ]
    return wrong + [f"{where}.{key}: nothing of that name belongs here" for key in said if key not in true]


def _check_parts(where: str, said: Mapping[str, Any], true: Mapping[str, Any]) -> list[str]:
    """What a model's table says beside the cuts of its plan."""
    wrong = _differences(f"{where}.energy", said["energy"], true["energy"])
    for at, layer in enumerate(true["layers"]):
        layers = said["layers"]
        wrong += _differences(f"{where}.layers[{at}]", layers[at] if at < len(layers) else {}, layer)
    kept = {key: value for key, value in said.items() if key not in CHECKED}
    wrong += _differences(where, kept, {key: value for key, value in true.items() if key not in CHECKED})
    batch_s, plan = true["batch_s"], said["plan"]
    if plan.get("rules") != true["plan"]["rules"]:
        wrong.append(f"{where}.plan.rules: not {true['plan']['rules']}")
    if not _same(plan.get("batch_s"), batch_s):
        wrong.append(f"{where}.plan.batch_s: {plan.get('batch_s')!r}, but the fastest plan takes {batch_s!r}")
    if not _same(plan.get("lower_bound_s"), batch_s):
        wrong.append(f"{where}.plan.lower_bound_s: {plan.get('lower_bound_s')!r}, but {batch_s!r} is proved")
    return wrong


def _check_placed(plain: Plain, task: ClusterTask, said: Mapping[str, Any], chip: Chip) -> list[str]:
    """A model under rules cluster."""
    where, way = f"models[{task.name}]", way_of(task, said)
    if way is None:
        return [f"{where}: the study knows no such microbatch, width, sequence parallelism and recompute"]
    true = model_document(task, way, chip, plain.opened)
    wrong = _check_parts(where, said, true)
    return wrong + [f"{where}.plan: {sentence}" for sentence in plan_objections(task, way, chip, said["plan"])]


def _check_model(plain: Plain, task: ModelTask, said: Mapping[str, Any], chip: Chip) -> list[str]:
    where = f"models[{task.name}]"
    if isinstance(task, ClusterTask):
        return _check_placed(plain, task, said, chip)
    ways = [
        way
        for way in task.ways
        if (task.graphs[way.graph].microbatch, task.graphs[way.graph].width, way.recompute)
        == (said["microbatch"], said["tensor"], said["recompute"])
    ]
    if not ways:
        return [f"{where}: the study knows no such microbatch, width and recompute"]
    way = ways[0]
    graph = task.graphs[way.graph]
    true = model_document(task, way, chip, plain.opened)
    wrong = _check_parts(where, said, true)
    seconds = tuple(LayerSeconds(layer["forward_s"], layer["backward_s"]) for layer in true["layers"])
    problem = placement_of(
        [graph_of(graph, seconds)], graph.microbatch, way.recompute, chip.hbm.size_bytes, task.training
    )
    wrong += [f"{where}.plan: {sentence}" for sentence in objections(problem, said["plan"])]
    return wrong


def check_answer(plain: Plain, result: Mapping[str, Any]) -> list[str]:
    """What is wrong with the answer itself."""
    job, said = plain.job, result["chip"]
    number, hbm_bytes = said.get("number"), said.get("hbm_bytes")
    if not isinstance(number, int) or not 0 <= number < len(plain.opened):
        return [f"chip.number: {number!r} is no chip of the space"]
    if hbm_bytes not in job.hbm_bytes:
        return [f"chip.hbm_bytes: {hbm_bytes!r} is no memory of the study"]
    hbm = job.hbm_bytes.index(hbm_bytes)
    chip = plain.opened.chip(number, hbm_bytes)
    wrong = _differences("chip", said, chip_document(plain.opened, Best(number, hbm, 0.0, ()), job.hbm_bytes))
    if [model.get("name") for model in result["models"]] != [task.name for task in job.models]:
        return [*wrong, "models: not those of the study"]
    for task, model in zip(plain.networks.tasks_of(number), result["models"], strict=True):
        wrong += _check_model(plain, task, model, chip)
    values = plain.values(number, range(hbm + 1))
    *leaner, score = (float(plain.scale.score(np.array(own))) for own in values)
    wrong += _differences("objective", result["objective"], objective_document(job, plain.scale, score, values[-1]))
    wrong += [
        f"chip.hbm_bytes: {job.hbm_bytes[at]} are enough"
        for at, other in enumerate(leaner)
        if other <= score * (1 + TIE / 2)
    ]
    if result.get("name") != job.name or result.get("version") != __version__:
        wrong.append("name or version: not those of this study and this phaze")
    return wrong
