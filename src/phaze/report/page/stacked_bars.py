"""The step time of every model on the answer and on the baseline, stacked by cause: where a faster
chip gains.

The rows of both waterfalls are summed in the groups below, in this order; all groups of a bar sum
to its step time. What tensor-vector overlap gains (a negative row) is taken off the non-matmul work
that it hides.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from phaze.report.drawings import Bar, Bars, Colour, Piece
from phaze.report.numbers import ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.sections import Group, Notes, Section, Table
from phaze.report.step_time import Step
from phaze.report.view_model import Story
from phaze.units import show

# Name and colour of a group, and the rows of the waterfall in it; what is not named is non-matmul
# work.
PEAK, OTHER = "GEMM FLOPs at peak", "non-matmul ops, start-up, launch"
GROUPS: Mapping[str, tuple[Colour, tuple[str, ...]]] = MappingProxyType(
    {
        PEAK: ("peak", ("GEMM FLOPs at peak",)),
        "tile quantisation, sustained rate": (
            "tensor",
            ("tile quantisation", "sustained GEMM rate"),
        ),
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


def grouped(steps: Sequence[Step]) -> dict[str, float]:
    """The seconds of every group; a sum below 0 is taken off the peak, so that all still sum to the
    step."""
    named = {row: name for name, (_, rows) in GROUPS.items() for row in rows}
    seconds = dict.fromkeys(GROUPS, 0.0)
    for step in steps:
        seconds[named.get(step.name, OTHER)] += step.seconds
    for name in GROUPS:
        if seconds[name] < 0 and name != PEAK:
            seconds[PEAK] += seconds[name]
            seconds[name] = 0.0
    return seconds


def _bar(name: str, seconds: Mapping[str, float], marked: bool) -> Bar:
    pieces, end_s, total_s = list[Piece](), 0.0, sum(seconds.values())
    for group, (colour, _) in GROUPS.items():
        part_s = seconds[group]
        if part_s > 0:
            text = f"{name}: {group} {show(part_s, 's')}, {100 * part_s / total_s:.1f} %"
            pieces.append(Piece(end_s, part_s, colour, text))
            end_s += part_s
    return Bar(name, total_s, show(total_s, "s"), pieces=pieces, marked=marked)


def _lead(ours: Mapping[str, float], theirs: Mapping[str, float], comparison: str) -> str:
    """What the peak would give, what the step gives, and the two groups that make the
    difference."""
    total, other = sum(ours.values()), sum(theirs.values())
    delta = {name: ours[name] - theirs[name] for name in GROUPS if name != PEAK}
    least, most = min(delta, key=lambda n: delta[n]), max(delta, key=lambda n: delta[n])
    words = f"The step is {ratio_text(other / total)} as fast as on {comparison}"
    if ours[PEAK] > 0 and theirs[PEAK] > 0:
        words += f", the peak {ratio_text(theirs[PEAK] / ours[PEAK])}"
    saved = [f"{least} takes {show(-delta[least], 's')} less"] if delta[least] < 0 else []
    lost = [f"{most} {show(delta[most], 's')} more"] if delta[most] > 0 else []
    return (
        f"{words}; beside the peak, {' and '.join(saved + lost)}." if saved or lost else f"{words}."
    )


def _model(
    story: Story, steps: Sequence[Step] | None, baseline: str, several: bool
) -> list[Section]:
    """The step of a model on both chips as bars, and as a table."""
    ours = grouped(story.steps)
    bar, title = _bar("this chip", ours, True), story.name if several else ""
    if steps is None:
        return [Bars([bar], title, f"It does not fit on {baseline}.", look="tall")]
    theirs = grouped(steps)
    groups = [name for name in GROUPS if ours[name] > 0 or theirs[name] > 0]
    legend = [(GROUPS[name][0], name) for name in groups]
    rows = []
    for name in groups:
        difference = f"{1e3 * (ours[name] - theirs[name]):+,.3g} ms"
        rows.append((name, show(theirs[name], "s"), show(ours[name], "s"), difference))
    bars = [_bar(baseline, theirs, False), bar]
    table = Table(("Cause", baseline, "this chip", "difference"), rows)
    caption = _lead(ours, theirs, baseline)
    return [
        Bars(bars, title, caption, legend=legend, look="tall"),
        Group([table], folded="As a table"),
    ]


def stacked_sections(stories: Sequence[Story], comparison: BaselineComparison) -> Section:
    """The steps of all models on the chip and on a baseline."""
    title, caption = (
        "Against the baseline",
        f"The step beside that on {comparison.name}, stacked by cause.",
    )
    if not any(comparison.steps):
        return Notes([f"No model fits on {comparison.name}."], title)
    sections: list[Section] = []
    for story, steps in zip(stories, comparison.steps, strict=True):
        sections += _model(story, steps, comparison.name, len(stories) > 1)
    return Group(sections, title, caption)
