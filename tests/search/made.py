"""Small models and spaces for tests: passes of random works in a chain of prologue, blocks and
epilogue."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product as product_of
from typing import Any

import numpy as np

from phaze.cost.mapping import product
from phaze.cost.vector import Moved, VectorWork
from phaze.cost.work import CollectiveWork, Work
from phaze.evaluate.lowered_layer import LoweredLayer, LoweredMode
from phaze.evaluate.lowered_pass import LoweredPass
from phaze.evaluate.schedule_operators import Unit
from phaze.graph.ir import Call, Edge, Model, OperatorGraph
from phaze.graph.zoo import load_family
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.library import load_cluster, load_stack
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.options.values import Kind
from phaze.placement.job import TrainingJob
from phaze.placement.machine import Machine
from phaze.placement.problem import RecomputeChoice
from phaze.placement.solve import fastest_plan
from phaze.schedule.rules import ICML24
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import Evaluated
from phaze.search.objective import Objective, Scale
from phaze.search.problem import problem_of
from phaze.search.rank_graph import RankGraph, rank_graph, rank_graph_of
from phaze.search.rates import chip_rates
from phaze.search.reference import layers_on, value_on
from phaze.search.space import Space
from phaze.search.spaces import load_space, space_in
from phaze.search.state import SearchState
from phaze.search.task import (
    Configuration,
    ModelTask,
    SearchJob,
    networks_of,
    task_of,
    with_links,
)

MIB, GIB = 2**20, 2**30
CHOICES: tuple[RecomputeChoice, ...] = ("none", "full")


def small_space(**axes: Any) -> Space:
    """A few dozen chips."""
    wanted = {
        "tensor_cores": [1, 4, 16],
        "rows": [32, 128],
        "columns": [64],
        "vector_cores": [1, 4],
        "lanes": [16, 128],
        "global_buffer": ["2 MiB", "32 MiB"],
    }
    raw = {
        "schema": "phaze.space/1",
        "name": "small",
        "title": "a few chips",
        "base": "tpu-v4-paper",
        "axes": wanted | axes,
        "core_buffers": {"least": "1 KiB", "bytes_per_unit": 16},
        "keep": {"area_of": "tpu-v4-paper"},
    }
    return space_in(raw, "small")


def _work(rng: random.Random, size: int) -> Work:
    kind = rng.choice(("tensor", "tensor", "vector", "vector", "both"))
    elements = 64 * size * rng.randint(1, 16)
    lanes = VectorWork(
        elements, 0, float(rng.randint(1, 8)), 1, (Moved(2 * elements),), (Moved(2 * elements),)
    )
    bare = VectorWork(elements, 0, float(rng.randint(1, 8)), 1, (), ())
    shape = product(
        1, 32 * size * rng.randint(1, 4), 64 * rng.randint(1, 8), 64 * rng.randint(1, 8)
    )
    if kind == "vector":
        return Work("vector", vector=lanes)
    return Work("tensor", (shape,)) if kind == "tensor" else Work("both", (shape,), bare)


def made_pass(
    rng: random.Random, most: int, size: int, machine: Machine, width: int = 1
) -> LoweredPass:
    """Random operators and edges; in a tensor group one of them is a collective of 10 us."""
    works = [_work(rng, size) for _ in range(rng.randint(1, most))]
    if width > 1:
        bytes_ = round(
            1e-5 * machine.cluster.levels[0].bandwidth_bytes_per_s * width / (2 * (width - 1))
        )
        works.append(Work("network", collective=CollectiveWork("all_reduce", bytes_, width)))
    units = tuple(
        Unit((at,), "none" if w.core == "network" else w.core, w.core == "network")
        for at, w in enumerate(works)
    )
    edges = tuple((i, j) for j in range(len(works)) for i in range(j) if rng.random() < 0.4)
    nothing: tuple[None, ...] = (None,) * len(works)
    return LoweredPass(ICML24, tuple(works), nothing, units, edges, (), 0.0).on_network(machine)


def made_machine(link_bytes_per_s: float = 2.0**32) -> Machine:
    """One flat link and the published schedules."""
    return Machine(
        with_links(load_cluster("paper-flat"), link_bytes_per_s), load_stack("icml24"), "ideal"
    )


def made_training(devices: int, batch: int, link_bytes_per_s: float = 2.0**32) -> TrainingJob:
    """A job of the ICML 2024 paper's setting."""
    return TrainingJob(made_machine(link_bytes_per_s), devices, batch, "sgd")


def made_model(
    seed: int, width: int = 1, microbatch: int = 1, blocks: int = 4, operators: int = 5
) -> RankGraph:
    """A chain; the same seed gives alike models at other widths and microbatches."""
    rng, machine, layers = random.Random(seed), made_machine(), []
    for name in ("prologue", "block", "epilogue"):
        forward, backward = (
            made_pass(rng, operators, microbatch, machine, width) for _ in range(2)
        )
        held = rng.randint(1, 40) * MIB // width
        sharded = width > 1 and (name == "block" or rng.random() < 0.5)
        saved, nothing = (
            rng.randint(1, 60) * MIB * microbatch,
            LoweredPass(ICML24, (), (), (), (), (), 0.0),
        )
        modes = (LoweredMode("selective", nothing, saved, 0), LoweredMode("full", None, saved, 0))
        layers.append(
            LoweredLayer(
                name, forward, backward, modes, held // 2, saved, sharded, accumulation_bytes=0.0
            )
        )
    return chained(layers, (0, *(1,) * blocks, 2), width, microbatch)


