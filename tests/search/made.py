"""Small models and spaces for tests: passes of random works in a chain of prologue, blocks and epilogue."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from phaze import documents
from phaze.cost.mapping import product
from phaze.cost.vector import Moved, VectorWork
from phaze.cost.work import Work
from phaze.evaluate.flow import Prepared, Training
from phaze.evaluate.passes import LayerPasses, Pass
from phaze.hardware.ownership import load_terms, ownership_of
from phaze.placement.problem import Recompute
from phaze.schedule.problem import Core
from phaze.search.chips import SpaceChips
from phaze.search.evaluation import Evaluated
from phaze.search.objective import Kind, Objective, Scale
from phaze.search.plain import value_on
from phaze.search.space import Space, SpaceFile, space_from
from phaze.search.state import State
from phaze.search.task import Job, ModelTask, networks_of, ways_of

MIB, GIB = 2**20, 2**30
CHOICES: tuple[Recompute, ...] = ("none", "full")


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
    return space_from(documents.check(SpaceFile, raw, "small"))


def _work(rng: random.Random, size: int) -> Work:
    kind = rng.choice(("tensor", "tensor", "vector", "vector", "both"))
    elements = 64 * size * rng.randint(1, 16)
    lanes = VectorWork(elements, 0, float(rng.randint(1, 8)), 1, (Moved(2 * elements),), (Moved(2 * elements),))
    bare = VectorWork(elements, 0, float(rng.randint(1, 8)), 1, (), ())
    shape = product(1, 32 * size * rng.randint(1, 4), 64 * rng.randint(1, 8), 64 * rng.randint(1, 8))
    if kind == "vector":
        return Work("vector", vector=lanes)
    return Work("tensor", (shape,)) if kind == "tensor" else Work("both", (shape,), bare)


def made_pass(rng: random.Random, most: int, size: int, collective_s: float = 0.0) -> Pass:
    """Random operators and edges; with ``collective_s`` one of them is a collective of so many seconds."""
    works = [_work(rng, size) for _ in range(rng.randint(1, most))]
    cores: list[Core] = ["both" if w.core == "both" else "tensor" if w.core == "tensor" else "vector" for w in works]
    waits = [0.0] * len(works)
    if collective_s > 0:
        works.append(Work("network"))
        cores.append("none")
        waits.append(collective_s)
    edges = [(i, j) for j in range(len(works)) for i in range(j) if rng.random() < 0.4]
    return Pass(tuple(works), tuple(cores), tuple(waits), tuple(edges))


def made_model(seed: int, width: int = 1, microbatch: int = 1, blocks: int = 4, operators: int = 5) -> Prepared:
    """A chain; the same seed gives alike models at other widths and microbatches."""
    rng = random.Random(seed)
    layers = []
    for name in ("prologue", "block", "epilogue"):
        wait = 1e-5 if width > 1 else 0.0
        passes = [made_pass(rng, operators, microbatch, wait) for _ in range(2)]
        held = rng.randint(1, 40) * MIB / width
        sharded = width > 1 and (name == "block" or rng.random() < 0.5)
        layers.append(LayerPasses(name, passes[0], passes[1], held, rng.randint(1, 60) * MIB * microbatch, sharded))
    calls = (0, *(1,) * blocks, 2)
    edges = tuple((i, i + 1, 1.0 * MIB * microbatch) for i in range(blocks + 1))
    return Prepared(width, microbatch, tuple(layers), calls, edges)


def made_task(seed: int, widths: tuple[int, ...] = (1,), microbatches: tuple[int, ...] = (1, 2)) -> ModelTask:
    """A model at several widths and microbatches, on 16 devices."""
    training = Training(16, 64, 2.0**32)
    graphs = tuple(made_model(seed, t, b) for b in microbatches for t in widths)
    return ModelTask(f"made-{seed}", 1.0, training, graphs, ways_of(graphs, CHOICES))


def made_job(tasks: tuple[ModelTask, ...], kind: Kind = "throughput", gap: float = 0.0, **axes: Any) -> Job:
    """A search over a small space."""
    return Job("made", tasks, small_space(**axes), (128 * MIB, GIB), Objective(kind), gap, "made", round_size=4)


def exact_score(job: Job, scale: Scale, opened: SpaceChips, chip: int, hbm: int) -> float:
    """A chip's score by the plain path: every way, no bound, no cache; energy and price by the one-chip formulas."""
    links = opened.chips.link_bytes_per_s
    tasks, values = networks_of(job.models, job.space, links).tasks_of(chip), []
    value, most = opened.chip(chip, job.hbm_bytes[hbm]), job.space.keep.most_usd
    if most is not None and ownership_of(value, opened.technology, load_terms()).making_usd > most * (1 + 1e-12):
        return float("inf")
    values = [value_on(task, value, job.objective) for task in tasks]
    return float(scale.score(np.array(values)))


def stopping_after_one(plain: Callable[[State, int, float], Evaluated]) -> Callable[[State, int, float], Evaluated]:
    """``plain`` for one chip, then an interruption."""
    seen = list[int]()

    def stopping(state: State, chip: int, cut: float) -> Evaluated:
        if seen:
            raise KeyboardInterrupt
        seen.append(chip)
        return plain(state, chip, cut)

    return stopping
