r"""What a front weighs. A metric is known of a chip and its memory before it is evaluated, or comes
with a run of it.

    area       mm2           of the chip's dies                                              known
    power      W             TDP of a chip, as ``budget.power`` limits it           known
    price      USD           manufacturing cost with HBM, as ``budget.usd`` limits it         known
    embodied   kgCO2e        manufacturing with HBM                                          known
    throughput sequences/s   the most is best; of several models their mean                  run
    energy     J             of a batch, all devices, static power included                  run
    cost       USD           of a batch: K m T / life + E price PUE                          run
    carbon     kgCO2e        of a batch: K c T / life + E grid PUE                           run

The last four are the values of the objectives of :mod:`phaze.search.objective`, of which the least
is best; throughput is shown as sequences a batch over its seconds (of several models: 1 over their
score).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError, unknown_name
from phaze.options.values import Kind
from phaze.search.chips import SpaceChips

Floats = NDArray[np.float64]
MOST = 3
"""A page can show three; a front of more holds most of the space."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its unit, the objective whose value it is (None: known before a run), whether HBM
    counts in it."""

    name: str
    unit: str
    kind: Kind | None = None
    needs_hbm: bool = False

    @property
    def more(self) -> bool:
        """Whether more is better."""
        return self.name == "throughput"


METRICS = (
    Metric("throughput", "sequences/s", "throughput"),
    Metric("area", "mm2"),
    Metric("power", "W"),
    Metric("price", "USD", needs_hbm=True),
    Metric("embodied", "kgCO2e", needs_hbm=True),
    Metric("energy", "J", "throughput_per_watt"),
    Metric("cost", "USD", "throughput_per_usd", needs_hbm=True),
    Metric("carbon", "kgCO2e", "throughput_per_kgco2e", needs_hbm=True),
)


def metric_of(name: str, where: str) -> Metric:
    """The metric of that name."""
    by_name = {metric.name: metric for metric in METRICS}
    if name not in by_name:
        raise unknown_name(where, "metric", name, tuple(by_name))
    return by_name[name]


@dataclass(frozen=True, slots=True)
class RequestedMetrics:
    """The metrics of a front, and limits: at most so much of a metric, at least so much
    throughput."""

    of: tuple[Metric, ...]
    within: tuple[tuple[Metric, float], ...] = ()

    @property
    def runs(self) -> tuple[Metric, ...]:
        """The metrics that a run decides, those of the front first; throughput where there is none,
        for it must fit."""
        named = dict.fromkeys(
            m for m in (*self.of, *(limit[0] for limit in self.within)) if m.kind is not None
        )
        return tuple(named) or (METRICS[0],)

    @property
    def measured(self) -> tuple[Metric, ...]:
        """The metrics of the front, then what else a run decides."""
        return (*self.of, *(metric for metric in self.runs if metric not in self.of))

    @property
    def needs_hbm(self) -> bool:
        """Whether it counts how much HBM a chip has."""
        return any(metric.needs_hbm for metric in (*self.of, *(limit[0] for limit in self.within)))

    def document(self) -> dict[str, object]:
        """Plain values."""
        return {
            "of": [m.name for m in self.of],
            "within": {m.name: value for m, value in self.within},
        }


def _limit(text: str) -> tuple[Metric, float]:
    where = f"--within {text}"
    name, equals, number = (part.strip() for part in text.partition("="))
    if not equals:
        raise InputError(
            where, "this is not of the form metric=number", "e.g. area=400 or throughput=10000"
        )
    metric = metric_of(name, where)
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise InputError(
            where,
            f"'{number}' is not a positive number",
            f"give it in {metric.unit}, without the unit",
        )
    return metric, value


def metrics_of(of: str | Sequence[str], within: Sequence[str] = ()) -> RequestedMetrics:
    """The front of ``throughput,area`` and limits such as ``power=300``."""
    names = [part.strip() for part in (of.split(",") if isinstance(of, str) else of)]
    names = [name for name in names if name]
    where = f"--of {','.join(names)}".strip()
    metrics = tuple(metric_of(name, where) for name in names)
    if not 2 <= len(metrics) <= MOST:
        seen = (
            "no metric is"
            if not metrics
            else "one metric alone is"
            if len(metrics) == 1
            else f"{len(metrics)} metrics are"
        )
        change = (
            f"phaze search finds the best of {names[0]}"
            if len(metrics) == 1
            else "e.g. --of throughput,area"
        )
        raise InputError(where, f"{seen} named and a front has two or three", change)
    if len(set(metrics)) < len(metrics):
        raise InputError(where, "a metric is named twice", "name each once")
    limits = [_limit(text) for text in within]
    if len({metric for metric, _ in limits}) < len(limits):
        raise InputError("--within", "a metric is limited twice", "limit each once")
    return RequestedMetrics(metrics, tuple(limits))


def known_values(metric: Metric, chips: SpaceChips, hbm_bytes: Sequence[int]) -> Floats:
    """A metric that is known of every chip with each memory, [memories, chips]."""
    if metric.name in ("price", "embodied"):
        making = chips.making_usd if metric.name == "price" else chips.making_kgco2e
        return np.stack([making(size) for size in hbm_bytes])
    values = chips.area_mm2 if metric.name == "area" else chips.design_w()
    return np.broadcast_to(values, (len(hbm_bytes), len(chips)))
