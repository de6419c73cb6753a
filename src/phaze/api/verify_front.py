"""The certificate of a front by the independent checker, and what of its folder does not follow
from it."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.verify_certificate import READING, CheckedChips

if TYPE_CHECKING:
    from phaze.check.space_proof import Solver
    from phaze.check.verdict import Verdict
    from phaze.front.measures import Measures
    from phaze.front.reference import ReferenceFront
    from phaze.report.progress import Progress


@dataclass(slots=True)
class FrontFolder:
    """The folder of a front; the reference path over its question is built once, where it is
    needed."""

    folder: Path
    document: dict[str, Any]
    reference: "list[tuple[ReferenceFront, Measures]]" = field(default_factory=list)

    def plain(self) -> "tuple[ReferenceFront, Measures]":
        """The reference path of the front's question, and its metrics."""
        import numpy as np

        from phaze.front.measures import measures_of
        from phaze.front.metrics import metrics_of
        from phaze.front.reference import ReferenceFront
        from phaze.front.run import job_for, memories_of, scales_for
        from phaze.search.boxes.opening import reopened
        from phaze.search.reference_path import reference_path_of
        from phaze.study.load import question_in

        if not self.reference:
            limits = [f"{name}={value!r}" for name, value in self.document["within"].items()]
            metrics = metrics_of(self.document["of"], limits)
            job = job_for(question_in(self.folder, metrics.document()).job, metrics)
            scales, memories = scales_for(job, metrics), tuple(memories_of(job, metrics))
            called = [point["chip"]["number"] for point in self.document["points"]]
            numbers = np.array([number for number in called if type(number) is int], np.int64)
            plain = reference_path_of(job, scales[0], reopened(job.space, numbers))
            front = ReferenceFront(plain, metrics, scales, memories)
            self.reference.append((front, measures_of(job, metrics, scales, plain.chips, memories)))
        return self.reference[0]

    def solver(self) -> "Solver":
        """phaze's own exact solver, for units whose schedules the independent checker cannot bound
        well enough: what the plan of every configuration takes in each metric of a run."""
        chips = CheckedChips(self.folder)

        def values(chip: int, memory: int) -> list[list[list[float]]]:
            front = self.plain()[0]
            plain, place = chips.reference(front.plain.job, front.plain.scale, chip)
            return replace(front, plain=plain).plans(place, memory)

        return values

    def objections(self, text: str, verdict: "Verdict") -> list[str]:
        """What of the folder does not follow from its study and its certificate."""
        from phaze.api.verify_models import say_bundled
        from phaze.export.frame import csv_text
        from phaze.files import read_text
        from phaze.front.folder import TABLE, front_frame
        from phaze.front.view_check import check_front_view
        from phaze.search.question_files import unlike
        from phaze.search.witness import CERTIFICATE, fusion_of
        from phaze.study.load import question_in

        wanted = {"of": self.document["of"], "within": self.document["within"]}
        question = question_in(self.folder, wanted)
        if wrong := unlike(self.folder, question.papers("")):
            return wrong
        say_bundled(verdict, question)
        front, measures = self.plain()
        certificate = json.loads(read_text(str(self.folder / CERTIFICATE))[0])
        if certificate["front"] is not None and certificate["fusion"] != fusion_of(
            front.plain.job.models
        ):
            return [f"{CERTIFICATE}: operators are fused otherwise than the stack does"]
        try:
            wrong = check_front_view(front, measures, text, self.document, certificate)
            if not wrong and read_text(str(self.folder / TABLE))[0] != csv_text(
                front_frame(self.document)
            ):
                return [f"{TABLE}: it is not that of front.json"]
            return wrong
        except READING as fault:
            return [f"the front cannot be read ({type(fault).__name__}: {fault})"]


def front_independently(
    run: str, quick: bool, result: dict[str, Any], text: str, progress: "Progress"
) -> "tuple[Verdict, list[str]]":
    """The verdict of the independent checker on a front, and what else is wrong."""
    from phaze.check.verdict import check

    front_folder = FrontFolder(Path(run), result)
    verdict = check(front_folder.folder, quick, 0.0, progress.step, front_folder.solver())
    return verdict, [verdict.wrong] if verdict.wrong else front_folder.objections(text, verdict)
