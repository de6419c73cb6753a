"""What a measured run says of its stack's constants: its seconds at a few values of them, and the
error between.

A run is priced at the shares ``SHARES`` (and, where a stack's host time was fitted on runs, at
``HOSTS`` times as much of it). Between two of them its seconds are linear in 1 / share and in the
host time:

    error(share, host) = ln(seconds(share, host) / measured)

Runs that speak for a stack's software share (:func:`speaks`): dense, of sequences below 65,536
tokens, of pre-training, on chips of clusters, over a network that held; not those that are kept to
judge with (``JUDGES``). Runs that leave choices open speak too, priced at the best of them, for
some stacks have no others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.bands import LONG, Bits, bits_of
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import RunJob, job_of
from phaze.graph.zoo import ZOO
from phaze.hardware.library import load_stack, stating_stack
from phaze.placement.pipeline import fits
from phaze.validate.predict import free_choices
from phaze.validate.rows import MeasuredRun
from phaze.validate.sets import SETS, rows_of
from phaze.values import FrozenTable, replace
from tools.fits.sources import FITTED, OPEN, left_out, share_is_fitted, source_of, usual_generation

Floats = NDArray[np.float64]
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
HOSTS = (0.8, 1.0, 1.2)
"""Of the bundled host time, where it was fitted on runs."""
JUDGES = frozenset(
    {"vtrain-multi", "finetune-h100", "mt-nlg", "automodel-h100", "torchtitan-rowwise-h100-fp8"}
)
"""Sets that no share is fitted on: another machine than the fit's, packed samples, single runs
whose stack or choices are not known, and a recipe that is priced as another."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A run: the file of its stack, the generation by which that knows the chip, the group that it
    is held back with (its source and model), and seconds by host time and share (``table[i][j]`` at
    the i-th host, the j-th share)."""

    id: str
    of: str
    stack: str
    generation: str
    group: tuple[str, str]
    bits: Bits | None
    measured_s: float
    hosts: tuple[float, ...]
    table: tuple[tuple[float, ...], ...]

    def seconds(self, shares: Floats, hosts: Floats) -> Floats:
        """Seconds for every host time (rows) and share (columns), between the values that were
        priced."""
        inverse = 1 / np.array(SHARES[::-1])
        by_share = np.array([np.interp(1 / shares, inverse, own[::-1]) for own in self.table])
        if len(self.table) == 1:
            return np.repeat(by_share, len(hosts), axis=0)
        return np.array([np.interp(hosts, self.hosts, column) for column in by_share.T]).T

    def errors(self, shares: Floats, hosts: Floats) -> Floats:
        """ln(ours / measured) for each of them."""
        return np.log(self.seconds(shares, hosts) / self.measured_s)

    def seconds_at(self, share: float, host_s: float | None = None) -> float:
        """Seconds at one share and host time, the bundled one if none is given."""
        host = self.hosts[len(self.hosts) // 2] if host_s is None else host_s
        return float(self.seconds(np.array([share]), np.array([host]))[0, 0])

    def error(self, share: float, host_s: float) -> float:
        """ln(ours / measured)."""
        return log(self.seconds_at(share, host_s) / self.measured_s)


def speaks(of: str, row: MeasuredRun) -> bool:
    """Whether a run of a set says something of its stack's share."""
    plan, reason = row.run["plan"], left_out(row)
    long = _length(row.run) >= LONG
    mixture = (
        "moe" in row.run or plan.get("expert", 1) > 1 or "mixtral" in str(row.run.get("model", ""))
    )
    return (
        of not in JUDGES
        and reason in ("", OPEN)
        and row.seconds is not None
        and not long
        and not mixture
    )


def _length(run: Mapping[str, Any]) -> int:
    sizes: Mapping[str, Any] = next(
        (run[family] for family in ("gpt", "llama", "moe") if family in run), {}
    )
    return int(run.get("sequence", sizes.get("sequence", 0)))


def model_of(run: Mapping[str, Any]) -> str:
    """A model by its width and depth, whatever its name or sequence."""
    if run.get("model") in ZOO:
        return f"{ZOO[run['model']].hidden} x {ZOO[run['model']].layers}"
    family = next((name for name in ("gpt", "llama", "moe") if name in run), None)
    return f"{run[family]['hidden']} x {run[family]['layers']}" if family else str(run.get("model"))


def host_is_fitted(stack: str) -> bool:
    """Whether a stack's host time was fitted on runs."""
    return bool(FITTED.match(load_stack(stack).sources.get("host_time", "")))


def curve_of(of: str, row: MeasuredRun, memo: Memo) -> Curve | None:
    """What a run says; None if its stack's share was not left to runs."""
    choices = [{**row.run, "plan": {**row.run["plan"], **plan}} for plan in free_choices(row)]
    jobs = [job_of(dict(run), row.where, memo) for run in choices]
    generation, stack = usual_generation(jobs[0]), stating_stack(jobs[0].stack.name)
    if generation is None or jobs[0].chip.clusters is None or row.seconds is None:
        return None
    if not share_is_fitted(stack, generation):
        return None
    own = jobs[0].stack.host_s
    hosts = tuple(own * part for part in HOSTS) if host_is_fitted(stack) else (own,)
    table = tuple(
        tuple(_fastest(jobs, generation, host, share, memo) for share in SHARES) for host in hosts
    )
    precision = bits_of(jobs[0].precision)
    return Curve(
        row.id,
        of,
        stack,
        generation,
        (source_of(row), model_of(row.run)),
        precision,
        row.seconds,
        hosts,
        table,
    )


def _fastest(
    jobs: Sequence[RunJob], generation: str, host_s: float, share: float, memo: Memo
) -> float:
    """Seconds of the fastest plan that fits, or of the fastest."""
    found = []
    for job in jobs:
        shares = FrozenTable({**job.stack.software_share, generation: share})
        stack = replace(job.stack, software_share=shares, host_s=host_s)
        problem, plan = fixed_plan(replace(job, stack=stack), memo=memo)
        found.append((fits(problem, plan), plan.batch_s))
    fitting = [seconds for fits, seconds in found if fits]
    return min(fitting or [seconds for _, seconds in found])


def bundled_runs() -> list[tuple[str, MeasuredRun]]:
    """The bundled runs that speak, each with its set."""
    return [(one.name, row) for one in SETS for row in rows_of(one) if speaks(one.name, row)]


def curves_of(
    memo: Memo, tell: Callable[[int, int], object] = lambda *_: None, family: str = ""
) -> list[Curve]:
    """What every bundled run that speaks says; ``family``: only stacks with this in their name."""
    runs = [(of, row) for of, row in bundled_runs() if family in str(row.run.get("stack", ""))]
    found = []
    for done, (of, row) in enumerate(runs):
        tell(done, len(runs))
        curve = curve_of(of, row, memo)
        found += [] if curve is None else [curve]
    return found
