"""A run's folder, checked: what is claimed in words, and whether it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .boxes import boxed, of_clusters, prove_boxes
from .claim import larger_words, plan_words, words_of
from .front_boxes import prove_front_boxes
from .fronts import (
    Design,
    answer_chip,
    asked_of,
    checked_design,
    kinds_of,
    prove_units,
    require_undominated,
    staircase_of,
    units_of,
)
from .means import Mean, mean_of
from .model import Model
from .plan_proof import prove_plan
from .reading import (
    NotCoveredError,
    RefusedError,
    cover,
    listed,
    number,
    only,
    require,
)
from .run_documents import Documents, Options, documents_of, run_id, silent, texts_of
from .space import Grid, Space, chip_named, grid_of, memories_of, space_of
from .space_proof import Counted, Near, Solver, Watch, prove

NEAR = 1e-9
"""Figures are sums in another order than phaze has them."""
ALONE = Mean("geometric", (1.0,), (1.0,))
"""How a model alone counts."""
READING = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)


@dataclass(slots=True)
class Verdict:
    """What was found: the claim in words, the first line that does not hold, or what is not
    covered.

    ``proved_gap`` is what was shown, which may be less than what is claimed; ``designs``: of a
    front; ``plan``: whether it is of a plan on one chip."""

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
        closed = ", ".join(
            f"{count:,} by {step}" for step, count in self.counted.closed.items() if count
        )
        if self.plan:
            return (
                f"holds: no plan is faster ({closed or 'by the answer alone'}); gap "
                f"{self.proved_gap:.3g}"
            )
        what = f"combinations in {self.counted.boxes:,} boxes" if self.counted.boxes else "chips"
        if self.designs or self.counted.by_memory:
            what = f"{what} with a memory"
        rest = self.chips - self.proved
        answer = f"{self.designs:,} designs hold" if self.designs else "answer holds"
        if self.designs and self.gap >= 1:
            return f"{answer}; of other chips nothing is claimed (gap {self.gap:g})"
        if self.quick:
            return (
                f"{answer}; of {self.counted.chips:,} {what} {closed}, {rest:,} not checked (quick)"
            )
        return f"holds: {self.counted.chips:,} {what} proved ({closed}); gap {self.proved_gap:.3g}"


def check(
    folder: Path, quick: bool = False, sharper: float = 0.0, watch: Watch = silent,
    solver: Solver | None = None, wider: float = 0.0, larger: Mapping[str, Any] | None = None,
) -> Verdict:  # fmt: skip
    """Check the run, front or plan in a folder, with these :class:`Options`."""
    verdict = Verdict(quick=quick)
    try:
        _check(folder, verdict, Options(quick, sharper, watch, solver, wider, larger))
    except RefusedError as fault:
        verdict.wrong = str(fault)
    except NotCoveredError as fault:
        verdict.missing = str(fault)
    except READING as fault:
        verdict.wrong = (
            f"a document of the run cannot be read ({type(fault).__name__}: {str(fault)[:80]})"
        )
    return verdict


def _check(folder: Path, verdict: Verdict, options: Options) -> None:
    texts = texts_of(folder)
    verdict.run_id = run_id(folder, texts)
    run = documents_of(texts, options)
    verdict.gap, wider = (
        number(run.certificate["gap"], "gap", 0, 1),
        number(options.wider, "--gap", 0, 1),
    )
    if run.front:
        verdict.gap = run.certificate["gap"] = max(verdict.gap, wider)
    memories = run.memories
    if "chip" in run.problem:
        _check_plan(run, verdict)
        return
    grid, many = grid_of(run.problem["space"], run.problem["ownership"]), boxed(run.problem)
    if many:
        first = run.designs()[0]
        cover(first is not None, "the certificate has no witness of its answer")
        space, count = (
            chip_named(grid, memories, first["chip"]),
            f"{grid.combinations:,} combinations",
        )
    else:
        space = space_of(grid, memories)
        count = f"{len(space.chips):,} chips"
    verdict.words = words_of(run.problem, run.certificate, count)
    run.covered()
    if run.front:
        _prove_front(run, grid, space, verdict)
        return
    bound = _bound(run, verdict)
    if options.larger is not None:
        _prove_larger(run, grid, options.larger, verdict)
    elif many:
        models, near, mean = _answered(run, grid, verdict, None)
        _prove_in_boxes(run, grid, models, mean, near, verdict, options.solver)
    else:
        _prove(run, grid, space, bound, verdict)


def _bound(run: Documents, verdict: Verdict) -> float:
    """The bound of a certificate, which follows from its best and its gap."""
    best, bound = (
        number(run.certificate["best"], "best", 1e-30),
        number(run.certificate["bound"], "bound"),
    )
    require(abs(bound - best * (1 - verdict.gap)) <= NEAR * best, "bound: it is not best (1 - gap)")
    verdict.best = best
    return bound


def _check_plan(run: Documents, verdict: Verdict) -> None:
    """A plan on one chip: no other plan in the degrees that the problem lists is faster."""
    verdict.words, verdict.plan = plan_words(run.problem, run.certificate), True
    run.covered()
    bound = _bound(run, verdict)
    require(run.problem["gap"] == verdict.gap == 0, "gap: a plan is proved to 0")
    how = run.options.watch, run.options.quick, run.options.solver
    verdict.counted = prove_plan(run.problem, run.graphs, run.certificate, bound, *how)
    verdict.proved_gap = max(NEAR, 1 - verdict.counted.least / verdict.best)


def _prove_front(run: Documents, grid: Grid, space: Space, verdict: Verdict) -> None:
    asked, models = asked_of(run.problem, run.certificate), run.models()
    sizes = list(run.problem["hbm_bytes"])
    means = _proved_means(run, grid, models, space, verdict)
    watch, solver = run.options.watch, run.options.solver
    rows, designs = run.designs(), list[Design]()
    watch(f"{len(rows):,} designs")
    for place, row in enumerate(rows):
        design = checked_design(grid, sizes, asked, models, means, row, f"front[{place}]")
        designs.append(design)
    require_undominated(np.stack([design.values for design in designs], axis=1))
    stairs = staircase_of(asked, designs, verdict.gap)
    near = designs[0].taken
    verdict.designs, verdict.proved_gap = len(rows), max(NEAR, verdict.gap)
    if verdict.gap >= 1:
        verdict.counted = Counted(grid.combinations, grid.combinations)
        return
    if not boxed(run.problem):
        units = units_of(grid, space, sizes, asked)
        quick = verdict.quick
        verdict.counted = prove_units(models, means, stairs, units, watch, near, quick, solver)
        return
    verdict.counted = Counted(grid.combinations, grid.combinations)
    if not verdict.quick:
        verdict.counted = prove_front_boxes(models, means, grid, sizes, stairs, near, watch, solver)


def _proved_means(
    run: Documents, grid: Grid, models: list[Model], space: Space | None, verdict: Verdict
) -> list[Mean]:
    """How models count together in everything that counts. Of least regret each model's own best is
    stated, which no chip betters by more than the gap: of one on the other hand nothing more is
    known, so the claim is about these bests."""
    mean, kinds = mean_of(run.problem), kinds_of(run.problem)
    if mean.plain or mean.kind != "regret":
        return [mean] * len(kinds)
    means = list[Mean]()
    for kind, rows in enumerate(listed(run.certificate["bests"], "bests", len(kinds))):
        bests = list[float]()
        for place, row in enumerate(listed(rows, "bests", len(models))):
            model = models[place].counting(kinds[kind])
            (value,) = _values_of(run, grid, [model], row, f"bests[{kind}][{place}]")[0]
            bests.append(value)
            if not verdict.quick:
                run.options.watch(f"{model.name} alone")
                lend = _lent(run.options.solver, place, kind)
                _prove_alone(run, grid, space, model, value * (1 - verdict.gap), lend)
        means.append(replace(mean, bests=tuple(bests)))
    verdict.words += [_best_words(kinds, means, models)]
    return means


def _best_words(kinds: Sequence[str], means: Sequence[Mean], models: Sequence[Model]) -> str:
    """Relative to which bests models count."""
    pairs = [
        f"{model.name} {value!r}"
        for mean in means
        for model, value in zip(models, mean.bests, strict=True)
    ]
    return f"bests       {', '.join(pairs)}; of each alone nothing is better by more than the gap"


def _prove_alone(
    run: Documents,
    grid: Grid,
    space: Space | None,
    model: Model,
    bound: float,
    solver: Solver | None,
) -> None:
    """No chip of the run's space takes less for a model alone."""
    sizes, watch = list(run.problem["hbm_bytes"]), run.options.watch
    if boxed(run.problem):
        every = _every_memory(grid, model.kinds)
        prove_boxes([model], ALONE, grid, sizes, every, bound, (), watch, solver)
        return
    chips = space_of(grid, run.memories) if space is None else space
    units = _units_of(run, grid, chips, model.kinds)
    alone = prove([model], ALONE, units, (bound, bound), watch, False, solver)
    words = f"nothing shows that {alone.first_open} takes {bound!r} or more"
    require(alone.least >= bound * (1 - NEAR), f"{words} for {model.name} alone")


