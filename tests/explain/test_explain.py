"""Explanations: every gain is the difference of two answers made anew; borders are where the best
chip changes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.explain.alternatives import instead
from phaze.explain.changed_space import candidates
from phaze.explain.neighbours import neighbours
from phaze.explain.question import BestOfChanged, ExplainedRun, gain, question_of, with_budget
from phaze.explain.ranges import Stays, ranges, scaled, worst_case
from phaze.search.chips import enumerate_space
from phaze.search.reference import value_on
from phaze.study.raw import default_study
from phaze.values import replace
from tests.conftest import Ran

SPACE = Path(__file__).parent.parent / "sweep" / "small-space.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search of a few chips."""
    from phaze.cli.answer import exit_code_of
    from phaze.cli.main import app

    where = tmp_path_factory.mktemp("explained")
    study = default_study("bert-large", "icml24") | {
        "space": str(SPACE),
        "training": {"microbatches": [1], "recompute": [False], "devices": 64, "batch": 256},
        "budget": {"area": "200 mm2", "power": "400 W"},
    }
    (where / "study.json").write_text(json.dumps(study), encoding="utf-8")
    arguments = ["search", str(where / "study.json"), "--out", str(where / "run"), "--workers", "1"]
    assert exit_code_of(app, arguments) == 0
    return where / "run"


@pytest.fixture(scope="module")
def question(folder: Path) -> ExplainedRun:
    return question_of(str(folder))


def _tell(what: str) -> None:
    assert what


def test_the_run_is_opened_as_it_was(question: ExplainedRun, folder: Path) -> None:
    said = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert question.chip.name == said["chip"]["name"]
    assert question.score == pytest.approx(said["models"][0]["batch_s"], rel=1e-12)
    assert question.chips.area_budget() == 200.0


def test_neighbours_differ_in_one_axis_and_are_judged(question: ExplainedRun) -> None:
    found = neighbours(question)
    assert found
    for one in found:
        assert one.gain <= 1e-9 or one.refused is not None
        assert one.refused is not None or one.area_mm2 <= 200.0
    assert len({(one.axis, one.value) for one in found}) == len(found)


