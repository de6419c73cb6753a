"""What a run takes beside time: joules, dollars and carbon on chips of cores, fronts of several of
these, models together and each relative to its own best. Honest runs hold, changed ones do not."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.check import boxes as checked_boxes
from phaze.check.fronts import SAME, _corners
from phaze.check.verdict import check
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from tests.check.forge import Chooser, Forgery, Papers
from tests.check.forgeries import put, score, times
from tests.conftest import Ran
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY

BERT = 'models = [{{name = "bert-large", sequence = 64}}]'
TWO = (
    'models = [{{name = "bert-large", sequence = 64}}, {{name = "gpt2-xl", sequence = 64, '
    "weight = 2}}]"
)
ENERGY = ("problem", "space", "base", "process", "energy")
OWNERSHIP = ("problem", "ownership")
FRONT = ("certificate", "front")
Kind = tuple[str, str, str, tuple[str, ...]]


def _kind(rules: str, more: str = "", models: str = BERT, *front: str) -> Kind:
    return rules, more, models, front


KINDS = {
    "joules": _kind("cluster", '[objective]\nkind = "throughput_per_watt"\n'),
    "joules, published": _kind("icml24", '[objective]\nkind = "throughput_per_watt"\n'),
    "dollars": _kind("cluster", '[objective]\nkind = "throughput_per_usd"\n'),
    "dollars, published": _kind("icml24", '[objective]\nkind = "throughput_per_usd"\n'),
    "carbon": _kind("cluster", '[objective]\nkind = "throughput_per_kgco2e"\n'),
    "carbon, published": _kind("icml24", '[objective]\nkind = "throughput_per_kgco2e"\n'),
    "joule seconds": _kind("cluster", '[objective]\nkind = "energy_delay"\n'),
    "joule seconds, published": _kind("icml24", '[objective]\nkind = "energy_delay"\n'),
    "joules of two models": _kind("cluster", '[objective]\nkind = "throughput_per_watt"\n', TWO),
    "regret, published": _kind("icml24", '[objective]\nmean = "regret"\n', TWO),
    "regret in joules": _kind(
        "cluster", '[objective]\nmean = "regret"\nkind = "throughput_per_watt"\n', TWO
    ),
    "joules where links are counted": _kind(
        "cluster",
        'widths = [2]\nzero = 3\n[objective]\nkind = "throughput_per_watt"\n',
        BERT.replace("64}}", "64, widths = [1, 2]}}"),
    ),
    "seconds and joules": _kind("cluster", "", BERT, "--of", "throughput,energy"),
    "seconds and carbon, published": _kind("icml24", "", BERT, "--of", "throughput,carbon"),
    "seconds, dollars and carbon": _kind("cluster", "", BERT, "--of", "throughput,cost,carbon"),
    "joules and area": _kind("cluster", "", BERT, "--of", "energy,area"),
    "joules and area, fast enough": _kind(
        "cluster", "", BERT, "--of", "energy,area", "--within", "throughput=50"
    ),
    "seconds and joules of two models": _kind("cluster", "", TWO, "--of", "throughput,energy"),
    "joules and area of two models": _kind("cluster", "", TWO, "--of", "energy,area"),
    "area of two models, fast enough": _kind(
        "cluster", "", TWO, "--of", "throughput,area", "--within", "throughput=0.5"
    ),
    "regret and area": _kind(
        "cluster", '[objective]\nmean = "regret"\n', TWO, "--of", "throughput,area"
    ),
}
LENT = frozenset({"joules, published", "carbon, published", "seconds and carbon, published"})
"""Kinds where schedules are packings that no bound of the checker meets: phaze lends its solver."""
EVERYDAY = frozenset({"joules", "dollars, published", "seconds and joules"})


def _lost(index: int) -> Forgery:
    """A design left out."""
    return lambda papers: papers.certificate["front"].pop(index % len(papers.certificate["front"]))


def _exchanged(papers: Papers) -> None:
    """Each model's own best is that of the other."""
    (rows,) = papers.certificate["bests"]
    rows[0]["models"], rows[1]["models"] = rows[1]["models"], rows[0]["models"]


def _worse_best(papers: Papers) -> None:
    """A model's own best is what it takes in the design of most regret."""
    design = max(papers.certificate["front"], key=lambda row: row["values"][0])
    row = {key: design[key] for key in ("chip", "hbm_bytes")}
    papers.certificate["bests"][0][1] = {**row, "models": [design["models"][1]]}


