"""Comparisons on the terminal: for each part a table of ours, theirs and their ratio, and what must
be known of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rich.console import Console

from phaze.report.terminal import paragraph, table

AGREE = MappingProxyType({True: "yes", False: "no !", None: "not judged"})
MARKS = MappingProxyType({"published": "", "measured": "", "estimated": "~"})
STEPS = (
    (1e-3, 1e6, "us"),
    (1.0, 1e3, "ms"),
    (120.0, 1.0, "s"),
    (7200.0, 1 / 60, "min"),
    (172800.0, 1 / 3600, "h"),
)


def seconds(value: float) -> str:
    """Three digits and a unit: 48.6 us, 2.27 ms, 63 s, 17.4 min, 30 h, 12 d."""
    for below, factor, unit in STEPS:
        if value < below:
            return f"{_digits(value * factor)} {unit}"
    return f"{_digits(value / 86400)} d"


def _digits(value: float) -> str:
    shown = f"{value:.3g}"
    return f"{value:,.0f}" if "e" in shown else shown


def _theirs(line: Mapping[str, Any]) -> str:
    least, most = line["theirs"]["processor_s"]
    if least == most:
        mark = "> " if line["theirs"]["stopped"] else MARKS[line["basis"]]
        return f"{mark}{seconds(least)}"
    high, unit = seconds(most).split()
    factor = next(factor for _, factor, name in STEPS if name == unit)
    return f"{_digits(least * factor)}-{high} {unit}"


def ratio(line: Mapping[str, Any]) -> str:
    """How many times as long they take: two digits below 100."""
    value = line["ratio"]
    shown = f"{value:.2g}" if value < 100 else f"{value:,.0f}"
    return f"{'> ' if line['theirs']['stopped'] else ''}{shown}x"


def _cells(line: Mapping[str, Any]) -> tuple[str, ...]:
    ours = seconds(line["ours"]["processor_s"][1])
    if line["theirs"] is None:
        return line["input"], line["against"], ours, "-", "-", "-"
    answers = line["answers"] + (" !" if line["agree"] is False else "")
    return line["input"], line["against"], ours, _theirs(line), ratio(line), answers


def _cycles(console: Console, lines: list[Mapping[str, Any]]) -> None:
    told = [line for line in lines if line["values"] and line["unit"] == "cycles"]
    if told:
        cells = [(t["input"], t["against"], f"{t['values'][0]:,.0f}", f"{t['values'][1]:,.0f}",
        t["answers"],
                  AGREE[t["agree"]]) for t in told]  # fmt: skip
        console.print()
        console.print(
            table(("cycles of", "against", "ours", "theirs", "differ", "agree"), cells, texts=2)
        )


def mib(told: Mapping[str, Any]) -> str:
    """Peak memory in MiB, three digits; below a tenth, less than a page or two: said as that."""
    held = told["memory_bytes"]
    if held is None:
        return "-"
    return "< 0.1" if held < 2**20 / 10 else _digits(held / 2**20)


def _memory(console: Console, lines: list[Mapping[str, Any]]) -> None:
    told = [
        line
        for line in lines
        if line["theirs"] is not None and line["theirs"]["memory_bytes"] is not None
    ]
    if told:
        cells = [(t["input"], t["against"], mib(t["ours"]), mib(t["theirs"])) for t in told]
        console.print()
        console.print(
            table(("peak memory of", "against", "ours, MiB", "theirs, MiB"), cells, texts=2)
        )


def show_bench(console: Console, document: Mapping[str, Any]) -> None:
    """All parts."""
    where = document["machine"]
    busy = "" if where["load"] is None else f", load {where['load']:.1f} when it began"
    paragraph(
        console,
        f"{where['processor']}, {where['cores']} cores, {where['system']}, Python "
        f"{where['python']}{busy}. "
        "Times are processor seconds of all threads, ours warm; ~ estimated, > stopped "
        "at its limit; "
        "a ratio is their least time over ours. Memory is the peak of the resident set "
        "above what the process held "
        "before (a first run; no figure where it was not measured here).",
    )
    for section in document["sections"]:
        console.print(f"\n[bold]{section['part']}[/bold]")
        heads = ("input", "against", "ours", "theirs", "ratio", "answers")
        console.print(table(heads, [_cells(line) for line in section["lines"]], texts=2))
        _cycles(console, section["lines"])
        _memory(console, section["lines"])
        for name, why in dict.fromkeys(
            (line["against"], line["missing"]) for line in section["lines"]
        ):
            if why:
                paragraph(console, f"{name}: {why}")
        console.print()
        for note in section["notes"]:
            paragraph(console, note)
    if not document["agree"]:
        paragraph(
            console, "\nAnswers marked ! contradict each other: this is a fault, please report it."
        )
