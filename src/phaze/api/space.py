"""The chips of a study for a search method of one's own: iterate, sample, evaluate them as ``phaze
search`` does."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phaze.api.load_study import traced_study
from phaze.api.values import Answer, Sheeted
from phaze.errors import InputError
from phaze.hardware.chip import Chip
from phaze.hardware.chip_document import sheet_document, sheet_of
from phaze.hardware.ownership import load_terms
from phaze.placement.answer import document_of
from phaze.report.chip_sheet import chip_sections
from phaze.report.sections import Notes
from phaze.search.baseline import scale_for
from phaze.search.chips import enumerate_space
from phaze.search.compare import best_offers
from phaze.search.task import tasks_for
from phaze.study.load import question_of, study_of

if TYPE_CHECKING:
    from phaze.api.load_study import Study


class Space:
    """The chips of a study, by number, each with the exact score that :func:`phaze.search`
    minimises.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default, as
            for :func:`phaze.search`.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        allow_code: Let the study name Python code as a model, which then runs.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> space = phaze.Space(study)
        >>> len(space), len(space.sample(5, seed=1))
        (29360, 5)
        >>> best = min(space.sample(5, seed=1), key=lambda number: space.evaluate(number)["score"])
        >>> space.number(**space.axes_of(best)) == best
        True
    """

    def __init__(
        self, study: "Study", *, settings: Sequence[str] = (), allow_code: bool = False
    ) -> None:
        raw, origin = traced_study(study, None, settings, allow_code=allow_code)
        self._job = question_of(study_of(raw, origin.where), reader=origin.reader).job
        self._scale = scale_for(self._job)
        self._chips = enumerate_space(self._job.space)
        self._values: dict[str, NDArray[Any]] = dict(self._chips.axis_values())

    def __len__(self) -> int:
        return len(self._chips)

    def __iter__(self) -> Iterator[int]:
        """The numbers of all chips, those of ``run.frame()["chip"]``."""
        return iter(range(len(self)))

    @property
    def axes(self) -> Mapping[str, list[float]]:
        """The values of every axis that chips of the space have, ascending."""
        return {name: np.unique(values).tolist() for name, values in self._values.items()}

    def axes_of(self, number: int) -> dict[str, float]:
        """The value of a chip on every axis.

        Args:
            number: The chip's number.
        """
        self._require(number)
        return {name: values[number].item() for name, values in self._values.items()}

    def number(self, **axes: float) -> int | None:
        """The chip with these values on all axes; None where the space leaves it out.

        Args:
            axes: A value for each axis, as ``axes_of`` gives them.
        """
        if unknown := sorted(set(axes) - set(self._values)):
            raise InputError(
                "axes", f"there is no axis '{unknown[0]}'", f"give {', '.join(self._values)}"
            )
        if missing := [name for name in self._values if name not in axes]:
            raise InputError("axes", f"'{missing[0]}' is missing", "give a value for every axis")
        same = np.ones(len(self), bool)
        for name, value in axes.items():
            same &= self._values[name] == value
        numbers = np.flatnonzero(same)
        return int(numbers[0]) if len(numbers) else None

    def sample(self, count: int, seed: int = 0) -> list[int]:
        """Different chips drawn at random, the same for the same seed.

        Args:
            count: How many, at most all.
            seed: Of the draw.
        """
        return Random(seed).sample(range(len(self)), min(count, len(self)))

    def frame(self) -> dict[str, NDArray[Any]]:
        """Parts, area, power and clock of every chip, as columns."""
        return {"chip": np.arange(len(self)), **self._chips.frame()}

    def _require(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise InputError("number", f"{number} is not a chip", f"give 0 to {len(self) - 1:,}")

    def _on(self, number: int) -> list[Chip]:
        """The chip with every memory that counts."""
        job = self._job
        sizes = [job.hbm_bytes[memory] for memory in job.memories(job.objective.needs_hbm)]
        return [
            self._chips.chip(number, size) for size in sizes if self._chips.allowed(size)[number]
        ]

    def chip(self, number: int) -> Sheeted:
        """A chip with its area, power and cost.

        Args:
            number: The chip's number.
        """
        self._require(number)
        chip_sheet = sheet_of(self._on(number)[-1], load_terms())
        return Sheeted(
            sheet_document(chip_sheet),
            partial(chip_sections, chip_sheet, None, {}),
            chip_sheet.chip,
        )

    def evaluate(self, number: int) -> Answer:
        """The exact score of a chip, with the best plan of every model on it: schedules, placement,
        all configurations.

        Args:
            number: The chip's number.

        Returns:
            ``score`` (what :func:`phaze.search` minimises; infinite where a model fits in no
            configuration), and ``models`` with ``name``, ``batch_s`` in seconds and ``plan``.
        """
        self._require(number)
        best: dict[str, Any] = {
            "chip": self._chips.name(number),
            "number": number,
            "score": inf,
            "models": [],
        }
        for chip in self._on(number):
            tasks = tasks_for(self._job, chip)
            offers = [
                best_offers(task, chip, ["searched"], None, self._job.objective)["searched"]
                for task in tasks
            ]
            placed = [
                (task, offer)
                for task, offer in zip(tasks, offers, strict=True)
                if offer is not None
            ]
            if len(placed) < len(tasks):
                continue
            score = float(self._scale.score(np.array([offer.value for _, offer in placed])))
            if score < best["score"]:
                models = [
                    {
                        "name": task.name,
                        "batch_s": offer.plan.batch_s,
                        "plan": document_of(offer.plan),
                    }
                    for task, offer in placed
                ]
                best |= {"score": score, "hbm_bytes": chip.hbm.size_bytes, "models": models}
        return Answer(best, partial(_evaluated_sections, best))


def _evaluated_sections(document: Mapping[str, Any]) -> list[Notes]:
    lines = [f"{document['chip']}, chip {document['number']:,}: score {document['score']:.6g}"]
    for model in document["models"]:
        plan = model["plan"]
        split = f"tensor {plan['tensor']}, pipeline {plan['pipeline']}, data {plan['data']}"
        lines.append(f"{model['name']}: {model['batch_s']:.6g} s a batch, {split}")
    return [Notes(lines)]
