"""Fronts: equal to brute force on small spaces, to separate searches, and whatever the workers and
the order."""

from dataclasses import replace
from importlib import import_module
from time import monotonic
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.front.certificate import closed_units, gap_of, gap_of_ways, listed_of, proofs
from phaze.front.ending import Ending
from phaze.front.metrics import METRICS, RequestedMetrics, metrics_of
from phaze.front.order import beaten, steps, undominated
from phaze.front.run import front, job_for, scales_for
from phaze.front.state import FrontState
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.search.baseline import scale_for
from phaze.search.chips import enumerate_space
from phaze.search.deadline import Deadline, OutOfTime
from phaze.search.engine import workers
from phaze.search.objective import Objective
from phaze.search.rates import chip_rates
from phaze.search.reference import layers_on, placed_on
from phaze.search.run import search
from phaze.search.task import SearchJob
from tests.search.made import exact_score, made_job, made_task

Floats = NDArray[np.float64]
NAMES = [metric.name for metric in METRICS]
FRONTS = [
    ("throughput", "area"),
    ("price", "throughput"),
    ("throughput", "carbon"),
    ("area", "power"),
    ("energy", "embodied"),
    ("throughput", "area", "power"),
    ("throughput", "energy", "area"),
    ("throughput", "cost", "carbon"),
    ("carbon", "price", "area"),
]


def small_job(seed: int, gap: float = 0.0) -> SearchJob:
    """A dozen chips, two memories, four configurations."""
    task = made_task(seed, widths=(1, 2), microbatches=(1,))
    return made_job(
        (task,),
        gap=gap,
        tensor_cores=[1, 4, 16],
        vector_cores=[1, 4],
        lanes=[16],
        global_buffer=["8 MiB"],
    )


def found_by(job: SearchJob, asked: RequestedMetrics, count: int = 1) -> FrontState:
    own = job_for(job, asked)
    return front(own, asked, scales_for(own, asked), workers(count))


def every_design(job: SearchJob) -> dict[str, Floats]:
    """Every chip, memory and way by the plain path, one at a time: what each metric is."""
    opened, (task,) = enumerate_space(job.space), job.models
    energy, rows = opened.space.technology, []
    for number in range(len(opened)):
        for size in job.hbm_bytes:
            chip = opened.chip(number, size)
            owned, figures = manufacturing_of(chip, load_terms()), estimates_of(chip)
            assert owned is not None and figures is not None
            known = {
                "area": float(opened.area_mm2[number]),
                "power": figures.design_w,
                "price": owned.usd,
                "embodied": owned.kgco2e,
            }
            layers = [layers_on(task, graph, chip, energy) for graph in range(len(task.graphs))]
            for configuration in task.configurations:
                placed = placed_on(task, configuration, layers[configuration.graph], size, energy)
                for metric in METRICS if placed.plan is not None else ():
                    if metric.kind is not None:
                        rates = chip_rates(Objective(metric.kind), chip, task.training.devices)
                        known[metric.name] = float(
                            rates.value(np.asarray(placed.batch_s), placed.dynamic_j)
                        )
                if placed.plan is not None:
                    rows.append([known[name] for name in NAMES])
    return dict(zip(NAMES, np.array(rows).T, strict=True))


def rounded(values: Floats) -> set[tuple[float, ...]]:
    return {tuple(float(f"{value:.7g}") for value in column) for column in values.T}


def brute(
    designs: dict[str, Floats], of: tuple[str, ...], inside: NDArray[np.bool_] | None = None
) -> Floats:
    values = np.stack([designs[name] for name in of])
    values = values if inside is None else values[:, inside]
    return np.asarray(values[:, undominated(values, np.arange(values.shape[1]))])


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_a_front_is_what_brute_force_finds(seed: int) -> None:
    job = small_job(seed)
    designs = every_design(job)
    middle = {name: float(np.median(values)) for name, values in designs.items()}
    limits = {
        "": None,
        f"area={middle['area']!r}": designs["area"] <= middle["area"] * (1 + 1e-9),
        f"throughput={64 / middle['throughput']!r}": designs["throughput"]
        <= middle["throughput"] * (1 + 1e-9),
        f"carbon={middle['carbon']!r}": designs["carbon"] <= middle["carbon"] * (1 + 1e-9),
    }
    for of in FRONTS:
        for limit, inside in limits.items():
            found = found_by(job, metrics_of(of, [limit] if limit else []))
            assert rounded(found.archive.values[: len(of)]) == rounded(
                brute(designs, of, inside)
            ), (of, limit)
            # Where two metrics come with a run, configurations that do not fit keep the bounds that
            # they had.
            ran = list(found.evaluated.values())
            gap = (
                gap_of_ways(closed_units(found), ran, 0.0)
                if found.several
                else gap_of(listed_of(found))
            )
            assert gap == 0.0
            assert not found.alive.any()


