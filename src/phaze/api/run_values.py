"""What the functions that search return: a finished run, front, sweep or comparison, in its
folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, identified, sheet

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from matplotlib.axes import Axes

    from phaze.export.frame import Frame
    from phaze.schedule.solved import SolvedSchedules
    from phaze.study.load import Question


@dataclass(frozen=True, slots=True, repr=False)
class Searched(Answer):
    """A finished search in its folder; a temporary folder is removed with this value.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24",
        ...     "models": ["bert-large"],
        ...     "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> run = phaze.search(study)
        >>> frame = run.frame()  # a row for each chip; areas in mm2
        >>> int(frame["is_answer"].sum()), float(frame["area_mm2"].min()) > 0
        (1, True)
    """

    folder: Path
    kept: "TemporaryDirectory[str] | None" = None

    @property
    def chip(self) -> Mapping[str, Any]:
        return self.document["chip"]  # type: ignore[no-any-return]

    @property
    def models(self) -> list[Mapping[str, Any]]:
        return self.document["models"]  # type: ignore[no-any-return]

    @property
    def gap(self) -> float:
        """Proved relative gap between this answer and the best of the space."""
        return float(self.document["certificate"]["gap"])

    def frame(self) -> "Frame":
        """Every chip of the space, as columns: ``pandas.DataFrame(run.frame())``,
        ``polars.DataFrame(run.frame())``."""
        from phaze.export.frame import chips_frame
        from phaze.export.load_run import run_of
        from phaze.search.reopened import place_of

        run = run_of(self.folder)
        chip, place = self.chip, place_of(run.opened, int(self.chip["number"]), str(self.folder))
        return chips_frame(run.opened, run.closed, run.evaluated, int(chip["hbm_bytes"]), place)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """All chips, area against score or its lower bound, as a picture (needs Matplotlib).

        Args:
            axes: Matplotlib axes to draw on; default: new ones.
        """
        from phaze.api.plots import plot_chips

        return plot_chips(self.frame(), str(self.chip["name"]), axes)

    def page(self, path: str | Path | None = None) -> Path:
        """Write the HTML page of the run; its path.

        Args:
            path: The file to write; default: report.html in the folder of the run.
        """
        return write_page(self.folder, self.folder / "report.html" if path is None else Path(path))

    def _repr_html_(self) -> str:
        from phaze.api.notebook import table
        from phaze.search.plan_words import degree_words
        from phaze.units import show

        chip, proof = self.chip, self.document["certificate"]
        rows = {
            "chip": str(chip["name"]),
            "area": show(chip["area_mm2"], "mm2"),
            "peak": show(chip["peak_flops"], "FLOP/s"),
            "HBM": show(chip["hbm_bytes"], "B"),
        }
        for model in self.models:
            plan = model["plan"]
            rows[str(model["name"])] = (
                f"{model['throughput_per_s']:,.5g} sequences/s: {degree_words(plan)}"
            )
        rows["certificate"] = f"gap {proof['gap']:.2g} over {proof['chips']:,} chips"
        return table(rows, f"search {self.document['name']}")


@dataclass(frozen=True, slots=True, repr=False)
class Fronted(Answer):
    """A finished front in its folder; a temporary folder is removed with this value."""

    folder: Path
    kept: "TemporaryDirectory[str] | None" = None

    @property
    def points(self) -> list[Mapping[str, Any]]:
        """The Pareto-optimal designs."""
        return self.document["points"]  # type: ignore[no-any-return]

    def frame(self) -> "Frame":
        """Every design, as columns: ``pandas.DataFrame(front.frame())``."""
        from phaze.front.folder import front_frame

        return front_frame(self.document)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """The first two metrics of every design, as a picture (needs Matplotlib).

        Args:
            axes: Matplotlib axes to draw on; default: new ones.
        """
        from phaze.api.plots import plot_front

        return plot_front(self.document, axes)

    def page(self, path: str | Path | None = None) -> Path:
        """Write the HTML page of the front; its path.

        Args:
            path: The file to write; default: front.html in the folder of the front.
        """
        from phaze.files import write_whole
        from phaze.report.front_sheet import front_page

        where = self.folder / "front.html" if path is None else Path(path)
        write_whole(where, front_page(self.document))
        return where


@dataclass(frozen=True, slots=True, repr=False)
class Swept(Answer):
    """A finished sweep in its folder; a temporary folder is removed with this value."""

    folder: Path
    kept: "TemporaryDirectory[str] | None" = None

    @property
    def points(self) -> list[Mapping[str, Any]]:
        """The best at every value."""
        return self.document["points"]  # type: ignore[no-any-return]

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """The score at every value, as a picture (needs Matplotlib).

        Args:
            axes: Matplotlib axes to draw on; default: new ones.
        """
        from phaze.api.plots import plot_sweep

        return plot_sweep(self.document, axes)

    def page(self, path: str | Path | None = None) -> Path:
        """Write the HTML page of the sweep; its path.

        Args:
            path: The file to write; default: sweep.html in the folder of the sweep.
        """
        from phaze.files import write_whole
        from phaze.report.sweep_sheet import sweep_page

        where = self.folder / "sweep.html" if path is None else Path(path)
        write_whole(where, sweep_page(self.document))
        return where


@dataclass(frozen=True, slots=True, repr=False)
class Compared(Answer):
    """Chips compared with a baseline; throughput in sequences/s."""

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """One for every chip and model."""
        return self.document["rows"]  # type: ignore[no-any-return]


def write_page(
    folder: Path,
    where: Path,
    question: "Question | None" = None,
    solved: "SolvedSchedules | None" = None,
) -> Path:
    """Write the HTML page of a finished search; ``question``, ``solved``: its question and
    schedules, where it was this process that asked and found them."""
    from phaze.export.load_run import run_of
    from phaze.files import write_whole
    from phaze.report.page.search_page import search_page

    write_whole(where, search_page(run_of(folder, question), solved))
    return where


def searched(
    document: Mapping[str, Any],
    folder: Path,
    temporary: "TemporaryDirectory[str] | None" = None,
    work: str = "",
    page: bool = True,
) -> Searched:
    """The value of a finished run; ``work`` says what it took, ``page`` whether there is one."""
    shown = sheet("phaze.report.search_sheet", "result_sections", document, str(folder), work, page)
    return identified(Searched(document, shown, folder, temporary), folder)
