"""A forger: a finished run with another answer or another list, every count, digest and file made to fit."""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of
from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.folder import JOURNAL, RESULT
from phaze.search.journal import PrunedChip, read_closed, read_evaluated
from phaze.search.result import answer_view, code_digest, result_view, written
from phaze.search.spaces import enumerate_space
from phaze.search.task import Configuration
from phaze.search.verify import Plain, plain_of
from phaze.study.load import question_in

Rows = list[PrunedChip]
Entries = dict[int, Evaluated]
Edit = Callable[[Rows, Entries, float], None]


class Forger:
    """A run's folder and the plain path of its job: what a forger with all of phaze at hand has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.question = question_in(folder)
        job = self.question.job
        self.plain: Plain = plain_of(job, scale_for(job), enumerate_space(job.space))
        self.rows: Rows = read_closed(folder / JOURNAL)
        self.entries: Entries = {one.chip: one for one in read_evaluated(folder / JOURNAL)}
        self.result = json.loads((folder / RESULT).read_text())

    @property
    def winner(self) -> int:
        return int(self.result["chip"]["number"])

    def scores(self) -> list[float]:
        """The true score of every chip."""
        return [min(self.plain.exact(chip, self.plain.memories)) for chip in range(len(self.rows))]

    def best_ways(self, chip: int) -> tuple[int, list[Configuration]]:
        """The memory and the configurations that are best on a chip, as an honest answer would name them."""
        plain, job = self.plain, self.plain.job
        for hbm in range(len(job.hbm_bytes)):
            configurations = []
            for task in plain.networks.tasks_of(chip):
                fits = [
                    configuration
                    for configuration in task.configurations
                    if plain.fits(task, configuration, job.hbm_bytes[hbm])
                ]
                tasks, place = [task], (chip, hbm)
                values = [self._score(tasks, place, [configuration]) for configuration in fits]
                configurations += [fits[values.index(min(values))]] if fits else []
            if len(configurations) == len(job.models):
                return hbm, configurations
        raise AssertionError("nothing fits")

    def _score(self, tasks: Sequence[object], place: tuple[int, int], configurations: Sequence[Configuration]) -> float:
        plain = self.plain
        view = answer_view(plain.job, plain.scale, plain.opened, tasks, place, configurations)  # type: ignore[arg-type]
        return float(view["objective"]["score"])

    def write(self, chip: int, edit: Edit, score_share: float = 1.0) -> None:
        """Name ``chip`` the answer, edit the list, and make everything else fit."""
        plain, job = self.plain, self.plain.job
        hbm, configurations = self.best_ways(chip)
        answer = answer_view(job, plain.scale, plain.opened, plain.networks.tasks_of(chip), (chip, hbm), configurations)
        answer["objective"]["score"] *= score_share
        score = float(answer["objective"]["score"])
        self.rows[chip] = PrunedChip(chip, "evaluated", score, "exact")
        model = answer["models"][0]
        self.entries[chip] = Evaluated(
            chip, len(job.hbm_bytes) - 1, score, score, (ModelRun(0, model["batch_s"], 0.0, score, score),)
        )
        edit(self.rows, self.entries, score)
        evaluated = [self.entries[number] for number in sorted(self.entries)]
        certificate = certificate_of(self.rows, evaluated, score, job.gap, plain.opened.left_out)
        (self.folder / RESULT).write_text(written(result_view(job, answer, certificate, code_digest())))
        self._write_journal()

    def _write_journal(self) -> None:
        base = sqlite3.connect(self.folder / JOURNAL)
        base.execute("DELETE FROM closed")
        base.execute("DELETE FROM evaluated")
        base.executemany(
            "INSERT INTO closed VALUES (?, ?, ?, ?)", [(r.chip, r.reason, r.bound, r.step) for r in self.rows]
        )
        base.executemany(
            "INSERT INTO evaluated VALUES (?, ?)",
            [(chip, json.dumps(one.document())) for chip, one in self.entries.items()],
        )
        base.commit()
        base.close()


def reasoned(reason: str, bound: float | None = None, times: float = 2.0) -> Edit:
    """Every other chip closed for that reason, with no bound, or with one so many times the answer's score."""

    def edit(rows: Rows, entries: Entries, score: float) -> None:
        kept = [number for number, row in enumerate(rows) if row.bound == score]
        for number in range(len(rows)):
            if number not in kept:
                said = None if bound is None else times * score
                rows[number] = PrunedChip(number, reason, said, "cheap")
                entries.pop(number, None)

    return edit


def evaluated_falsely(rows: Rows, entries: Entries, score: float) -> None:
    """Every other chip opened, and found to be twice as slow."""
    for number, row in enumerate(rows):
        if row.bound != score:
            rows[number] = PrunedChip(number, "evaluated", 2 * score, "exact")
            entries[number] = replace(next(iter(entries.values())), chip=number, score=2 * score, lower=2 * score)
