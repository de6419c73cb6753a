"""What is searched, as frozen values: models ready to be scheduled, a space of chips, memories, an objective, a gap."""

from dataclasses import dataclass

from phaze.evaluate.flow import Prepared, Training
from phaze.placement.problem import Recompute
from phaze.search.objective import Objective
from phaze.search.space import SpaceFile


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a model on a chip: which of its prepared graphs (width, microbatch), and whether it recomputes."""

    graph: int
    recompute: Recompute


@dataclass(frozen=True, slots=True)
class ModelTask:
    """One model: its graphs at every width and microbatch, its job, and how much it counts beside other models."""

    name: str
    weight: float
    training: Training
    graphs: tuple[Prepared, ...]
    ways: tuple[Way, ...]


def ways_of(graphs: tuple[Prepared, ...], recompute: tuple[Recompute, ...]) -> tuple[Way, ...]:
    """Every graph with every recompute choice, in a fixed order."""
    return tuple(Way(at, choice) for at in range(len(graphs)) for choice in recompute)


@dataclass(frozen=True, slots=True)
class Job:
    """A search: everything that its answer depends on. ``hbm_bytes`` ascends; ``digest`` names the study."""

    name: str
    models: tuple[ModelTask, ...]
    space: SpaceFile
    hbm_bytes: tuple[int, ...]
    objective: Objective
    gap: float
    digest: str
    round_size: int = 16
    limit_s: float | None = None
