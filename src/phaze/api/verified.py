"""The certificate of a run, checked by code that shares none with the search (:mod:`phaze.check`): the verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.plan_certificate import plan_independently
from phaze.api.values import Shown
from phaze.api.verify_certificate import NOT_COVERED, independently
from phaze.api.verify_front import front_independently
from phaze.api.verify_larger import larger_verified
from phaze.api.verify_sweep import sweep_verified
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.check.verdict import Verdict
    from phaze.report.progress import Progress

NEEDED = ("chip", "models", "objective", "certificate", "study_digest", "code_digest")


def _document(path: Path, schema: str, needed: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """A document of the folder, and its text."""
    from phaze.documents import parse
    from phaze.files import read_text

    text, where = read_text(str(path))
    raw = parse(text, "json", where)
    if raw.get("schema") != schema or any(key not in raw for key in needed):
        raise InputError(where, f"this is no {schema}", "give the folder of a run that has ended")
    return raw, text


def _said(run: str, verdict: "Verdict", wrong: list[str], gap: float | None) -> list[str]:
    """The verdict in words; ``gap`` is that of a search, None of a plan."""
    if wrong:
        return [f"{run} does not hold: {wrong[0]}"]
    if verdict.missing:
        lines = [f"{run} is not checkable yet: {verdict.missing}"]
        more = "What it answers follows from its study, by phaze itself. That nothing is better was not checked."
        return lines if gap is None else [*lines, more]
    lines = [f"{run} {verdict.sentence()}"]
    if gap is not None and not verdict.quick and verdict.proved_gap > gap + 1e-9:
        name = "front" if verdict.designs else "result"
        lines.append(f"The smaller gap of {name}.json, {gap:.3g}, is the search's own figure.")
    return lines


def _checked(run: str, verdict: "Verdict", wrong: list[str], result: dict[str, Any]) -> Shown:
    """The answer of the checker."""
    document = {
        "run": run,
        "run_id": verdict.run_id,
        "checker": "independent",
        "claim": verdict.words,
        "holds": not wrong and verdict.holds,
        "answer_holds": None if verdict.missing and not result else not wrong,
        "not_covered": verdict.missing or None,
        "proved": verdict.proved,
        "unproved": verdict.chips - verdict.proved,
        "gap": verdict.proved_gap,
        "objections": wrong,
    }

    def show(console: "Console") -> None:
        for line in (*verdict.words, f"run         {verdict.run_id}"):
            console.print(line, markup=False, highlight=False)
        for line in _said(run, verdict, wrong, float(result["certificate"]["gap"]) if result else None):
            console.print(line, markup=False)

    return Shown(document, show, exit_code=1 if wrong else NOT_COVERED if verdict.missing else 0)


def _otherwise(run: str, quick: bool, space: str | None, gap: float | None, progress: "Progress") -> Shown | None:
    """The verdict on what is no search or front: a plan, a sweep, an answer held against another space."""

    folder = Path(run)
    if space is not None:
        return larger_verified(run, space, gap or 0.0, progress)
    if gap is not None:
        raise InputError("--gap", "a run has its own gap", "give --space as well")
    if (folder / "plan.json").is_file() and (folder / "certificate.json").is_file():
        progress.step("checking the certificate")
        verdict, wrong = plan_independently(run, quick, progress)
        return _checked(run, verdict, wrong, {})
    if (folder / "sweep.json").is_file():
        return sweep_verified(run, quick, progress)
    return None


def verified(
    run: str, study: str | None, quick: bool, space: str | None, gap: float | None, progress: "Progress"
) -> Shown:
    """The verdict on the folder of a run, a front, a sweep or a plan."""
    from phaze.search.result import SCHEMA

    folder = Path(run)
    if (folder / "front.json").exists() and (folder / "result.json").exists():
        seen = "it holds a front.json and a result.json, and its certificate can prove one of them"
        raise InputError(run, seen, "move the one away that does not belong to it")
    if (other := _otherwise(run, quick, space, gap, progress)) is not None:
        return other
    progress.step("checking the certificate")
    if (folder / "front.json").is_file():
        from phaze.front.schema import front_in

        result, text = front_in(folder)
        verdict, wrong = front_independently(run, study, quick, result, text, progress)
    else:
        result, text = _document(folder / "result.json", SCHEMA, NEEDED)
        verdict, wrong = independently(run, study, quick, result, text, progress)
    return _checked(run, verdict, wrong, result)