def _searched(folder: Path, phaze: Callable[..., Ran], out: Path, *settings: str) -> dict[str, Any]:
    chosen = [part for setting in settings for part in ("--set", setting)]
    ran = phaze("search", folder / "study.toml", "--out", out, "--workers", "1", "--json", *chosen)
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_the_command_and_its_gains_made_anew(
    folder: Path, phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = phaze("explain", folder, "--workers", "1", "--json", "--error", "0.2")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert said["schema"] == "phaze.explanation/1"
    base = json.loads((folder / "result.json").read_text(encoding="utf-8"))["models"][0]["batch_s"]
    by = {(one["resource"], one["more"]): one for one in said["marginals"]}
    area = _searched(folder, phaze, tmp_path / "area", 'budget.area="220 mm2"')
    assert by["area", 20.0]["gain"] == pytest.approx(
        base / area["models"][0]["batch_s"] - 1, abs=1e-9
    )
    assert by["area", 20.0]["chip"] == area["chip"]["name"]
    assert {"HBM", "HBM bandwidth", "buffer bandwidth", "link", "devices", "power"} <= {
        key[0] for key in by
    }
    assert all(one["gain"] >= -1e-9 for one in by.values())
    shown = phaze("explain", folder, "--workers", "1")
    assert "The study does not limit price" in shown.out
    kept = json.loads((folder / "explanation.json").read_text(encoding="utf-8"))
    assert kept == said  # the second asked for less, and nothing that was found is lost
    assert max(map(len, shown.out.splitlines())) <= 80


def test_a_marginal_value_is_a_difference_of_plain_answers(
    question: ExplainedRun, folder: Path
) -> None:

    from phaze.explain.marginal import marginals

    chip = question.chip
    faster = replace(
        chip, hbm=replace(chip.hbm, bandwidth_bytes_per_s=chip.hbm.bandwidth_bytes_per_s + 1e9)
    )
    expected = question.score / value_on(question.job.models[0], faster, question.job.objective) - 1
    found = {(one.resource, one.more): one.gain for one in marginals(question, 1, _tell)}
    assert found["HBM bandwidth", 1.0] == pytest.approx(expected, abs=1e-12)


def test_a_range_ends_where_another_chip_is_best(question: ExplainedRun) -> None:
    from phaze.explain.question import best_with

    def at(constant: str, factor: float) -> BestOfChanged:
        job, chips = scaled(question, {constant: factor})
        assert chips.area_mm2.tolist() == question.chips.area_mm2.tolist()
        return best_with(job, question.scale, 1, chips)

    found = {one.constant: one for one in ranges(question, 1, _tell)}
    assert set(found) == {"clock", "HBM bandwidth", "buffer bandwidth", "link"}
    for one in found.values():
        assert isinstance(one, Stays)
        assert one.low <= 1 <= one.high
        for factor in (one.low, one.high):
            assert at(one.constant, factor).identity == question.identity
        for factor in (one.plan_low, one.plan_high):
            assert (at(one.constant, factor).identity, at(one.constant, factor).plans) == (
                question.identity,
                question.plans,
            )
        assert one.low <= one.plan_low <= 1 <= one.plan_high <= one.high
        if one.above is not None:
            assert at(one.constant, one.high * 1.05).identity != question.identity


def test_the_worst_case_is_a_search_with_every_constant_lower(question: ExplainedRun) -> None:
    found = worst_case(question, 0.2, 1)
    assert found.error == 0.2
    assert 0 < found.relative <= 1 + 1e-9
    assert found.gap <= question.job.gap
    assert len(found.plans) == 1


def test_the_best_with_another_value_of_an_axis_is_a_search_of_those_chips(
    question: ExplainedRun,
) -> None:
    from phaze.explain.question import score_on

    own_cores = question.chips.axis_values()["vector_cores"]
    for cores in (1, 4):
        found = instead(question, f"vector_cores={cores}", 1)
        own = np.flatnonzero(own_cores == cores)
        size = max(question.job.hbm_bytes)
        scores = [
            score_on(question.job, question.scale, question.chips.chip(int(n), size)) for n in own
        ]
        assert found.gain == pytest.approx(gain(question.score, min(scores)), abs=1e-4)
        assert found.chip == question.chips.name(int(own[int(np.argmin(scores))]))
    assert instead(question, "global_buffer=32 MiB", 1).value == 32 * 2**20
    same = instead(question, f"vector_cores={own_cores[question.number]}", 1)
    assert same.gain == pytest.approx(0, abs=1e-9)


def test_an_explanation_keeps_what_an_earlier_one_of_the_same_answer_found(
    folder: Path, tmp_path: Path
) -> None:
    from phaze.report.explanation_file import kept_with

    answer = {
        "chip": "a",
        "objective": "throughput",
        "plans": ["p"],
        "score": 1.0,
        "neighbours": [],
        "marginals": [],
    }
    said = {"schema": "phaze.explanation/1", **answer}
    four, eight = ({"axis": "arrays", "value": value, "gain": -0.1} for value in (4.0, 8.0))
    assert kept_with(tmp_path, said) == said
    before = {
        **said,
        "deciding": [],
        "worst_case": {"error": 0.1},
        "instead": [four, {**eight, "gain": 0.0}],
    }
    (tmp_path / "explanation.json").write_text(json.dumps(before), encoding="utf-8")
    assert kept_with(tmp_path, said) == before
    newer = kept_with(tmp_path, {**said, "instead": [eight], "worst_case": {"error": 0.2}})
    assert (
        newer["instead"] == [four, eight]
        and newer["worst_case"] == {"error": 0.2}
        and newer["deciding"] == []
    )
    for other in ({"chip": "b"}, {"score": 1.1}, {"plans": ["q"]}):
        assert kept_with(tmp_path, {**said, **other}) == {**said, **other}
    for text in (
        "{",
        "[]",
        json.dumps({**before, "score": "much"}),
        json.dumps({**before, "instead": [1]}),
    ):
        (tmp_path / "explanation.json").write_text(text, encoding="utf-8")
        assert kept_with(tmp_path, {**said, "instead": [eight]})["instead"] == [eight]


def test_gains_and_larger_budgets(question: ExplainedRun) -> None:
    assert gain(2.0, 1.0) == 1.0
    assert gain(2.0, float("inf")) == -1.0
    assert enumerate_space(with_budget(question.job, "area", 321.0).space).area_budget() == 321.0


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere",),
        ("RUN", "--error", "1.5"),
        ("RUN", "--error", "nan"),
        ("RUN", "--instead", "vector_cores"),
        ("RUN", "--instead", "vector_cores=3"),
        ("RUN", "--instead", "wheels=4"),
        ("RUN", "--instead", "vector_cores=many"),
    ],
)
def test_bad_questions_are_one_sentence(
    folder: Path, phaze: Callable[..., Ran], arguments: tuple[str, ...]
) -> None:
    ran = phaze("explain", *(str(folder) if one == "RUN" else one for one in arguments))
    assert ran.code == 2
    assert ran.err.count("\n") == 1


def test_another_price_may_allow_another_memory_so_every_chip_is_looked_at(
    question: ExplainedRun,
) -> None:
    chips = len(question.chips)
    wider, dearer = with_budget(question.job, "power", 500.0), with_budget(question.job, "usd", 1e6)
    assert len(candidates(question, enumerate_space(wider.space), wider)) < chips
    assert len(candidates(question, enumerate_space(dearer.space), dearer)) == chips
