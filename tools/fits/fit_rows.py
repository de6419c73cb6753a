"""Fits of files of measured operators (:mod:`tools.fits.row_file`): the constants they give, and
how far off they are.

Rows are grouped by what they determine: a chip's products, a kernel of attention by family of
chips, pass and head size, a level of a cluster. Each group is fitted alone, in the order of the
files, so that nothing depends on what else was asked. A constant is said with its value in the
bundled files.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phaze.cost.fitting import errors_of
from phaze.hardware.attention import AttentionRate, AttentionRates, attention_rates
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import load_chip, load_cluster
from phaze.validate.attention_fit import Kernel, RateFit, fit_kernel, kernels_of, seconds_of
from phaze.validate.level_fit import LEAST_BYTES, Curve, errors, fit_level, with_constants
from phaze.validate.product_fit import constants_in, fit_low, fit_plain, fit_share, measured_rows
from phaze.validate.row_file import AttentionRows, CollectiveRows, ProductRows, RowFile


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 90th percentile of absolute errors."""

    median: float
    ninetieth: float


@dataclass(frozen=True, slots=True)
class RowFit:
    """What a group of rows gives: constants beside the bundled ones, and errors with the bundled
    constants, with these, and on rows that were held back; ``constants`` empty: rows were compared
    with alone."""

    subject: str
    rows: int
    constants: Mapping[str, float]
    bundled: Mapping[str, float | None]
    before: Spread | None
    fitted: Spread | None
    held_back: Spread | None


def _spread(found: Sequence[float]) -> Spread | None:
    if not len(found):
        return None
    return Spread(float(np.median(found)), float(np.quantile(found, 0.9)))


def _product_fits(tables: Sequence[ProductRows]) -> Iterator[RowFit]:
    with_plain = {
        table.chip for table in tables if table.precision == "bf16" and table.load == "alone"
    }
    for table in tables:
        chip, rows = load_chip(table.chip), measured_rows(table)
        subject = f"{chip.name}, products in {table.precision}"
        said = chip.calibration
        if table.load == "training":
            share = fit_share(rows, chip)
            yield RowFit(
                f"{subject} of training", len(rows), {"software_share": share}, {}, None, None, None
            )
        elif table.precision == "fp8" and table.chip in with_plain:
            found = _spread(
                [abs(error) for error in errors_of(rows, chip, constants_in(chip, "fp8"))]
            )
            yield RowFit(subject, len(rows), {}, {}, found, None, None)
        else:
            fit = fit_plain(rows, chip) if table.precision == "bf16" else fit_low(rows, chip)
            known = {name: getattr(said, name, None) for name in fit.constants}
            if "clock_hz" in known and not chip.lumped_share:
                known["clock_hz"] = chip.measured.clock_hz
            spreads = (_spread(fit.before), _spread(fit.fitted), _spread(fit.held_back))
            yield RowFit(subject, len(rows), fit.constants, known, *spreads)


def _attention_fits(tables: Sequence[AttentionRows]) -> Iterator[RowFit]:
    groups: dict[tuple[str, str, int, str], dict[str, list[Kernel]]] = {}
    for table in tables:
        key = (table.chip, table.kernel, table.head, table.load)
        groups.setdefault(key, {}).setdefault(table.pass_, []).extend(kernels_of(table))
    for (name, kernel, head, load), by in groups.items():
        chip, known = load_chip(name), list[AttentionRate]()
        family = chip.calibration.attention if chip.calibration else None
        bundled = attention_rates(family, kernel)
        for way in ("forward", "backward", "both"):
            if way not in by or (way == "both" and "backward" in by):
                continue
            fit = fit_kernel(by[way], chip.peak_flops, known if way == "both" else ())
            word = "backward" if way == "both" and known else way
            subject = (
                f"{family or name}, {kernel} {word}, head "
                f"{head}{', in training' if load == 'training' else ''}"
            )
            yield _attention_fit(subject, fit, by[way], (way, head, chip), bundled)
            known = [fit.rate] if way == "forward" else known


