"""``phaze models``: the models that phaze knows by name."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

Name = Annotated[str | None, typer.Argument(help="One of the named models.")]


@answering
def models(name: Name = None) -> Answer:
    """List the built-in models, or show one.

    Examples: phaze models · phaze models llama2-7b --json
    """
    from phaze.graph.zoo import ZOO, entry_of

    rows = [_document(each) for each in ([entry_of(name).name] if name is not None else ZOO)]

    def show(console: "Console") -> None:
        if name is None:
            _show_all(console, rows)
        else:
            _show_one(console, rows[0])

    return Answer((rows[0] if name is not None else {"models": rows},), show)


def _document(name: str) -> dict[str, Any]:
    from dataclasses import asdict

    from phaze.graph.zoo import ZOO, load_model

    row = asdict(ZOO[name])
    split = row.pop("experts")
    experts = None if split is None else dict(zip(("pipeline", "data", "tensor"), split, strict=True))
    shipped = row.pop("shipped")
    return {**row, "parameters": load_model(name).parameters, "shipped_widths": shipped, "experts": experts}


def _show_all(console: "Console", rows: list[dict[str, Any]]) -> None:
    from phaze.report.terminal import paragraph, table

    columns = ("model", "layers", "hidden", "parameters", "sequence", "widths", "shipped")
    cells = [
        (
            row["name"],
            str(row["layers"]),
            f"{row['hidden']:,}",
            f"{row['parameters'] / 1e6:,.1f} M",
            str(row["sequence"]),
            " ".join(map(str, row["widths"])),
            " ".join(map(str, row["shipped_widths"])),
        )
        for row in rows
    ]
    console.print(table(columns, cells))
    console.print()
    text = (
        "widths: tensor widths that a search tries; shipped: bundled graphs, at any microbatch and sequence. "
        "By their sizes: phaze graph --gpt and --llama."
    )
    paragraph(console, text)


def _show_one(console: "Console", row: dict[str, Any]) -> None:
    from phaze.report.terminal import facts

    longest = "any length" if row["positions"] is None else f"at most {row['positions']:,}"
    pairs = [
        ("layers", str(row["layers"])),
        ("hidden, heads", f"{row['hidden']:,}, {row['heads']}"),
        ("parameters", f"{row['parameters']:,}"),
        ("sequence", f"{row['sequence']:,}, {'always' if row['fixed'] else longest}"),
        ("widths searched", " ".join(map(str, row["widths"]))),
        ("widths shipped", " ".join(map(str, row["shipped_widths"]))),
    ]
    if row["experts"] is not None:
        split = ", ".join(f"{key} {value}" for key, value in row["experts"].items())
        pairs.append(("experts' split", f"{split} of 1024 devices"))
    console.print(f"[bold]{row['name']}[/bold]\n")
    console.print(facts(pairs))