@settings(max_examples=8)
@given(
    seed=st.integers(3, 10_000),
    of=st.sampled_from(FRONTS),
    cores=st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=1, max_size=2, unique=True),
    rows=st.lists(st.sampled_from([16, 32, 64, 128]), min_size=1, max_size=2, unique=True),
    share=st.floats(0.2, 1.0),
)
def test_any_small_space(
    seed: int, of: tuple[str, ...], cores: list[int], rows: list[int], share: float
) -> None:
    task = made_task(seed, microbatches=(1,))
    axes: dict[str, Any] = {
        "tensor_cores": sorted(cores),
        "rows": sorted(rows),
        "vector_cores": [1, 8],
        "lanes": [64],
    }
    job = made_job((task,), global_buffer=["4 MiB"], **axes)
    designs = every_design(job)
    limit = float(np.quantile(designs["power"], share))
    found = found_by(job, metrics_of(of, [f"power={limit!r}"]))
    inside = designs["power"] <= limit * (1 + 1e-9)
    assert rounded(found.archive.values[: len(of)]) == rounded(brute(designs, of, inside))


@pytest.mark.parametrize(
    "of", [("throughput", "area"), ("throughput", "power", "area"), ("cost", "area")]
)
def test_every_design_is_the_best_within_its_own_limits(of: tuple[str, ...]) -> None:
    job = made_job((made_task(7),))
    asked = metrics_of(of)
    found, own = found_by(job, asked), job_for(job, asked)
    assert found.archive.values.shape[1] > 2
    for column in found.archive.values.T:
        limits = {
            name: float(value)
            for name, value in zip(of, column, strict=True)
            if name in ("area", "power")
        }
        within = replace(own, space=job.space.within(limits))
        best = search(within, scale_for(within)).best
        assert column[0] == pytest.approx(best, rel=1e-9)


def test_several_models_are_weighed_by_their_mean() -> None:
    job = made_job((made_task(5, microbatches=(1,)), made_task(6, microbatches=(1,))), lanes=[16])
    asked = metrics_of("throughput,price")
    found, own = found_by(job, asked), job_for(job, asked)
    opened, scale = enumerate_space(job.space), scale_for(own)
    rows = []
    for number in range(len(opened)):
        for hbm, size in enumerate(job.hbm_bytes):
            chip = opened.chip(number, size)
            owned, figures = manufacturing_of(chip, load_terms()), estimates_of(chip)
            assert owned is not None and figures is not None
            rows.append([exact_score(own, scale, opened, number, hbm), owned.usd])
    values = np.array(rows).T[:, np.isfinite(np.array(rows)[:, 0])]
    assert rounded(found.archive.values) == rounded(
        values[:, undominated(values, np.arange(values.shape[1]))]
    )


def test_workers_change_nothing() -> None:
    job = made_job((made_task(9),))
    for of in ("throughput,area", "throughput,carbon"):
        one, three = (found_by(job, metrics_of(of), count) for count in (1, 3))
        assert one.evaluated == three.evaluated
        assert one.archive.values.tobytes() == three.archive.values.tobytes()
        assert one.archive.numbers.tolist() == three.archive.numbers.tolist()


