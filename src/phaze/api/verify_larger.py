"""``phaze verify RUN --space FILE``: the answer of a run held against another space, however
large."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, sheet
from phaze.api.verify_certificate import NOT_COVERED, as_phaze_has_it

if TYPE_CHECKING:
    from phaze.report.progress import Progress


def larger_verified(
    run: str, result: dict[str, Any], text: str, space: str, gap: float, progress: "Progress"
) -> Answer:
    """Whether nothing in a space is better than the answer of a run by more than a gap; ``result``
    and ``text`` are those of the run's own result, which must be that of its certificate."""
    from phaze.check.boxes import of_clusters
    from phaze.check.verdict import check
    from phaze.documents import read_answer
    from phaze.errors import InputError
    from phaze.search.question_files import PROBLEM
    from phaze.search.spaces import load_space
    from phaze.study.problem import space_document

    if not 0 <= gap < 1:
        raise InputError(
            "--gap", f"{gap} is not a share", "give a number from 0 to below 1, such as 0.02"
        )
    table = space_document(load_space(space))
    problem, _, _ = read_answer(str(Path(run) / PROBLEM))
    here, there = (("cores", "clusters")[of_clusters(chips)] for chips in (problem["space"], table))
    if here != there:
        seen = f"its chips are of {there}, and the answer of {run} is a chip of {here}"
        raise InputError("--space", seen, f"give a space of chips of {here}")
    verdict = check(Path(run), watch=progress.step, wider=gap, larger=table)
    wrong = [verdict.wrong] if verdict.wrong else as_phaze_has_it(Path(run), result, text, verdict)
    verdict.wrong = wrong[0] if wrong else ""
    document = {
        "run": run,
        "run_id": verdict.run_id,
        "checker": "independent",
        "claim": verdict.words,
        "holds": verdict.holds,
        "combinations": verdict.chips,
        "boxes": 0 if verdict.counted is None else verdict.counted.boxes,
        "gap": verdict.gap,
        "not_covered": verdict.missing or None,
        "objections": wrong,
    }

    shown = sheet(
        "phaze.report.verify_sheet", "verdict_sections", document, [f"{run} {verdict.sentence()}"]
    )
    return Answer(document, shown, exit_code=1 if wrong else 0 if verdict.holds else NOT_COVERED)
