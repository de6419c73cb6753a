"""What is left to see of a reduction that runs piece by piece behind the last backward pass of a
stage, or of a gather behind its first forward pass.

A piece is complete when its part of the pass ends, and is then sent while the rest still works. Of
n equal pieces, each r seconds on the network and t seconds of work, all begin as soon as they are
complete and the network is free, so the network falls behind by max(0, r - t) a piece. The last
one, of r' >= r seconds, has no work left beside it:

    shown(R, r, r', t) = min( R, r' + (n - 1) max(0, r - t) )                               (shown)

with R the seconds of all of it as one. For n equal pieces, r' = r, that is the end of the last
reduction event by event.

With v chunks a stage works on its other chunks, and waits, between the end of one and the end of
the next: the window of a piece is omega t,

    omega = (1 + (v - 1) S) / v                                                            (window)

Beside its work a reduction slows it: a second of it costs sigma seconds of work, so that in all

    exposed = (1 - sigma) shown + sigma R                                                 (exposed)

seconds follow, R where nothing runs beside anything (sigma = 1), shown where it slows nothing. It
never falls when R, r, r' or n grow, and never rises with t.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def window(chunks: int, stages: int) -> float:
    """omega: how many times as long as its own work the window of a piece is."""
    return (1 + (chunks - 1) * stages) / chunks


def shown_s(
    whole_s: Floats, piece_s: float, last_s: float, work_s: float, pieces: Floats
) -> Floats:
    """Seconds after the pass of so many pieces, at least one: of all as one ``whole_s``, of each
    ``piece_s``, of the last ``last_s``, with ``work_s`` beside a piece."""
    return np.minimum(whole_s, last_s + (pieces - 1) * max(0.0, piece_s - work_s))


def exposed_s(shown: Floats, whole_s: Floats, cost: float) -> Floats:
    """Seconds that are added where what is hidden slows the work beside it by ``cost``."""
    return np.asarray((1 - cost) * shown + cost * whole_s)
