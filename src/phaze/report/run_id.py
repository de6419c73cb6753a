"""The id of a run, shown by every command that writes or reads one: what a certificate is cited by."""

from pathlib import Path

from rich.console import Console

from phaze.search.witness import run_id_in


def show_run_id(console: Console, folder: Path) -> None:
    """A line with the id of the run in a folder; none where it has no certificate."""
    found = run_id_in(folder) if folder.is_dir() else None
    if found is not None:
        console.print(f"Run id: {found}", markup=False, highlight=False, soft_wrap=True)
