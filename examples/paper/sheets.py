"""The paper's tables as Markdown, put between the markers ``<!-- paper: NAME -->`` and ``<!-- end
-->`` of a page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

from examples.paper.cases import EXPERTS, Found
from phaze.errors import InputError

# After the baseline chip's two columns.
HEADS = (
    "block chip, experts",
    "block chip, searched",
    "own chip, experts",
    "own chip, searched",
    "common chip, searched",
)
BUDGET_MM2 = 278.82667631


@dataclass(frozen=True, slots=True)
class Line:
    """A model's throughputs in the order of the heads; None where the placement does not fit."""

    model: str
    rates_per_s: tuple[float | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """To the first."""
        unit = self.rates_per_s[0]
        return tuple(
            None if unit is None or rate is None else rate / unit for rate in self.rates_per_s
        )


@dataclass(frozen=True, slots=True)
class Ablation:
    """A change of the space and its gains: by kind of placement, then by model."""

    name: str
    gains: tuple[tuple[float | None, ...], ...]


def markdown(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table with its first column to the left and all others to the right."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _times(ratio: float | None) -> str:
    return "does not fit" if ratio is None else f"{ratio:.2f}"


def _average(values: Sequence[float | None], geometric: bool = True) -> str:
    """The mean of what fits, and of how many where not all do."""
    there = [value for value in values if value is not None]
    if not there:
        return ""
    found = geometric_mean(there) if geometric else mean(there)
    return f"{found:.2f}" + ("" if len(there) == len(values) else f" (of {len(there)})")


def ratio_table(lines: Sequence[Line], base: str) -> str:
    """Throughput relative to the first column, by model and on average."""
    cells = [
        [
            line.model,
            "does not fit" if line.rates_per_s[0] is None else f"{line.rates_per_s[0]:,.4g}",
            *(_times(ratio) for ratio in line.ratios[1:]),
        ]
        for line in lines
    ]
    whole = [line for line in lines if EXPERTS.get(line.model, (1, 1, 1))[2] == 1]
    for name, kept, geometric in (
        ("geometric mean", lines, True),
        ("arithmetic mean", lines, False),
        ("geometric mean where experts do not split tensors", whole, True),
    ):
        columns = list(zip(*(line.ratios for line in kept), strict=True))
        cells.append(
            [f"**{name}**", "1", *(f"**{_average(column, geometric)}**" for column in columns[1:])]
        )
    return markdown(("model", f"{base}, experts (sequences/s)", f"{base}, searched", *HEADS), cells)


def _recompute(model: Mapping[str, Any]) -> str:
    """How a model's stages recompute: the choice for all of them, or what was best for each."""
    if model["recompute"] != "best":
        return str(model["recompute"])
    return " and ".join(sorted({stage["recompute"] for stage in model["plan"]["stages"]}))


def chip_table(found: Mapping[str, Found]) -> str:
    """The chips: what they are made of, their placements, their certificates."""
    cells = []
    for name, one in found.items():
        chip, models = one.document["chip"], one.document["models"]
        plans = {(m["plan"]["pipeline"], m["plan"]["data"], m["plan"]["tensor"]) for m in models}
        first = models[0]
        placed = " x ".join(map(str, min(plans))) if len(models) == 1 else "see the run"
        how = f"{first['microbatch']}, {_recompute(first)}" if len(models) == 1 else ""
        cells.append(
            [
                name,
                f"{chip['tensor_cores']} of {chip['rows']} x {chip['columns']}",
                f"{chip['vector_cores']} of {chip['lanes']}",
                f"{chip['global_buffer_bytes'] // 2**20} MiB",
                f"{chip['hbm_bytes'] // 2**30} GiB",
                f"{chip['area_mm2']:.0f} ({chip['area_mm2'] / BUDGET_MM2:.0%})",
                placed,
                how,
                f"{one.document['certificate']['gap']:.1e}",
                f"{one.seconds:.0f}",
            ]
        )
    heads = ("model", "tensor cores", "vector cores", "buffer", "HBM", "mm2 (of budget)")
    return markdown((*heads, "p x d x t", "microbatch, recompute", "gap", "seconds"), cells)


def ablation_table(
    done: Sequence[Ablation], heads: Sequence[str] = ("placement alone", "chip alone", "both")
) -> str:
    """Geometric means over the models, each relative to the stand-in under the experts' split and
    the same change."""
    return markdown(
        ("space", *heads), [[one.name, *(_average(values) for values in one.gains)] for one in done]
    )


def put(page: Path, tables: Mapping[str, str]) -> None:
    """Replace the tables of a page; every one must have its marker there."""
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        pattern = re.compile(rf"(<!-- paper: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        seen = pattern.findall(text)
        if len(seen) != 1:
            raise InputError(
                str(page), f"table {name} has {len(seen)} markers there", "it must have one"
            )
        head, tail = seen[0]
        text = pattern.sub((head + table + tail).replace("\\", r"\\"), text)
    page.write_text(text, encoding="utf-8")
