"""Fronts on networks of levels, and of several models in any metrics: what brute force finds,
design by design."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phaze.errors import InfeasibleError
from phaze.front.folder import front_in
from phaze.front.metrics import RequestedMetrics, metrics_of
from phaze.front.order import undominated
from phaze.front.run import front, job_for, scales_for
from phaze.front.state import FrontState
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.options.values import Mean
from phaze.report.front_sheet import metric_words
from phaze.search.chips import enumerate_space
from phaze.search.engine import workers
from phaze.search.objective import Objective
from phaze.search.question_files import Papers
from phaze.search.rates import chip_rates
from phaze.search.reference import layers_on, placed_on
from phaze.search.task import SearchJob
from tests.conftest import Ran
from tests.front.test_front import FRONTS, rounded
from tests.search.made import MIB, made_job, made_task
from tests.search.made_cluster import cluster_job, cluster_task
from tests.search.test_cluster_rules import DRAWN_TASKS
from tests.search.test_cluster_study import STUDY
from tests.search.test_study import SPACE

Floats = NDArray[np.float64]
SEVERAL = [
    ("throughput", "energy"),
    ("throughput", "cost", "area"),
    ("energy", "carbon", "throughput"),
]


def _ways(job: SearchJob, number: int, size: int) -> list[list[tuple[float, float]]]:
    """Seconds and joules of a batch of every configuration that fits, by model, each placed
    alone."""
    opened, found = enumerate_space(job.space), list[list[tuple[float, float]]]()
    chip, table = opened.chip(number, size), opened.space.technology
    for task in job.models:
        own = []
        for configuration in task.configurations:
            placed = placed_on(
                task, configuration, layers_on(task, configuration.graph, chip, table), size, table
            )
            own += [] if placed.plan is None else [(placed.batch_s, placed.dynamic_j)]
        found.append(own)
    return found


Ways = dict[tuple[int, int], list[list[tuple[float, float]]]]


def _every_way(job: SearchJob) -> Ways:
    return {
        (at, size): _ways(job, at, size)
        for at in range(len(enumerate_space(job.space)))
        for size in job.hbm_bytes
    }


def _by_brute_force(job: SearchJob, asked: RequestedMetrics, every: Ways) -> set[tuple[float, ...]]:
    """Every chip, memory and combination of configurations in every metric; those that none
    beats."""
    opened, scales, rows = enumerate_space(job.space), scales_for(job_for(job, asked), asked), []
    for (number, size), own in every.items():
        chip = opened.chip(number, size)
        owned, figures = manufacturing_of(chip, load_terms()), estimates_of(chip)
        assert owned is not None and figures is not None
        known = {
            "area": float(opened.area_mm2[number]),
            "power": figures.design_w,
            "price": owned.usd,
            "embodied": owned.kgco2e,
        }
        kinds = [metric.kind for metric in asked.runs if metric.kind is not None]
        rates = [
            chip_rates(Objective(kind), chip, job.models[0].training.devices) for kind in kinds
        ]
        for configurations in product(*own):
            for metric, scale, rate in zip(asked.runs, scales, rates, strict=True):
                values = [float(rate.value(np.asarray(s), j)) for s, j in configurations]
                known[metric.name] = float(scale.score(np.array(values)))
            if all(known[metric.name] <= limit * (1 + 1e-9) for metric, limit in asked.within):
                rows.append([known[metric.name] for metric in asked.of])
    if not rows:
        return set()
    found = np.array(rows).T
    return rounded(found[:, undominated(found, np.arange(found.shape[1]))])


def _found(job: SearchJob, asked: RequestedMetrics, count: int = 1) -> FrontState:
    own = job_for(job, asked)
    return front(own, asked, scales_for(own, asked), workers(count))


def _check(job: SearchJob, *fronts: tuple[tuple[str, ...], tuple[str, ...]]) -> None:
    every = _every_way(job)
    if not any(all(own) for own in every.values()):
        return
    for of, within in fronts:
        asked = metrics_of(of, within)
        found = _found(job, asked)
        assert rounded(found.archive.values[: len(of)]) == _by_brute_force(job, asked, every), (
            of,
            within,
        )
        assert not found.alive.any()


@pytest.mark.parametrize("schedule", ["companions", pytest.param("links", marks=pytest.mark.slow)])
def test_a_front_on_levels_is_what_brute_force_finds(schedule: Any) -> None:
    task = cluster_task(
        "llama", stack="megatron-core", widths=(2,), microbatches=(1,), schedule=schedule
    )
    job = cluster_job((task,), rows=[16], lanes=[16, 64])
    _check(
        job,
        (("throughput", "area"), ()),
        (("throughput", "energy", "price"), ()),
        (("price", "area"), ("energy=1e-3",)),
    )


@st.composite
def _jobs(draw: st.DrawFn, models: int) -> SearchJob:
    axes: dict[str, Any] = {
        "tensor_cores": [1, 8],
        "rows": [16, 128],
        "lanes": [8, 64],
        "vector_cores": [1],
    }
    axes = {
        name: sorted(draw(st.sets(st.sampled_from(v), min_size=1, max_size=2)))
        for name, v in axes.items()
    }
    tasks = draw(
        st.lists(DRAWN_TASKS, min_size=1, max_size=models, unique_by=lambda task: task.name)
    )
    tasks = [replace(task, training=replace(task.training, devices=8)) for task in tasks]
    memories = draw(st.sampled_from([(MIB, 64 * MIB), (2 * MIB,)]))
    job = cluster_job(tuple(tasks), hbm=memories, columns=[32], global_buffer=[2 * MIB], **axes)
    return replace(job, objective=Objective(mean=draw(st.sampled_from(["arithmetic", "regret"]))))


@settings(max_examples=3, deadline=None)
@given(_jobs(1), st.sampled_from(FRONTS))
def test_any_front_on_any_levels(job: SearchJob, of: tuple[str, ...]) -> None:
    _check(job, (of, ()))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(_jobs(2), st.sampled_from([*FRONTS, *SEVERAL]))
def test_many_fronts_on_any_levels_of_several_models(job: SearchJob, of: tuple[str, ...]) -> None:
    try:
        _check(job, (of, ()))
    except InfeasibleError:
        assert job.objective.mean == "regret"


@pytest.mark.parametrize(
    "mean",
    [
        "geometric",
        pytest.param("arithmetic", marks=pytest.mark.slow),
        pytest.param("regret", marks=pytest.mark.slow),
    ],
)
def test_several_models_in_several_metrics_of_a_run(mean: Mean) -> None:
    tasks = (made_task(5, microbatches=(1,)), made_task(6, microbatches=(1,)))
    job = made_job(
        tasks, tensor_cores=[1, 8], vector_cores=[1], lanes=[16], global_buffer=["2 MiB"], rows=[32]
    )
    job = replace(job, objective=Objective(mean=mean))
    carbon = float(np.median(_found(job, metrics_of("throughput,carbon")).archive.values[1]))
    _check(job, *((of, ()) for of in SEVERAL), (("throughput", "area"), (f"carbon={carbon!r}",)))


@pytest.mark.slow
def test_models_on_levels_are_combined_way_by_way() -> None:
    tasks = tuple(
        cluster_task(model, widths=(1, 2), microbatches=(1,)) for model in ("gpt", "llama")
    )
    _check(cluster_job(tasks, rows=[16]), (("throughput", "energy"), ()))


def test_a_unit_is_finished_in_one_opening(tmp_path: Path) -> None:
    """What a journal has is not opened again, so a configuration that the fastest one of its unit
    hides must not be left in it: here the fastest breaks the limit."""
    task = made_task(4, widths=(1, 2), microbatches=(1,))
    job = made_job(
        (task,), tensor_cores=[1, 8], vector_cores=[1], lanes=[16], global_buffer=["2 MiB"]
    )
    joules = np.sort(_found(job, metrics_of("throughput,energy")).archive.values[1])
    asked = metrics_of("throughput,area", [f"energy={float(joules[len(joules) // 2])!r}"])
    done = front_in(tmp_path / "run", Papers(""), job, asked)
    metrics = [one["metrics"] for one in done.document["points"]]
    values = np.array([[task.training.batch / own["throughput"], own["area"]] for own in metrics])
    assert rounded(values.T) == _by_brute_force(job, asked, _every_way(job))
    assert front_in(tmp_path / "run", Papers(""), job, asked).document == done.document


def test_workers_change_nothing_of_several_models() -> None:
    tasks = tuple(cluster_task(model, widths=(2,), microbatches=(1,)) for model in ("gpt", "llama"))
    job = cluster_job(tasks, rows=[16])
    one, two = (_found(job, metrics_of("throughput,energy,area"), count) for count in (1, 2))
    assert one.evaluated == two.evaluated
    assert one.archive.values.tobytes() == two.archive.values.tobytes()


def _page_holds(page: str, document: dict[str, Any]) -> None:
    """Every point is in the numbers that the plot is drawn from, with its name and metrics, and in
    the table once."""
    points = document["points"]
    drawn = json.loads(page.partition('id="numbers">')[2].partition("</script>")[0])["scatter"]
    assert drawn["names"] == [point["chip"]["name"] for point in points]
    columns = {one["name"]: one for one in drawn["columns"]}
    for name in document["of"]:
        column = columns[metric_words(name)]
        assert column["unit"] == document["units"][name].replace("mm2", "mm²")
        assert column["values"] == pytest.approx(
            [point["metrics"][name] for point in points], rel=1e-5
        )
    assert all(len(one["values"]) == len(points) for one in drawn["columns"])
    places = [str(at) for at in range(len(points))]
    assert re.findall(r'<tr data-at="(\d+)">', page) == places
    assert re.findall(r'data-chooser="design" data-key="(\d+)"', page) == places
    assert drawn["links"] == [f"#design={at}" for at in places]


@pytest.mark.parametrize(
    ("models", "of"),
    [
        ("", "throughput,area"),
        pytest.param("", "throughput,energy,price", marks=pytest.mark.slow),
        pytest.param(
            '{name = "opt-350m", sequence = 64, widths = [1]}',
            "throughput,carbon",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_front_on_levels_is_written_verified_and_seen_when_changed(
    models: str, of: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    study = (
        STUDY.format(folder=tmp_path)
        .replace("[1, 2]}]", f"[1, 2]}}, {models}]")
        .replace("[1, 2]\nseq", "[1]\nseq")
    )
    (tmp_path / "study.toml").write_text(study)
    arguments = (
        "front",
        tmp_path / "study.toml",
        "--of",
        of,
        "--out",
        tmp_path / "run",
        "--workers",
        "1",
    )
    made = phaze(*arguments)
    assert made.code == 0, made.err
    good, covered = phaze("verify", tmp_path / "run", "--all"), of == "throughput,area"
    assert (good.code, " holds" in " ".join(good.out.split())) == (
        (0, True) if covered else (3, False)
    ), good.out
    text = (tmp_path / "run" / "front.json").read_text()
    document = json.loads(text)
    assert {"sequence_parallel", "attention"} <= document["points"][0]["models"][0].keys()
    _page_holds((tmp_path / "run" / "front.html").read_text(), document)
    del document["points"][len(document["points"]) // 2]
    (tmp_path / "run" / "front.json").write_text(json.dumps(document, indent=2) + "\n")
    assert phaze("verify", tmp_path / "run").code == 1
    assert phaze(*arguments).code == 0
    assert (tmp_path / "run" / "front.json").read_text() == text
