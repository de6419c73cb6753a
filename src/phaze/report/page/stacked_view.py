"""The step time of every model on the answer and on the baseline, stacked by cause: where a faster chip gains.

The rows of both waterfalls are summed in the groups below, in this order; all groups of a bar sum to its step time.
What tensor-vector overlap gains (a negative row) is taken off the non-matmul work that it hides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from phaze.report.numbers import ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.view_model import Story
from phaze.report.waterfall import Step
from phaze.units import show

# Name and colour of a group, and the rows of the waterfall in it; what is not named is non-matmul work.
PEAK, OTHER = "GEMM FLOPs at peak", "non-matmul ops, start-up, launch"
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        PEAK: ("peak", ("GEMM FLOPs at peak",)),
        "tile quantisation, sustained rate": ("tensor", ("tile quantisation", "sustained GEMM rate")),
        "memory-bound GEMMs": ("buffer", ("memory-bound GEMMs",)),
        OTHER: ("other", ()),
        "activation recomputation": ("links", ("activation recomputation",)),
        "exposed TP communication": ("network", ("exposed TP communication",)),
        "exposed DP communication, optimizer": (
            "hbm",
            ("exposed DP communication", "optimizer step", "tied parameters"),
        ),
        "pipeline bubble, imbalance, send/recv": (
            "vector",
            ("pipeline bubble", "stage imbalance", "exposed pipeline send/recv", "idle devices"),
        ),
    }
)


@dataclass(frozen=True, slots=True)
class StackedBar:
    """A step: whose it is, its pieces (left, width, colour, words) as shares of the longest, and its length."""

    name: str
    pieces: tuple[tuple[float, float, str, str], ...]
    value: str
    label: str
    on: bool


@dataclass(frozen=True, slots=True)
class StackedModel:
    """One model: its two bars, what they say in a sentence, and the same as a table."""

    name: str
    lead: str
    bars: tuple[StackedBar, ...]
    rows: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class StackedTimes:
    """All models, and the colours of the groups that occur."""

    against: str
    legend: tuple[tuple[str, str], ...]
    models: tuple[StackedModel, ...]


def grouped(steps: Sequence[Step]) -> dict[str, float]:
    """The seconds of every group; a sum below 0 is taken off the peak, so that all still sum to the step."""
    named = {row: name for name, (_, rows) in GROUPS.items() for row in rows}
    found = dict.fromkeys(GROUPS, 0.0)
    for step in steps:
        found[named.get(step.name, OTHER)] += step.seconds
    for name in GROUPS:
        if found[name] < 0 and name != PEAK:
            found[PEAK] += found[name]
            found[name] = 0.0
    return found


def _bar(name: str, seconds: Mapping[str, float], most_s: float, on: bool) -> StackedBar:
    pieces, left, total_s = [], 0.0, sum(seconds.values())
    for group, (colour, _) in GROUPS.items():
        own = seconds[group]
        if own > 0:
            words = f"{name}: {group} {show(own, 's')}, {100 * own / total_s:.1f} %"
            pieces.append((left / most_s, own / most_s, colour, words))
            left += own
    return StackedBar(name, tuple(pieces), show(total_s, "s"), f"{name}, {show(total_s, 's')} a step", on)


def _lead(ours: Mapping[str, float], theirs: Mapping[str, float], comparison: str) -> str:
    """What the peak would give, what the step gives, and the two groups that make the difference."""
    total, other = sum(ours.values()), sum(theirs.values())
    delta = {name: ours[name] - theirs[name] for name in GROUPS if name != PEAK}
    least, most = min(delta, key=lambda n: delta[n]), max(delta, key=lambda n: delta[n])
    words = f"The step is {ratio_text(other / total)} as fast as on {comparison}"
    if ours[PEAK] > 0 and theirs[PEAK] > 0:
        words += f", the peak {ratio_text(theirs[PEAK] / ours[PEAK])}"
    saved = [f"{least} takes {show(-delta[least], 's')} less"] if delta[least] < 0 else []
    lost = [f"{most} {show(delta[most], 's')} more"] if delta[most] > 0 else []
    return f"{words}; beside the peak, {' and '.join(saved + lost)}." if saved or lost else f"{words}."


def stacked_times(stories: Sequence[Story], comparison: BaselineComparison | None) -> StackedTimes | None:
    """The stacks of all models; None where there is no baseline to stand beside."""
    if comparison is None or not any(comparison.steps):
        return None
    models, seen = [], set[str]()
    for story, steps in zip(stories, comparison.steps, strict=True):
        ours, theirs = grouped(story.steps), None if steps is None else grouped(steps)
        both = [one for one in (theirs, ours) if one is not None]
        most_s = max(sum(one.values()) for one in both)
        bars = [] if theirs is None else [_bar(comparison.name, theirs, most_s, False)]
        bars.append(_bar("this chip", ours, most_s, True))
        seen |= {name for one in both for name, seconds in one.items() if seconds > 0}
        lead = f"It does not fit on {comparison.name}." if theirs is None else _lead(ours, theirs, comparison.name)
        rows = [
            (
                name,
                "-" if theirs is None else show(theirs[name], "s"),
                show(ours[name], "s"),
                "-" if theirs is None else f"{1e3 * (ours[name] - theirs[name]):+,.3g} ms",
            )
            for name in GROUPS
            if any(one[name] > 0 for one in both)
        ]
        models.append(StackedModel(story.name, lead, tuple(bars), tuple(rows)))
    legend = [(colour, name) for name, (colour, _) in GROUPS.items() if name in seen]
    return StackedTimes(comparison.name, tuple(legend), tuple(models))
