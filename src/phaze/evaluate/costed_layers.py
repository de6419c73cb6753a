"""The layers of many models in one setting, as the choices of a plan ask for them: each distinct
one is costed once.

Models that differ in how their experts are sharded have all other layers in common, as the same
values. What a pass takes is known before what recomputing takes (:meth:`CostedLayers.passes_s`): it
bounds a plan, and most modes of recompute of most choices are never asked for.
"""

from collections.abc import Callable, Iterable

import numpy as np

from phaze.cost.chip_set import chip_set
from phaze.evaluate.known_works import KnownWorks
from phaze.evaluate.layer_table import LayerTable, layer_table, stacked
from phaze.evaluate.layers import EXACT, Setting
from phaze.evaluate.lowered_layer import (
    RunPasses,
    keeping_of,
    lower_layer,
    rule_of,
    run_passes,
)
from phaze.evaluate.pass_builder import PassBuilder
from phaze.graph.ir import Layer, Model
from phaze.graph.saved.modes import Modes, modes_to_try
from phaze.graph.saved.regions import KnownRegions
from phaze.placement.job import TrainingJob
from phaze.placement.problem import PlacementProblem
from phaze.schedule.solve import KnownPart


class CostedLayers:
    """What layers take and hold in a setting; layers are known by identity, and kept as long as
    this value is."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.machine, self.constants = setting, setting.machine, setting.constants
        self.chips = chip_set([setting.chip])
        self._builder = PassBuilder(self.machine, rule_of(setting.stack))
        self._works = KnownWorks(self.chips, self.constants, rule_of(setting.stack))
        self._hosted = self.machine.host_bytes_per_s is not None
        self._layers: dict[int, Layer] = {}
        self._passes: dict[int, RunPasses] = {}
        self._passes_s: dict[int, float] = {}
        self._modes: dict[int, Modes] = {}
        self._regions = KnownRegions(self._builder.fusions.structures)
        self._names: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._rows: dict[tuple[int, tuple[str, ...]], LayerTable] = {}
        self._parts: dict[str, KnownPart] = {}
        self._problems: dict[tuple[int, int], tuple[Model, PlacementProblem]] = {}

    def _key(self, layer: Layer) -> int:
        self._layers[id(layer)] = layer
        return id(layer)

    def _run(self, layer: Layer) -> RunPasses:
        key = self._key(layer)
        if key not in self._passes:
            self._passes[key] = run_passes(layer, self._builder)
        return self._passes[key]

    def _modes_of(self, layer: Layer) -> Modes:
        key = self._key(layer)
        if key not in self._modes:
            keeping = keeping_of(self.machine.stack, self._hosted)
            self._modes[key] = Modes(self._run(layer).layer, keeping, self._regions)
        return self._modes[key]

    def passes_s(self, model: Model) -> tuple[float, ...]:
        """What a forward and a backward pass take at least, by distinct layer; exactly where a
        formula gives it, but for the adding of gradients."""
        self.time_passes([model])
        return tuple(self._passes_s[id(layer)] for layer in model.layers)

    def time_passes(self, models: Iterable[Model]) -> None:
        """Work that out for several models: works of all of them are costed at once, each distinct
        one once."""
        every = {self._key(layer): layer for model in models for layer in model.layers}
        missing = [layer for key, layer in every.items() if key not in self._passes_s]
        runs = [self._run(layer) for layer in missing]
        passes = [layer_pass for run in runs for layer_pass in (run.forward, run.backward)]
        costs = self._works.times([work for layer_pass in passes for work in layer_pass.works])
        first, seconds = 0, list[float]()
        for layer_pass in passes:
            device = (
                layer_pass.bound(layer_pass.times(costs, first, self.chips))
                if layer_pass.works
                else np.zeros(1)
            )
            seconds.append(float(layer_pass.with_host(device)[0]))
            first += len(layer_pass.works)
        for place, layer in enumerate(missing):
            self._passes_s[id(layer)] = seconds[2 * place] + seconds[2 * place + 1]

    def problem(
        self, model: Model, job: TrainingJob, build: Callable[[], PlacementProblem]
    ) -> PlacementProblem:
        """The placement problem of a rank, built if this is the first time; the model is kept with
        it."""
        key = (id(model), job.shard)
        if key not in self._problems:
            self._problems[key] = (model, build())
        return self._problems[key][1]

    def _modes_to_try(self, model: Model) -> tuple[str, ...]:
        counted = [(layer, model.count(kind)) for kind, layer in enumerate(model.layers)]
        key = tuple(self._key(layer) for layer in model.layers)
        if key not in self._names:
            # In 16 bits a layer keeps what its trace keeps; recipes of fewer bits are offered the
            # trace's modes.
            plain = self.machine.recipe is None and not self.machine.wide
            keeping = keeping_of(self.machine.stack, self._hosted)
            self._names[key] = modes_to_try(counted, keeping, self._modes_of if plain else None)
        return self._names[key]

    def table(self, model: Model) -> LayerTable:
        """As :func:`phaze.evaluate.layers.model_table`."""
        names, apart = self._modes_to_try(model), self.machine.stack.splits_backward
        missing = {
            (self._key(la), names): la
            for la in model.layers
            if (self._key(la), names) not in self._rows
        }
        layers = [
            lower_layer(
                layer,
                self.machine,
                apart=apart,
                names=names,
                passes=self._run(layer),
                modes=self._modes_of(layer),
            )
            for layer in missing.values()
        ]
        table = layer_table(
            layers,
            self.chips,
            self.constants,
            lambda layer_pass, times: layer_pass.device_s(
                times, EXACT.limits, self._parts, scheduler=EXACT.scheduler
            ),
            self._works.times(
                [
                    work
                    for layer in layers
                    for layer_pass in layer.passes
                    for work in layer_pass.works
                ]
            ),
        )
        self._rows.update(zip(missing, table.rows(), strict=True))
        return stacked([self._rows[self._key(layer), names] for layer in model.layers])
