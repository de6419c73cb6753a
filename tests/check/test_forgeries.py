"""Forged certificates: everything is made consistent, and none of them holds; another question is
shown as one."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.check.verdict import check
from tests.check.forge import Chooser, Papers
from tests.check.forgeries import HONEST_ABOUT_ANOTHER, REFUSED
from tests.conftest import Ran


@pytest.fixture(scope="module")
def chooser(good: Path) -> Chooser:
    return Chooser(good)


@pytest.fixture(scope="module")
def scores(chooser: Chooser) -> list[float]:
    return chooser.scores()


def test_the_good_certificate_holds(good: Path, tmp_path: Path) -> None:
    found = check(good)
    assert found.holds, found.sentence()
    again = check(Papers(good).write(tmp_path))
    assert again.holds and again.words == found.words, again.sentence()


@pytest.mark.parametrize("name", REFUSED)
def test_a_forged_certificate_is_refused(name: str, good: Path, tmp_path: Path) -> None:
    papers = Papers(good)
    REFUSED[name](papers)
    found = check(papers.write(tmp_path))
    assert not found.holds and found.wrong, found.sentence()


@pytest.mark.parametrize("rank", [1, 2, 4, 8, -1])
def test_no_chip_but_the_best_is_proved_best(
    rank: int, good: Path, tmp_path: Path, chooser: Chooser, scores: list[float]
) -> None:
    """All of it is true, schedules and stages too, but that nothing is better."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    papers = Papers(good)
    chooser.name(papers, order[rank])
    found = check(papers.write(tmp_path))
    better = scores[order[0]] < papers.certificate["bound"] * (1 - 1e-9)
    assert found.holds is not better and ("nothing shows" in found.wrong) is better, (
        found.sentence()
    )


def test_the_forger_s_tools_are_good(
    good: Path, tmp_path: Path, chooser: Chooser, scores: list[float]
) -> None:
    papers = Papers(good)
    chooser.name(papers, scores.index(min(scores)))
    assert check(papers.write(tmp_path)).holds


@pytest.mark.parametrize("name", HONEST_ABOUT_ANOTHER)
def test_another_question_is_shown_as_one(
    name: str, good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    """A true theorem about another problem holds; its claim says what it is about, and ``verify``
    what was asked."""
    forge, line = HONEST_ABOUT_ANOTHER[name]
    shutil.copytree(good, tmp_path / "run")
    before, papers = check(good), Papers(good)
    forge(papers)
    found = check(papers.write(tmp_path / "run"))
    changed = [own for own, old in zip(found.words, before.words, strict=True) if own != old]
    assert found.holds and any(own.startswith(line) for own in changed), found.sentence()
    assert "not one that is bundled" in found.words[0]
    if line != "claim":
        ran = phaze("verify", tmp_path / "run")
        assert ran.code == 1 and "problem.json" in ran.out


def test_an_axis_dropped_with_the_answer_still_in_it_is_another_space(
    good: Path, tmp_path: Path
) -> None:
    papers = Papers(good)
    axes = papers.problem["space"]["axes"]
    name = next(name for name, values in axes.items() if len(values) > 1)
    axes[name] = [papers.answer["chip"][name]]
    found = check(papers.write(tmp_path))
    assert (
        found.holds
        and "not one that is bundled" in found.words[0]
        and f"{name} {axes[name][0]:g} to" in found.words[0]
    )


def test_documents_that_another_reader_would_read_otherwise_are_refused(
    good: Path, tmp_path: Path
) -> None:
    """A key twice at any depth, numbers beyond all bounds, marks before the text, text after it."""
    for name in ("problem.json", "graphs.json", "certificate.json"):
        text = (good / name).read_text()
        inner = text.index("{", text.index("{") + 1)
        forged = {
            "a key twice, deep inside": text[: inner + 1] + '"a": 1, "a": 2, ' + text[inner + 1 :],
            "beyond all numbers": text.rstrip()[:-1] + ', "beyond": 1e400}',
            "infinity": text[: inner + 1] + '"a": Infinity, ' + text[inner + 1 :],
            "a mark of order": "\ufeff" + text,
            "more behind it": text + "{}",
            "another key": text.rstrip()[:-1] + ', "sure": true}',
            "a comment": "// true\n" + text,
            "single quotes": text.replace('"', "'"),
        }
        for title, own in forged.items():
            shutil.rmtree(tmp_path)
            shutil.copytree(good, tmp_path)
            (tmp_path / name).write_text(own, encoding="utf-8")
            found = check(tmp_path)
            assert not found.holds and (found.wrong or found.missing), (name, title)


def test_what_is_no_file_is_not_read(good: Path, tmp_path: Path) -> None:
    """A pipe would wait for ever, a device would never end, a link may lead round."""
    run = tmp_path / "run"
    for title, target in {
        "a pipe": None,
        "a device": Path("/dev/zero"),
        "a loop": run / "certificate.json",
    }.items():
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(good, run)
        path = run / "certificate.json"
        path.unlink()
        if target is None:
            os.mkfifo(path)
        else:
            path.symlink_to(target)
        assert check(run).wrong.startswith("certificate.json"), title


def test_a_certificate_of_another_run_is_refused(
    good: Path, clustered: Path, tmp_path: Path
) -> None:
    for name in ("problem.json", "graphs.json", "certificate.json"):
        shutil.rmtree(tmp_path)
        shutil.copytree(good, tmp_path)
        shutil.copy(clustered / name, tmp_path / name)
        assert "another" in check(tmp_path).wrong, name


def test_files_that_are_missing_broken_or_huge_are_refused(good: Path, tmp_path: Path) -> None:
    for name in ("problem.json", "graphs.json", "certificate.json"):
        for text in (
            None,
            "",
            "[]",
            "{",
            '{"schema":1,"schema":2}',
            '{"a":NaN}',
            "\x00",
            '{"a":' * 50_000,
        ):
            shutil.rmtree(tmp_path)
            shutil.copytree(good, tmp_path)
            if text is None:
                (tmp_path / name).unlink()
            else:
                (tmp_path / name).write_text(text)
            found = check(tmp_path)
            assert found.wrong and not found.holds, (name, text and text[:20])
