"""A budgeted Bayesian search beside the certified one: what Spotlight was, in this space and by this cost model.

    python -m examples.paper.spotlight --model opt-350m --budget 10000 --seeds 1

Two samplers, both optuna's tree-structured Parzen estimator over the axes of the space, one evaluation a chip:

    blind      the energy-delay product of one block on one device, as a search that knows nothing of placement sees it;
               its best chip so far is then placed (HBM of 80 GiB, best placement, proved)
    placing    the batch time of the whole job with the best placement, proved

Like the original: sampled, budgeted, Bayesian, blind to placement, energy-delay of a workload on one accelerator. Not
like it: its own cost model and space, its surrogate with features made by hand, its software mappings sampled beside
the hardware (ours are the best of a stated mapping space), and its choice of layers.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
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
# What make paper has time for; --budget takes more.
BUDGET, SEEDS = 100, 3


class Point(NamedTuple):
    """The best so far: after so many evaluations and seconds of wall time, throughput with its best placement."""

    evaluations: int
    seconds: float
    throughput_per_s: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One sampler with one seed: every improvement, and the evaluations and seconds that it took in all."""

    model: str
    kind: Kind
    seed: int
    points: tuple[Point, ...]
    evaluations: int
    seconds: float

    def at(self, evaluations: int) -> float:
        """The throughput of the best chip after so many evaluations."""
        return next((p.throughput_per_s for p in reversed(self.points) if p.evaluations <= evaluations), 0.0)


def _spaces(model: str) -> tuple[api.Space, api.Space]:
    """The chips of the whole job, with the largest memory, and of one block."""
    whole = api.Space(str(HERE / "model.toml"), settings=[one_model(model), 'hbm=["80 GiB"]'])
    return whole, api.Space(str(HERE / "block.toml"), settings=[one_block(model)])


def sampled(model: str, kind: Kind, budget: int, seed: int) -> Curve:
    """One sampler run to its budget."""
    whole, block = _spaces(model)
    space, known = (block, {}) if kind == "blind" else (whole, dict[int, float]())
    batch, start, least, points = 4096, time.monotonic(), inf, list[Point]()

    def score(number: int) -> float:
        if number not in known:
            known[number] = float(space.evaluate(number)["score"])
        return known[number]

    for done, (number, found) in enumerate(bayesian_trials(space, score, budget, seed), 1):
        if found >= least:
            continue
        least, seconds = found, time.monotonic() - start
        batch_s = found if kind == "placing" else float(whole.evaluate(number)["score"])
        points.append(Point(done, round(seconds, 2), batch / batch_s))
    return Curve(model, kind, seed, tuple(points), budget, round(time.monotonic() - start, 2))


def _file(out: Path, model: str, kind: Kind, budget: int, seed: int) -> Path:
    return out / "spotlight" / f"{model}-{kind}-{budget}-{seed}.json"


def _kept(path: Path) -> Curve:
    raw = json.loads(path.read_text(encoding="utf-8"))
    return Curve(**{**raw, "points": tuple(Point(*point) for point in raw["points"])})


def _one(out: Path, model: str, kind: Kind, budget: int, seed: int) -> Curve:
    """A sampler's curve, read where it is there."""
    path = _file(out, model, kind, budget, seed)
    if path.is_file():
        return _kept(path)
    curve = sampled(model, kind, budget, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ("model", "kind", "seed", "points", "evaluations", "seconds")
    path.write_text(json.dumps({name: getattr(curve, name) for name in names}), encoding="utf-8")
    return curve


def curves(out: Path, models: Sequence[str], budget: int, seeds: Sequence[int]) -> list[Curve]:
    """Every sampler with every seed, as many at a time as there are cores."""
    with ProcessPoolExecutor(os.cpu_count() or 1, multiprocessing.get_context("spawn")) as pool:
        asked = [(model, kind, seed) for model in models for kind in KINDS for seed in seeds]
        waiting = [pool.submit(_one, out, model, kind, budget, seed) for model, kind, seed in asked]
        found = []
        for (model, kind, seed), future in zip(asked, waiting, strict=True):
            found.append(future.result())
            sys.stderr.write(f"spotlight: {model}, {kind}, seed {seed}: {found[-1].seconds:.0f} s\n")
        return found


def _spread(values: Sequence[float]) -> str:
    low, middle, high = min(values), median(values), max(values)
    return f"{middle:.3f}" if len(values) == 1 else f"{middle:.3f} ({low:.3f} to {high:.3f})"


def spotlight_table(found: Sequence[Curve], certified: dict[str, Found]) -> str:
    """Throughput over the certified optimum after so many evaluations: the median of the seeds, least and most."""
    most = max(curve.evaluations for curve in found)
    shown = [count for count in SHOWN if count <= most]
    cells = []
    for model, best in certified.items():
        for kind in KINDS:
            own = [curve for curve in found if (curve.model, curve.kind) == (model, kind)]
            cells.append([model, f"{kind} sampler", *(
                _spread([curve.at(count) / best.throughput_per_s for curve in own]) for count in shown
            ), f"{median(curve.seconds for curve in own):.0f}"])  # fmt: skip
        closed = best.document["certificate"]["closed"]["evaluated"]
        proved = f"1 with {closed} evaluated, and proved"
        cells.append([model, "certified search", proved, *("" for _ in shown[1:]), f"{best.seconds:.0f}"])
    return markdown(("model", "method", *(f"{count:,}" for count in shown), "seconds"), cells)


def certified_best(out: Path, models: Sequence[str]) -> dict[str, Found]:
    """The certified optimum of every model, those of the paper's tables."""
    return {model: searched(out / "paper" / model, "model.toml", [one_model(model)]) for model in models}


def main() -> None:
    """Run the samplers of one model and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="opt-350m")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=Path("runs") / "paper")
    asked = parser.parse_args()
    found = curves(asked.out, [asked.model], asked.budget, range(asked.seeds))
    sys.stdout.write(spotlight_table(found, certified_best(asked.out, [asked.model])))


if __name__ == "__main__":
    main()
