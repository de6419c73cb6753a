"""Least regret: the baseline of every model is its own best, and the answer has the least of the
greatest regrets."""

from dataclasses import replace

import numpy as np

from phaze.search.answer import best_of
from phaze.search.baseline import own_bests, scale_for
from phaze.search.chips import enumerate_space
from phaze.search.objective import Objective, scale_of
from phaze.search.run import search
from tests.search.made import exact_score, made_job, made_task


def test_the_greatest_regret_is_least() -> None:
    tasks = tuple(made_task(seed, microbatches=(1,)) for seed in (31, 32, 33))
    job = replace(made_job(tasks, rows=[64]), objective=Objective("throughput", "regret"))
    opened, most = enumerate_space(job.space), len(job.hbm_bytes) - 1
    alone = []
    for task in tasks:
        one = replace(job, models=(task,))
        single = scale_of(job.objective, [1.0], [float(task.training.batch)], [1.0])
        alone.append([exact_score(one, single, opened, chip, most) for chip in range(len(opened))])
    values = np.array(alone)
    assert np.allclose(own_bests(job)[0], values.min(axis=1), rtol=1e-9)
    best = best_of(search(job, scale_for(job)))
    assert best is not None
    least = (values / values.min(axis=1, keepdims=True)).max(axis=0).min()
    assert abs(best.score / least - 1) < 1e-9
    assert best.score >= 1
