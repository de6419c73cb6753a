"""The certificate of a run by the independent checker, and what of the folder does not follow from
it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaze.check.space_proof import Solver
    from phaze.check.verdict import Verdict
    from phaze.report.progress import Progress
    from phaze.search.objective import Scale
    from phaze.search.reference_path import ReferencePath
    from phaze.search.task import SearchJob

NOT_COVERED = 3
"""The exit code of what the checker has no rules for."""
READING = (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError)


def other_question(
    folder: Path, study: str, allow_code: bool, front: dict[str, Any] | None = None
) -> list[str]:
    """What of a run's problem is not what a study asks, whose code runs only if ``allow_code``;
    ``front``: metrics and limits of a front, whose gap is an option of its command and not of its
    study."""
    from phaze.api.load_study import traced_study
    from phaze.files import read_text
    from phaze.search.question_files import PROBLEM, differences
    from phaze.study.load import question_of, study_of

    stored = read_text(str(folder / PROBLEM))[0]
    gap = [] if front is None else [f"search.gap={json.loads(stored)['gap']!r}"]
    raw, origin = traced_study(study, None, gap, allow_code=allow_code)
    question = question_of(study_of(raw, origin.where), reader=origin.reader)
    requested = (question if front is None else question.fronted(front)).papers("").problem
    if stored == requested:
        return []
    return [
        (
            f"{PROBLEM}: not what {study} asks "
            f"({differences(requested, stored, '{key} is {new}, and {old} was requested')})"
        )
    ]


def as_phaze_has_it(
    folder: Path, result: dict[str, Any], text: str, verdict: "Verdict"
) -> list[str]:
    """What of a folder does not follow from its study and its certificate: problem, graphs, fusion,
    and the view."""
    import numpy as np

    from phaze.api.verify_models import say_bundled
    from phaze.files import read_text
    from phaze.search.baseline import scale_for
    from phaze.search.boxes.opening import reopened
    from phaze.search.question_files import unlike
    from phaze.search.reference_path import reference_path_of
    from phaze.search.view_check import check_view
    from phaze.search.witness import CERTIFICATE, fusion_of
    from phaze.study.load import question_in

    question = question_in(folder)
    if wrong := unlike(folder, question.papers("")):
        return wrong
    say_bundled(verdict, question)
    job = question.job
    certificate = json.loads(read_text(str(folder / CERTIFICATE))[0])
    if certificate["answer"] is not None and certificate["fusion"] != fusion_of(job.models):
        return [
            (
                f"{CERTIFICATE}: operators are fused otherwise than "
                f"{job.models[0].training.machine.stack.name} does"
            )
        ]
    named = result["chip"]["number"]
    chips = reopened(
        job.space, np.array([named if type(named) is int and 0 <= named < 2**62 else -1])
    )
    plain = reference_path_of(job, scale_for(job), chips)
    try:
        return check_view(plain, text, result, certificate)
    except READING as fault:
        return [f"the result cannot be read ({type(fault).__name__}: {fault})"]


@dataclass(slots=True)
class CheckedChips:
    """Chips of a run as the checker calls them: by their place among all of the space, or by the
    number of their combination where it walks boxes."""

    folder: Path
    every: "list[ReferencePath]" = field(default_factory=list)

    def reference(self, job: "SearchJob", scale: "Scale", chip: int) -> "tuple[ReferencePath, int]":
        """The reference path on a chip, and the chip's place there."""
        import numpy as np

        from phaze.check.boxes import boxed
        from phaze.files import read_text
        from phaze.search.boxes.opening import chips_numbered
        from phaze.search.chips import enumerate_space
        from phaze.search.question_files import PROBLEM
        from phaze.search.reference_path import reference_path_of

        if boxed(json.loads(read_text(str(self.folder / PROBLEM))[0])):
            alone = chips_numbered(job.space, np.array([chip], np.int64), counted=False)
            return reference_path_of(job, scale, alone), 0
        if not self.every:
            self.every.append(reference_path_of(job, scale, enumerate_space(job.space)))
        return self.every[0], chip


def _solver(folder: Path) -> "Solver":
    """phaze's own exact solver, for chips whose schedules the independent checker cannot bound well
    enough: the best value of every model with a memory."""
    chips, questions = CheckedChips(folder), list["tuple[SearchJob, Scale]"]()

    def values(chip: int, memory: int) -> list[list[list[float]]]:
        from phaze.search.baseline import scale_for
        from phaze.study.load import question_in

        if not questions:
            job = question_in(folder).job
            questions.append((job, scale_for(job)))
        reference, place = chips.reference(*questions[0], chip)
        return [[[value]] for value in reference.values(place, [memory])[0]]

    return values


def independently(
    run: str, quick: bool, result: dict[str, Any], text: str, progress: "Progress"
) -> "tuple[Verdict, list[str]]":
    """The verdict of the independent checker, and what else is wrong."""
    from phaze.check.verdict import check

    folder, lower_bound = Path(run), result["certificate"].get("lower_bound")
    # Of several models the two scores may be in other units; then what the certificate says is
    # enough.
    is_stated = (
        isinstance(lower_bound, int | float)
        and 0 <= lower_bound < float("inf")
        and len(result["models"]) == 1
    )
    verdict = check(
        folder, quick, float(lower_bound) if is_stated else 0.0, progress.step, _solver(folder)
    )
    return verdict, [verdict.wrong] if verdict.wrong else as_phaze_has_it(
        folder, result, text, verdict
    )
