"""The search: the answer of exhaustive evaluation, honest bounds, and the same whatever the
configuration."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.options.values import Kind
from phaze.search.answer import best_of
from phaze.search.chips import enumerate_space
from phaze.search.objective import KINDS, Objective, Scale, scale_of
from phaze.search.run import begin, search
from phaze.search.spaces import space_in
from phaze.search.state import TIE, SearchState
from phaze.search.task import SearchJob
from tests.search.made import GIB, MIB, exact_score, made_job, made_task


def _scale(job: SearchJob) -> Scale:
    rates = [float(task.training.batch) for task in job.models]
    return scale_of(
        job.objective,
        [task.weight for task in job.models],
        rates,
        [0.01 * (i + 1) for i in range(len(rates))],
    )


def _check_against_exhaustive(job: SearchJob) -> SearchState:
    """Every chip and memory by the plain path: the same best chip, and every recorded bound below
    its truth."""
    scale, opened = _scale(job), enumerate_space(job.space)
    state = search(job, scale)
    best = best_of(state)
    scores = np.array(
        [
            [exact_score(job, scale, opened, c, h) for h in range(len(job.hbm_bytes))]
            for c in range(len(opened))
        ]
    )
    if best is None:
        assert np.isinf(scores).all()
        return state
    least = scores.min()
    tied = np.argwhere(scores <= least * (1 + TIE))
    chip, hbm = min(tied.tolist(), key=lambda one: (opened.area_mm2[one[0]], one[1], one[0]))
    if job.gap == 0:
        assert (best.chip, best.hbm) == (chip, hbm)
        assert best.score == pytest.approx(least, rel=TIE)
    assert best.score <= least / (1 - job.gap) * (1 + TIE)
    bounds, truth = state.scores(), scores.min(axis=1)
    assert (bounds <= truth * (1 + 1e-12)).all()
    assert all(found.lower <= truth[one] * (1 + 1e-9) for one, found in state.evaluated.items())
    standing = state.standing()
    assert standing.open == 0 and standing.gap <= max(1e-8, job.gap)
    assert standing.lower <= least * (1 + TIE)
    assert standing.evaluated + standing.bound + standing.memory == len(opened)
    return state


@pytest.mark.parametrize("seed", range(4))
def test_the_answer_is_that_of_exhaustive_evaluation(seed: int) -> None:
    _check_against_exhaustive(made_job((made_task(seed, widths=(1, 2) if seed % 2 else (1,)),)))


@pytest.mark.parametrize(
    "kind", ["throughput_per_watt", "throughput_per_usd", "throughput_per_kgco2e", "energy_delay"]
)
def test_other_objectives_too(kind: Kind) -> None:
    _check_against_exhaustive(made_job((made_task(11, microbatches=(1,)),), kind, rows=[64]))


def test_several_models_too() -> None:
    tasks = tuple(made_task(seed, microbatches=(1,)) for seed in (21, 22))
    _check_against_exhaustive(made_job(tasks, rows=[64]))
    job = made_job(tasks, rows=[64])
    for mean in ("arithmetic", "regret"):
        _check_against_exhaustive(replace(job, objective=Objective("throughput", mean)))


def test_models_that_are_no_chain_of_equal_blocks_too() -> None:
    plain = made_task(71, microbatches=(1,))
    graphs = tuple(replace(graph, edges=(*graph.edges, (0, 3, 1e6))) for graph in plain.graphs)
    state = _check_against_exhaustive(made_job((replace(plain, graphs=graphs),), rows=[64]))
    assert len(state.evaluated) < len(state.arrays)


def test_a_larger_space_is_never_worse() -> None:
    task = made_task(31)
    small, large = made_job((task,), lanes=[16]), made_job((task,), lanes=[16, 64])
    assert search(large, _scale(large)).best <= search(small, _scale(small)).best


def test_a_wider_gap_opens_no_more_chips_and_keeps_its_word() -> None:
    task = made_task(41)
    exact, loose = (made_job((task,), gap=gap) for gap in (0.0, 0.05))
    narrow, wide = search(exact, _scale(exact)), search(loose, _scale(loose))
    assert len(wide.evaluated) <= len(narrow.evaluated)
    assert wide.best <= narrow.best / (1 - 0.05)
    assert wide.standing().gap <= 0.05
    assert wide.standing().lower <= narrow.best * (1 + 1e-12)


def test_a_chip_that_fails_keeps_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    from phaze.search import work_item

    job = made_job((made_task(51),))
    whole = search(job, _scale(job))
    winner = best_of(whole)
    assert winner is not None
    plain = vars(work_item)["evaluate"]

    def failing(opened, *rest):  # type: ignore[no-untyped-def]
        if opened.chip == winner.chip:
            raise RuntimeError("broken")
        return plain(opened, *rest)

    monkeypatch.setattr(work_item, "evaluate", failing)
    state = search(job, _scale(job))
    found = best_of(state)
    assert found is not None and found.chip != winner.chip
    assert "broken" in state.evaluated[winner.chip].error
    assert state.standing().lower <= whole.best * (1 + 1e-12)


def test_nothing_feasible_is_an_answer() -> None:
    job = made_job((made_task(61),))
    tight = SearchJob(job.name, job.models, job.space, (1024,), job.objective, 0.0, "made", 4)
    state = search(tight, _scale(tight))
    assert best_of(state) is None
    assert state.standing().memory == len(state.arrays)


@st.composite
def _jobs(draw: st.DrawFn) -> SearchJob:
    """Any search: a space of up to a few hundred chips on any axes, one or two models, any
    objective, mean, rules."""
    few: dict[str, list[Any]] = {
        "tensor_cores": [1, 2, 8, 64], "rows": [16, 64, 256], "columns": [32, 128],
        "vector_cores": [1, 4, 32],
        "lanes": [8, 64], "global_buffer": [2 * MIB, 32 * MIB], "tensor_buffer": [4096, 2**18],
        "vector_buffer": [1024, 2**16], "global_bandwidth": [1e12, 4e12],
        "hbm_bandwidth": [3e11, 1.2e12],
        "links": [1e9, 2**32, 1e11], "clock": [7e8, 1.05e9],
    }  # fmt: skip
    axes: dict[str, Any] = {
        name: sorted(draw(st.sets(st.sampled_from(values), min_size=1, max_size=2)))
        for name, values in few.items()
        if name in ("tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer")
    }
    for name in draw(st.sets(st.sampled_from(sorted(set(few) - set(axes))), max_size=2)):
        axes[name] = few[name][:2]
    tied = draw(st.sampled_from(["", "lanes", "vector_cores"]))
    axes |= (
        {"lanes": "columns"}
        if tied == "lanes"
        else {"vector_cores": "tensor_cores"}
        if tied
        else {}
    )
    seeds = draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=2, unique=True))
    widths = draw(st.sampled_from([(1,), (1, 2)]))
    tasks = tuple(made_task(seed, widths, draw(st.sampled_from([(1,), (1, 2)]))) for seed in seeds)
    keep = {"area_of": "tpu-v4-paper"} | draw(
        st.sampled_from([{}, {"most_usd": 350.0}, {"most_power": 60.0}])
    )
    job = made_job(
        tasks, draw(st.sampled_from(KINDS)), draw(st.sampled_from([0.0, 0.0, 0.01])), **axes
    )
    objective = replace(
        job.objective, mean=draw(st.sampled_from(["geometric", "arithmetic", "regret"]))
    )
    memories = draw(st.sampled_from([(128 * MIB, GIB), (96 * MIB, 8 * GIB, 16 * GIB)]))
    raw = job.space.model_dump(by_alias=True) | {"keep": keep}
    space = space_in(raw, "made")
    return replace(
        job,
        objective=objective,
        hbm_bytes=memories,
        space=space,
        round_size=draw(st.integers(1, 8)),
    )


@settings(max_examples=6, deadline=None)
@given(job=_jobs())
def test_any_answer_is_that_of_exhaustive_evaluation(job: SearchJob) -> None:
    _check_against_exhaustive(job)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(job=_jobs())
def test_many_answers_are_those_of_exhaustive_evaluation(job: SearchJob) -> None:
    _check_against_exhaustive(job)


def test_rates_as_axes_too() -> None:
    job = made_job(
        (made_task(81, microbatches=(1,)),),
        "throughput_per_watt",
        rows=[64],
        hbm_bandwidth=[6e11, 1.2e12],
    )
    _check_against_exhaustive(job)


def test_a_chips_own_links_carry_its_traffic() -> None:
    job = made_job(
        (made_task(91, widths=(1, 2), microbatches=(1,)),),
        rows=[64],
        lanes=[16],
        links=[1e8, 2**32],
    )
    state = _check_against_exhaustive(job)
    slow = state.chips.link_bytes_per_s == 1e8
    alone, split = begin(job, state.chips, state.scale).times[0]
    assert (split.forward_s[:, slow] > split.forward_s[:, ~slow]).all()
    assert (alone.forward_s[:, slow] == alone.forward_s[:, ~slow]).all()


def test_the_price_of_a_chip_counts_its_memory() -> None:
    job = made_job((made_task(11, microbatches=(1,)),), rows=[64])
    keep = {"area_of": "tpu-v4-paper", "most_usd": 320.0}
    raw = job.space.model_dump(by_alias=True) | {"keep": keep}
    space = space_in(raw, "made")
    dear = replace(job, space=space, hbm_bytes=(128 * MIB, 64 * GIB))
    state = _check_against_exhaustive(dear)
    best = best_of(state)
    assert best is not None and best.hbm == 0