OF_SEARCHES: dict[str, Forgery] = {
    "a score that is too good": score(1 - 1e-7),
    "a score that is too bad": score(1 + 1e-7),
    "half of the score": score(0.5),
    "arrays that take less": times(*ENERGY, "mac_j", by=0.99),
    "HBM that takes less": times(*ENERGY, "hbm_j_per_byte", by=0.99),
    "memory of another chip": put("certificate", "answer", "hbm_bytes", value=1 << 30),
}
OF_FRONTS: dict[str, Forgery] = {
    "the first design left out": _lost(0),
    "the last design left out": _lost(-1),
    "a value that is too good": times(*FRONT, 0, "values", 0, by=1 - 1e-7),
    "another value that is too good": times(*FRONT, 0, "values", 1, by=1 - 1e-7),
    "metrics exchanged": lambda papers: papers.problem["front"]["of"].reverse(),
}
OF_KINDS: dict[str, dict[str, Forgery]] = {
    "joules": {
        "seconds at the price of joules": put("problem", "objective", "kind", value="throughput"),
        "links that take less": times(*ENERGY, "link_j_per_byte", by=0.5),
        "buffers that take less": times(*ENERGY, "buffer", "values", 0, by=0.5),
    },
    "dollars, published": {
        "cheap electricity": times(*OWNERSHIP, "electricity_usd_per_kwh", by=0.5),
        "a long life": times(*OWNERSHIP, "lifetime_years", by=2.0),
        "cheap memory": times(*OWNERSHIP, "hbm_usd_per_gb", by=0.5),
        "the price of another memory": put("certificate", "answer", "hbm_bytes", value=80 << 30),
    },
    "regret in joules": {
        "bests exchanged": _exchanged,
        "no bests": lambda papers: papers.certificate.pop("bests"),
        "one best": lambda papers: papers.certificate["bests"][0].pop(),
        "no regret": score(0.5),
    },
    "seconds and joules": {
        "links that take less": times(*ENERGY, "link_j_per_byte", by=0.5),
        "a limit that its designs are beyond": put(
            "problem", "front", "within", value={"energy": 1e-3}
        ),
    },
    "area of two models, fast enough": {
        "a lower limit": times("certificate", "limits", "throughput", by=0.1),
        "no limit": lambda papers: papers.certificate.pop("limits"),
    },
    "regret and area": {
        "a best that is none": _worse_best,
        "no bests": lambda papers: papers.certificate.pop("bests"),
    },
}


def _names(names: Iterable[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [name if name in EVERYDAY else pytest.param(name, marks=slow) for name in names]


def _run(folder: Path, kind: Kind) -> Path:
    """The folder of a run or a front over a few chips of cores."""
    rules, more, models, front = kind
    study = STUDY.replace('"icml24"', f'"{rules}"').replace(BERT, models)
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text((study + more).format(folder=folder))
    command = ["front" if front else "search", str(folder / "study.toml"), *front]
    assert exit_code_of(app, [*command, "--out", str(folder / "run"), "--workers", "1"]) == 0
    return folder / "run"


@pytest.mark.parametrize("name", _names(KINDS))
def test_a_run_of_every_kind_holds_and_changed_ones_do_not(
    name: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _run(tmp_path, KINDS[name])
    verdict = check(run)
    assert verdict.holds or (name in LENT and "nothing shows" in verdict.wrong), verdict.sentence()
    ran = phaze("verify", run)
    assert ran.code == 0 and verdict.run_id in ran.out, ran.out
    forgeries = OF_FRONTS if KINDS[name][3] else OF_SEARCHES
    for title, forge in {**forgeries, **OF_KINDS.get(name, {})}.items():
        papers = Papers(run)
        forge(papers)
        forged = check(papers.write(tmp_path))
        assert forged.wrong and not forged.missing, (title, forged.sentence())


def test_no_other_chip_is_the_answer_where_joules_count(tmp_path: Path) -> None:
    """Every chip with its best configuration and an honest score: it holds where nothing is better
    by more than the gap, and nowhere else."""
    run = _run(tmp_path, KINDS["joules"])
    chooser, refused = Chooser(run), 0
    scores = chooser.scores()
    best = min(scores)
    for chip in np.argsort(scores)[[0, 1, -1]].tolist():
        papers = Papers(run)
        chooser.name(papers, chip)
        better = best < papers.certificate["bound"] * (1 - 1e-9)
        verdict = check(papers.write(tmp_path))
        assert verdict.holds is not better, (chip, verdict.sentence())
        refused += better
    assert refused


@pytest.mark.parametrize("metrics", [1, 2, 3])
def test_a_value_is_below_a_corner_where_no_design_covers_it(metrics: int) -> None:
    """Designs are points of small whole numbers, and every vector of such is tried."""
    rng = np.random.default_rng(metrics)
    for _ in range(60):
        points = rng.integers(1, 7, (metrics, int(rng.integers(1, 7)))).astype(float)
        limits = np.where(rng.random(metrics) < 0.5, np.inf, rng.integers(2, 9, metrics) + 0.5)
        corners = _corners(points, limits) / (1 - SAME)
        for values in np.ndindex(*(9,) * metrics):
            vector = np.array(values, float) + 0.25
            covered = (points <= vector[:, None]).all(axis=0).any()
            inside = (vector <= limits).all()
            is_open = (vector[:, None] < corners).all(axis=0).any()
            assert is_open == (inside and not covered), (points, limits, vector)


def test_a_front_of_joules_by_boxes_says_that_every_combination_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(tmp_path, KINDS["joules and area"])
    monkeypatch.setattr(checked_boxes, "MOST_CHIPS", 0)
    verdict = check(run)
    assert verdict.holds and verdict.counted is not None and verdict.counted.boxes > 0
