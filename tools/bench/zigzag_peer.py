"""ZigZag (zigzag-dse) on products: run by :func:`tools.bench.peer.ask`, in a folder of its own.

The machine is the same core and the same memories at the same rates, told in ZigZag's words, in
bits a cycle:

    array      R x C units; n runs along the columns, k along the rows; operands move through it
               (systolic)
    register   one weight in each unit and the next one behind it, so that a load hides behind a
               stream
    core       the core's buffer: 16 R bits of inputs and 16 C of weights out, 32 C of sums out and
               32 C in, each cycle; filled at the global buffer's rate
    chip       what the core has of the global buffer: one port towards the core, one towards HBM at
               HBM's rate
    hbm        the core's share of HBM, one port

A case may name its loops (:mod:`tools.bench.loops`): then they are priced as they are. Otherwise
they are searched, with the default effort, for least latency. Files are JSON, which is YAML too.
"""

import importlib
import json
import logging
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from phaze.files import write_whole
from tools.bench import clock
from tools.bench.peer import answer, question

INWARD = ("I1, tl", "I2, tl", "O, tl", "O, fl")
OUTWARD = ("I1, fh", "I2, fh", "O, fh", "O, th")
EFFORT = 6
"""zigzag's own default for how many loop orders it tries."""
DIMENSIONS = MappingProxyType({"m": "D", "n": "K", "k": "C"})


def _port(name: str, kind: str, bits: int, of: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "bandwidth_min": 16,
        "bandwidth_max": bits,
        "allocation": list(of),
    }


def _memory(
    bits: int, operands: tuple[str, ...], ports: list[dict[str, Any]], inside: bool
) -> dict[str, Any]:
    return {
        "size": bits,
        "r_cost": 1.0,
        "w_cost": 1.0,
        "area": 0.0,
        "latency": 1,
        "operands": list(operands),
        "ports": ports,
        "served_dimensions": [] if inside else ["D1", "D2"],
        "force_double_buffering": inside,
    }


def machine(part: dict[str, float]) -> dict[str, Any]:
    """The accelerator file of a core with its share of the memories
    (:class:`phaze.cost.mapping.TensorPart`)."""
    rows, columns, clock = int(part["rows"]), int(part["columns"]), part["clock_hz"]
    shared = int(8 * part["global_bytes_per_s"] / clock)
    hbm = int(8 * part["hbm_bytes_per_s"] / clock)
    everyone = ("I1", "I2", "O")
    register = [
        _port("r_port_1", "read", 16, ("I2, tl",)),
        _port("w_port_1", "write", 16, ("I2, fh",)),
    ]
    core = [
        _port("r_port_1", "read", 16 * rows, ("I1, tl",)),
        _port("r_port_2", "read", 16 * columns, ("I2, tl",)),
        _port("r_port_3", "read", 32 * columns, ("O, tl",)),
        _port("w_port_1", "write", 32 * columns, ("O, fl",)),
        _port("rw_port_1", "read_write", shared, OUTWARD),
    ]
    chip = [
        _port("rw_port_1", "read_write", shared, INWARD),
        _port("rw_port_2", "read_write", hbm, OUTWARD),
    ]
    memory = [_port("rw_port_1", "read_write", hbm, (*INWARD, *OUTWARD))]
    return {
        "name": "core",
        "memories": {
            "register": _memory(32, ("I2",), register, True),
            "core": _memory(int(8 * part["buffer_bytes"]), everyone, core, False),
            "chip": _memory(int(8 * part["global_bytes"]), everyone, chip, False),
            "hbm": _memory(2**40, everyone, memory, False),
        },
        "operational_array": {
            "unit_energy": 0.0,
            "unit_area": 0.0,
            "dimensions": ["D1", "D2"],
            "sizes": [columns, rows],
            "systolic_dimensions": ["D1", "D2"],
        },
    }


def mapping(part: dict[str, float], loops: list[list[Any]] | None = None) -> list[dict[str, Any]]:
    """Columns of the result along the array's columns, the inner dimension along its rows; which
    loops a memory holds is searched, and so are the loops unless ``loops`` has them from the inside
    out."""
    unrolled = {"D1": [f"K, {int(part['columns'])}"], "D2": [f"C, {int(part['rows'])}"]}
    links = {"O": "O", "W": "I2", "I": "I1"}
    found: dict[str, Any] = {
        "name": "default",
        "spatial_mapping": unrolled,
        "memory_operand_links": links,
    }
    if loops is not None:
        found["temporal_ordering"] = [[DIMENSIONS[name], extent] for name, extent in loops]
    return [found]


def workload(shape: list[int]) -> list[dict[str, Any]]:
    """One product m x n x k, 16-bit operands and result, 32-bit sums."""
    m, n, k = shape
    return [
        {
            "id": 0,
            "name": "product",
            "operator_type": "Gemm",
            "equation": "O[d][k]+=I[d][c]*W[c][k]",
            "loop_dims": ["D", "C", "K"],
            "loop_sizes": [m, k, n],
            "operand_precision": {"W": 16, "I": 16, "O": 32, "O_final": 16},
            "operand_source": {"I": 0, "W": 0},
        }
    ]


def main() -> None:
    """Answer every case of the question, a part and a shape each, perhaps loops."""
    run = importlib.import_module("zigzag.api").get_hardware_performance_zigzag
    logging.disable(logging.CRITICAL)
    rows = []
    for case in question()["cases"]:
        write_whole(Path("machine.yaml"), json.dumps(machine(case["part"])))
        write_whole(Path("mapping.yaml"), json.dumps(mapping(case["part"], case.get("loops"))))
        asked = partial(
            run, workload(case["shape"]), "machine.yaml", "mapping.yaml",
            opt="latency", dump_folder="out", lpf_limit=EFFORT, loma_show_progress_bar=False,
        )  # fmt: skip
        found, spent = clock.once(asked)
        rows.append([float(found[1]), spent.most_s, spent.elapsed_s, spent.memory_bytes])
    answer({"rows": rows})


if __name__ == "__main__":
    main()
