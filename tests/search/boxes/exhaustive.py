"""A search in boxes against every chip by the reference path."""

import numpy as np

from phaze.search.answer import best_of
from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of, closed_chips, evaluated_chips
from phaze.search.chips import enumerate_space
from phaze.search.run import search
from phaze.search.state import TIE
from phaze.search.task import SearchJob
from tests.search.made import exact_score


def check_against_exhaustive(job: SearchJob) -> None:
    """Every chip and memory by the reference path: the same best chip, no bound above it, and every
    chip counted."""
    scale, opened = scale_for(job), enumerate_space(job.space)
    state, memories = search(job, scale), range(len(job.hbm_bytes))
    scores = np.array(
        [[exact_score(job, scale, opened, c, h) for h in memories] for c in range(len(opened))]
    )
    best = best_of(state) if len(state.chips) else None
    if best is None:
        assert not np.isfinite(scores).any()
        return
    least = scores.min()
    tied = np.argwhere(scores <= least * (1 + TIE)).tolist()
    chip, hbm = min(tied, key=lambda one: (opened.area_mm2[one[0]], one[1], one[0]))
    if job.gap == 0:
        assert (state.chips.name(best.chip), best.hbm) == (opened.name(chip), hbm)
    assert least * (1 - TIE) <= best.score <= least / (1 - job.gap) * (1 + TIE)
    standing = state.standing()
    assert (
        standing.lower <= least * (1 + TIE)
        and standing.gap <= max(1e-8, job.gap)
        and standing.open == 0
    )
    assert standing.evaluated + standing.bound + standing.memory == len(opened) == state.chips.total
    proof = certificate_of(
        closed_chips(state),
        evaluated_chips(state),
        best.score,
        job.gap,
        state.chips.left_out,
        state.boxed,
    )
    assert proof.chips == len(opened) and proof.near.at_most >= int(
        (scores.min(axis=1) <= 1.01 * best.score).sum()
    )
    assert {name: proof.closed[name] for name in opened.left_out} == opened.left_out