def test_a_gap_opens_less_and_says_how_far_it_may_be_off() -> None:
    job = made_job((made_task(11),))
    asked = metrics_of("throughput,energy,area")
    exact, near = found_by(job, asked), found_by(replace(job, gap=0.1), asked)
    assert len(near.evaluated) <= len(exact.evaluated)
    assert gap_of(listed_of(exact)) == 0.0
    assert gap_of(listed_of(near)) <= 0.1
    values = near.archive.values
    for column in exact.archive.values.T:
        room = np.array([column[0] / 0.9, column[1] / 0.9, column[2]]) * (1 + 1e-9)
        assert (values <= room[:, None]).all(axis=0).any()
    assert all(one.gap <= 0.1 + 1e-9 for one in proofs(listed_of(near), values))


@settings(max_examples=6)
@given(seed=st.integers(0, 1000), of=st.sampled_from(FRONTS))
def test_a_larger_space_is_never_worse(seed: int, of: tuple[str, ...]) -> None:
    task = made_task(seed, microbatches=(1,))
    few = made_job((task,), tensor_cores=[1, 8], lanes=[16], global_buffer=["2 MiB"])
    more = made_job((task,), tensor_cores=[1, 4, 8], lanes=[16, 64], global_buffer=["2 MiB"])
    small, large = (found_by(job, metrics_of(of)).archive.values for job in (few, more))
    for column in small[: len(of)].T:
        assert (large[: len(of)] <= column[:, None] * (1 + 2e-9)).all(axis=0).any()


@given(
    st.lists(
        st.tuples(*[st.floats(1e-6, 1e6, allow_subnormal=False)] * 3), min_size=1, max_size=30
    ),
    st.randoms(use_true_random=False),
)
def test_the_undominated_are_one_set_in_any_order(
    rows: list[tuple[float, ...]], rng: object
) -> None:
    values, numbers = np.array(rows).T, np.arange(len(rows))
    kept = undominated(values, numbers)
    own = steps(values)
    assert not beaten(own[:, kept], numbers[kept], own[:, kept], numbers[kept]).any()
    rest = np.setdiff1d(numbers, kept)
    assert beaten(own[:, kept], numbers[kept], own[:, rest], rest).all()
    order = list(range(len(rows)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    again = undominated(values[:, order], numbers[order])
    assert sorted(np.array(order)[again].tolist()) == kept.tolist()


@pytest.mark.parametrize(
    ("of", "within", "said"),
    [
        ("throughput", (), "one metric alone is named and a front has two or three"),
        ("", (), "no metric is named"),
        ("throughput,area,power,price", (), "4 metrics are named"),
        ("throughput,speed", (), "speed"),
        ("area,area", (), "a metric is named twice"),
        ("throughput,area", ("power",), "metric=number"),
        ("throughput,area", ("power=x",), "'x' is not a positive number"),
        ("throughput,area", ("power=-3",), "'-3' is not a positive number"),
        ("throughput,area", ("heat=3",), "heat"),
        ("throughput,area", ("power=3", "power=4"), "limited twice"),
    ],
)
def test_bad_questions_are_one_sentence(of: str, within: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        metrics_of(of, within)


@pytest.mark.parametrize("of", [("throughput", "area"), ("throughput", "energy", "area")])
def test_a_front_out_of_time_before_its_bounds_has_designs_and_says_that_all_else_is_open(
    of: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    job, asked = small_job(3), metrics_of(of, [])
    own, never = job_for(job, asked), Deadline(monotonic() + 1e6)
    whole = found_by(job, asked)
    in_time = front(own, asked, scales_for(own, asked), workers(1), deadline=never, ending=Ending())
    assert in_time.archive.values.tolist() == whole.archive.values.tolist(), (
        "what was opened first changes nothing"
    )

    def late(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(import_module("phaze.front.run"), "keep_times", late)
    monkeypatch.setattr(import_module("phaze.front.first_designs"), "PILOTS", 2)
    state = front(own, asked, scales_for(own, asked), workers(1), deadline=never, ending=Ending())
    assert state.stopped and len(state.archive.numbers)
    designs = every_design(job)
    for column in state.archive.values[: len(of)].T:
        assert any(
            np.allclose(column, [designs[name][at] for name in of])
            for at in range(len(designs["area"]))
        )
    reasons = {one.reason for one in closed_units(state)}
    assert {"open", "evaluated"} <= reasons
    gap = gap_of_ways(closed_units(state), [], 0.0) if state.several else gap_of(listed_of(state))
    assert gap == 1.0