def _lent(solver: Solver | None, model: int, kind: int) -> Solver | None:
    """A solver of the caller's own, of one model and one of the things that count."""
    if solver is None:
        return None

    def alone(chip: int, memory: int) -> list[list[list[float]]]:
        return [[[float(plan[kind])] for plan in solver(chip, memory)[model]]]

    return alone


def _units_of(run: Documents, grid: Grid, space: Space, kinds: Sequence[str]) -> Space:
    """The chips of a space, where more than time counts and memory is free with every memory: of
    plans that are fastest one in less memory may take less energy."""
    if not _every_memory(grid, kinds):
        return space
    return space.with_every_memory(len(run.problem["hbm_bytes"]))


def _every_memory(grid: Grid, kinds: Sequence[str]) -> bool:
    """Whether every memory of a chip counts: where it is free, and more than time counts."""
    return set(kinds) != {"throughput"} and not grid.made.stack_bytes


def _values_of(
    run: Documents, grid: Grid, models: Sequence[Model], stated: Any, where: str
) -> Near:
    """What each model takes in an answer, its chip, memory and plans checked."""
    answer = only(stated, where, ("chip", "hbm_bytes", "models"))
    rows = listed(answer["models"], f"{where}.models", len(models))
    chip, size = answer_chip(grid, list(run.problem["hbm_bytes"]), answer, where)
    return tuple(model.answer(row, chip, size) for model, row in zip(models, rows, strict=True))


