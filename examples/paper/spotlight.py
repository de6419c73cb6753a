"""A budgeted Bayesian search beside the certified one: what Spotlight was, in this space and by
this cost model.

    python -m examples.paper.spotlight --model opt-350m --budget 10000 --seeds 3

Two samplers, both optuna's tree-structured Parzen estimator over the axes of the space, one
evaluation a chip:

    blind      the energy-delay product of one block on one device, as a search that knows nothing
               of placement sees it; its best chip so far is then placed (HBM of 80 GiB, best
               placement, proved)
    placing    the batch time of the whole job with the best placement, proved

Like the original: sampled, budgeted, Bayesian, blind to placement, energy-delay of a workload on
one accelerator. Not like it: its own cost model and space, its surrogate with features made by
hand, its software mappings sampled beside the hardware (ours are the best of a stated mapping
space), and its choice of layers.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from examples.own_search import bayesian_trials
from examples.paper.cases import HERE, Found, one_block, one_model, searched
from examples.paper.sheets import markdown
from phaze import api

Kind = Literal["blind", "placing"]
KINDS: tuple[Kind, ...] = ("blind", "placing")
# A model whose block chip is its own chip, and the one of the eight that loses most by it.
SPOTLIGHT_MODELS = ("bert-large", "opt-350m")
SHOWN = (10, 30, 100, 300, 1000, 3000, 10000)
# What make paper has time for, and what the part spotlight-long runs, for the second model alone.
BUDGET, LONG_BUDGET, SEEDS, LONG_SEEDS = 1000, 10000, 3, 3


class Point(NamedTuple):
    """The best so far: after so many evaluations and seconds of processor time, throughput with its
    best placement."""

    evaluations: int
    seconds: float
    throughput_per_s: float


class Case(NamedTuple):
    """One sampler with one seed."""

    model: str
    kind: Kind
    budget: int
    seed: int


@dataclass(frozen=True, slots=True)
class Curve:
    """One sampler with one seed: every improvement, and the evaluations, different chips and
    seconds of processor time that it took in all."""

    model: str
    kind: Kind
    seed: int
    points: tuple[Point, ...]
    evaluations: int
    chips: int
    seconds: float

    def at(self, evaluations: int) -> float:
        """The throughput of the best chip after so many evaluations."""
        return next(
            (p.throughput_per_s for p in reversed(self.points) if p.evaluations <= evaluations), 0.0
        )


def job_spaces(model: str) -> tuple[api.Space, api.Space]:
    """The chips of the whole job, with the largest memory, and of one block."""
    whole = api.Space(str(HERE / "model.toml"), settings=[one_model(model), 'hbm=["80 GiB"]'])
    return whole, api.Space(str(HERE / "block.toml"), settings=[one_block(model)])


class Scores:
    """The exact scores of chips, each worked out once for all seeds; a seed is charged for every
    chip that it asks for, as if it were the first."""

    def __init__(self, space: api.Space) -> None:
        self._space = space
        self._known: dict[int, tuple[float, float]] = {}

    def of(self, number: int) -> tuple[float, float]:
        """A chip's score and the seconds of processor time that it takes."""
        if number not in self._known:
            start = time.process_time()
            score = float(self._space.evaluate(number)["score"])
            self._known[number] = score, time.process_time() - start
        return self._known[number]


def sampled(case: Case, scores: Scores, placed: Scores, space: api.Space) -> Curve:
    """One sampler run to its budget; ``placed`` has the batch times with the best placement."""
    batch, least, points = 4096, inf, list[Point]()
    start, charged, asked = time.process_time(), 0.0, set[int]()

    def score(number: int) -> float:
        nonlocal start, charged
        before = time.process_time()
        found, seconds = scores.of(number)
        start += time.process_time() - before
        if number not in asked:
            asked.add(number)
            charged += seconds
        return found

    for done, (number, found) in enumerate(
        bayesian_trials(space, score, case.budget, case.seed), 1
    ):
        if found >= least:
            continue
        least, seconds, before = found, time.process_time() - start + charged, time.process_time()
        points.append(Point(done, round(seconds, 2), batch / placed.of(number)[0]))
        start += time.process_time() - before
    seconds = time.process_time() - start + charged
    return Curve(
        case.model, case.kind, case.seed, tuple(points), case.budget, len(asked), round(seconds, 2)
    )


