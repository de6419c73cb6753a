"""Large spaces: worked in chunks they give the same bounds, chips and list of closed chips, bit by
bit."""

from typing import Any

import numpy as np
import pytest

from phaze.options.values import Kind
from phaze.search import certificate, pruned, run
from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of, closed_chips
from phaze.search.chips import enumerate_space
from phaze.search.journal import PrunedChip
from phaze.search.pruned import PrunedChips
from phaze.search.run import search
from tests.search.made import made_job, made_task, small_space


@pytest.mark.parametrize("kind", ["throughput", "throughput_per_usd", "energy_delay"])
@pytest.mark.parametrize("axes", [{}, {"links": ["100 GB/s", "200 GB/s"]}])
def test_chunks_change_nothing(
    kind: Kind, axes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = made_job((made_task(81, microbatches=(1,)),), kind, rows=[64], **axes)
    whole = search(job, scale_for(job))
    monkeypatch.setattr(run, "LARGE", 1)
    monkeypatch.setattr(run, "CHUNK", 7)
    parts = search(job, scale_for(job))
    assert bool(whole.times) == (kind != "throughput") and not parts.times
    assert parts.evaluated == whole.evaluated and parts.dual == whole.dual
    assert np.array_equal(parts.scores(), whole.scores())
    assert all(np.array_equal(a, b) for a, b in zip(parts.bounds, whole.bounds, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(parts.floors, whole.floors, strict=True))
    assert list(closed_chips(parts)) == list(closed_chips(whole))


def test_the_counts_of_the_list_do_not_depend_on_how_much_of_it_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(certificate, "BATCH", 5)
    monkeypatch.setattr(pruned, "BATCH", 4)
    job = made_job((made_task(82),), gap=1e-4)
    state = search(job, scale_for(job))
    chips, evaluated = closed_chips(state), list(state.evaluated.values())
    rows = [[one.chip, one.reason, one.bound, one.step] for one in chips]
    found = certificate_of(chips, evaluated, state.best, job.gap, state.chips.left_out)
    assert found == certificate_of(
        list(chips), evaluated, state.best, job.gap, state.chips.left_out
    )
    assert found.lower_bound == min(state.best, *(row[2] for row in rows if row[2] is not None))
    assert sum(found.closed.values()) == len(state.chips) + found.closed["area"]


def test_the_list_of_closed_chips_is_a_sequence() -> None:
    chips = PrunedChips(
        np.array([4, 3, 5], np.uint8), np.array([1.5, np.inf, 2.0]), np.array([0, 1, 2], np.uint8)
    )
    every = [
        PrunedChip(0, "bound", 1.5, "cheap"),
        PrunedChip(1, "memory", None, "dual"),
        PrunedChip(2, "evaluated", 2.0, "exact"),
    ]
    assert list(chips) == every and [chips[at] for at in range(3)] == every
    assert chips[-1] == every[-1] and chips[1:] == every[1:] and len(chips) == 3
    with pytest.raises(IndexError):
        chips[3]


def test_a_field_that_does_not_vary_takes_no_memory() -> None:
    chips = enumerate_space(small_space(clock=["1 GHz", "2 GHz"])).chips
    assert chips.link_bytes_per_s.strides == (0,) and chips.clock_hz.strides == (8,)
    assert len(set(chips.link_bytes_per_s.tolist())) == 1 and len(set(chips.clock_hz.tolist())) == 2
