"""Search methods of one's own beside the certified optimum: random search, simulated annealing, a
Bayesian optimiser.

    python examples/own_search.py --evaluations 200 --seeds 3 --svg convergence.svg

All of them ask ``phaze.Space`` for the exact score of single chips, which is what ``phaze search``
minimises; none knows anything else. The table has the best score so far over the certified optimum,
the median over the seeds. The Bayesian optimiser is optuna's tree-structured Parzen estimator
(``pip install optuna``; a dev extra).
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from math import exp, inf, log
from pathlib import Path
from random import Random
from statistics import median

from phaze import api

Score = Callable[[int], float]
Method = Callable[[api.Space, Score, int, int], Iterator[float]]
STUDY = {
    "schema": "phaze.study/1",
    "name": "own-search",
    "rules": "icml24",
    "models": ["bert-large"],
    "training": {"devices": 256, "batch": 1024, "microbatches": [1, 2]},
}
# Trials in the Bayesian optimiser's history before it is cut, and after.
LONGEST, KEPT = 1500, 500
# Seconds: slower than any chip.
WORST = 1e9
SHOWN = (1, 3, 10, 30, 100, 300, 1000, 3000)


def random_search(space: api.Space, score: Score, budget: int, seed: int) -> Iterator[float]:
    """Chips drawn without repetition."""
    yield from (score(number) for number in space.sample(budget, seed))


def annealing(space: api.Space, score: Score, budget: int, seed: int) -> Iterator[float]:
    """One step along one axis at a time; a worse chip is taken with probability exp(-loss /
    temperature), which falls from 30 % to 0.3 % of the score."""
    random, axes = Random(seed), space.axes
    here = space.sample(1, seed)[0]
    now = score(here)
    yield now
    for step in range(1, budget):
        there = None
        while there is None:
            values = space.axes_of(here)
            axis = random.choice([name for name in axes if len(axes[name]) > 1])
            at = axes[axis].index(values[axis]) + random.choice((-1, 1))
            if 0 <= at < len(axes[axis]):
                there = space.number(**{**values, axis: axes[axis][at]})
        found = score(there)
        yield found
        temperature = 0.3 * 0.01 ** (step / budget)
        if found <= now or random.random() < exp(-(found / now - 1) / temperature):
            here, now = there, found


def bayesian_trials(
    space: api.Space, score: Score, budget: int, seed: int
) -> Iterator[tuple[int, float]]:
    """Optuna's TPE over the axes: chips and their scores. A combination that the space leaves out
    is told as the worst and costs no evaluation. An estimator over n trials costs n at every trial,
    so that a history of ``LONGEST`` trials is cut to ``KEPT``, the best and the newest; before that
    nothing is forgotten."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    axes, done = space.axes, 0
    while done < budget:
        history = study.get_trials(deepcopy=False)
        if len(history) == LONGEST:
            older, newest = history[: -KEPT // 2], history[-KEPT // 2 :]
            best = sorted(older, key=lambda trial: (trial.value or 0.0, trial.number))[: KEPT // 2]
            sampler = optuna.samplers.TPESampler(seed=seed + 1000 * done, multivariate=True)
            study = optuna.create_study(sampler=sampler)
            study.add_trials([*best, *newest])
        trial = study.ask()
        values = {
            name: points[trial.suggest_int(name, 0, len(points) - 1)]
            for name, points in axes.items()
        }
        number = space.number(**values)
        if number is None:
            study.tell(trial, WORST)
            continue
        found = score(number)
        study.tell(trial, min(found, WORST))
        yield number, found
        done += 1


def bayesian(space: api.Space, score: Score, budget: int, seed: int) -> Iterator[float]:
    """The scores of a Bayesian optimiser."""
    yield from (found for _, found in bayesian_trials(space, score, budget, seed))


METHODS: dict[str, Method] = {"random": random_search, "annealing": annealing, "bayesian": bayesian}


def best_so_far(scores: Iterator[float]) -> list[float]:
    """The least of the first 1, 2, 3, ... scores."""
    curve, least = [], inf
    for found in scores:
        least = min(least, found)
        curve.append(least)
    return curve


def convergence(
    space: api.Space, budget: int, seeds: Sequence[int]
) -> dict[str, list[list[float]]]:
    """For every method and seed, the best score after each evaluation; a chip is evaluated once for
    all of them."""
    known: dict[int, float] = {}

    def score(number: int) -> float:
        if number not in known:
            known[number] = float(space.evaluate(number)["score"])
        return known[number]

    return {
        name: [best_so_far(method(space, score, min(budget, len(space)), seed)) for seed in seeds]
        for name, method in METHODS.items()
    }


def svg(curves: dict[str, list[list[float]]], optimum: float) -> str:
    """The curves over evaluations (log scale), as score over the certified optimum, medians over
    the seeds."""
    width, height, left = 640, 360, 60
    most = max(len(curve) for runs in curves.values() for curve in runs)
    worst = min(5.0, max(median(curve[0] for curve in runs) / optimum for runs in curves.values()))
    colours = ("#3b6fb6", "#c0653a", "#3d8f5a")

    def x(count: int) -> float:
        return left + (width - left - 20) * log(count) / log(max(most, 2))

    def y(ratio: float) -> float:
        return 30 + (height - 70) * (1 - (min(ratio, worst) - 1) / max(worst - 1, 1e-9))

    lines: list[str] = []
    for (name, runs), colour in zip(curves.items(), colours, strict=True):
        points = [
            (at + 1, median(curve[at] for curve in runs) / optimum) for at in range(len(runs[0]))
        ]
        path = " ".join(f"{x(count):.1f},{y(ratio):.1f}" for count, ratio in points)
        at = len(lines) // 2 * 16
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{width - 120}" y="{50 + at}" fill="{colour}">{name}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="best score so far over the certified optimum">'
        f'<line x1="{left}" y1="{y(1):.1f}" x2="{width - 20}" y2="{y(1):.1f}" '
        'stroke="#888" stroke-dasharray="4 3"/>'
        f'<text x="{left}" y="{height - 8}" fill="#888">evaluations, 1 to {most:,} (log)</text>'
        f'<text x="4" y="{y(1):.1f}" fill="#888">optimum</text>{"".join(lines)}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--svg", type=Path)
    asked = parser.parse_args()
    run = api.search(STUDY, settings=["search.gap=0"])
    optimum, certificate = float(run["objective"]["score"]), run["certificate"]
    print(
        f"certified optimum {optimum:.6g} s a batch, {run.chip['name']}; "
        f"{certificate['closed']['evaluated']} of"
    )
    print(f"{certificate['chips']:,} chips evaluated, the others excluded by their lower bounds\n")
    curves = convergence(api.Space(STUDY), asked.evaluations, range(asked.seeds))
    shown = [count for count in SHOWN if count <= asked.evaluations]
    print("evaluations " + "".join(f"{count:>8,}" for count in shown))
    for name, runs in curves.items():
        cells = [median(curve[count - 1] for curve in runs) / optimum for count in shown]
        print(f"{name:12}" + "".join(f"{cell:8.3f}" for cell in cells))
    if asked.svg:
        asked.svg.write_text(svg(curves, optimum))
        print(f"\nWritten: {asked.svg}")


if __name__ == "__main__":
    main()