def _file(out: Path, case: Case) -> Path:
    return out / "spotlight" / f"{case.model}-{case.kind}-{case.budget}-{case.seed}.json"


def _kept(path: Path) -> Curve:
    raw = json.loads(path.read_text(encoding="utf-8"))
    return Curve(**{**raw, "points": tuple(Point(*point) for point in raw["points"])})


def _seeds(out: Path, model: str, kind: Kind, budget: int, seeds: Sequence[int]) -> list[Curve]:
    """A sampler's curves, read where they are there."""
    cases = [Case(model, kind, budget, seed) for seed in seeds]
    missing = [case for case in cases if not _file(out, case).is_file()]
    if missing:
        whole, block = job_spaces(model)
        space = block if kind == "blind" else whole
        placed = Scores(whole)
        scores = placed if kind == "placing" else Scores(block)
        for case in missing:
            curve, path = sampled(case, scores, placed, space), _file(out, case)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(curve)), encoding="utf-8")
            sys.stderr.write(
                f"spotlight: {model}, {kind}, seed {case.seed}: {curve.seconds:.0f} s\n"
            )
    return [_kept(_file(out, case)) for case in cases]


def curves(out: Path, models: Sequence[str], budget: int, seeds: Sequence[int]) -> list[Curve]:
    """Every sampler with every seed, as many samplers at a time as there are cores."""
    with ProcessPoolExecutor(os.cpu_count() or 1, multiprocessing.get_context("spawn")) as pool:
        asked = [(model, kind) for model in models for kind in KINDS]
        waiting = [
            pool.submit(_seeds, out, model, kind, budget, tuple(seeds)) for model, kind in asked
        ]
        return [curve for future in waiting for curve in future.result()]


def _spread(values: Sequence[float]) -> str:
    low, middle, high = min(values), median(values), max(values)
    return f"{middle:.3f}" if len(values) == 1 else f"{middle:.3f} ({low:.3f} to {high:.3f})"


def spotlight_table(found: Sequence[Curve], certified: dict[str, Found]) -> str:
    """Throughput over the certified optimum after so many evaluations: the median of the seeds,
    least and most."""
    most = max(curve.evaluations for curve in found)
    shown = [count for count in SHOWN if count <= most]
    rows = []
    for model, best in certified.items():
        for kind in KINDS:
            own = [curve for curve in found if (curve.model, curve.kind) == (model, kind)]
            ratios = [
                _spread([curve.at(count) / best.throughput_per_s for curve in own])
                for count in shown
            ]
            chips, seconds = (
                median(curve.chips for curve in own),
                median(curve.seconds for curve in own),
            )
            rows.append([model, f"{kind} sampler", *ratios, f"{chips:,.0f}", f"{seconds:.0f}"])
        closed = best.document["certificate"]["closed"]["evaluated"]
        proved = ["1, and proved", *("" for _ in shown[1:]), f"{closed:,}", f"{best.seconds:.0f}"]
        rows.append([model, "certified search", *proved])
    return markdown(
        ("model", "method", *(f"{count:,}" for count in shown), "different chips", "seconds"), rows
    )


def certified_best(out: Path, models: Sequence[str]) -> dict[str, Found]:
    """The certified optimum of every model, those of the paper's tables."""
    return {
        model: searched(out / "paper" / model, "model.toml", [one_model(model)]) for model in models
    }


def main() -> None:
    """Run the samplers of one model and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="opt-350m")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--out", type=lambda text: Path(text).resolve(), default=(Path("runs") / "paper").resolve()
    )
    asked = parser.parse_args()
    found = curves(asked.out, [asked.model], asked.budget, range(asked.seeds))
    sys.stdout.write(spotlight_table(found, certified_best(asked.out, [asked.model])))


if __name__ == "__main__":
    main()
