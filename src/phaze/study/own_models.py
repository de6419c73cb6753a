"""Models of a study that are not built in: a user's code, a configuration or an ``nn.Module``,
traced at every point that the study asks for, so that the study names graphs. A run of it holds
their text and never runs the code again."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.parallel_rank import (
    Refusals,
    parallel_rank,
    parallels,
    supply_at,
    traces_of,
)
from phaze.evaluate.request import attentions_of
from phaze.graph.ir import Attention
from phaze.graph.supply.module import ModuleSupply, graph_file
from phaze.graph.supply.point import Facts, RankPoint
from phaze.graph.supply.supply import SuppliedGraph, Supply, TracedSupply, supply_of
from phaze.graph.supply.tracing import Watch, silent
from phaze.graph.tensor_plan import is_place, place_and_plan, place_beside
from phaze.hardware.library import load_cluster
from phaze.study.load import space_of, study_of
from phaze.study.places import Origin, name_of, plain_name, with_texts
from phaze.study.schema import ModelTable, StudyFile
from phaze.study.settings import Degrees, cluster_name, degrees_of, stack_of


def _attentions(study: StudyFile, origin: Origin) -> tuple[Attention, ...]:
    reader = with_texts(study.files, origin.reader)
    space = space_of(study, reader)
    stack = stack_of(study, load_cluster(cluster_name(study, space), reader, space.base), reader)
    return attentions_of(study.training.attention, stack, "training.attention")


def _points(study: StudyFile, table: ModelTable, facts: Facts, origin: Origin) -> list[RankPoint]:
    """Every rank that the study asks for."""
    training = study.training
    length = facts.length(training.sequence if table.sequence is None else table.sequence)
    spreads = training.sequence_parallel
    return [
        RankPoint(width, microbatch, length, attention, spread and width > 1)
        for attention in _attentions(study, origin)
        for microbatch in sorted(set(training.microbatches))
        for width in table.widths or facts.widths
        for spread in (
            (False, True)
            if spreads == "best" and width > 1 and facts.shards
            else (spreads is True,)
        )
    ]


def _available(
    points: list[RankPoint], failed: Mapping[RankPoint, InputError], table: ModelTable
) -> list[RankPoint]:
    """The points that the model has; a width that the study names must be among them."""
    points_left = [point for point in dict.fromkeys(points) if point not in failed]
    lost = {point.tensor for point in points} - {point.tensor for point in points_left}
    if not points_left or (table.widths is not None and lost):
        raise failed[min(point for point in failed if not points_left or point.tensor in lost)]
    return points_left


def _place(table: ModelTable, origin: Origin) -> str:
    """A table's model as :func:`supply_of` takes it, its paths as they are opened."""
    place, plan = place_and_plan(str(table.model))
    if plan is not None and table.tensor_plan is not None:
        raise InputError("tensor_plan", f"'{table.model}' names a plan too", "give one of them")
    named = place if table.tensor_plan is None else f"{place}@{table.tensor_plan}"
    return place_beside(origin.folder, named if plan is None else str(table.model))


def _graphs(
    supply: Any, study: StudyFile, table: ModelTable, origin: Origin, watch: Watch, where: str
) -> list[str]:
    """The files of a model's graphs, traced if they are not kept."""
    if isinstance(supply, SuppliedGraph):
        return [str(table.model)]
    if not isinstance(supply, TracedSupply | ModuleSupply):
        raise InputError(
            where, f"'{table.model}' is a built-in name", "give it as the model's name"
        )
    degrees = degrees_of(study)
    with supply.kept_open():
        points = _points(study, table, supply.facts, origin)
        points_left = _available(points, supply.prepare(points, watch), table)
        if degrees[:2] != ([1], [1]):
            return _shared_graphs(supply, points_left, degrees, watch)
    if isinstance(supply, ModuleSupply):
        return [supply.file(supply.model(point)) for point in points_left]
    return [supply.file(point) for point in points_left]


def _shared_graphs(
    supply: Supply, points: list[RankPoint], degrees: Degrees, watch: Watch
) -> list[str]:
    """The files of ranks that share sequences and experts, at every point and degree that the model
    can have."""
    traced = [
        rank
        for point in points
        for parallel in parallels(point.tensor, *degrees)
        for rank in traces_of(point, parallel)
    ]
    supply.prepare(list(dict.fromkeys(traced)), watch)
    refusals, graph_files = Refusals(), list[str]()
    for point in points:
        load = supply_at(supply, point)
        for parallel in parallels(point.tensor, *degrees):
            rank = partial(parallel_rank, load, parallel, point.sequence, point.sequence_parallel)
            model = refusals.attempted(parallel, rank)
            graph_files += [] if model is None else [graph_file(model)]
    refusals.require()
    return graph_files


def _named(entry: Any) -> tuple[Any, ModuleSupply | None]:
    """An entry of a study's models as a name or a table, and the module that it holds, if it is
    one."""
    if isinstance(entry, str):
        return (
            ({"name": name_of(entry), "model": entry}, None) if is_place(entry) else (entry, None)
        )
    if isinstance(entry, ModuleSupply):
        return {"name": plain_name(entry.name), "model": entry.name}, entry
    inner = entry.get("model") if isinstance(entry, dict) else None
    if isinstance(inner, ModuleSupply):
        return {"name": plain_name(inner.name), **entry, "model": inner.name}, inner
    return entry, None


def with_tables(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A study's plain values, every model of its list that is a place or a module as a table of its
    own."""
    entries = raw.get("models")
    return (
        {**raw, "models": [_named(entry)[0] for entry in entries]}
        if isinstance(entries, list)
        else dict(raw)
    )


def own_places(raw: Mapping[str, Any], origin: Origin) -> list[tuple[str, int | None]]:
    """The models of a study that are traced from a file, as they are opened, each with the sequence
    requested."""
    if not isinstance(raw.get("models"), list):
        return []
    modules = [_named(entry)[1] for entry in raw["models"]]
    study = study_of(with_tables(raw), origin.where)
    return [
        (_place(table, origin), table.sequence or study.training.sequence)
        for table, module in zip(study.tables(), modules, strict=True)
        if table.model is not None and module is None
    ]


def with_own_models(
    raw: Mapping[str, Any], origin: Origin, watch: Watch = silent, fresh: bool = False
) -> dict[str, Any]:
    """A study's plain values with every model of one's own replaced by its graphs."""
    if not isinstance(raw.get("models"), list):
        return dict(raw)
    named = [_named(entry) for entry in raw["models"]]
    entries = [entry for entry, _ in named]
    if not any(isinstance(entry, dict) and "model" in entry for entry in entries):
        return dict(raw)
    study = study_of({**raw, "models": entries}, origin.where)
    for index, (table, (_, module)) in enumerate(zip(study.tables(), named, strict=True)):
        if table.model is None:
            continue
        where = f"{origin.where}: models[{index}]"
        supply = module or supply_of(
            _place(table, origin), allow_code=origin.allow_code, where=where, fresh=fresh
        )
        graphs = _graphs(supply, study, table, origin, watch, where)
        stated = {
            key: value
            for key, value in entries[index].items()
            if key not in ("model", "tensor_plan")
        }
        entries[index] = {"name": table.name, **stated, "graphs": graphs}
    return {**raw, "models": entries}
