"""A run's folder, checked: what is claimed in words, and whether it holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .boxes import boxed, of_clusters, prove_boxes
from .claim import larger_words, plan_words, words_of
from .energy import KINDS, Objective
from .front_boxes import prove_front_boxes
from .fronts import (
    UnitSolver,
    answer_chip,
    asked_of,
    design_values,
    goals_of,
    kind_of,
    prove_units,
    require_undominated,
    units_of,
)
from .means import mean_of
from .model import Model, model_of
from .plan_proof import prove_plan
from .question import known, of_graphs
from .reading import (
    NotCoveredError,
    RefusedError,
    cover,
    digest_of,
    listed,
    number,
    only,
    parsed,
    require,
    sha256,
    text_of,
    whole,
)
from .space import Grid, Space, chip_named, grid_of, space_of
from .space_proof import Counted, Solver, Watch, prove
from .technology import technology_of
from .works import COST_MODEL

FILES = ("problem.json", "graphs.json", "certificate.json")
ANSWERS = ("result.json", "front.json", "plan.json")
"""The views of a certificate, of which a folder has one: what is shown as its answer."""
KEYS = (
    "schema", "problem", "graphs", "cost_model", "best", "bound", "gap", "answer", "fusion", "multipliers",
)  # fmt: skip
FRONT_KEYS = ("schema", "problem", "graphs", "cost_model", "gap", "front", "fusion", "multipliers")
NEAR = 1e-9
"""Figures are sums in another order than phaze has them."""
READING = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


@dataclass(slots=True)
class Verdict:
    """What was found: the claim in words, the first line that does not hold, or what is not covered.

    ``proved_gap`` is what was shown, which may be less than what is claimed; ``designs``: of a front; ``plan``:
    whether it is of a plan on one chip."""

    run_id: str = ""
    words: list[str] = field(default_factory=list)
    wrong: str = ""
    missing: str = ""
    best: float = 0.0
    gap: float = 0.0
    proved_gap: float = 1.0
    quick: bool = False
    designs: int = 0
    plan: bool = False
    counted: Counted | None = None

    @property
    def chips(self) -> int:
        """Chips of the space."""
        return 0 if self.counted is None else self.counted.chips

    @property
    def proved(self) -> int:
        """How many of them were shown to be no better."""
        return 0 if self.counted is None else sum(self.counted.closed.values())

    @property
    def holds(self) -> bool:
        return not self.wrong and not self.missing and not self.quick

    def sentence(self) -> str:
        """The verdict."""
        if self.missing:
            return f"not checkable by the independent checker yet: {self.missing}"
        if self.wrong or self.counted is None:
            return f"does not hold: {self.wrong}"
        closed = ", ".join(f"{count:,} by {step}" for step, count in self.counted.closed.items() if count)
        if self.plan:
            return f"holds: no plan is faster ({closed or 'by the answer alone'}); gap {self.proved_gap:.3g}"
        what = f"combinations in {self.counted.boxes:,} boxes" if self.counted.boxes else "chips"
        if self.designs:
            what = f"{what} with a memory" if self.counted.boxes else "chips with a memory"
        rest = self.chips - self.proved
        answer = f"{self.designs:,} designs hold" if self.designs else "answer holds"
        if self.quick:
            return f"{answer}; of {self.counted.chips:,} {what} {closed}, {rest:,} not checked (quick)"
        return f"holds: {self.counted.chips:,} {what} proved ({closed}); gap {self.proved_gap:.3g}"


def run_id(folder: Path, texts: dict[str, str]) -> str:
    """SHA-256 over the digests of problem, graphs, certificate and the answer that is shown; of that one the digest of
    its values, but for the code that wrote it."""
    shown = [parsed(text_of(folder / name), name) for name in ANSWERS if (folder / name).exists()]
    values = [{key: one[key] for key in one if key not in ("code_digest", "version")} for one in shown]
    return sha256("".join([*(sha256(texts[name]) for name in FILES), *map(digest_of, values)]))


def silent(_: str) -> None:
    """Say nothing of what is done."""


def check(
    folder: Path, quick: bool = False, sharper: float = 0.0, watch: Watch = silent, solver: Solver | None = None,
    unit_solver: UnitSolver | None = None, wider: float = 0.0, larger: Mapping[str, Any] | None = None,
) -> Verdict:  # fmt: skip
    """Check the run or front in a folder; ``sharper``: a bound above the certificate's that may hold as well;
    ``solver``: one of the caller's own for chips that nothing here closes, ``unit_solver``: for those of a front,
    which is proved to a ``wider`` gap than its own if one is given; ``larger``: a space in place of the run's own, of
    which its answer need not be a chip."""
    found = Verdict(quick=quick)
    try:
        _check(folder, found, sharper, watch, solver, (unit_solver, wider, larger))
    except RefusedError as fault:
        found.wrong = str(fault)
    except NotCoveredError as fault:
        found.missing = str(fault)
    except READING as fault:
        found.wrong = f"a document of the run cannot be read ({type(fault).__name__}: {str(fault)[:80]})"
    return found


def _check(
    folder: Path, found: Verdict, sharper: float, watch: Watch, solver: Solver | None,
    more: tuple[UnitSolver | None, float, Mapping[str, Any] | None],
) -> None:  # fmt: skip
    texts = {name: text_of(folder / name) for name in FILES}
    documents = {name: parsed(text, name) for name, text in texts.items()}
    found.run_id = run_id(folder, texts)
    problem, graphs = documents["problem.json"], documents["graphs.json"]
    front = "front" in problem
    said = only(documents["certificate.json"], "certificate.json", FRONT_KEYS if front else KEYS)
    schemas = (problem.get("schema"), graphs.get("schema"), said["schema"])
    require(schemas == ("phaze.problem/1", "phaze.graphs/1", "phaze.certificate/1"), "a document has another schema")
    for name in ("problem", "graphs"):
        require(said[name] == sha256(texts[f"{name}.json"]), f"certificate.json: it is of another {name}.json")
    require(said["cost_model"] == COST_MODEL, "certificate.json: it is of another cost model")
    found.gap = number(said["gap"], "gap", 0, 1)
    wider, larger = number(more[1], "--gap", 0, 1), more[2]
    if front:
        found.gap = said["gap"] = max(found.gap, wider)
    memories = [whole(size, "hbm_bytes", 1) for size in problem["hbm_bytes"]]
    if "chip" in problem:
        _check_plan(problem, graphs, said, found, watch)
        return
    grid, many = grid_of(problem["space"], problem["ownership"]), boxed(problem)
    if many:
        rows = listed([None] if said["front"] is None else said["front"], "front") if front else [said["answer"]]
        require(bool(rows), "front: it has no design")
        cover(rows[0] is not None, "the certificate has no witness of its answer")
        space = chip_named(grid, memories, rows[0]["chip"])
    else:
        space = space_of(grid, memories)
    count = f"{grid.combinations:,} combinations" if many else f"{len(space.chips):,} chips"
    found.words = words_of(problem, said, count)
    known(problem, graphs)
    of_graphs(problem, graphs)
    _covered(problem, said)
    if front:
        _prove_front(problem, graphs, said, (grid, space), found, watch, more[0])
        return
    bound = _bound(said, found)
    if larger is not None or many:
        if larger is not None:
            found.gap = max(found.gap, wider)
            found.words = larger_words(found.words, larger, found.best, found.gap)
        _prove_larger(problem, graphs, said, grid, larger or problem["space"], found, watch)
        return
    _prove(problem, graphs, said, (grid, space), (max(bound, min(sharper, found.best)), bound), found, watch, solver)


def _bound(said: dict[str, Any], found: Verdict) -> float:
    found.best, bound = number(said["best"], "best", 1e-30), number(said["bound"], "bound")
    require(abs(bound - found.best * (1 - found.gap)) <= NEAR * found.best, "bound: it is not best (1 - gap)")
    return bound


def _check_plan(
    problem: dict[str, Any], graphs: dict[str, Any], said: dict[str, Any], found: Verdict, watch: Watch
) -> None:
    """A plan on one chip: no other plan in the degrees that the problem lists is faster."""
    found.words, found.plan = plan_words(problem, said), True
    known(problem, graphs)
    of_graphs(problem, graphs)
    _covered(problem, said)
    bound = _bound(said, found)
    require(problem["gap"] == found.gap == 0, "gap: a plan is proved to 0")
    found.counted = prove_plan(problem, graphs, said, bound, watch, found.quick)
    found.proved_gap = max(NEAR, 1 - found.counted.least / found.best)


def _covered(problem: dict[str, Any], said: dict[str, Any]) -> None:
    cover(said["front" if "front" in problem else "answer"] is not None, "the certificate has no witness of its answer")
    kind = kind_of(problem)
    require(kind in KINDS, f"objective.kind: {str(kind)[:40]} is none")
    if kind != "throughput":
        published = any(model["training"]["machine"]["stack"]["stages"] != "layers" for model in problem["models"])
        cover(of_clusters(problem["space"]) and not published, f"the objective {kind} on chips of cores")


def model_at(problem: dict[str, Any], graphs: dict[str, Any], said: dict[str, Any], at: int) -> Model:
    """A model of the problem."""
    table, kind, objective = problem["models"][at], kind_of(problem), None
    paper = table["training"]["machine"]["stack"]["stages"] != "layers"
    cover(not (paper and of_clusters(problem["space"])), "the rules icml24 on chips of clusters")
    if kind != "throughput":
        devices = whole(problem["models"][0]["training"]["devices"], "devices", 1)
        objective = Objective(kind, devices, problem["space"], problem["ownership"])
    return model_of(
        table,
        graphs["models"][at],
        said["fusion"][at],
        said["multipliers"][at],
        problem["residency"] is True,
        problem["hbm_bytes"],
        technology_of(problem["space"]["base"]).fan_out,
        objective=objective,
    )


def _prove_front(
    problem: dict[str, Any], graphs: dict[str, Any], said: dict[str, Any], chips: tuple[Grid, Space],
    found: Verdict, watch: Watch, solver: UnitSolver | None,
) -> None:  # fmt: skip
    (grid, space), asked, mean, count = chips, asked_of(problem), mean_of(problem), len(problem["models"])
    require(len(said["fusion"]) == len(said["multipliers"]) == count, "certificate.json: other models")
    models = [model_at(problem, graphs, said, at) for at in range(count)]
    rows = listed(said["front"], "front")
    require(bool(rows), "front: it has no design")
    watch(f"{len(rows):,} designs")
    sizes = list(problem["hbm_bytes"])
    points = [design_values(grid, sizes, asked, models, mean, row, f"front[{place}]") for place, row in enumerate(rows)]
    values = np.stack(points, axis=1)
    require_undominated(values)
    found.designs, found.proved_gap = len(rows), max(NEAR, found.gap)
    if boxed(problem):
        _covered_by_boxes(models)
        found.counted = Counted(grid.combinations, grid.combinations)
        if not found.quick:
            found.counted = prove_front_boxes(models, mean, grid, sizes, asked, values, found.gap, watch, solver)
        return
    units = units_of(grid, space, sizes, asked)
    goals = goals_of(units, asked, values, found.gap, mean.batches[0])
    found.counted = prove_units(models, mean, space, units, goals, watch, found.quick, solver)


def _covered_by_boxes(models: list[Model]) -> None:
    cover(len(models) == 1 and models[0].placed, "larger spaces but for one model under the rules icml24")


def _answered(
    problem: dict[str, Any], graphs: dict[str, Any], said: dict[str, Any], grid: Grid, found: Verdict, watch: Watch
) -> tuple[list[Model], list[float]]:
    """The models of a run whose answer has the score that it states, and what each takes in it."""
    answer, count = only(said["answer"], "answer", ("chip", "hbm_bytes", "models")), len(problem["models"])
    memories, mean = list(problem["hbm_bytes"]), mean_of(problem)
    require(len(answer["models"]) == len(said["fusion"]) == len(said["multipliers"]) == count, "answer: other models")
    models = [model_at(problem, graphs, said, at) for at in range(count)]
    watch("the answer")
    chip, size = answer_chip(grid, memories, answer, "answer")
    seconds = [model.answer(own, chip, size) for model, own in zip(models, answer["models"], strict=True)]
    score = float(mean.score(np.array(seconds)[:, None])[0])
    require(abs(score - found.best) <= NEAR * score, f"best: {found.best!r}, and the answer has {score!r}")
    return models, seconds


def _prove_larger(
    problem: dict[str, Any], graphs: dict[str, Any], said: dict[str, Any], grid: Grid, larger: Mapping[str, Any],
    found: Verdict, watch: Watch,
) -> None:  # fmt: skip
    models, seconds = _answered(problem, graphs, said, grid, found, watch)
    bound, mean, memories = found.best * (1 - found.gap), mean_of(problem), problem["hbm_bytes"]
    if of_clusters(larger):
        cover(of_clusters(problem["space"]), "a space of clusters held against an answer of cores")
        cover(kind_of(problem) == "throughput", "energy, cost and carbon in boxes of clusters")
    else:
        _covered_by_boxes(models)
    space = grid_of(larger, problem["ownership"])
    found.counted = Counted(space.combinations, space.combinations, bound)
    if not found.quick:
        found.counted = prove_boxes(models, mean, space, memories, bound, seconds, watch)
    if not found.quick:
        found.proved_gap = max(NEAR, found.gap)


def _prove(
    problem: dict[str, Any], graphs: dict[str, Any], said: dict[str, Any], chips: tuple[Grid, Space],
    goals: tuple[float, float], found: Verdict, watch: Watch, solver: Solver | None,
) -> None:  # fmt: skip
    grid, space = chips
    models, seconds = _answered(problem, graphs, said, grid, found, watch)
    counted = prove(models, mean_of(problem), space, goals, watch, found.quick, solver, seconds)
    found.counted, found.proved_gap = counted, max(NEAR, 1 - counted.least / found.best)
    shown = found.quick or counted.least >= goals[1] * (1 - NEAR)
    require(shown, f"nothing shows that {counted.first_open} scores {goals[1]!r} or more, only {counted.least!r}")
