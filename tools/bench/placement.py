"""Placement: 26, 50 and 98 layers on 1024 devices, against the published solver's times and its
method in numpy."""

from phaze.placement.kernels import warm
from phaze.placement.solve import fastest_plan
from tools.bench import clock
from tools.bench.device_table import least_batch_s
from tools.bench.inputs import CHIP, PLACEMENTS, PlacementInput, placement_problem
from tools.bench.line import Line, Section, same
from tools.bench.published import PLACEMENT, SOURCE

AGREE = 1e-9
"""Sums of the same terms in another order differ in the last bits only."""
NOTES = (
    f"Published: the ICML 2024 paper's C++ solver, {SOURCE}, as its setup builds it and with "
    "-O3, on other layers of the same number; no answer to compare.",
    "Inputs: bert-large (microbatch 4), a GPT of 48 blocks (hidden 1600, 20 heads) and "
    "gpt3-175b (microbatch 1) on "
    f"1024 x {CHIP}, batch 4096, link 4 GiB/s; times of layers are our schedules on that chip.",
    "Its table: a dynamic program over (layers left, stages, devices) in numpy, "
    "reimplemented; 'same' is the same "
    f"step time to {AGREE:g}.",
)


def _lines(asked: PlacementInput) -> list[Line]:
    problem = placement_problem(asked)
    layers = len(problem.graphs[0].layers)
    plan, ours = clock.warm(lambda: fastest_plan(problem))
    theirs_s, theirs = clock.once(lambda: least_batch_s(problem))
    widths = "width 1" if asked.widths == (1,) else f"{len(asked.widths)} widths"
    called = f"{layers} layers, {widths}"
    ours_s = float("inf") if plan is None else plan.batch_s
    answers, agree = same(ours_s, theirs_s, AGREE)
    built, fast = PLACEMENT[layers, len(asked.widths)]
    return [
        Line(called, "published", "published", ours, built),
        Line(called, "published -O3", "published", ours, fast),
        Line(
            called,
            "its table, numpy",
            "measured",
            ours,
            theirs,
            answers,
            agree,
            (ours_s, theirs_s),
            "s a batch",
        ),
    ]


def section(inputs: tuple[PlacementInput, ...] = PLACEMENTS) -> Section:
    """All lines, ours warm."""
    warm()
    return Section("placement", tuple(line for asked in inputs for line in _lines(asked)), NOTES)
