"""Forged runs: a forger who recomputes every digest, count and file is refused, whatever he puts in the list."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.search.journal import PrunedChip
from tests.conftest import Ran
from tests.search.forge import Edit, Entries, Forger, Rows, evaluated_falsely, reasoned
from tests.search.test_verify import STUDY, finished


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return finished(tmp_path_factory.mktemp("forged"), STUDY)


@pytest.fixture(scope="module")
def scores(good: Path) -> list[float]:
    """The true score of every chip of it."""
    return Forger(good).scores()


@pytest.fixture
def forger(good: Path, tmp_path: Path) -> Forger:
    """A forger with a copy of the run."""
    shutil.copytree(good, tmp_path / "run")
    return Forger(tmp_path / "run")


def test_an_honest_rewriting_of_the_run_holds(forger: Forger, phaze: Callable[..., Ran]) -> None:
    """The forger's tools are good: with nothing false in it what they write is accepted."""
    before = (forger.folder / "result.json").read_text()
    original = forger.rows[forger.winner], forger.entries[forger.winner]

    def honest(rows: Rows, entries: Entries, score: float) -> None:
        rows[forger.winner], entries[forger.winner] = original

    forger.write(forger.winner, honest)
    assert (forger.folder / "result.json").read_text() == before
    ran = phaze("verify", forger.folder, "--all")
    assert ran.code == 0 and "holds" in ran.out, ran.out


WORST = {
    "area": reasoned("area"),
    "power": reasoned("power"),
    "memory": reasoned("memory"),
    "failed": reasoned("failed", 1.0),
    "open": reasoned("open", 1.0),
    "a name of its own": reasoned("proved"),
    "a bound": reasoned("bound", 1.0),
    "a huge bound": reasoned("bound", 1.0, 1e6),
    "an infinite bound": reasoned("bound"),
    "being evaluated": evaluated_falsely,
}


@pytest.mark.parametrize("option", [["--all"], ["--sample", "4"]], ids=["all", "sample"])
@pytest.mark.parametrize("edit", WORST.values(), ids=WORST.keys())
def test_the_worst_chip_is_never_the_answer(
    forger: Forger, scores: list[float], phaze: Callable[..., Ran], edit: Edit, option: list[str]
) -> None:
    forger.write(scores.index(max(scores)), edit)
    ran = phaze("verify", forger.folder, *option)
    assert ran.code == 1, ran.out
    assert "chip" in ran.out


@pytest.mark.parametrize("edit", [reasoned("bound", 1.0), evaluated_falsely], ids=["bound", "evaluated"])
def test_the_second_best_chip_with_false_bounds_elsewhere_falls_to_the_smallest_sample(
    forger: Forger, scores: list[float], phaze: Callable[..., Ran], edit: Edit
) -> None:
    second = sorted(range(len(scores)), key=scores.__getitem__)[1]
    forger.write(second, edit)
    for seed in range(3):
        assert phaze("verify", forger.folder, "--sample", "4", "--seed", seed).code == 1


def test_a_score_that_is_too_good_is_seen(forger: Forger, phaze: Callable[..., Ran]) -> None:
    forger.write(forger.winner, lambda rows, entries, score: None, 0.999)
    ran = phaze("verify", forger.folder, "--all")
    assert ran.code == 1 and "objective.score" in ran.out


def test_rows_that_are_missing_doubled_or_of_no_chip_are_seen(forger: Forger, phaze: Callable[..., Ran]) -> None:
    count = len(forger.rows)

    def fewer(rows: Rows, entries: Entries, score: float) -> None:
        del rows[-1]

    def more(rows: Rows, entries: Entries, score: float) -> None:
        rows.append(PrunedChip(len(rows), "bound", 9.0, "cheap"))

    for edit in (more, fewer):
        forger.rows = forger.rows[:count]
        forger.write(forger.winner, edit)
        ran = phaze("verify", forger.folder, "--all")
        assert ran.code == 1 and "every chip of the space once" in ran.out


@pytest.mark.parametrize("bound", [-1.0, 0.0, float("inf")])
def test_bounds_that_are_none_are_seen(forger: Forger, phaze: Callable[..., Ran], bound: float) -> None:
    number = next(row.chip for row in forger.rows if row.reason == "bound")
    forger.rows[number] = PrunedChip(number, "bound", 1e9, "cheap")
    forger.write(forger.winner, lambda rows, entries, score: None)
    forger.rows[number] = PrunedChip(number, "bound", bound, "cheap")
    forger._write_journal()
    assert phaze("verify", forger.folder, "--all").code == 1


def test_counts_that_do_not_add_up_are_seen(forger: Forger, phaze: Callable[..., Ran]) -> None:
    path = forger.folder / "result.json"
    for key in ("area", "bound", "evaluated", "failed"):
        bad = json.loads(json.dumps(forger.result))
        bad["certificate"]["closed"][key] += 1
        path.write_text(json.dumps(bad, indent=2) + "\n")
        ran = phaze("verify", forger.folder, "--all")
        assert ran.code == 1 and f"certificate.closed.{key}" in ran.out


def test_a_chip_that_failed_or_was_not_reached_shows_in_gap_and_sentence(
    forger: Forger, phaze: Callable[..., Ran]
) -> None:
    """True rows, but the proof is not whole: it holds with the gap that is left, and says what is left."""
    number = next(row.chip for row in forger.rows if row.reason == "bound")
    original = forger.rows[forger.winner], forger.entries[forger.winner]

    def left(rows: Rows, entries: Entries, score: float) -> None:
        rows[forger.winner], entries[forger.winner] = original
        rows[number] = PrunedChip(number, "open", score / 2, "cheap")

    forger.write(forger.winner, left)
    ran = phaze("verify", forger.folder, "--all")
    assert ran.code == 0, ran.out
    assert "gap 0.5" in ran.out and "1 not reached" in " ".join(ran.out.split())


def test_a_sample_is_said_to_be_one_and_can_be_repeated(good: Path, phaze: Callable[..., Ran]) -> None:
    whole = json.loads(phaze("verify", good, "--sample", "200", "--json").out)
    assert whole["holds"] and whole["unproved"] == 0 and whole["seed"] is None
    some = [json.loads(phaze("verify", good, "--sample", "2", "--json").out) for _ in range(2)]
    assert not some[0]["holds"] and some[0]["answer_holds"] and some[0]["unproved"] > 0
    assert some[0]["seed"] != some[1]["seed"]
    shown = phaze("verify", good, "--sample", "2", "--seed", "7").out
    assert "answer checked, optimality sampled" in " ".join(shown.split()) and "--seed 7" in " ".join(shown.split())
    assert "holds" not in shown


def test_a_front_and_a_result_in_one_folder_are_refused(good: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    shutil.copytree(good, tmp_path / "run")
    (tmp_path / "run" / "front.json").write_text("{}")
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 2 and "front.json" in ran.err
