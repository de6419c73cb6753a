"""A sweep: one certified search for each value of a key, each in its own folder, so that a stopped
sweep goes on.

A point is exactly what ``phaze search STUDY --set KEY=VALUE`` gives: the same study, the same
digests, the same bytes; points share only work that is the same in each of them
(:mod:`phaze.search.shared`). Points next to each other whose best chip (or plan) is the same form a
region; regions are named A, B, C ... along the range, and a chip that comes back keeps its name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from phaze.documents import dumps
from phaze.errors import InfeasibleError
from phaze.files import write_whole
from phaze.hardware.write import toml_text
from phaze.search.folder import run_in
from phaze.search.plan_words import plan_words
from phaze.search.run import Evaluate
from phaze.search.shared import Shared
from phaze.study.load import question_of, study_of
from phaze.study.own_models import with_own_models
from phaze.study.places import Origin
from phaze.study.raw import with_settings
from phaze.sweep.over import SweepAxis

SCHEMA, SWEEP = "phaze.sweep/1", "sweep.json"


@dataclass(frozen=True, slots=True)
class SweptModel:
    """One model at one point: how fast, and by which plan, also in words."""

    name: str
    throughput_per_s: float
    pipeline: int
    data: int
    tensor: int
    microbatch: int
    recompute: str
    plan: str


@dataclass(frozen=True, slots=True)
class Best:
    """The answer at one point; ``problem`` says why there is none."""

    value: float
    shown: str
    chip: str | None
    area_mm2: float | None
    hbm_bytes: int | None
    score: float | None
    gap: float | None
    models: tuple[SweptModel, ...]
    problem: str | None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class MarkedRegion:
    """Points ``first`` to ``last`` that share their best chip, or their best plans."""

    name: str
    what: str
    first: int
    last: int


def best_of(value: float, shown: str, document: Mapping[str, Any]) -> Best:
    """The answer at a point, from the document of its search."""
    models = tuple(
        SweptModel(
            model["name"],
            model["throughput_per_s"],
            model["plan"]["pipeline"],
            model["plan"]["data"],
            model["plan"]["tensor"],
            model["microbatch"],
            model["recompute"],
            plan_words(model, model["plan"]),
        )
        for model in document["models"]
    )
    chip, score = document["chip"], document["objective"]["score"]
    gap, label = document["certificate"]["gap"], document["cluster"]["label"]
    return Best(
        value,
        shown,
        chip["name"],
        chip["area_mm2"],
        chip["hbm_bytes"],
        score,
        gap,
        models,
        None,
        label,
    )


def regions(marks: Sequence[str | None]) -> tuple[MarkedRegion, ...]:
    """Runs of equal marks; None marks no region. Names go by first appearance: A .. Z, AA .."""
    names: dict[str, str] = {}
    regions_so_far: list[MarkedRegion] = []
    for index, mark in enumerate(marks):
        if mark is None:
            continue
        if mark not in names:
            number, name = len(names), ""
            while number >= 0:
                number, letter = number // 26 - 1, number % 26
                name = chr(ord("A") + letter) + name
            names[mark] = name
        if (
            regions_so_far
            and regions_so_far[-1].last == index - 1
            and regions_so_far[-1].what == mark
        ):
            regions_so_far[-1] = MarkedRegion(names[mark], mark, regions_so_far[-1].first, index)
        else:
            regions_so_far.append(MarkedRegion(names[mark], mark, index, index))
    return tuple(regions_so_far)


def _plans(best: Best) -> str | None:
    return (
        "; ".join(f"{model.name}: {model.plan}" for model in best.models) if best.models else None
    )


def document_of(name: str, key: str, points: Sequence[Best]) -> dict[str, Any]:
    """``phaze.sweep/1``."""
    return {
        "schema": SCHEMA,
        "name": name,
        "over": key,
        "points": [asdict(point) for point in points],
        "chips": [asdict(region) for region in regions([point.chip for point in points])],
        "plans": [asdict(region) for region in regions([_plans(point) for point in points])],
    }


Tell = Callable[[int, int, str], None]


def sweep(
    folder: Path,
    raw: Mapping[str, Any],
    origin: Origin,
    over: SweepAxis,
    engine: int | Evaluate = 1,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """The certified best at every point of ``over``; a point where nothing is feasible says so and
    the rest go on.

    Models of one's own are traced as each point asks for them.
    """
    points, shared = list[Best](), Shared()
    for index, point in enumerate(over.points):
        if tell is not None:
            tell(index, len(over.points), point.shown)
        values = with_own_models(with_settings(raw, [point.setting]), origin)
        try:
            question = question_of(study_of(values, origin.where), reader=origin.reader)
            place = folder / "points" / f"{index:03d}"
            done = run_in(
                place, question.papers(toml_text(values)), question.job, engine, shared=shared
            )
            points.append(best_of(point.number, point.shown, done.document))
        except InfeasibleError as fault:
            points.append(
                Best(point.number, point.shown, None, None, None, None, None, (), str(fault))
            )
    if all(best.chip is None for best in points):
        raise InfeasibleError(
            f"nothing is feasible at any point: {points[-1].problem}", {"schema": SCHEMA}
        )
    document = document_of(str(raw.get("name", "sweep")), over.key, points)
    write_whole(folder / SWEEP, dumps(document, pretty=True) + "\n")
    return document
