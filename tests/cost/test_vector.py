"""Vector operators: one formula, its floors, and what makes it faster."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.estimate import vector_work
from phaze.cost.vector import (
    Moved,
    VectorParts,
    VectorWork,
    lane_steps,
    sweep_vector,
    whole_bursts,
)
from phaze.errors import InputError


def streamed(elements: int, each_bytes: float) -> VectorWork:
    """An operator that moves so many bytes an element and computes a little, such as a step of
    Adam."""
    return VectorWork(elements, 0, 14.0, 1, (Moved(elements * each_bytes),), ())


def part(**changed: float) -> VectorParts:
    values: dict[str, float] = {
        "cores": 8,
        "lanes": 128,
        "buffer_bytes_per_s": 6 * 128 * 1e9,
        "kept_row_bytes": 4096.0,
        "clock_hz": 1e9,
        "global_bytes": 2.0**25,
        "global_bytes_per_s": 4e12,
        "hbm_bytes_per_s": 1e12,
    } | changed
    whole = {"cores", "lanes"}
    arrays: dict[str, Any] = {
        name: np.array([v], dtype=np.int64 if name in whole else np.float64)
        for name, v in values.items()
    }
    return VectorParts(**arrays)


def seconds(work: VectorWork, parts: VectorParts) -> float:
    return float(sweep_vector([work], parts).time_s[0, 0])


works = st.builds(
    lambda elements, rows, operations, passes, need: VectorWork(
        elements, min(rows, elements), operations, passes, (Moved(2.0 * elements, need),),
        (Moved(2.0 * elements),)
    ),
    st.integers(1, 10**7), st.integers(0, 5000), st.sampled_from([0.0, 1.0, 8.0]),
    st.sampled_from([1, 2]),
    st.sampled_from([float("inf"), 1e4, 1e7]),
)  # fmt: skip
parts = st.builds(
    lambda cores, lanes, kept, rate: part(cores=cores, lanes=lanes, kept_row_bytes=kept,
    hbm_bytes_per_s=rate),
    st.integers(1, 300), st.integers(1, 3000), st.sampled_from([512.0, 4096.0, 1e6]),
    st.sampled_from([1e11, 2e12]),
)  # fmt: skip


@given(works, parts)
def test_time_is_never_below_lane_operations_or_bytes(work: VectorWork, on: VectorParts) -> None:
    time_s = seconds(work, on)
    assert time_s >= work.operations * work.elements / (
        on.cores[0] * on.lanes[0] * on.clock_hz[0]
    ) * (1 - 1e-12)
    held = 0.5 * on.global_bytes[0]
    compulsory = sum(m.bytes for m in (*work.reads, *work.writes) if m.need_bytes > held)
    assert time_s >= compulsory / on.hbm_bytes_per_s[0] * (1 - 1e-12)


@given(
    works,
    parts,
    st.sampled_from([f.name for f in fields(VectorParts)]),
    st.sampled_from([2, 3, 16]),
)
def test_more_of_anything_never_slows_a_vector_operator(
    work: VectorWork, on: VectorParts, field: str, factor: int
) -> None:
    larger: dict[str, Any] = {field: getattr(on, field) * factor}
    assert seconds(work, replace(on, **larger)) <= seconds(work, on) * (1 + 1e-12)


def test_doubling_each_field_changes_some_operator() -> None:
    resident = VectorWork(2**23, 0, 0.0, 1, (Moved(2.0**24, 2.0**24 + 1),), ())
    tried = [
        vector_work("gelu", 2**24),
        vector_work("softmax", 2**24, 2**13),
        vector_work("copy", 2**24),
        resident,
    ]
    starved: tuple[dict[str, float], ...] = (
        {},
        {"hbm_bytes_per_s": 1e15},
        {"hbm_bytes_per_s": 1e15, "global_bytes_per_s": 1e16, "lanes": 4096},
    )
    for field in (f.name for f in fields(VectorParts)):
        changed = []
        for rates in starved:
            base = part(**rates)
            larger: dict[str, Any] = {field: getattr(base, field) * 2}
            changed += [
                seconds(work, base) != seconds(work, replace(base, **larger)) for work in tried
            ]
        assert any(changed), field


def test_a_row_that_is_not_kept_is_fetched_again() -> None:
    short, long = (vector_work("layer_norm", 2**22, 2**22 // length) for length in (1024, 2048))
    on = part(lanes=2**16)
    assert seconds(long, on) == pytest.approx(1.5 * seconds(short, on))
    assert seconds(vector_work("gelu", 2**22), on) == pytest.approx(seconds(short, on))


@pytest.mark.parametrize(
    "kind", ["softmax", "softmax_backward", "layer_norm", "layer_norm_backward", "sort"]
)
def test_kinds_that_need_a_whole_row_go_over_a_long_one_twice(kind: str) -> None:
    work, kept = vector_work(kind, 2**22, 2**11), part(kept_row_bytes=1e9)
    read, written = (sum(one.bytes for one in moved) for moved in (work.reads, work.writes))
    once, twice = (sweep_vector([work], on).global_bytes[0, 0] for on in (kept, part()))
    assert (once, twice) == (read + written, 2 * read + written)


def test_one_long_row_is_spread_over_the_cores() -> None:
    whole = seconds(
        vector_work("reduce", 2**26, 1), part(hbm_bytes_per_s=1e15, global_bytes_per_s=1e15)
    )
    alone = seconds(
        vector_work("reduce", 2**26, 1),
        part(hbm_bytes_per_s=1e15, global_bytes_per_s=1e15, cores=1),
    )
    assert alone / whole == pytest.approx(8, rel=0.01)


def test_scattered_rows_move_whole_bursts() -> None:
    assert whole_bursts(10 * 100, 10) == 1280
    assert whole_bursts(10 * 64, 10) == 640
    assert whole_bursts(1000, 0) == 1000
    few, many = (seconds(vector_work("embedding", 2**20, rows), part()) for rows in (2**10, 2**18))
    assert many > few


def test_an_optimizer_step_moves_the_bytes_that_its_stack_says() -> None:
    step = streamed(10**8, 30.0)
    assert seconds(step, part(lanes=4096)) == pytest.approx(30e8 / 1e12)


def test_nothing_takes_no_time_and_nonsense_is_one_sentence() -> None:
    assert seconds(vector_work("gelu", 0), part()) == 0
    with pytest.raises(InputError, match="did you mean 'gelu'"):
        vector_work("gellu", 10)
    with pytest.raises(InputError, match="5 elements in 6 rows"):
        vector_work("softmax", 5, 6)


def test_steps_of_rows_follow_the_formula_by_hand() -> None:
    cores, lanes = np.array([1, 4, 4]), np.array([8, 8, 64])
    # One row of 1,000: on one core 125 steps; over four 32 and twice two to combine; 64 lanes: 8
    # and over four 4 + 4.
    assert lane_steps(np.array([1000]), np.array([1]), cores, lanes)[0].tolist() == [
        125.0,
        36.0,
        8.0,
    ]
    # Six rows of 16: two steps of 8 lanes each; four cores take two rows one after the other, or
    # pack four rows.
    assert lane_steps(np.array([96]), np.array([6]), cores, lanes)[0].tolist() == [12.0, 4.0, 1.0]
    assert lane_steps(np.array([96]), np.array([0]), cores, lanes)[0].tolist() == [12.0, 3.0, 1.0]
