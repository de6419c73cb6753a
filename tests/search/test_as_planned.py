"""A space of one chip: the search's answer is the plan that ``phaze plan`` finds on that chip."""

from typing import Any

import pytest

from phaze.evaluate.plan import Candidate, PlanRequest
from phaze.evaluate.plan_order import planned
from phaze.graph.ir import Attention, Model
from phaze.placement.job import TrainingJob
from phaze.search.answer import best_of
from phaze.search.configurations import ConfigurationPlan, plan_found
from phaze.search.objective import Objective, scale_of
from phaze.search.run import search
from phaze.search.task import ModelTask, SearchJob
from tests.search.made import MIB, small_space
from tests.search.made_cluster import cluster_task

ALL = (0, 1, 2, 3)
ONE_CHIP: dict[str, Any] = {
    "tensor_cores": [4], "rows": [16], "columns": [32], "vector_cores": [2], "lanes": [16],
    "global_buffer": ["2 MiB"],
}  # fmt: skip


def _planned(task: ModelTask, hbm_bytes: int) -> Candidate:
    """The best of a request of the same job on the same chip."""
    training, ranks = task.training, {}
    for graph in task.graphs:
        model = graph.model
        ranks[model.tensor, model.microbatch, model.sequence_parallel, model.attention] = model
    chip = search(_job(task, hbm_bytes), SCALE).chips.chip(0, hbm_bytes)

    def model_at(width: int, microbatch: int, spread: bool, attention: Attention) -> Model:
        return ranks[width, microbatch, spread, attention]

    request = PlanRequest(
        model_at=model_at,
        setting=task.setting(chip),
        job=TrainingJob(
            training.machine,
            training.devices,
            training.batch,
            training.optimizer,
            training.zeros,
            chunks=training.chunks,
            shards=training.shards,
        ),
        widths=tuple(sorted({key[0] for key in ranks})),
        microbatches=tuple(sorted({key[1] for key in ranks})),
        sequence_parallel=(False, True),
        attentions=(task.graphs[0].attention,),
    )
    return planned(request).best


SCALE = scale_of(Objective(), [1.0], [1.0], [1.0])


def _job(task: ModelTask, hbm_bytes: int) -> SearchJob:
    return SearchJob("one", (task,), small_space(**ONE_CHIP), (hbm_bytes,), Objective(), 0.0, "one")


def _searched(task: ModelTask, hbm_bytes: int) -> ConfigurationPlan:
    state = search(_job(task, hbm_bytes), SCALE)
    best = best_of(state)
    assert best is not None and len(state.chips) == 1
    found = plan_found(state, best.chip, 0, best.ran[0].configuration, best.hbm)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("wanted", "hbm_bytes", "chunked", "zero"),
    [
        ({"model": "deep", "cluster": "slow", "zeros": ALL}, MIB // 4, False, 3),
        (
            {
                "model": "deep",
                "cluster": "slow",
                "zeros": (0,),
                "devices": 8,
                "batch": 8,
                "widths": (1,),
            },
            2 * MIB,
            True,
            0,
        ),
        (
            {
                "model": "deep",
                "zeros": (0,),
                "devices": 8,
                "batch": 8,
                "widths": (1,),
                "chunks": (1,),
            },
            2 * MIB,
            False,
            0,
        ),
        (
            {"model": "gpt", "cluster": "selene", "stack": "maxtext", "zeros": ALL},
            2 * MIB,
            False,
            1,
        ),
        (
            {"model": "gpt", "cluster": "slow", "zeros": (1, 2, 3), "shards": (0, 2, 4)},
            MIB,
            None,
            None,
        ),
        (
            {"model": "llama", "cluster": "slow", "stack": "ideal", "zeros": ALL, "widths": (1,)},
            MIB,
            None,
            None,
        ),
        ({"model": "llama", "cluster": "paper-flat", "zeros": (2,)}, 64 * MIB, None, 2),
    ],
)
def test_a_search_of_one_chip_answers_with_the_plan_of_that_chip(
    wanted: dict[str, Any], hbm_bytes: int, chunked: bool | None, zero: int | None
) -> None:
    """Same seconds, same chunks, same stage of ZeRO; the settings are such that each of them is
    chosen somewhere."""
    task = cluster_task(wanted.pop("model"), microbatches=(1,), **wanted)
    planned, searched = _planned(task, hbm_bytes), _searched(task, hbm_bytes)
    assert planned.plan is not None
    assert searched.plan.batch_s == pytest.approx(planned.plan.batch_s, rel=1e-12)
    assert (searched.plan.chunks, searched.zero) == (planned.plan.chunks, planned.problem.zero)
    assert chunked is None or (searched.plan.chunks > 1) == chunked
    assert zero is None or searched.zero == zero
