"""A module that is there already, as an object of this process: traced here, its graphs written to
the cache.

Its code cannot be read, so nothing is taken from the cache: the graphs live as long as the value,
and documents name the files that they were written to.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from phaze import documents
from phaze.errors import InputError
from phaze.files import folder_for, write_whole
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.graph.sources import need_torch
from phaze.graph.supply.cache import cache_folder
from phaze.graph.supply.point import Facts, RankPoint, facts_of
from phaze.graph.supply.tracing import Watch, silent


@dataclass(slots=True)
class ModuleSupply:
    """A module with example inputs and, if its result is no loss, a loss; its first input's first
    dimension is the microbatch and its second the sequence."""

    module: Any
    inputs: Any
    loss: Any = None
    name: str = "module"
    experts: tuple[int, int, int] | None = None
    bench: Any = None
    traced_facts: Facts | None = None
    models: dict[RankPoint, Model] = field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        """Its sequence, and the widths that divide it."""
        if self.traced_facts is None:
            need_torch(self.name)
            from phaze.graph.torch.user import module_source
            from phaze.graph.torch.worker import TracingProcess

            self.bench = TracingProcess()
            source = module_source(self.name, self.module, self.inputs, self.loss)
            self.traced_facts = facts_of(self.bench.open_source(self.name, source, None))
        return self.traced_facts

    def options(self, microbatches: Sequence[int]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """All of them, both ways."""
        return tuple(microbatches), (False, True)

    def kept_open(self) -> AbstractContextManager[None]:
        """It is traced in this process."""
        return nullcontext()

    def prepare(
        self, points: Sequence[RankPoint], watch: Watch = silent
    ) -> Mapping[RankPoint, InputError]:
        """Trace what was not traced before, one after the other."""
        failed: dict[RankPoint, InputError] = {}
        missing = [point for point in dict.fromkeys(points) if point not in self.models]
        assert self.facts
        for done, point in enumerate(missing, start=1):
            try:
                graph = self.bench.trace(point.document())["graph"]
                self.models[point] = store.model_of(graph, self.name)
            except InputError as fault:
                failed[point] = fault
            watch(done, len(missing), str(point))
        return failed

    def model(self, point: RankPoint) -> Model:
        """The graph at a point, or the InputError that says why there is none."""
        for fault in self.prepare([point]).values():
            raise fault
        return self.models[point]

    def file(self, model: Model) -> str:
        """Where a graph of it is written, by content."""
        return graph_file(model)


def graph_file(model: Model) -> str:
    """Where a graph is written, by content."""
    text = store.dumps(model)
    path = folder_for(cache_folder() / "graphs") / f"{documents.digest(text)[:40]}.json"
    write_whole(path, text)
    return str(path)
