"""One chip that a problem names, field by field, instead of a space: what a plan runs on
(docs/formats.md).

Of a chip of clusters the clock is the one that was measured (``constants.clock_hz``), else the one
that the problem states as held; its peak is at the rated one. Its links are the network's innermost
level, which states its own rate.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .chips import Chips, alone, cluster_chips, core_chips, core_fields
from .operators import Constants
from .reading import cover, positive, whole
from .space import Space, numbered

CHIP = frozenset({
    "name", "title", "clock_hz", "tensor_cores", "tensor_core", "vector_cores", "vector_core",
    "global_buffer", "hbm",
    "links", "technology", "cluster", "clock_basis", "silicon", "published", "calibration",
    "process", "clusters",
    "rated_hz", "formats", "host_bytes_per_s",
})  # fmt: skip


def _of_clusters(table: Mapping[str, Any], clock: float) -> Chips:
    own, shared, hbm = (table[name] for name in ("clusters", "global_buffer", "hbm"))
    arrays = whole(own["arrays"], "clusters.arrays", 1)
    values = {
        "clusters": own["count"], "arrays": arrays, "rows": own["rows"], "columns": own["columns"],
        "lanes": own["lanes"], "operand_buffer": own["operand_bytes"] / arrays,
        "registers": own["register_bytes"],
        "global_buffer": shared["size_bytes"], "global_width": shared["bytes_per_cycle"],
        "hbm_stacks": hbm["stacks"],
        "port": own["port_bytes_per_cycle"], "hbm_bandwidth": hbm["bandwidth_bytes_per_s"],
        "clock": clock,
    }  # fmt: skip
    read = {name: positive(value, f"chip.{name}") for name, value in values.items()}
    return cluster_chips(alone(read | {"links": 0.0}))


def given_chip(chip: Mapping[str, Any], constants: Constants) -> tuple[Chips, int, Constants]:
    """The chip as arrays of one, its fan-out, and the constants with its rated clock."""
    more = sorted(set(chip) - CHIP)
    cover(not more, f"the key chip.{more[0] if more else ''}, which this checker does not know")
    if chip["clusters"] is None:
        cover(constants.clock is None, "a measured clock of a chip of cores")
        return core_chips(alone(core_fields(chip))), 0, constants
    table = chip["clusters"]["accelerator"]
    clock = (
        constants.clock
        if constants.clock is not None
        else positive(chip["clock_hz"], "chip.clock_hz")
    )
    fan_out = whole(table["global_buffer"]["fan_out"], "fan_out", 1)
    rated = positive(table["clock_hz"], "accelerator.clock_hz")
    return _of_clusters(table, clock), fan_out, replace(constants, rated=rated)


def space_of_one(chip: Chips) -> Space:
    """The space of that chip alone, with its memory."""
    return numbered(chip, 1, np.zeros(1, np.int64))
