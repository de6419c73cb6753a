"""What the functions of the API return: a document with a printed form, a table for notebooks, and
what can be done."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from phaze.errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phaze.export.frame import Frame
    from phaze.graph.ir import Model
    from phaze.hardware.chip import Chip
    from phaze.report.sections import Section, Sheet

S = TypeVar("S", bound="Answer")


def sheet(module: str, name: str, *arguments: Any) -> "Sheet":
    """What makes sections by a function of a module, which is imported when they are shown."""
    return lambda: getattr(import_module(module), name)(*arguments)


def notes(*lines: str) -> "Sheet":
    """Lines as the only section of an answer, as they are."""
    from phaze.report.sections import Notes

    return lambda: [Notes(lines, verbatim=True)]


def printed(sections: "Sheet") -> str:
    """What a command would print, 80 columns wide, without colours or trailing blanks."""
    from rich.console import Console

    from phaze.report.terminal import draw

    out = io.StringIO()
    draw(
        Console(file=out, width=80, color_system=None, highlight=False, force_jupyter=False),
        sections(),
    )
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


@dataclass(frozen=True, slots=True)
class Answer:
    """A document that prints as its command does; ``exit_code`` is that of the command, ``more``
    its further documents where several questions were asked at once."""

    document: Mapping[str, Any]
    sections: "Sheet" = field(repr=False)
    exit_code: int = field(default=0, kw_only=True, repr=False)
    more: tuple[Mapping[str, Any], ...] = field(default=(), kw_only=True, repr=False)

    def __repr__(self) -> str:
        return printed(self.sections)

    def _repr_html_(self) -> str:
        from phaze.api.notebook import facts, table

        return f"{table(facts(self.document), type(self).__name__.lower())}<pre>{escape(printed(self.sections))}</pre>"

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def page(self, path: str | Path) -> Path:
        """Write the answer as an HTML page; its path.

        Args:
            path: The file to write.
        """
        from phaze.files import folder_for, write_whole
        from phaze.report.html import sections_page

        folder_for(Path(path).parent)
        write_whole(Path(path), sections_page(self.sections()))
        return Path(path)


class NothingFitsError(InfeasibleError):
    """Nothing is feasible, and there is more to show of it than a sentence."""

    def __init__(self, sentence: str, document: Mapping[str, Any], sections: "Sheet") -> None:
        super().__init__(sentence, document)
        self.sections = sections


def identified(
    value: S, folder: Path | None = None, document: Mapping[str, Any] | None = None
) -> S:
    """The value with the id of its run below it: of a folder with a certificate, else of a
    document, else its own."""

    def sections() -> "list[Section]":
        from phaze.report.run_id import answer_id, id_in, id_notes

        cited = value.document if document is None else document
        run_id = answer_id(cited) if folder is None or document is not None else id_in(folder)
        return [*value.sections(), *id_notes(run_id)]

    return replace(value, sections=sections)


@dataclass(frozen=True, slots=True, repr=False)
class Graphed(Answer):
    """A model's operators; ``model`` is the graph itself."""

    graph: "Model | None" = None

    @property
    def model(self) -> "Model":
        """The graph itself."""
        if self.graph is None:
            raise InputError(
                "model", "the graph was not requested", "leave out check and show_plan"
            )
        return self.graph


@dataclass(frozen=True, slots=True, repr=False)
class Sheeted(Answer):
    """A chip with its estimates; ``chip`` is the chip itself."""

    chip: "Chip"


@dataclass(frozen=True, slots=True, repr=False)
class Estimated(Answer):
    """What an operator takes."""

    @property
    def time_s(self) -> float:
        """Of an operator; of a model a forward and a backward pass."""
        if "time_s" in self.document:
            return float(self.document["time_s"])
        return float(self.document["forward_s"]) + float(self.document["backward_s"])


@dataclass(frozen=True, slots=True, repr=False)
class Scheduled(Answer):
    """The best order of operators."""

    @property
    def makespan_s(self) -> float:
        return float(self.document["makespan_s"])


