"""Placement, warm: our seconds beside the published C++ solver's (-O3, one core of the same kind of
machine)."""

import resource
import time
from dataclasses import replace

import pytest

from phaze.hardware.cluster import Cluster, cluster_of, switch_level
from phaze.hardware.library import load_cluster, load_stack
from phaze.pipeline.families import ONE_F_ONE_B
from phaze.placement.job import TrainingJob
from phaze.placement.kernels import warm
from phaze.placement.layers import LayerGraph
from phaze.placement.machine import Machine
from phaze.placement.problem import PlacementProblem, RecomputeChoice
from phaze.placement.settings import stack_problem
from phaze.placement.solve import fastest_plan
from tests.placement.placement_cases import Published, published, unequal_chain

# Layers and widths of a class of problems, and the milliseconds that it may take.
CLASSES = ((26, 1, 1.0), (50, 3, 3.0), (98, 4, 3.0))


def _milliseconds(problem: PlacementProblem, repeats: int = 20) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        fastest_plan(problem)
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def _of_class(case: Published, layers: int, widths: int) -> bool:
    tables = list(case.profile["widths"].values())
    return (
        len(tables) == widths
        and len(tables[0]["layers"]) == layers
        and case.profile["devices"] == 1024
    )


@pytest.mark.parametrize(("layers", "widths", "budget_ms"), CLASSES)
def test_published_problems(layers: int, widths: int, budget_ms: float) -> None:
    warm()
    for case in published():
        if _of_class(case, layers, widths):
            ours = _milliseconds(case.problem)
            print(
                f"place {case.name:34} {ours:7.2f} ms   budget {budget_ms:4.0f}   published C++ "
                f"{1e3 * case.published_cpp_s:6.0f} ms   ratio "
                f"{1e3 * case.published_cpp_s / ours:6.0f}"
            )


def test_all_published_problems_together() -> None:
    warm()
    cases = published()
    ours = sum(_milliseconds(case.problem, 5) for case in cases)
    theirs = 1e3 * sum(case.published_cpp_s for case in cases)
    print(
        f"place all {len(cases)} problems {ours:7.1f} ms   published C++ {theirs:6.0f} "
        f"ms   ratio {theirs / ours:6.0f}"
    )


@pytest.mark.parametrize("widths", [(1,), (1, 2, 4, 8)], ids=str)
def test_a_thousand_unequal_layers_on_100_000_devices(widths: tuple[int, ...]) -> None:
    warm()
    ours = _milliseconds(unequal_chain(1000, 100_000, widths), 3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"place 1000 unequal layers, widths {widths!s:14} {ours:7.0f} ms   budget 5000   "
        f"peak {peak:.0f} MB of 300"
    )


def _on_levels(
    graphs: tuple[LayerGraph, ...],
    cluster: Cluster,
    devices: int,
    microbatches: int,
    recompute: RecomputeChoice,
    zero: int,
) -> PlacementProblem:
    placed = []
    for graph in graphs:
        layers = (
            replace(la, selective_bytes=0.4 * la.activation_bytes, selective_s=0.1 * la.forward_s)
            for la in graph.layers
        )
        placed.append(replace(graph, layers=tuple(layers)))
    machine = Machine(cluster, load_stack("megatron-2021"))
    job = TrainingJob(machine, devices, microbatches, "adam", (zero,), recompute)
    return stack_problem(job, placed, (ONE_F_ONE_B,), microbatches, (80 * 2**30, 2e12))


@pytest.mark.parametrize(
    ("microbatches", "zero"), [(400_000, 0), (400_000, 1), (4096, 0), (4096, 1)]
)
def test_a_thousand_unequal_layers_on_100_000_devices_of_two_levels(
    microbatches: int, zero: int
) -> None:
    warm()
    graphs = unequal_chain(1000, 100_000, (1, 2, 4, 8)).graphs
    levels = (switch_level("node", 8, 2e11, 5e-6), switch_level("net", 12_500, 2.5e10, 1e-5))
    cluster = cluster_of("two levels", "two levels", levels)
    problem = _on_levels(graphs, cluster, 100_000, microbatches, "best", zero)
    start, began = time.perf_counter(), time.process_time()
    fastest_plan(problem)
    ours, used = time.perf_counter() - start, time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"place 1000 unequal layers, two levels, {microbatches} microbatches, ZeRO "
        f"{zero}  {ours:5.1f} s "
        f"({used:.1f} CPU)   aim 5   peak {peak:.0f} MB of 300"
    )


@pytest.mark.parametrize(("recompute", "zero"), [("best", 0), ("best", 1), ("none", 0)])
def test_98_layers_on_1024_devices_of_selene(recompute: RecomputeChoice, zero: int) -> None:
    warm()
    case = next(case for case in published() if _of_class(case, 98, 4))
    problem = _on_levels(case.problem.graphs, load_cluster("selene"), 1024, 4096, recompute, zero)
    ours = _milliseconds(problem, 5)
    print(
        f"place 98 layers on selene, recompute {recompute}, ZeRO {zero}  {ours:5.0f} ms  "
        " budget 300"
    )
