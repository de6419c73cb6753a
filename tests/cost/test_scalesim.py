"""Array cycles against SCALE-Sim 3, a cycle-by-cycle simulator of one systolic array, in its three
dataflows.

It runs one pass after the other and lets nothing overlap: every pass pays the skew of the array, R
+ C - 2 cycles, and a stationary operand is loaded first, R cycles more. Ours lets a pass begin
while the one before drains and loads the next operand behind the stream, as shipping arrays do, so
fill and drain are paid once. Therefore

    simulator = ours + passes x (skew + load)  exactly, where a stream is at least R long
                                               (outputs need R to leave)
    simulator = ours within 5 %                where streams are long against the array
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from phaze.cost.gemm import array_cycles
from phaze.cost.mapping import Flow, TensorPart

Case = tuple[Flow, int, int, int, int, int]
FLOWS: tuple[Flow, ...] = ("os-mn", "ws", "is")
ARRAYS = ((4, 4), (8, 8), (16, 4), (4, 16), (16, 16), (8, 32), (32, 32))
SHAPES = ((64, 48, 40), (100, 30, 70), (37, 53, 61), (128, 96, 33), (33, 129, 64), (200, 16, 100))


def long_streams() -> list[Case]:
    """Shapes whose streamed dimension is at least 20 times what a pass pays to fill and drain."""
    found: list[Case] = []
    for rows, columns in ((4, 4), (8, 8), (16, 8), (8, 16), (16, 16)):
        stream = 20 * (2 * rows + columns)
        for a, b in ((3 * rows, 2 * columns), (2 * rows + 1, columns), (5 * rows - 1, columns + 3)):
            found.append(("os-mn", rows, columns, a, b, stream))
            found.append(("ws", rows, columns, stream, b, a))
            found.append(("is", rows, columns, b, stream, a))
    return found


def mixed() -> list[Case]:
    """All shapes on all arrays whose stream is at least R long."""
    cases: list[Case] = [
        (flow, r, c, m, n, k) for flow in FLOWS for r, c in ARRAYS for m, n, k in SHAPES
    ]
    return [
        case
        for case in cases
        if {"os-mn": case[5], "ws": case[3], "is": case[4]}[case[0]] >= case[1]
    ]


def part(rows: int, columns: int) -> TensorPart:
    return TensorPart(1, rows, columns, 2.0**30, 1e12, 1.0, 2.0**30, 1e12, 1e12)


@cache
def simulator(flow: Flow) -> Any:
    name = {"os-mn": "os", "ws": "ws", "is": "is"}[flow]
    module = __import__(f"scalesim.compute.systolic_compute_{name}", fromlist=["x"])
    return getattr(module, f"systolic_compute_{name}")


def simulated_cycles(case: Case) -> int:
    """Cycles of the simulator with memory that never stalls it: the length of its demand trace."""
    from scalesim.scale_config import scale_config

    flow, rows, columns, m, n, k = case
    config = scale_config()
    config.array_rows, config.array_cols, config.valid_conf_flag = rows, columns, True
    run = simulator(flow)()
    operands = (
        np.arange(m * k).reshape(m, k),
        np.arange(m * n).reshape(m, n),
        np.arange(k * n).reshape(k, n),
    )
    run.set_params(
        config_obj=config,
        ifmap_op_mat=operands[0],
        ofmap_op_mat=operands[1],
        filter_op_mat=operands[2],
    )
    inputs, _, _ = run.get_demand_matrices()
    return int(inputs.shape[0])


def our_cycles(case: Case) -> float:
    """One item that is the whole product, with slices as deep as k, and one fill and drain."""
    flow, rows, columns, m, n, k = case
    return array_cycles(flow, m, n, k, k, part(rows, columns)) + 2 * rows + columns - 2


def passes(case: Case) -> int:
    flow, rows, columns, m, n, k = case
    on_rows, on_columns = {"os-mn": (m, n), "ws": (k, n), "is": (k, m)}[flow]
    return -(-on_rows // rows) * -(-on_columns // columns)


@pytest.mark.parametrize("case", long_streams(), ids=str)
def test_long_streams_take_what_the_simulator_takes(case: Case) -> None:
    assert our_cycles(case) == pytest.approx(simulated_cycles(case), rel=0.05)


def test_there_are_at_least_40_such_cases() -> None:
    assert len(long_streams()) >= 40


@pytest.mark.parametrize("case", mixed(), ids=str)
def test_the_difference_is_the_overlap_of_passes_to_the_cycle(case: Case) -> None:
    flow, rows, columns, *_ = case
    paid = rows + columns - 2 + (0 if flow == "os-mn" else rows)
    overlapped = our_cycles(case) - (2 * rows + columns - 2)
    assert simulated_cycles(case) == overlapped + passes(case) * paid