def chained(
    layers: Sequence[LoweredLayer],
    calls: Sequence[int],
    width: int = 1,
    microbatch: int = 1,
    edges: Sequence[tuple[int, int, int]] | None = None,
) -> RankGraph:
    """Layers that are called one after another; or with other edges."""
    joined = (
        [(i, i + 1, MIB * microbatch) for i in range(len(calls) - 1)] if edges is None else edges
    )
    own = tuple(Edge(tail, head, size, size) for tail, head, size in joined)
    made = tuple(
        Call(kind, ("prologue", f"layers.{at}", "epilogue")[kind]) for at, kind in enumerate(calls)
    )
    model = Model("made", width, microbatch, 1, False, "eager", (), made, own, (), ())
    return rank_graph_of(model, layers)


def made_task(
    seed: int, widths: tuple[int, ...] = (1,), microbatches: tuple[int, ...] = (1, 2)
) -> ModelTask:
    """A model at several widths and microbatches, on 16 devices."""
    graphs = [made_model(seed, t, b) for b in microbatches for t in widths]
    return task_of(f"made-{seed}", 1.0, made_training(16, 64), IDEAL, graphs, CHOICES)


def traced_task(
    seed: int = 3,
    widths: tuple[int, ...] = (1, 2),
    microbatches: tuple[int, ...] = (1, 2),
    name: str | None = None,
) -> ModelTask:
    """A real decoder of tiny sizes on 16 devices, all its names another one if given."""
    sizes = {
        "hidden": 64 + 16 * (seed % 4),
        "layers": 3,
        "heads": 4,
        "vocabulary": 512,
        "sequence": 32,
    }
    training, graphs = made_training(16, 64), []
    for size in microbatches:
        for width in widths:
            model = load_family("gpt", sizes, tensor=width, microbatch=size)
            graphs.append(
                rank_graph(
                    model if name is None else _renamed(model, name), training.machine, False
                )
            )
    return task_of(name or f"traced-{seed}", 1.0, training, IDEAL, graphs, CHOICES)


def _renamed(model: Model, name: str) -> Model:
    def graph(own: OperatorGraph) -> OperatorGraph:
        return replace(
            own, operators=tuple(replace(operator, module=name) for operator in own.operators)
        )

    layers = tuple(
        replace(layer, name=name, forward=graph(layer.forward), backward=graph(layer.backward))
        for layer in model.layers
    )
    return replace(model, name=name, layers=layers)


def made_job(
    tasks: tuple[ModelTask, ...], kind: Kind = "throughput", gap: float = 0.0, **axes: Any
) -> SearchJob:
    """A search over a small space."""
    return SearchJob(
        "made",
        tasks,
        small_space(**axes),
        (128 * MIB, GIB),
        Objective(kind),
        gap,
        "made",
        round_size=4,
    )


def core_space(name: str) -> Space:
    """A space of chips of cores, by name or path."""
    space = load_space(name)
    assert isinstance(space, Space)
    return space


def exact_score(job: SearchJob, scale: Scale, opened: SpaceChips, chip: int, hbm: int) -> float:
    """A chip's score by the plain path: every configuration, no bound, no cache; energy and price
    by the one-chip formulas. Where time alone counts every stage of ZeRO and pipeline family by
    itself."""
    links = opened.link_bytes_per_s
    tasks, values = networks_of(job.models, job.space, links).tasks_of(chip), []
    value, most = opened.chip(chip, job.hbm_bytes[hbm]), job.space.limits["usd"]
    made = manufacturing_of(value, load_terms())
    if most is not None and (made is None or made.usd > most * (1 + 1e-12)):
        return float("inf")
    if value.hbm.size_bytes != job.hbm_bytes[hbm]:
        return float("inf")
    value_by = value_on if job.objective.needs_energy else _value_of_each
    values = [value_by(task, value, job.objective) for task in tasks]
    return float(scale.score(np.array(values)))


def _value_of_each(task: ModelTask, chip: Chip, objective: Objective) -> float:
    """The least value of a model on a chip over graphs, recompute choices, stages of ZeRO and
    families, one by one."""
    rates, best_s = chip_rates(objective, chip, task.training.devices), float("inf")
    choices = dict.fromkeys(configuration.recompute for configuration in task.configurations)
    for at in range(len(task.graphs)):
        times = layers_on(task, at, chip, None).exact.times
        for choice, zero in product_of(choices, task.training.zeros):
            problem = problem_of(
                task, Configuration(at, choice, (zero,)), times, chip.hbm.size_bytes
            )
            for family in problem.rules.families:
                alone = replace(problem, rules=replace(problem.rules, families=(family,)))
                plan = fastest_plan(alone, task.prices)
                best_s = best_s if plan is None else min(best_s, plan.batch_s)
    return float(rates.value(np.asarray(best_s), 0.0))


def stopping_after_one(
    plain: Callable[[SearchState, int, float], Evaluated],
) -> Callable[[SearchState, int, float], Evaluated]:
    """``plain`` for one chip, then an interruption."""
    seen = list[int]()

    def stopping(state: SearchState, chip: int, cut: float) -> Evaluated:
        if seen:
            raise KeyboardInterrupt
        seen.append(chip)
        return plain(state, chip, cut)

    return stopping
