"""SCALE-Sim on products: run by :func:`phaze.bench.peer.ask`, in a folder of its own.

Its array is simulated with memory that never stalls it: the length of the demand trace is the cycles. (Its model of
memory, version 3.0.0, stops with a TypeError under numpy 2.4 and is left out.)
"""

import importlib
import time

import numpy as np

from phaze.bench.peer import answer, question


def main() -> None:
    """Answer every shape and flow of the question."""
    asked = question()
    config = importlib.import_module("scalesim.scale_config").scale_config()
    config.array_rows, config.array_cols, config.valid_conf_flag = asked["rows"], asked["columns"], True
    rows = []
    for flow, m, n, k in asked["cases"]:
        module = importlib.import_module(f"scalesim.compute.systolic_compute_{flow}")
        start, busy = time.perf_counter(), time.process_time()
        run = getattr(module, f"systolic_compute_{flow}")()
        inputs, outputs, weights = (np.arange(a * b).reshape(a, b) for a, b in ((m, k), (m, n), (k, n)))
        run.set_params(config_obj=config, ifmap_op_mat=inputs, ofmap_op_mat=outputs, filter_op_mat=weights)
        cycles = int(run.get_demand_matrices()[0].shape[0])
        rows.append([cycles, time.process_time() - busy, time.perf_counter() - start])
    answer({"rows": rows})


if __name__ == "__main__":
    main()
