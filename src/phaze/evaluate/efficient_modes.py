"""Modes of recompute and offload on one chip, reduced to their Pareto front in seconds and bytes.

A mode is dropped if another one takes, in every layer, no more seconds, keeps no more bytes and
holds no more beside them: the sums and maxima of a stage are then no greater in any of the three,
whatever its layers and microbatches in flight, so no plan needs the one that is dropped.
"""

import numpy as np

from phaze.evaluate.layer_table import LayerTable


def efficient(table: LayerTable) -> LayerTable:
    """The layers of a table of one chip with the modes between selective and full that no other
    undercuts; of equals the first."""
    if not table.layers:
        return table
    rows = np.array(
        [_rows(table, kind) for kind in range(len(table.layers))]
    )  # [layers, none and modes, what]
    modes, unbeaten = range(rows.shape[1]), []
    for mode in modes[2:]:  # after none and selective
        others = [other for other in modes if other != mode]
        no_worse = [(rows[:, other] <= rows[:, mode]).all() for other in others]
        equal = [(rows[:, other] == rows[:, mode]).all() for other in others]
        beaten = any(
            a and (not e or other < mode)
            for other, a, e in zip(others, no_worse, equal, strict=True)
        )
        if not beaten:
            unbeaten.append(mode - 1)
    return table.with_modes(unbeaten)


def _rows(table: LayerTable, kind: int) -> list[tuple[float, float, float]]:
    """Seconds again, bytes kept and bytes beside them of every mode of a layer but full, which
    keeps what enters."""
    layer, again_s = table.layers[kind], table.again_s[:, kind, 0].tolist()
    whole, selective = layer.saved_bytes, min(layer.modes[0].saved_bytes, layer.saved_bytes)
    rows = [
        (0.0, float(whole), 0.0),
        (again_s[0], float(selective), float(whole) - float(selective)),
    ]
    for mode, seconds in zip(layer.modes[1:-1], again_s[1:-1], strict=True):
        rows.append((seconds, float(mode.saved_bytes), float(mode.live_bytes - layer.logit_bytes)))
    return rows
