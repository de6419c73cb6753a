"""Two terms of a layer's time by hand: the host beside the device, and gradients added up in
HBM."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phaze.evaluate.layer_table import FULL, SELECTIVE, empty_table
from phaze.evaluate.lowered_pass import LoweredPass


def test_a_host_as_slow_as_the_device_costs_a_quarter_more_and_a_fast_one_nothing() -> None:
    one: Any = SimpleNamespace(host_s=2.0)
    found = LoweredPass.with_host(one, np.array([2.0, 4.0, 200.0]))
    assert found == pytest.approx([2.0 * 2 ** (1 / 3), (64.0 + 8.0) ** (1 / 3), 200.0], rel=1e-5)


def test_a_backward_pass_reads_and_writes_four_bytes_of_gradient_for_every_parameter() -> None:
    modes = [SimpleNamespace(rerun=object()), SimpleNamespace(rerun=None)]
    one = SimpleNamespace(alone=None)
    layer: Any = SimpleNamespace(
        parameters=1000,
        modes=modes,
        halves=object(),
        accumulation_bytes=8.0,
        forward=one,
        backward=one,
    )
    times = [np.array([seconds]) for seconds in (3.0, 5.0, 1.0, 2.0, 3.0)]
    table = empty_table([layer], 1)
    table.hbm_bytes_per_s[:] = 100.0
    table.put_layer(0, np.array([0]), times)
    assert table.forward_s[0] == pytest.approx([3.0])
    assert table.backward_s[0] == pytest.approx([5.0 + 2 * 4 * 1000 / 100])
    assert table.again_s[SELECTIVE, 0] == pytest.approx([1.0])
    assert table.again_s[FULL, 0] == pytest.approx([3.0])
    assert table.weight_s is not None
    assert table.weight_s[0] == pytest.approx([85.0 * 83.0 / (2.0 + 83.0)])
