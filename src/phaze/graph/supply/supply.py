"""From what a user names to a model at any point, with or without torch.

    a built-in name         graphs that are bundled; a width or sequence that is not is traced
    gpt, llama and sizes    the bundled families
    graph.json              a phaze.graph/1 file: the one point it was traced at
    config.json, a folder   a configuration of transformers, traced
    file.py:function        the user's code, traced; also package.module:function
    PLACE@plan.toml         either of these with a tensor-parallel plan of one's own

Traces are kept (:mod:`phaze.graph.supply.cache`). :meth:`Supply.prepare` traces what is missing of
many points at once, in processes of their own.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from phaze import documents
from phaze.errors import InputError
from phaze.files import read_text
from phaze.graph import store, zoo
from phaze.graph.family import FAMILIES, ROTARY_FAMILIES, check_sizes
from phaze.graph.ir import Model
from phaze.graph.sources import need_torch
from phaze.graph.supply.cache import CachedModel, GraphCache, cache_folder
from phaze.graph.supply.permission import require_allowed
from phaze.graph.supply.point import USUAL_WIDTHS, Facts, RankPoint
from phaze.graph.supply.scaled import sampled
from phaze.graph.supply.tracing import EndedError, Watch, Workshop, silent
from phaze.graph.tensor_plan import place_and_plan


class Supply(Protocol):
    """A model that can be asked for at points."""

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        ...

    @property
    def experts(self) -> tuple[int, int, int] | None:
        """The published split of 1024 devices (pipeline, data, tensor), where there is one."""
        ...

    def prepare(
        self, points: Sequence[RankPoint], watch: Watch = silent
    ) -> Mapping[RankPoint, InputError]:
        """Have all of these points at hand; what the model refuses is returned."""
        ...

    def kept_open(self) -> AbstractContextManager[None]:
        """Until the end of the block the processes that trace stay between requests: each of them
        starts torch and builds the model."""
        ...

    def options(self, microbatches: Sequence[int]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """Of the usual microbatches those that it has, and whether it runs with or without sequence
        parallelism."""
        ...

    def model(self, point: RankPoint) -> Model:
        """The graph at a point."""
        ...


@dataclass(frozen=True, slots=True)
class Bundled:
    """A built-in model."""

    name: str

    @property
    def facts(self) -> Facts:
        """Its row."""
        entry = zoo.entry_of(self.name)
        return Facts(
            self.name,
            entry.sequence,
            entry.positions,
            entry.fixed,
            entry.shipped,
            rotary=entry.rotary,
        )

    @property
    def experts(self) -> tuple[int, int, int] | None:
        """The published split."""
        return zoo.entry_of(self.name).experts

    def kept_open(self) -> AbstractContextManager[None]:
        """Nothing runs."""
        return nullcontext()

    def prepare(
        self, points: Sequence[RankPoint], watch: Watch = silent
    ) -> Mapping[RankPoint, InputError]:
        """Nothing to do."""
        return {}

    def options(self, microbatches: Sequence[int]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """All of them, both ways."""
        return tuple(microbatches), (False, True)

    def model(self, point: RankPoint) -> Model:
        """The bundled graph."""
        return zoo.model_at_point(self.name, point)


@dataclass(frozen=True, slots=True)
class GraphFamily:
    """A decoder by its sizes."""

    name: str
    sizes: Mapping[str, Any]
    experts: tuple[int, int, int] | None = None

    @property
    def facts(self) -> Facts:
        """By its sizes."""
        values = check_sizes(self.name, self.sizes)
        divided = FAMILIES[self.name].divided
        widths = tuple(
            width for width in USUAL_WIDTHS if all(values[key] % width == 0 for key in divided)
        )
        rotary = self.name in ROTARY_FAMILIES
        return Facts(
            self.name, values["sequence"], values["sequence"], False, widths, rotary=rotary
        )

    def kept_open(self) -> AbstractContextManager[None]:
        """Nothing runs."""
        return nullcontext()

    def prepare(
        self, points: Sequence[RankPoint], watch: Watch = silent
    ) -> Mapping[RankPoint, InputError]:
        """Nothing to do."""
        return {}

    def options(self, microbatches: Sequence[int]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """All of them, both ways."""
        return tuple(microbatches), (False, True)

    def model(self, point: RankPoint) -> Model:
        """The bundled family at these sizes."""
        return zoo.family_at_point(self.name, self.sizes, point)


@dataclass(frozen=True, slots=True)
class SuppliedGraph:
    """A graph that was traced before: it has one point."""

    place: str
    graph: Model
    experts: tuple[int, int, int] | None = None

    @property
    def facts(self) -> Facts:
        """Those of the graph."""
        return Facts(
            self.graph.name, self.graph.sequence, self.graph.sequence, True, (self.graph.tensor,)
        )

    def kept_open(self) -> AbstractContextManager[None]:
        """Nothing runs."""
        return nullcontext()

    def prepare(
        self, points: Sequence[RankPoint], watch: Watch = silent
    ) -> Mapping[RankPoint, InputError]:
        """Nothing to do."""
        return {}

    def options(self, microbatches: Sequence[int]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """Those of the graph."""
        return (self.graph.microbatch,), (self.graph.sequence_parallel,)

    def model(self, point: RankPoint) -> Model:
        """The graph, or an InputError if it was traced elsewhere."""
        if point != self.point:
            seen = f"this graph is of {self.point}, and {point} is wanted"
            raise InputError(self.place, seen, "trace it, or request that")
        return self.graph

    @property
    def point(self) -> RankPoint:
        """What it was traced as."""
        graph = self.graph
        return RankPoint(
            graph.tensor, graph.microbatch, graph.sequence, graph.attention, graph.sequence_parallel
        )


@dataclass(slots=True)
class TracedSupply:
    """A model that PyTorch traces: a configuration or a user's code; ``fresh`` ignores what is
    kept.

    One that is ``traced_before`` has only what was traced before: a document that somebody else
    made runs nothing.
    """

    place: str
    cache: GraphCache
    workers: int
    fresh: bool = False
    traced_before: bool = False
    experts: tuple[int, int, int] | None = None
    cached: CachedModel | None = None
    workshop: Workshop | None = None
    held: bool = False
    models: dict[RankPoint, Model] = field(default_factory=dict)

    def _open(self) -> CachedModel:
        if self.cached is None and not self.fresh:
            self.cached = self.cache.cached_model(self.place)
        if self.cached is None:
            facts, files = self._shop().open()
            self.cached = self.cache.remember(self.place, facts, files)
        return self.cached

    def _shop(self) -> Workshop:
        if self.workshop is None:
            if self.traced_before:
                seen = "its graphs are not kept, and a document traces no model"
                raise InputError(self.place, seen, "plan it first: phaze plan --model")
            need_torch(self.place, loads=False)
            facts = None if self.cached is None else self.cached.facts
            self.workshop = Workshop(self.place, self.workers, facts=facts)
        return self.workshop

    @property
    def facts(self) -> Facts:
        """From the cache, or by running the code that builds it."""
        return self._open().facts

    def options(self, microbatches: Sequence[int]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """All of them; with sequence parallelism where that was proved."""
        return tuple(microbatches), (False, True) if self.facts.shards else (False,)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """End the processes that trace when the block ends, and not before."""
        self.held = True
        try:
            yield
        finally:
            self.held = False
            self.close()

    def prepare(
        self, points: Sequence[RankPoint], watch: Watch = silent
    ) -> Mapping[RankPoint, InputError]:
        """Trace what is not kept, then end the processes that did, unless they are kept open."""
        cached, missing = self._open(), []
        failed: dict[RankPoint, InputError] = {}
        for point in dict.fromkeys(points):
            if point in self.models:
                continue
            graph_found = None if self.fresh else self.cache.load(cached, point)
            fault = (
                None if self.fresh or graph_found is not None else self.cache.refused(cached, point)
            )
            if graph_found is not None:
                self.models[point] = graph_found
            elif fault is not None:
                failed[point] = fault
            else:
                missing.append(point)
        if not missing:
            return failed

        def keep(point: RankPoint, graph: Mapping[str, Any]) -> None:
            self.models[point] = store.model_of(graph, self.place)
            self.cache.save(cached, point, graph)

        sampling = sampled(missing)
        try:
            refused = self._shop().trace(sampling.first, keep, watch)
            for point, model in sampling.predicted(self.models).items():
                keep(point, store.document_of(model))
            left = [point for point in sampling.scaled if point not in self.models]
            refused |= self._shop().trace(left, keep, watch) if left else {}
        finally:
            if not self.held:
                self.close()
        for point, fault in refused.items():
            if not isinstance(fault, EndedError):
                self.cache.save_refused(cached, point, fault)
        return failed | refused

    def model(self, point: RankPoint) -> Model:
        """The graph at a point, or the InputError that says why there is none."""
        for fault in self.prepare([point]).values():
            raise fault
        return self.models[point]

    def file(self, point: RankPoint) -> str:
        """Where the graph at a point is kept."""
        self.model(point)
        path = self.cache.path(self._open(), point)
        if not path.is_file():
            raise InputError(
                str(self.cache.folder),
                "graphs cannot be kept there",
                "name another folder: PHAZE_CACHE",
            )
        return str(path)

    def close(self) -> None:
        """End the processes that trace."""
        if self.workshop is not None:
            self.workshop.close()
            self.workshop = None


def supply_of(
    model: str,
    *,
    allow_code: bool = False,
    where: str = "",
    fresh: bool = False,
    traced_before: bool = False,
    cache: GraphCache | None = None,
) -> Supply:
    """What ``--model`` or the file ``where`` names. Code is refused unless the caller named it or
    allowed it (``allow_code``); ``traced_before``: only with the graphs of earlier traces, which
    runs none."""
    require_allowed(model, allow_code or traced_before, where)
    place, plan = place_and_plan(model)
    path = Path(place)
    if path.is_dir() and (path / "config.json").is_file():
        place = str(path / "config.json")
    if plan is not None or ":" in place or place != model:
        return _traced(place if plan is None else f"{place}@{plan}", fresh, traced_before, cache)
    if model.endswith(".json") or model == "-":
        text, where = read_text(model)
        raw = documents.parse(text, "json", where)
        if "schema" in raw or model == "-":
            return SuppliedGraph(where, store.model_of(raw, where))
        return _traced(model, fresh, traced_before, cache)
    zoo.entry_of(model)
    return Bundled(model)


def _traced(place: str, fresh: bool, traced_before: bool, cache: GraphCache | None) -> TracedSupply:
    return TracedSupply(
        place, cache or GraphCache(cache_folder()), os.cpu_count() or 1, fresh, traced_before
    )
