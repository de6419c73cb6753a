"""That nothing of a question fits: no chip with a memory on which every model has a plan that its
devices hold (docs/search.md).

What a plan holds depends on no chip but for its memory, and more memory and more replicas never
leave less room. So it is enough that of some model, in the greatest memory that a chip of the space
may have, no stages of any configuration fit with the most replicas that the devices allow; where
that many cannot run, the other numbers of replicas are looked at one by one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .exact_cuts import something_fits
from .model import Model, model_of
from .plan_classes import PlanSpace, Row
from .question import known, of_graphs
from .reading import listed, parsed, require, sha256, text_of, whole
from .space import Grid, chips_of, grid_of

FILES = ("problem.json", "graphs.json")
SCHEMAS = ("phaze.problem/1", "phaze.graphs/1")


def _row_fits(space: PlanSpace, row: Row) -> bool:
    """Whether some stages of a row fit, as far as they can be told apart."""
    if not space.modes_at(row.family, row.stages):
        return False
    sets = space.parts.sets
    if sets is None or space.parts.simple:
        return space.what_fits(row) is not None
    return something_fits(space, sets, row)


def _space_fits(space: PlanSpace) -> bool:
    """Whether a configuration may have a plan that fits."""
    for roomiest in space.roomiest_rows():
        if not _row_fits(space, roomiest):
            continue
        if roomiest.family.runs(roomiest.rounds, roomiest.stages):
            return True
        alike = (roomiest.family, roomiest.stages, roomiest.zero)
        for row in space.rows(0.0, 0.0, float("inf")):
            if (row.family, row.stages, row.zero) == alike and _row_fits(space, row):
                return True
    return False


def _model_fits(model: Model, memory: int) -> bool:
    return any(
        _space_fits(space)
        for graph in range(len(model.graphs))
        for space in model.spaces_of(graph, memory)
    )


def _models(problem: Mapping[str, Any], graphs: Mapping[str, Any]) -> list[Model]:
    tables = listed(problem["models"], "models")
    traces = listed(graphs["models"], "graphs.json", len(tables))
    memories = [whole(size, "hbm_bytes", 1) for size in problem["hbm_bytes"]]
    residency = problem["residency"] is True
    return [
        model_of(table, traced, None, None, residency, memories)
        for table, traced in zip(tables, traces, strict=True)
    ]


def _greatest_memory(grid: Grid, memories: Sequence[int]) -> tuple[int, int]:
    """How many chips a space has, and the place of the greatest memory that one may have, -1 where
    none has any."""
    count, greatest = 0, -1
    for chips in chips_of(grid):
        count += len(chips)
        greatest = max(greatest, int(grid.limits.memory(chips, memories).max(initial=-1)))
    return count, greatest


def question_id(folder: Path) -> str:
    """SHA-256 over the digests of problem and graphs."""
    return sha256("".join(sha256(text_of(folder / name)) for name in FILES))


def require_nothing_fits(folder: Path) -> str:
    """Refuse the question of a folder if something may fit; in words what shows that nothing
    does."""
    problem, graphs = (parsed(text_of(folder / name), name) for name in FILES)
    schemas = (problem.get("schema"), graphs.get("schema"))
    require(schemas == SCHEMAS, "a document has another schema")
    known(problem, graphs)
    of_graphs(problem, graphs)
    memories = [whole(size, "hbm_bytes", 1) for size in problem["hbm_bytes"]]
    grid, models = grid_of(problem["space"], problem["ownership"]), _models(problem, graphs)
    chips, greatest = _greatest_memory(grid, memories)
    if greatest < 0:
        return f"none of {grid.combinations:,} combinations is a chip with a memory"
    for model in models:
        if not _model_fits(model, greatest):
            return (
                f"{model.name} fits into no {memories[greatest] / 2**30:g} GiB, and none of "
                f"{chips:,} chips has more"
            )
    require(False, "nothing shows that no plan fits")
    raise AssertionError
