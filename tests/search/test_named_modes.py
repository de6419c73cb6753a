"""Searches whose recompute is a named mode on every stage: honest bounds, and the answer of
exhaustive evaluation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.search.answer import best_of
from phaze.search.task import ModelTask
from tests.search.made import MIB
from tests.search.made_cluster import cluster_job, cluster_task
from tests.search.test_cluster_rules import _check_bounds
from tests.search.test_run import _check_against_exhaustive

MODULES = ("layernorm+mlp", "mlp")
DRAWN = st.builds(
    cluster_task,
    st.sampled_from(["gpt", "llama", "deep"]),
    microbatches=st.sampled_from([(1,), (1, 2)]),
    recompute=st.sampled_from([("mlp",), ("selective", "layernorm+mlp", "full")]),
    zeros=st.sampled_from([(0, 1), (2,), (0, 1, 2, 3)]),
    devices=st.sampled_from([8, 16]),
    modules=st.just(MODULES),
)


@settings(max_examples=4, deadline=None)
@given(DRAWN, st.sampled_from([MIB, 2 * MIB, 64 * MIB]), st.integers(0, 2**32))
def test_no_plan_undercuts_a_bound_under_a_named_mode(
    task: ModelTask, hbm_bytes: int, seed: int
) -> None:
    _check_bounds(task, hbm_bytes, seed)


def test_the_answer_over_named_modes_is_that_of_exhaustive_evaluation() -> None:
    task = cluster_task(
        "gpt", microbatches=(1,), zeros=(0, 1), recompute=("selective", *MODULES), modules=MODULES
    )
    job = cluster_job((task,), hbm=(4 * MIB,), rows=[16], lanes=[16, 64])
    assert best_of(_check_against_exhaustive(job)) is not None
