"""Software shares from measured runs, by one rule for all stacks; and what they give on runs that
were held back.

    own          of the runs R that speak for a stack and a generation of chips: the share, in steps
                 of 0.01 up to 1, with the least mean of |ln(ours / measured)|, the greatest of
                 equal ones; where the stack's host time
                 was fitted on runs, host time (in steps of 1 us) and share together            :meth:`Speaking.fit`
    releases     of a family in order of their date: ln s = (n ln own + k ln s') / (n + k), rounded
                 to 0.01; n models are among the release's runs, s' is the share of the release
                 before and k = ``BEFORE``: a release that
                 few models speak for stays near the one before it                   :meth:`Fits.of`
    held back    a run is judged by the share of all runs but those of its source and model, in all
                 releases; where none is left by the release before, else by its stack on other
                 generations of chips, else by the median of
                 other families on its own                                    :meth:`Fits.held_back`

``BEFORE`` was chosen among 0, 1, 2 and 4 by the held-back errors of the one family of many
releases: 0 and 1 are equal within a tenth of a per cent, and with 0 the newest release would hang
on one job (docs/accuracy.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

import numpy as np

from phaze.evaluate.bands import family_of
from phaze.hardware.library import DATED, load_stack
from tools.fits.share_curves import Curve, Floats, host_is_fitted

BEFORE = 1.0
"""Models that the release before counts for."""
SHARES = np.round(np.arange(1.0, 0.495, -0.01), 2)
HOST_STEP_S = 1e-6
"""Of host times that are tried: a fiftieth of the fitted one, below what runs tell apart."""
NEAR = 1e-9
"""Means of errors that differ by less are equal."""
Key = tuple[str, str]
Group = tuple[str, str]
Groups = frozenset[Group]
NONE: Groups = frozenset()


@dataclass(frozen=True, slots=True)
class Constants:
    """What runs gave: the share, the host time (the bundled one where none was fitted); ``own``:
    the share of these runs alone, None where there are none; how many runs and models spoke."""

    share: float
    host_s: float
    own: float | None = None
    runs: int = 0
    models: int = 0


class Speaking:
    """The runs that speak for one stack and generation, and their absolute errors at every share
    and host time."""

    def __init__(self, stack: str, curves: Sequence[Curve]) -> None:
        self.curves = tuple(curves)
        self.hosts = _hosts(stack, curves[0])
        self.off = np.array([np.abs(curve.errors(SHARES, self.hosts)) for curve in curves])

    def fit(self, without: Groups = NONE) -> Constants | None:
        """The nearest share and host time, without the runs of some groups; None if none is
        left."""
        kept = [at for at, curve in enumerate(self.curves) if curve.group not in without]
        if not kept:
            return None
        means: Floats = self.off[kept].mean(axis=0)
        host, share = np.argwhere(means <= means.min() + NEAR)[0]
        models = len({self.curves[at].group for at in kept})
        return Constants(
            float(SHARES[share]), float(self.hosts[host]), float(SHARES[share]), len(kept), models
        )


def _hosts(stack: str, curve: Curve) -> Floats:
    if not host_is_fitted(stack):
        return np.array([load_stack(stack).host_s])
    low, high = (round(end / HOST_STEP_S) for end in (curve.hosts[0], curve.hosts[-1]))
    return np.arange(low, high + 1, dtype=np.float64) * np.float64(HOST_STEP_S)


def _date(stack: str) -> tuple[int, ...]:
    dated = DATED.fullmatch(stack)
    return tuple(int(part) for part in dated[2].split(".")) if dated else ()


class Fits:
    """All fits of some runs, and what each would be without a group of them."""

    def __init__(self, curves: Iterable[Curve], before: float = BEFORE) -> None:
        own: dict[Key, list[Curve]] = {}
        for curve in curves:
            own.setdefault((curve.stack, curve.generation), []).append(curve)
        self.speaking = {key: Speaking(key[0], found) for key, found in sorted(own.items())}
        self.before = before

    def releases(self, key: Key) -> list[Key]:
        """The releases of a family that runs speak for on its generation, up to and with this
        one."""
        if not _date(key[0]):
            return [key]
        near = [
            o
            for o in self.speaking
            if _date(o[0]) and (family_of(o[0]), o[1]) == (family_of(key[0]), key[1])
        ]
        return sorted((o for o in near if _date(o[0]) <= _date(key[0])), key=lambda o: _date(o[0]))

    def of(self, key: Key, without: Groups = NONE) -> Constants | None:
        """The constants of a stack on a generation: its own, and those of the releases before."""
        found: Constants | None = None
        for each in self.releases(key):
            own = self.speaking[each].fit(without)
            if own is None:
                found = found and Constants(found.share, found.host_s)
            elif found is None:
                found = own
            else:
                weight = own.models / (own.models + self.before)
                share = exp(weight * log(own.share) + (1 - weight) * log(found.share))
                found = Constants(round(share, 2), own.host_s, own.share, own.runs, own.models)
        return found

    def of_source(self, source: str) -> Groups:
        """All groups of a source."""
        every = (curve.group for own in self.speaking.values() for curve in own.curves)
        return frozenset(group for group in every if group[0] == source)

    def held_back(self, key: Key, without: Groups) -> Constants:
        """The constants that all runs but some give a stack on a generation, or that of others
        where none is left."""
        found = self.of(key, without) if key in self.speaking else None
        if found is not None:
            return found
        others = {
            o: fit for o in self.speaking if o != key and (fit := self.of(o, without)) is not None
        }
        same = [fit.share for o, fit in others.items() if o[0] == key[0]]
        near = _by_family({o: fit for o, fit in others.items() if o[1] == key[1]})
        shares = same or near or _by_family(others)
        usual = load_stack(key[0]).software_share.get(key[1], 1.0)
        return Constants(median(shares) if shares else usual, load_stack(key[0]).host_s)


def _by_family(found: Mapping[Key, Constants]) -> list[float]:
    """The median share of every family of stacks."""
    shares: dict[str, list[float]] = {}
    for (stack, _), fit in found.items():
        shares.setdefault(family_of(stack), []).append(fit.share)
    return [median(own) for own in shares.values()]
