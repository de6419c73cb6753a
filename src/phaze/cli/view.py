"""``phaze view``: a local page over all runs of a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from phaze.api.values import Answer, notes
from phaze.errors import InputError
from phaze.options.option import Option

if TYPE_CHECKING:
    from phaze.report.progress import Progress

Folder = Annotated[
    str, Option("The folder that holds runs, fronts, sweeps and plans.", argument=True)
]
Port = Annotated[int, Option("The port on 127.0.0.1; 0 takes a free one.")]
Open = Annotated[bool, Option("Open the page in a browser.", flag="--open/--no-open")]


def view(
    folder: Folder = "runs", port: Port = 0, open_it: Open = False, *, progress: "Progress"
) -> Answer:
    """Show all runs of a folder in a browser: list, search, compare two, monitor a running search.

    It is read-only, bound to 127.0.0.1, and requires the token of the URL that it prints; Ctrl-C
    stops it. Examples: phaze view · phaze view runs --port 8080 --open
    """
    from phaze.view.server import ViewServer

    root = Path(folder)
    if not root.is_dir():
        raise InputError(
            folder, "there is no such folder", "name one that holds runs, such as runs"
        )
    if not 0 <= port < 2**16:
        raise InputError("--port", f"{port} is out of range", "give one from 0 to 65535")
    try:
        server = ViewServer(root, port)
    except OSError as fault:
        raise InputError(
            "--port", f"port {port} cannot be used ({fault.strerror})", "give another, or 0"
        ) from None
    with server:
        progress.say(f"phaze view: {server.address}\n")
        if open_it:
            import webbrowser

            webbrowser.open(server.address)
        server.serve_forever()

    return Answer({"folder": folder}, notes("ended"))
