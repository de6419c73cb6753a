"""The parts of docs/paper.md beyond the paper's own tables: their searches, tables and pictures.

bridge      the published figures and ours, fault by fault
spotlight   a budgeted Bayesian sampler beside the certified search; spotlight-long to ten thousand
            evaluations
map         where seeking chip and placement together pays
robust      the chip with the least regret over the error bands of the process
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from examples.paper.bridge.quotients import (
    CASES,
    QUOTIENTS,
    Quotients,
    bridge_table,
    questions,
    quotients,
)
from examples.paper.cases import Found, answer_all, one_model, searched
from examples.paper.joint.cells import (
    DEVICES,
    FABRIC,
    PAPER_LINKS,
    PAPER_MODELS,
    Cell,
    cells,
    joint_question,
)
from examples.paper.joint.reasons import reason_table, reasons
from examples.paper.joint.values import Value, answer, map_table, values
from examples.paper.pictures import curves_with_spread, grouped_bars, heat_map, stacked_bars
from examples.paper.robust import BANDS, outcomes, regrets, robust_table, scenarios
from examples.paper.sheets import Line, markdown
from examples.paper.spotlight import (
    BUDGET,
    LONG_BUDGET,
    LONG_SEEDS,
    SEEDS,
    SHOWN,
    SPOTLIGHT_MODELS,
    Curve,
    certified_best,
    curves,
    spotlight_table,
)
from phaze.explain.flatness import flatness
from phaze.explain.question import question_of
from phaze.hardware.chip_estimates import estimates_of


def bridge(out: Path, images: Path) -> dict[str, str]:
    """Its table, the same by model with all faults, and the picture."""
    answer_all(questions(out))
    done = [quotients(out, case) for case in CASES]
    series: dict[str, Sequence[float | None]] = {
        name: [one.mean(at) for one in done] for at, name in enumerate(QUOTIENTS)
    }
    grouped_bars(
        images,
        "bridge",
        series,
        [one.case.name for one in done],
        "geometric mean over eight models",
        True,
    )
    return {"bridge": bridge_table(done), "bridge-models": _by_model(done[0], done[-2])}


def _by_model(corrected: Quotients, faulty: Quotients) -> str:
    """Both ends of the bridge, model by model."""
    heads = (
        "model",
        *(f"{name}, {end}" for end in ("corrected", "all faults") for name in QUOTIENTS),
    )
    rows = [
        [
            model,
            *("" if value is None else f"{value:.2f}" for value in (*own, *faulty.by_model[model])),
        ]
        for model, own in corrected.by_model.items()
    ]
    return markdown(heads, rows)


def spotlight(out: Path, images: Path, budget: int = BUDGET, seeds: int = SEEDS) -> dict[str, str]:
    """Its table, and a picture of throughput over the certified optimum."""
    return {"spotlight": _convergence(out, images, "spotlight", SPOTLIGHT_MODELS, budget, seeds)}


def spotlight_long(out: Path, images: Path) -> dict[str, str]:
    """The same to the largest budget, for the model whose block chip is not its own chip."""
    name = "spotlight-long"
    return {name: _convergence(out, images, name, SPOTLIGHT_MODELS[-1:], LONG_BUDGET, LONG_SEEDS)}


def _convergence(
    out: Path, images: Path, name: str, models: Sequence[str], budget: int, seeds: int
) -> str:
    best = certified_best(out, models)
    found = curves(out, models, budget, range(seeds))
    shown = [count for count in (1, 3, *SHOWN) if count <= budget]
    series = {
        f"{model}, {kind}": [_spread([curve.at(count) / best[model].throughput_per_s for curve in own], count)
                             for count in shown]
        for (model, kind), own in _grouped(found).items()
    }  # fmt: skip
    curves_with_spread(
        images, name, series, ("chips evaluated", "throughput over the certified optimum")
    )
    return spotlight_table(found, best)


def _grouped(found: Sequence[Curve]) -> dict[tuple[str, str], list[Curve]]:
    groups: dict[tuple[str, str], list[Curve]] = {}
    for curve in found:
        groups.setdefault((curve.model, curve.kind), []).append(curve)
    return groups


def _spread(ratios: Sequence[float], count: int) -> tuple[float, float, float, float]:
    return float(count), min(ratios), median(ratios), max(ratios)


def joint_map(out: Path, images: Path) -> dict[str, str]:
    """The map, and its two pictures: today's hardware, and the paper's space."""
    every = cells()
    answer(out, every)
    done = values(out, every)
    scale = [one for one in done if one.cell.group == "devices and scale-out"]
    grid = [
        [one.value for one in scale[at * len(FABRIC) : (at + 1) * len(FABRIC)]]
        for at in range(len(DEVICES))
    ]
    rates = [f"{rate:g}" for rate in FABRIC]
    titles = ("scale-out bandwidth of a device, GB/s", "devices")
    heat_map(images, "map", grid, ([str(n) for n in DEVICES], rates), titles)
    free = _paper_grid(done)
    links = [str(rate) for rate in PAPER_LINKS]
    heat_map(images, "map-paper", free, (PAPER_MODELS, links), ("links, GiB/s", "model"))
    return {"map": map_table(done), "map-reasons": reason_table(reasons(out, every), done)}


def _paper_grid(done: Sequence[Value]) -> list[list[float | None]]:
    return [
        [one.value for one in done if one.cell.free and one.cell.model == model]
        for model in PAPER_MODELS
    ]


def robust(out: Path) -> dict[str, str]:
    """The winners of every scenario with their regrets, for the centre of the map, and what is as
    good there."""
    centre = next(
        cell
        for cell in cells()
        if cell.settings[:1] == ("training.devices=1024",) and "50.0" in cell.settings[1]
    )
    question = joint_question(out, centre)
    searched(*question)
    asked = question_of(str(question.folder))
    done = outcomes(asked, scenarios(), 2)
    bands = markdown(
        ("constants", "band", "after"),
        [[band.name, f"± {band.share:.0%}", band.basis] for band in BANDS],
    )
    return {
        "robust-bands": bands,
        "robust": robust_table(asked, regrets(asked, done), done),
        "near-ties": near_ties(out, centre),
    }


NEAR = 0.01


def near_ties(out: Path, centre: Cell) -> str:
    """Exactly which chips come within 1 % of an answer: today's centre, and two models of the
    paper's space."""
    asked = {f"{centre.model}, n5-reticle, 1,024 devices": joint_question(out, centre).folder}
    for model in SPOTLIGHT_MODELS:
        searched(out / "paper" / model, "model.toml", [one_model(model)])
        asked[f"{model}, the paper's space"] = out / "paper" / model
    rows = []
    for name, folder in asked.items():
        found = flatness(question_of(str(folder)), NEAR, 2, lambda said: None)
        rows.append([name, f"{found.count:,} of {found.chips:,}", str(found.document()["words"])])
    return markdown(("answer", "chips within 1 %", "what they have in common"), rows)


def ratio_picture(images: Path, lines: Sequence[Line], heads: Sequence[str]) -> None:
    """Throughput by model, relative to the first column."""
    columns = list(zip(*(line.ratios for line in lines), strict=True))
    series = dict(zip(heads, columns[1:], strict=True))
    grouped_bars(
        images,
        "throughput",
        series,
        [line.model for line in lines],
        "times the stand-in under experts",
        True,
    )


def area_picture(images: Path, found: Mapping[str, Found]) -> None:
    """What the area of every chip goes to."""
    parts = {}
    for name, one in found.items():
        figures = estimates_of(one.chip)
        if figures is not None and figures.parts_mm2 is not None:
            parts[name] = {
                part.replace("_", " "): area for part, area in figures.parts_mm2.items() if area > 0
            }
    stacked_bars(images, "areas", parts, "mm2")
