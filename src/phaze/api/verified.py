"""The certificate of a run, checked by code that shares none with the search (:mod:`phaze.check`):
the verdict."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from phaze.api.plan_certificate import plan_independently
from phaze.api.values import Answer, sheet
from phaze.api.verify_certificate import NOT_COVERED, independently, other_question
from phaze.api.verify_front import front_independently
from phaze.api.verify_larger import larger_verified
from phaze.api.verify_sweep import sweep_verified
from phaze.errors import InputError

if TYPE_CHECKING:
    from phaze.check.verdict import Verdict
    from phaze.report.progress import Progress

ANSWERS = ("result.json", "front.json", "sweep.json", "plan.json")
"""The answers that a folder may hold, one of them."""
UNCHECKED = MappingProxyType(
    {
        "result.json": (
            "Not checked: result.json's numbers of evaluated chips and near ties; "
            "explanations; pages."
        ),
        "front.json": (
            "Not checked: how many chips front.json calls evaluated and rivals; pages; the journal."
        ),
    }
)
"""What of a folder says what a search did, which no claim depends on."""
NEEDED = MappingProxyType(
    {
        "chip": dict,
        "models": list,
        "objective": dict,
        "certificate": dict,
        "study_digest": str,
        "code_digest": str,
    }
)


def _document(path: Path, schema: str, needed: Mapping[str, type]) -> tuple[dict[str, Any], str]:
    """A document of the folder, and its text."""
    from phaze.documents import read_answer

    raw, text, where = read_answer(str(path))
    if raw.get("schema") != schema or any(
        not isinstance(raw.get(key), kind) for key, kind in needed.items()
    ):
        raise InputError(where, f"this is no {schema}", "give the folder of a run that has ended")
    return raw, text


def _sentences(run: str, verdict: "Verdict", wrong: list[str], gap: float | None) -> list[str]:
    """The verdict in words; ``gap`` is that of a search, None of a plan."""
    if wrong:
        return [f"{run} does not hold: {wrong[0]}"]
    if verdict.missing:
        lines = [f"{run} is not checkable yet: {verdict.missing}"]
        more = (
            "What it answers follows from its study, by phaze itself. That nothing is better "
            "was not checked."
        )
        return lines if gap is None else [*lines, more]
    lines = [f"{run} {verdict.sentence()}"]
    rounded_apart = gap is not None and f"{gap:.3g}" != f"{verdict.proved_gap:.3g}"
    if rounded_apart and gap is not None and not verdict.quick and verdict.proved_gap > gap + 1e-9:
        name = "front" if verdict.designs else "result"
        lines.append(f"The smaller gap of {name}.json, {gap:.3g}, is the search's own figure.")
    return lines


def _checked(
    run: str, verdict: "Verdict", wrong: list[str], result: dict[str, Any], unchecked: str
) -> Answer:
    """The answer of the checker; ``unchecked``: what of its folder was compared with nothing."""
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
        "unchecked": unchecked,
    }

    gap = float(result["certificate"]["gap"]) if result else None
    lines = [
        *_sentences(run, verdict, wrong, gap),
        *([unchecked] if unchecked and not wrong else []),
    ]
    shown = sheet("phaze.report.verify_sheet", "verdict_sections", document, lines)
    return Answer(document, shown, exit_code=1 if wrong else NOT_COVERED if verdict.missing else 0)


def _only(folder: Path) -> str:
    """Which answer a folder holds, by the name of its file; a folder with several is refused, as
    its certificate can prove one of them."""
    if folder.is_file():
        raise InputError(
            str(folder), "this is a file", "give the folder of a run, or of a plan's certificate"
        )
    if not folder.is_dir():
        raise InputError(
            str(folder), "there is no such folder", "give that of a run, or of a plan's certificate"
        )
    answers = [name for name in ANSWERS if (folder / name).exists()]
    if len(answers) > 1:
        seen = f"it holds {' and '.join(answers)}, and its certificate can prove one of them"
        raise InputError(str(folder), seen, "move away what does not belong to it")
    if not answers:
        seen = "there is no finished run, front, sweep or plan's certificate here"
        raise InputError(str(folder), seen, "give the folder of one")
    return answers[0]


def verified(
    run: str,
    study: str | None,
    quick: bool,
    space: str | None,
    gap: float | None,
    allow_code: bool,
    progress: "Progress",
) -> Answer:
    """The verdict on the folder of a run, a front, a sweep or a plan."""
    from phaze.search.result import SCHEMA

    folder = Path(run)
    kind = _only(folder)
    if gap is not None and space is None:
        raise InputError("--gap", "a run has its own gap", "give --space as well")
    if space is not None and (quick or study is not None):
        raise InputError(
            "--space",
            "the answer is checked against another space, whole",
            "leave out --study and --quick",
        )
    if study is not None and kind in ("plan.json", "sweep.json"):
        raise InputError("--study", f"{run} has no study to compare with", "leave it out")
    if kind == "result.json":
        result, text = _document(folder / kind, SCHEMA, NEEDED)
    if space is not None:
        if kind != "result.json":
            raise InputError("--space", f"{run} holds a {kind}", "give the folder of a search")
        return larger_verified(run, result, text, space, gap or 0.0, progress)
    if kind == "sweep.json":
        return sweep_verified(run, quick, progress)
    progress.step("checking the certificate")
    if kind == "plan.json":
        verdict, wrong, unchecked = plan_independently(run, quick, progress)
        return _checked(run, verdict, wrong, {}, unchecked)
    if kind == "front.json":
        from phaze.front.schema import front_in

        result, text = front_in(folder)
        verdict, wrong = front_independently(run, quick, result, text, progress)
    else:
        verdict, wrong = independently(run, quick, result, text, progress)
    if study is not None and not wrong:
        front = {"of": result["of"], "within": result["within"]} if kind == "front.json" else None
        wrong = other_question(folder, study, allow_code, front)
    return _checked(run, verdict, wrong, result, UNCHECKED[kind])
