"""Rates of attention kernels (:mod:`phaze.hardware.attention`), fitted to measured kernels.

    seconds = start + max((FLOP + extra keys x FLOP of a key) / share, FLOP / most) / peak

Without ``most``, the greatest share of any row, it is linear in start, 1/share and extra/share.
With a row's seconds t they minimise the relative errors

    sum over rows of |(start + FLOP x + key FLOP y) / t - 1|,    start, x, y >= 0,    share = 1 / (x
                                                                 peak), extra = y/x

by reweighted least squares over every subset of the three whose factors are not below 0; of those
the least sum, the larger subset where equal. ``start`` is left out where no length has rows of
three or more numbers of heads (it shows where there is little work alone), and two lengths say
nothing of extra keys. Causal rows alone are fitted where there are any: training is causal, and a
mask cuts tiles that full attention has not. Rows of both passes together give the backward pass
once the forward one is known, and one rate for both passes else. Cross-validation: each sequence
length is held back in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from phaze.graph.pairs import pairs
from phaze.hardware.attention import AttentionRate, attention_rate
from phaze.validate.row_file import AttentionRows

Floats = NDArray[np.float64]
ROUNDS, NOTHING = 60, 1e-4
"""Rounds of weighted least squares, after which nothing moves in the digits that are kept; a
relative error that weighs as much as none."""
FEWEST = 3
"""Lengths, or numbers of heads, from which extra keys or a start are fitted beside a share."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One measured kernel: FLOP of the pairs, and of one key for each query, of each pass that it
    has."""

    sequence: int
    heads: int
    flops: tuple[float, ...]
    key_flops: tuple[float, ...]
    seconds: float
    causal: bool


@dataclass(frozen=True, slots=True)
class RateFit:
    """A fitted rate, how many rows it was fitted on, and absolute errors: fitted, held back, and of
    rows with the other mask."""

    rate: AttentionRate
    rows: int
    fitted: tuple[float, ...]
    held_back: tuple[float, ...]
    other: tuple[float, ...]


def kernels_of(table: AttentionRows) -> list[Kernel]:
    """The rows of a table, with the work of each pass."""
    found = []
    for batch, heads, sequence, seconds in table.rows:
        length, many = int(sequence), batch * heads
        forward, backward = table.head + table.value_head, 3 * table.head + 2 * table.value_head
        widths = {"forward": (forward,), "backward": (backward,), "both": (forward, backward)}[
            table.pass_
        ]
        seen = pairs(length, length, table.causal)
        each = tuple(2.0 * many * width for width in widths)
        flops, keys = tuple(x * seen for x in each), tuple(x * length for x in each)
        found.append(Kernel(length, int(many), flops, keys, seconds, table.causal))
    return found


def seconds_of(kernel: Kernel, rates: Sequence[AttentionRate], peak_flops: float) -> float:
    """Seconds of all passes of a kernel."""
    parts = zip(rates, kernel.flops, kernel.key_flops, strict=True)
    return sum(
        r.start_s + max((f + r.extra_keys * key) / r.share, f / r.most) / peak_flops
        for r, f, key in parts
    )


def _least_deviations(columns: Floats, wanted: Floats) -> Floats:
    """Factors of least absolute deviations: least squares, each row weighed by what it was off the
    last time."""
    weights = np.ones(len(wanted))
    for _ in range(ROUNDS):
        scale = np.sqrt(weights)
        found, *_ = np.linalg.lstsq(columns * scale[:, None], wanted * scale, rcond=None)
        weights = 1.0 / np.maximum(np.abs(columns @ found - wanted), NOTHING)
    return np.asarray(found)


def _least(columns: Mapping[str, Floats], wanted: Floats) -> dict[str, float]:
    """Nonnegative factors of the columns of least error, by trying every subset; ``flops`` is in
    each."""
    best, least = dict.fromkeys(columns, 0.0), np.inf
    rest = [name for name in columns if name != "flops"]
    for size in range(len(rest), -1, -1):
        for chosen in combinations(rest, size):
            names = ("flops", *chosen)
            part = np.column_stack([columns[name] for name in names])
            found = _least_deviations(part, wanted)
            error = float(np.sum(np.abs(part @ found - wanted)))
            if (found >= 0).all() and error < least * (1 - 1e-9):
                best = dict.fromkeys(columns, 0.0) | dict(
                    zip(names, map(float, found), strict=True)
                )
                least = error
    return best


def fit_rate(
    kernels: Sequence[Kernel], peak_flops: float, known: Sequence[AttentionRate] = ()
) -> AttentionRate:
    """The rate of the last pass of the kernels, or of all passes alike where ``known`` has not
    those before it."""
    first, seconds = len(known), np.array([k.seconds for k in kernels])
    done = np.array([seconds_of(_passes(k, 0, first), known, peak_flops) for k in kernels])
    columns = {"flops": np.array([sum(k.flops[first:]) for k in kernels]) / seconds}
    if len({k.sequence for k in kernels}) >= FEWEST:
        columns["keys"] = np.array([sum(k.key_flops[first:]) for k in kernels]) / seconds
    if any(
        len({k.heads for k in kernels if k.sequence == length}) >= FEWEST
        for length in {k.sequence for k in kernels}
    ):
        columns["start"] = (len(kernels[0].flops) - first) / seconds
    found = _least(columns, (seconds - done) / seconds)
    share, extra = 1.0 / (found["flops"] * peak_flops), found.get("keys", 0.0) / found["flops"]
    start_s = float(f"{found.get('start', 0.0):.2g}")
    reached = (seconds - done) * peak_flops
    most = float(max(np.array([sum(k.flops[first:]) for k in kernels]) / reached))
    return attention_rate(
        start_s, float(round(extra, -1)), float(f"{min(1.0, share):.3g}"), float(f"{most:.3g}")
    )


def _passes(kernel: Kernel, first: int, last: int) -> Kernel:
    return replace(kernel, flops=kernel.flops[first:last], key_flops=kernel.key_flops[first:last])


def _errors(
    kernels: Sequence[Kernel], rates: Sequence[AttentionRate], peak_flops: float
) -> tuple[float, ...]:
    return tuple(abs(seconds_of(k, rates, peak_flops) / k.seconds - 1) for k in kernels)


def fit_kernel(
    kernels: Sequence[Kernel], peak_flops: float, known: Sequence[AttentionRate] = ()
) -> RateFit:
    """A rate for the last pass of the kernels, with its errors."""
    causal = [k for k in kernels if k.causal]
    chosen = causal or list(kernels)

    def rates(rows: Sequence[Kernel]) -> list[AttentionRate]:
        rate = fit_rate(rows, peak_flops, known)
        return [*known, *[rate] * (len(rows[0].flops) - len(known))]

    held: list[float] = []
    for sequence in sorted({k.sequence for k in chosen}):
        rest = [k for k in chosen if k.sequence != sequence]
        if rest:
            held += _errors([k for k in chosen if k.sequence == sequence], rates(rest), peak_flops)
    best = rates(chosen)
    other = [k for k in kernels if k not in chosen]
    return RateFit(
        best[-1],
        len(chosen),
        _errors(chosen, best, peak_flops),
        tuple(held),
        _errors(other, best, peak_flops),
    )