def _attention_fit(
    subject: str,
    fit: RateFit,
    kernels: Sequence[Kernel],
    of: tuple[str, int, Chip],
    bundled: AttentionRates | None,
) -> RowFit:
    way, head, chip = of
    rate, found, before = fit.rate, dict[str, float | None](), list[float]()
    names = ("start_s", "extra_keys", "share", "most")
    constants = {name: float(getattr(rate, name)) for name in names}
    if bundled is not None:
        passes = {"forward": (False,), "backward": (True,), "both": (False, True)}[way]
        rates = [bundled.rate(backward, head) for backward in passes]
        found = {name: getattr(rates[-1], name) for name in constants}
        before = [abs(seconds_of(k, rates, chip.peak_flops) / k.seconds - 1) for k in kernels]
    return RowFit(
        subject,
        fit.rows,
        constants,
        found,
        _spread(before),
        _spread(fit.fitted),
        _spread(fit.held_back),
    )


def curves_of(tables: Sequence[CollectiveRows], cluster: str, fitted: bool) -> list[Curve]:
    """The curves of a cluster, from 64 KiB up."""
    found = []
    for table in tables:
        points = np.array([point for point in table.points if point[0] >= LEAST_BYTES])
        if cluster in table.clusters and table.fitted == fitted and len(points):
            rates = tuple(table.bandwidths or ())
            found.append(Curve(table.kind, tuple(table.members), points[:, 0], points[:, 1], rates))
    return found


def _level_constants(cluster: Cluster, index: int, names: Sequence[str]) -> dict[str, float | None]:
    level = cluster.levels[index]
    return {name: getattr(level, name) for name in names}


def _collective_fits(tables: Sequence[CollectiveRows]) -> Iterator[RowFit]:
    for name in dict.fromkeys(cluster for table in tables for cluster in table.clusters):
        cluster = bundled = load_cluster(name)
        for index, level in enumerate(cluster.levels):
            curves = [c for c in curves_of(tables, name, True) if c.outermost == index]
            subject = f"{name}, level {level.name}"
            if curves:
                fit = fit_level(curves, cluster, index)
                cluster = with_constants(cluster, index, fit.constants)
                known = _level_constants(bundled, index, list(fit.constants))
                spreads = (_spread(fit.before), _spread(fit.fitted), _spread(fit.held_back))
                yield RowFit(
                    f"{subject}, {len(curves)} curves",
                    len(fit.fitted),
                    fit.constants,
                    known,
                    *spreads,
                )
            for kind in dict.fromkeys(c.kind for c in curves):
                own = np.concatenate(errors([c for c in curves if c.kind == kind], bundled))
                yield RowFit(
                    f"{subject}, {kind}", len(own), {}, {}, _spread(list(abs(own))), None, None
                )
            others = [c for c in curves_of(tables, name, False) if c.outermost == index]
            for kind in dict.fromkeys(c.kind for c in others):
                own = np.concatenate(errors([c for c in others if c.kind == kind], bundled))
                subject_of = f"{subject}, {kind}, not fitted on"
                yield RowFit(subject_of, len(own), {}, {}, _spread(list(abs(own))), None, None)


def fit_rows(files: Sequence[RowFile], only: str = "") -> Iterator[RowFit]:
    """Every group of the files whose chip, cluster or kernel has ``only`` in its name."""
    products = [table for file in files for table in file.products if only in table.chip]
    attention = [
        table
        for file in files
        for table in file.attention
        if only in (table.chip, table.kernel) or not only
    ]
    collectives = [
        replace_clusters(table, [name for name in table.clusters if only in name])
        for file in files
        for table in file.collectives
        if any(only in name for name in table.clusters)
    ]
    yield from _product_fits(products)
    yield from _attention_fits(attention)
    yield from _collective_fits(collectives)


def replace_clusters(table: CollectiveRows, clusters: list[str]) -> CollectiveRows:
    """The curve with some of its clusters alone."""
    return table.model_copy(update={"clusters": clusters})