@dataclass(frozen=True, slots=True, repr=False)
class Placed(Answer):
    """The fastest split of layers over devices."""

    @property
    def batch_s(self) -> float:
        return float(self.document["batch_s"])

    def frame(self) -> "Frame":
        """Every stage, as columns: ``pandas.DataFrame(plan.frame())``,
        ``polars.DataFrame(plan.frame())``."""
        from phaze.export.frame import stages_frame

        return stages_frame(self.document)

    def _repr_html_(self) -> str:
        from phaze.api.notebook import facts, table

        return table(facts(self.document), "placed") + self._stages()

    def _stages(self) -> str:
        """The stages as a table."""
        from phaze.api.notebook import columns

        shown_keys = ("recompute", "devices", "forward_s", "backward_s", "memory_bytes")
        stages = enumerate(self.document["stages"])
        rows = [
            {
                "stage": index,
                "layers": len(stage["layers"]),
                **{k: stage[k] for k in shown_keys if k in stage},
            }
            for index, stage in stages
        ]
        return columns(rows, "stages")


@dataclass(frozen=True, slots=True, repr=False)
class Planned(Placed):
    """A plan on existing hardware: ``batch_s``, the step time in seconds, and ``document``
    (``phaze.plan/1``).

    Examples:
        >>> import phaze
        >>> plan = phaze.plan("bert-large", chip="a100-80gb", devices=8, batch=64, tensor=[1],
        ...     microbatch=[4])
        >>> frame = plan.frame()  # a row for each stage; memory in bytes
        >>> len(frame["stage"]) == len(frame["memory_bytes"]) == plan["pipeline"]
        True
        >>> plan.export("csv").startswith("stage,")
        True
    """

    def _repr_html_(self) -> str:
        from phaze.api.notebook import table
        from phaze.evaluate.idle import idle_words
        from phaze.report.plan_cards import run_cost
        from phaze.report.plan_text import model_words
        from phaze.search.plan_words import degree_words
        from phaze.units import show

        plan, job = self.document, self.document["job"]
        idle, run = idle_words(plan), plan.get("training_run")
        rows = {
            "step time": show(plan["batch_s"], "s"),
            "tokens a second": f"{plan['tokens_per_s']:,.0f}",
            "tokens a second and device": f"{plan['tokens_per_s_per_device']:,.4g}",
            "MFU": f"{plan['mfu']:.1%}",
            "HFU": f"{plan['hfu']:.1%}",
            **({"devices": idle} if idle else {}),
            **dict(run_cost(run, int(job["devices"])).figures if run else ()),
            "plan": degree_words(plan),
            "microbatch": str(plan["microbatch"]),
            "fits": "yes" if plan["feasible"] else "no",
        }
        title = f"{model_words(job)} on {job['chip']}"
        return table(rows, title) + self._stages()

    def page(self, path: str | Path) -> Path:
        """Write the plan's HTML page; its path.

        Args:
            path: The file to write.
        """
        from phaze.export.launch_files import launch_texts
        from phaze.files import folder_for, write_whole
        from phaze.report.page.plan_page import plan_page

        folder_for(Path(path).parent)
        write_whole(
            Path(path), plan_page(self.document, "plan", launch_texts(self.document, "plan"))
        )
        return Path(path)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Where the step time goes, as a picture (needs Matplotlib).

        Args:
            axes: Matplotlib axes to draw on; default: new ones.
        """
        from phaze.api.plots import plot_plan

        return plot_plan(self.document, axes)

    def export(self, to: str) -> str:
        """A launch file or a table, as text.

        Args:
            to: ``"megatron"``, ``"torchtitan"``, ``"maxtext"``, ``"deepspeed"`` or ``"csv"``.
        """
        from phaze.errors import unknown_name
        from phaze.evaluate.job_file import reopened
        from phaze.export.flag import launch_text
        from phaze.export.frame import csv_text
        from phaze.export.frameworks import BY_KEY
        from phaze.export.source import planned_split

        if to == "csv":
            return csv_text(self.frame())
        if to not in BY_KEY:
            raise unknown_name("to", "form", to, [*BY_KEY, "csv"])
        return launch_text(
            BY_KEY[to], planned_split(self.document, reopened(self.document, "plan"))
        )
