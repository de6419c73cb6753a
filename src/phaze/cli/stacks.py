"""``phaze stacks``: training frameworks as constants: what they fuse, hide and spend."""

from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a stack file (- for standard input).")]


@answering
def stacks(name: Name = None) -> Answer:
    """List software stacks, or show one.

    Examples: phaze stacks · phaze stacks megatron-core --json
    """
    from dataclasses import asdict

    from phaze.hardware.library import preset_names, read_stack

    files = [read_stack(each) for each in ([name] if name is not None else preset_names("stacks"))]
    found = [file.value() for file in files]

    def show(console: "Console") -> None:
        from phaze.report.terminal import paragraph, table
        from phaze.units import show as with_unit

        columns = ("stack", "fusion", "optimizer", "host an op", "hidden sync", "state B")
        rows = [
            (
                stack.name,
                stack.fusion,
                stack.optimizer,
                with_unit(stack.host_s, "s"),
                f"{stack.hidden_synchronisation:.0%}",
                f"{stack.state_bytes:g}",
            )
            for stack in found
        ]
        console.print(table(columns, rows, left=3))
        if name is not None and files[0].notes:
            console.print()
            paragraph(console, files[0].notes)

    documents = [asdict(stack) for stack in found]
    if name is not None:
        documents[0] |= {"notes": files[0].notes, "sources": dict(files[0].sources)}
    return Answer((documents[0] if name is not None else {"stacks": documents},), show)
