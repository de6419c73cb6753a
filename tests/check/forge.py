"""A forger with all of phaze at hand: changes problem, graphs and certificate, and makes every
digest fit."""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from phaze.documents import digest, dumps
from phaze.search.baseline import scale_for
from phaze.search.chips import enumerate_space
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.reference_path import ReferencePath, reference_path_of
from phaze.search.result import answer_view
from phaze.search.task import Configuration
from phaze.search.witness import chip_of, model_witness
from phaze.study.load import question_in


class Papers:
    """The three documents of a run that a checker reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem, self.graphs, self.certificate = (
            json.loads((folder / f"{name}.json").read_text())
            for name in ("problem", "graphs", "certificate")
        )

    @property
    def answer(self) -> dict[str, Any]:
        return self.certificate["answer"]  # type: ignore[no-any-return]

    @property
    def model(self) -> dict[str, Any]:
        return self.answer["models"][0]  # type: ignore[no-any-return]

    @property
    def training(self) -> dict[str, Any]:
        return self.problem["models"][0]["training"]  # type: ignore[no-any-return]

    @property
    def keep(self) -> dict[str, Any]:
        return self.problem["space"]["keep"]  # type: ignore[no-any-return]

    def layer(self, name: str = "layer") -> dict[str, Any]:
        """A block of the graph that the answer runs."""
        layers = self.graphs["models"][0][self.model["graph"]]["layers"]
        return next(layer for layer in layers if name in layer["name"])

    def claim(self, best: float) -> None:
        """Say another score, with the bound that goes with it."""
        self.certificate["best"] = best
        self.certificate["bound"] = best * (1 - self.certificate["gap"])

    def write(self, folder: Path) -> Path:
        """All files, with every digest recomputed."""
        for model, own in zip(self.problem["models"], self.graphs["models"], strict=False):
            for row, graph in zip(model["graphs"], own, strict=False):
                row["digest"] = digest(graph)
        texts = {
            "problem": dumps(self.problem, pretty=True) + "\n",
            "graphs": dumps(self.graphs) + "\n",
        }
        for name, text in texts.items():
            self.certificate[name] = sha256(text.encode()).hexdigest()
            (folder / f"{name}.json").write_text(text)
        (folder / "certificate.json").write_text(json.dumps(self.certificate) + "\n")
        return folder


Forgery = Callable[[Papers], None]


def every_day(names: Iterable[str], each: int = 5) -> list[Any]:
    """Every so manieth of them for every day, the others with the slow tests."""
    return [
        name if at % each == 0 else pytest.param(name, marks=pytest.mark.slow)
        for at, name in enumerate(names)
    ]


class Chooser:
    """Honest certificates of any chip of a run's space: everything in them is true but that nothing
    is better."""

    def __init__(self, folder: Path) -> None:
        job = question_in(folder).job
        self.plain: ReferencePath = reference_path_of(
            job, scale_for(job), enumerate_space(job.space)
        )

    def scores(self) -> list[float]:
        """The true score of every chip."""
        return [
            min(self.plain.exact(chip, self.plain.memories))
            for chip in range(len(self.plain.chips))
        ]

    def name(self, papers: Papers, chip: int) -> None:
        """Make ``chip`` the answer, in its best configuration."""
        job, plain = self.plain.job, self.plain
        found = [
            self._answer(chip, configuration)
            for configuration in job.models[0].configurations
            if plain.fits(job.models[0], configuration, self._memory(chip))
        ]
        score, configuration, document, memo = min(found, key=lambda one: one[0])
        papers.answer["chip"] = chip_of(plain.chips, chip)
        papers.answer["hbm_bytes"] = self._memory(chip)
        papers.answer["models"][0] = model_witness(
            job.models[0], configuration, memo.in_order or [], document["models"][0]
        )
        papers.claim(score)

    def _memory(self, chip: int) -> int:
        """The most that a chip may have: that of its stacks, if it is of clusters."""
        sizes = self.plain.job.hbm_bytes
        return max(
            size
            for at, size in enumerate(sizes)
            if float(self.plain.rates(chip, at).rate) < float("inf")
        )

    def _answer(
        self, chip: int, configuration: Configuration
    ) -> tuple[float, Configuration, dict[str, Any], ScheduleMemo]:
        plain, memo = self.plain, ScheduleMemo(in_order=[])
        tasks, place = (
            plain.networks.tasks_of(chip),
            (chip, plain.job.hbm_bytes.index(self._memory(chip))),
        )
        document = answer_view(
            plain.job, plain.scale, plain.chips, tasks, place, [configuration], [(memo, b"")]
        )
        return float(document["objective"]["score"]), configuration, document, memo