def _answered(
    run: Documents, grid: Grid, verdict: Verdict, space: Space | None
) -> tuple[list[Model], Near, Mean]:
    """The models of a run whose answer has the score that it states, what each takes in it, and how
    they count together."""
    models = run.models()
    run.options.watch("the answer")
    values = _values_of(run, grid, models, run.certificate["answer"], "answer")
    (mean,) = _proved_means(run, grid, models, space, verdict)
    score = float(mean.score(np.array(values))[0])
    fits = abs(score - verdict.best) <= NEAR * score
    require(fits, f"best: {verdict.best!r}, and the answer has {score!r}")
    return models, values, mean


def _prove_larger(run: Documents, grid: Grid, larger: Mapping[str, Any], verdict: Verdict) -> None:
    """The answer of a run against another space of chips of its kind, in boxes."""
    space, verdict.gap = run.problem["space"], max(verdict.gap, run.options.wider)
    kinds = ("cores", "clusters")
    here, there = (kinds[of_clusters(table)] for table in (space, larger))
    require(here == there, f"the answer is a chip of {here}, and the other space has {there}")
    other_grid = grid_of(larger, run.problem["ownership"])
    sizes = memories_of(other_grid, run.memories)
    other = replace(run, problem={**run.problem, "space": larger, "hbm_bytes": sizes})
    stated = {**run.certificate, "gap": verdict.gap}
    lines = words_of(other.problem, stated, f"{other_grid.combinations:,} combinations")
    verdict.words = larger_words(verdict.words, lines)
    _, near, mean = _answered(run, grid, verdict, None)
    _prove_in_boxes(other, other_grid, other.models(), mean, near, verdict, None)


def _prove_in_boxes(
    run: Documents,
    grid: Grid,
    models: Sequence[Model],
    mean: Mean,
    near: Near,
    verdict: Verdict,
    solver: Solver | None,
) -> None:
    """No chip of a space of boxes is better than the best of a verdict by more than its gap."""
    bound = verdict.best * (1 - verdict.gap)
    verdict.counted = Counted(grid.combinations, grid.combinations, bound)
    if verdict.quick:
        return
    every = _every_memory(grid, kinds_of(run.problem))
    verdict.counted = prove_boxes(
        models, mean, grid, run.memories, every, bound, near, run.options.watch, solver
    )
    verdict.proved_gap = max(NEAR, verdict.gap)


def _prove(run: Documents, grid: Grid, space: Space, bound: float, verdict: Verdict) -> None:
    """The answer of a run against every chip of its space."""
    models, near, mean = _answered(run, grid, verdict, space)
    options, goal = run.options, max(bound, min(run.options.sharper, verdict.best))
    units = _units_of(run, grid, space, kinds_of(run.problem))
    counted = prove(
        models, mean, units, (goal, bound), options.watch, options.quick, options.solver, near
    )
    counted.by_memory = units is not space
    verdict.counted, verdict.proved_gap = counted, max(NEAR, 1 - counted.least / verdict.best)
    shown = verdict.quick or counted.least >= bound * (1 - NEAR)
    require(
        shown,
        f"nothing shows that {counted.first_open} scores {bound!r} or more, only {counted.least!r}",
    )
