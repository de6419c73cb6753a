"""The fastest plan of a placement problem, over widths, depths, degrees, orders, families, cuts and
recompute modes.

Families that the bottleneck table decides are read off it
(:mod:`phaze.placement.bottleneck_solver`), all others are solved by labels below what is known
(:mod:`phaze.placement.label_solver`). What they promise is priced anew by
:mod:`phaze.placement.pipeline`, and the two must agree; the answer is its own lower bound.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError, PhazeError
from phaze.pipeline.family import Family
from phaze.placement import bottleneck_solver, label_solver, stage_kernels
from phaze.placement.bottleneck_solver import AGREEMENT, BottleneckPlan
from phaze.placement.layout import Shape
from phaze.placement.paces import depth_bound
from phaze.placement.pipeline import fits, price
from phaze.placement.plan import Plan
from phaze.placement.prepared_width import Width, prepared
from phaze.placement.problem import PlacementProblem
from phaze.placement.shapes import WidthCase, cases_of
from phaze.placement.structure import StageCut

# With more stages than this in all widths they are searched one after another, so that one at a
# time is in memory.
MANY_STAGES = 600_000
# Labels look at every number of replicas up to the most, which takes memory and minutes beyond
# this.
MOST_REPLICAS = 2**24


def cuts_of(problem: PlacementProblem, solution: BottleneckPlan) -> list[StageCut]:
    """The stages that were found, first to last."""
    layers: list[list[int]] = [[] for _ in solution.path]
    owner = stage_kernels.owners(solution.width.cut_sets, solution.table.rest[solution.path])
    for layer, stage in zip(solution.width.graph.layers, owner.tolist(), strict=True):
        layers[stage].append(layer.id)
    names = problem.mode_names
    return [
        StageCut(tuple(ids), names[mode])
        for ids, mode in zip(layers, solution.modes.tolist(), strict=True)
    ]


def _quick_bound(problem: PlacementProblem, width: Width) -> float:
    """What no plan of a width undercuts, with free transfers, ends and memory."""
    stages = np.arange(1, width.depth + 1)
    replicas = np.minimum(problem.microbatches, problem.devices // width.fewest_devices(stages))
    rounds = -(-problem.microbatches // replicas)
    pace_s = np.maximum(width.seconds / stages, width.longest_s)
    return float(np.min((rounds - 1) * pace_s, initial=inf))


def fastest_plan(
    problem: PlacementProblem, prices: NetworkPrices | None = None, below_s: float = inf
) -> Plan | None:
    """The plan with the least batch time, or None when nothing fits, or nothing that takes less
    than ``below_s``."""
    fastest = fastest_at(problem, (problem.zero,), prices, below_s)
    return None if fastest is None else fastest[1]


def fastest_at(
    problem: PlacementProblem,
    zeros: Sequence[int],
    prices: NetworkPrices | None = None,
    below_s: float = inf,
) -> tuple[PlacementProblem, Plan] | None:
    """The fastest plan over some stages of ZeRO, and the problem at its stage; None where there is
    none below ``below_s``. Of stages at which that plan takes as long the least."""
    return OpenPlacement(problem, zeros, prices).fastest(below_s)


class OpenPlacement:
    """A problem at some stages of ZeRO with what its bound and its solution share: widths, stage
    tables, paces."""

    def __init__(
        self, problem: PlacementProblem, zeros: Sequence[int], prices: NetworkPrices | None = None
    ) -> None:
        self.problem, self.zeros = problem, zeros
        self.prices = NetworkPrices(problem.cluster) if prices is None else prices
        self._problems = [problem.at_zero(zero) for zero in sorted(zeros)]
        widths = (prepared(problem, graph, self.prices) for graph in problem.graphs)
        self._widths = [width for width in widths if width.depth]
        self._many = sum(len(w.cut_sets.size) ** 2 / 2 for w in self._widths) > MANY_STAGES
        self._plain: label_solver.PlainPaces = {}
        self._cases: dict[int, list[WidthCase]] = {}

    def _labelled(self, problem: PlacementProblem) -> tuple[Family, ...]:
        return tuple(
            family
            for family in problem.rules.families
            if not bottleneck_solver.decides(problem, family)
        )

    def _cases_at(self, problem: PlacementProblem) -> list[WidthCase]:
        """The cases of all widths at a stage of ZeRO, where they are not too many to hold at
        once."""
        if problem.zero not in self._cases:
            families = self._labelled(problem)
            each = (
                [cases_of(problem, width, families, self.prices) for width in self._widths]
                if families
                else []
            )
            self._cases[problem.zero] = [case for some in each for case in some]
        return self._cases[problem.zero]

    @property
    def _every_case(self) -> list[WidthCase]:
        """Those of all stages of ZeRO."""
        return [case for problem in self._problems for case in self._cases_at(problem)]

    @property
    def bound_s(self) -> float:
        """What no plan undercuts, in the memory that there is, without the end of the batch;
        infinite where no plan fits. Of stages of ZeRO that of the highest: no stage of a plan needs
        more memory there than at another."""
        decided = any(
            len(self._labelled(problem)) < len(problem.rules.families) for problem in self._problems
        )
        if decided or self._many:
            return min((_quick_bound(self.problem, width) for width in self._widths), default=inf)
        highest = max(problem.zero for problem in self._problems)
        cases = [
            case
            for problem in self._problems
            if problem.zero == highest
            for case in self._cases_at(problem)
        ]
        alike: dict[tuple[int, int, str], list[WidthCase]] = {}
        for case in cases:
            alike.setdefault(label_solver.plain_key(case), []).append(case)
        return min((self._case_bound(cases_alike) for cases_alike in alike.values()), default=inf)

    def _case_bound(self, alike: list[WidthCase]) -> float:
        """Of cases whose P is bounded by that of the first: their families count m P at least, and
        where all of them fill the pipeline once a chunk, the rest of the sum so often."""
        families = [case.family for case in alike]
        fill = min(
            0.0 if family.split or family.pace_stages else family.fill for family in families
        )
        return depth_bound(alike[0], label_solver.plain_paces(alike[0], self._plain), fill)

    def fastest(self, below_s: float = inf) -> tuple[PlacementProblem, Plan] | None:
        """As :func:`fastest_at`."""
        best = self._best(below_s)
        if best is None:
            return None
        problem, prices = self.problem, self.prices
        chosen = problem.at_zero(best.zero)
        plan = plan_of(chosen, best, prices)
        for less in (problem.at_zero(zero) for zero in sorted(self.zeros) if zero < best.zero):
            same = price(less, _shape_of(best), cuts_of(problem, best), prices)
            if same.batch_s <= plan.batch_s and fits(less, same):
                return less, replace(same, lower_bound_s=same.batch_s)
        return chosen, plan

    def _best(self, below_s: float) -> BottleneckPlan | None:
        problem, best = self.problem, None
        for at_stage in self._problems:
            for family in at_stage.rules.families:
                if self._widths and bottleneck_solver.decides(at_stage, family):
                    bar_s = below_s if best is None else best.cost_s
                    best = (
                        bottleneck_solver.best_by_table(at_stage, self._widths, family, bar_s)
                        or best
                    )
        open_ = [at_stage for at_stage in self._problems if self._labelled(at_stage)]
        replicas = min(problem.microbatches, problem.devices // problem.graphs[0].width)
        if open_ and replicas > MOST_REPLICAS:
            raise InputError(
                "microbatches",
                f"{replicas:,} replicas of the model are possible",
                f"give at most {MOST_REPLICAS:,} microbatches",
            )
        if open_ and not self._many:
            return label_solver.best_by_labels(self._every_case, best, below_s, self._plain)
        for width in sorted(self._widths, key=lambda width: _quick_bound(problem, width)):
            for at_stage in open_:
                cases = cases_of(at_stage, width, self._labelled(at_stage), self.prices)
                best = label_solver.best_by_labels(cases, best, below_s)
        return best


def _shape_of(solution: BottleneckPlan) -> Shape:
    family = solution.family
    return Shape(
        solution.width.graph.width,
        len(solution.path),
        solution.data,
        solution.order,
        family.chunks,
        family.name,
    )


def plan_of(problem: PlacementProblem, solution: BottleneckPlan, prices: NetworkPrices) -> Plan:
    """What was found as a plan, priced anew."""
    plan = price(problem, _shape_of(solution), cuts_of(problem, solution), prices)
    if abs(plan.batch_s - solution.cost_s) > AGREEMENT * solution.cost_s:
        raise PhazeError(
            f"{solution.cost_s!r} s were promised and the plan takes {plan.batch_s!r} s"
        )
    return replace(plan, lower_bound_s=plan.batch_s)
