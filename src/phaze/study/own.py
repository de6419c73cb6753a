"""Models of a study that are not built in: a user's code or a configuration, traced at every point that the study asks
for, so that the study names graphs. A run of it holds their text and never runs the code again."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.request import attentions_of
from phaze.graph.ir import Attention
from phaze.graph.supply.point import Facts, Point
from phaze.graph.supply.supply import GraphFile, Traced, supply_of
from phaze.graph.supply.tracing import Watch, silent
from phaze.graph.tensor_plan import place_and_plan
from phaze.hardware.library import load_built_stack, load_cluster
from phaze.study.load import study_of
from phaze.study.schema import ModelTable, StudyFile


def is_place(text: str) -> bool:
    """Whether a model's name leads to code, a configuration, a folder or a graph."""
    return ":" in text or "/" in text or text.endswith(".json")


def name_of(place: str) -> str:
    """What a model is called: ``my_model.py:build`` is my-model-build, a configuration has the name of its folder."""
    place = place_and_plan(place)[0]
    path, _, function = place.rpartition(":") if ":" in place else (place, "", "")
    stem = Path(path).parent.name if Path(path).name == "config.json" and Path(path).parent.name else Path(path).stem
    return re.sub("[^a-z0-9.]+", "-", f"{stem}-{function}".lower()).strip("-.") or "model"


def _attentions(study: StudyFile) -> tuple[Attention, ...]:
    table = study.training
    if study.rules == "icml24":
        return ("fused",) if table.attention == "fused" else ("eager",)
    stack = load_built_stack(table.stack or load_cluster(table.cluster).stack)
    return attentions_of(table.attention, stack, "training.attention")


def _points(study: StudyFile, table: ModelTable, facts: Facts) -> list[Point]:
    """Every rank that the study asks for."""
    training = study.training
    length = facts.length(training.sequence if table.sequence is None else table.sequence)
    asked = training.sequence_parallel
    return [
        Point(width, microbatch, length, attention, spread and width > 1)
        for attention in _attentions(study)
        for microbatch in sorted(set(training.microbatches))
        for width in table.widths or facts.widths
        for spread in ((False, True) if asked == "best" and width > 1 and facts.shards else (asked is True,))
    ]


def _graphs(place: str, study: StudyFile, table: ModelTable, where: str, watch: Watch, fresh: bool) -> list[str]:
    """The files of a model's graphs, traced if they are not kept."""
    supply = supply_of(place, fresh=fresh)
    if isinstance(supply, GraphFile):
        return [place]
    if not isinstance(supply, Traced):
        raise InputError(where, f"'{place}' is a built-in name", "give it as the model's name")
    points = _points(study, table, supply.facts)
    failed = supply.prepare(points, watch)
    kept = [point for point in points if point not in failed]
    if not kept:
        raise failed[min(failed)]
    return [supply.file(point) for point in dict.fromkeys(kept)]


def own_places(raw: Mapping[str, Any]) -> list[str]:
    """The models of a study's list that lead to code, a configuration or a graph."""
    entries = raw.get("models")
    return (
        [entry for entry in entries if isinstance(entry, str) and is_place(entry)] if isinstance(entries, list) else []
    )


def with_own_models(raw: Mapping[str, Any], where: str, watch: Watch = silent, fresh: bool = False) -> dict[str, Any]:
    """A study's plain values with every model of its list that is a place replaced by its graphs."""
    entries = raw.get("models")
    if not isinstance(entries, list):
        return dict(raw)
    places = {at: entry for at, entry in enumerate(entries) if isinstance(entry, str) and is_place(entry)}
    if not places:
        return dict(raw)
    tables = [{"name": name_of(places[at])} if at in places else entry for at, entry in enumerate(entries)]
    study = study_of({**raw, "models": tables}, where)
    for at, place in places.items():
        graphs = _graphs(place, study, study.tables()[at], f"{where}: models[{at}]", watch, fresh)
        tables[at] = {**tables[at], "graphs": graphs}
    return {**raw, "models": tables}
