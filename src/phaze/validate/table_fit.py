"""Constants of a chip, a cluster and a stack from a machine's own table of operators
(``phaze.rows/1``).

    products alone, 16 bits    the chip's clock, share of HBM and start-up
                               (:func:`phaze.cost.fitting.fit_chip`)
    products of training       software_share of the stack on the chip: the median over products of
                               more than 0.1 TFLOP of our seconds at the full rate over theirs
    grouped products           of training: grouped_share and expert_start, the pair of least mean
                               error with each expert's product alone (:func:`fit_experts`)
    attention                  rates by kernel, pass and head size (:mod:`phaze.validate.attention_fit`)
    collectives                share, start, latency and pieces of the levels that they span, from
                               the inside out (:mod:`phaze.validate.level_fit`)

What a table has no rows of stays as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import numpy as np

from phaze.cost.chip_set import chip_set
from phaze.cost.fitting import LEAST_ROWS, Measured, predicted_s
from phaze.cost.mapping import product
from phaze.cost.measured_clock import chip_constants
from phaze.cost.work import Work
from phaze.errors import InputError
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.validate.attention_fit import Kernel, fit_kernel, kernels_of
from phaze.validate.level_fit import LEAST_BYTES, Curve, fit_level, with_constants
from phaze.validate.product_fit import fit_plain, fit_share, measured_rows
from phaze.validate.row_file import AttentionRows, ProductRows, RowFile
from phaze.values import replace

SHARES = tuple(round(0.5 + 0.05 * step, 2) for step in range(11))
STARTS_S = tuple(step * 0.5e-6 for step in range(11))
"""Of grouped products and of a kernel of theirs: values that are tried."""


@dataclass(frozen=True, slots=True)
class TableFit:
    """Constants by file and key, attention kernels, and for each group of rows how many there are,
    and the median error with the constants."""

    chip: Mapping[str, float] = field(default_factory=dict)
    kernels: tuple[Mapping[str, Any], ...] = ()
    stack: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    groups: tuple["Group", ...] = ()


def fit_experts(tables: Sequence[ProductRows], chip: Chip, share: float) -> tuple[float, float]:
    """The share that grouped products of training reach and the seconds of each expert's start; of
    equal errors the greater share and the shorter start."""
    rows = [row for table in tables for row in table.rows]
    constants = replace(chip_constants(chip, load="training"), software_share=share)
    chips, experts = chip_set([chip]), np.array([row[0] for row in rows])
    seconds, works = np.array([row[4] for row in rows]), list[Measured]()
    for *sizes, measured_s in rows:
        batch, m, n, k = map(int, sizes)
        grouped = replace(product(batch, m, n, k), grouped=True)
        works.append(Measured(Work("tensor", (grouped,)), measured_s, f"{batch}x{m}x{n}x{k}"))
    found = []
    for reached in SHARES:
        base = replace(constants, grouped_share=reached, expert_start_s=0.0)
        ours = np.array(predicted_s(works, chips, base))
        for start_s in STARTS_S:
            error = mean(np.abs((ours + start_s * experts) / seconds - 1).tolist())
            found.append((error, -reached, start_s))
    _, reached, start_s = min(found)
    return -reached, start_s


def _products(tables: Sequence[ProductRows], chip: Chip) -> Iterator[tuple[str, dict[str, float]]]:
    plain = [
        row
        for table in tables
        if table.load == "alone" and table.precision == "bf16" and not table.grouped
        for row in measured_rows(table)
    ]
    if len(plain) >= LEAST_ROWS:
        yield "chip", dict(fit_plain(plain, chip).constants)
    training = [
        row
        for table in tables
        if table.load == "training" and not table.grouped
        for row in measured_rows(table)
    ]
    share = 1.0
    if training:
        share = fit_share(training, chip)
        yield "stack", {"software_share": share}
    grouped = [table for table in tables if table.load == "training" and table.grouped]
    if grouped:
        reached, start_s = fit_experts(grouped, chip, share)
        yield "stack", {"grouped_share": reached, "expert_start": start_s}


Group = tuple[str, int, float]
"""What rows determine, how many there are, and their median error with it."""


def _kernels(tables: Sequence[AttentionRows], chip: Chip) -> Iterator[tuple[dict[str, Any], Group]]:
    """The rates of every kernel, pass and head size that was measured."""
    groups: dict[tuple[str, int, str], dict[str, list[Kernel]]] = {}
    for table in tables:
        key = (table.kernel, table.head, table.load)
        groups.setdefault(key, {}).setdefault(table.pass_, []).extend(kernels_of(table))
    for (kernel, head, load), by in groups.items():
        for way in ("forward", "backward", "both"):
            if way not in by:
                continue
            fit = fit_kernel(by[way], chip.peak_flops)
            rate, error = fit.rate, float(np.median(fit.fitted))
            row = {
                "kernel": kernel,
                "head": head,
                "start": rate.start_s,
                "extra_keys": rate.extra_keys,
                "share": rate.share,
                "most": rate.most,
                "training": load == "training",
            }
            for name in ("forward", "backward") if way == "both" else (way,):
                yield {**row, "pass": name}, (f"{kernel} {name}, head {head}", fit.rows, error)


def _levels(file: RowFile, cluster: Cluster) -> Iterator[tuple[int, dict[str, float], Group]]:
    """The constants of every level that curves reach, from the inside out."""
    for index, level in enumerate(cluster.levels):
        curves = []
        for table in file.collectives:
            points = np.array([point for point in table.points if point[0] >= LEAST_BYTES])
            if len(points):
                rates = tuple(table.bandwidths or ())
                curve = Curve(table.kind, tuple(table.members), points[:, 0], points[:, 1], rates)
                curves += [curve] if curve.outermost == index else []
        if curves:
            fit = fit_level(curves, cluster, index)
            cluster = with_constants(cluster, index, fit.constants)
            error = float(np.median(fit.fitted))
            yield index, dict(fit.constants), (f"level {level.name}", len(curves), error)


def fit_table(file: RowFile, chip: Chip, cluster: Cluster | None) -> TableFit:
    """What a machine's table determines of it."""
    if chip.lumped_share:
        raise InputError(
            "--chip", f"{chip.name} is a chip of cores", "give a chip of clusters (phaze.chip/2)"
        )
    own, stack = dict[str, float](), dict[str, float]()
    for kind, constants in _products(file.products, chip):
        (own if kind == "chip" else stack).update(constants)
    kernels, levels = list[Mapping[str, Any]](), dict[int, Mapping[str, float]]()
    groups = list[Group]()
    for row, group in _kernels(file.attention, chip):
        kernels.append(row)
        groups.append(group)
    if file.collectives and cluster is None:
        raise InputError(
            "--cluster", "the table has collectives", "give the cluster that they ran on"
        )
    if cluster is not None:
        for index, constants, group in _levels(file, cluster):
            levels[index] = constants
            groups.append(group)
    return TableFit(own, tuple(kernels), stack, levels, tuple(groups))
