"""SCALE-Sim on products: run by :func:`tools.bench.peer.ask`, in a folder of its own.

Its array is simulated with memory that never stalls it: the length of the demand trace is the
cycles. (Its model of memory, version 3.0.0, stops with a TypeError under numpy 2.4 and is left
out.)
"""

import importlib
from functools import partial
from typing import Any

import numpy as np

from tools.bench import clock
from tools.bench.peer import answer, question


def simulated(array: Any, config: Any, m: int, n: int, k: int) -> int:
    """Cycles of one product on SCALE-Sim's array."""
    inputs, outputs, weights = (np.arange(a * b).reshape(a, b) for a, b in ((m, k), (m, n), (k, n)))
    array.set_params(
        config_obj=config, ifmap_op_mat=inputs, ofmap_op_mat=outputs, filter_op_mat=weights
    )
    return int(array.get_demand_matrices()[0].shape[0])


def main() -> None:
    """Answer every shape and flow of the question."""
    asked = question()
    config = importlib.import_module("scalesim.scale_config").scale_config()
    config.array_rows, config.array_cols, config.valid_conf_flag = (
        asked["rows"],
        asked["columns"],
        True,
    )
    rows = []
    for flow, m, n, k in asked["cases"]:
        module = importlib.import_module(f"scalesim.compute.systolic_compute_{flow}")
        array = getattr(module, f"systolic_compute_{flow}")()
        cycles, spent = clock.once(partial(simulated, array, config, m, n, k))
        rows.append([cycles, spent.most_s, spent.elapsed_s, spent.memory_bytes])
    answer({"rows": rows})


if __name__ == "__main__":
    main()
