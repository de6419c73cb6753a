"""Rewrite the outputs shown in README.md and docs/: a block under ``<!-- shows: COMMAND -->`` is
what COMMAND prints.

``--only TEXT`` takes the blocks whose command has TEXT in it. ``--check`` changes nothing and exits
with 1 where a block is not current. ``--long`` takes the blocks under ``<!-- long: COMMAND -->``
instead, whose commands take a minute and more; the slow tests check them. ``--measured`` takes the
blocks under ``<!-- measured: COMMAND -->`` instead: times, which differ from run to run and so are
not checked. Any other option is refused before a block is touched.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(
    r"(<!-- shows: (?:python -m )?(?P<program>phaze|tools\.\w+) (?P<arguments>.+?) -->\n```text\n)"
    r"(?P<shown>.*?)(?P<end>```\n)",
    re.DOTALL,
)
LONG = re.compile(BLOCK.pattern.replace("shows", "long"), re.DOTALL)
MEASURED = re.compile(BLOCK.pattern.replace("shows", "measured"), re.DOTALL)


def documents() -> list[Path]:
    """The pages that may show outputs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def printed(arguments: str, program: str) -> str:
    """What a program of Python prints in a folder with the examples, 80 columns wide, without
    trailing blanks."""
    command = [sys.executable, "-m", program, *arguments.split()]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        (Path(folder) / "tools").symlink_to(ROOT / "tools")
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return without_blanks(done.stdout)


def without_blanks(output: str) -> str:
    """An output without blanks at the end of its lines and without empty lines at its end."""
    return "".join(line.rstrip() + "\n" for line in output.rstrip().splitlines())


def current(
    text: str,
    block: re.Pattern[str] = BLOCK,
    only: str = "",
    run: Callable[[str, str], str] = printed,
) -> str:
    """``text`` with every shown output made anew whose command has ``only`` in it: what ``run``
    prints for it."""

    def anew(found: re.Match[str]) -> str:
        if only not in found["arguments"]:
            return found[0]
        return f"{found[1]}{run(found['arguments'], found['program'])}{found['end']}"

    return block.sub(anew, text)


def options(words: list[str] | None = None) -> argparse.Namespace:
    """What was requested on the command line; an unknown option ends the program with exit code
    2."""
    parser = argparse.ArgumentParser(
        prog="docs/tables.py",
        description=(
            "Rewrite the outputs shown in README.md and docs/ with what their commands print."
        ),
        allow_abbrev=False,
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only blocks whose command contains TEXT"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 and name files that are not current",
    )
    parser.add_argument(
        "--measured", action="store_true", help="blocks of measured times instead; never checked"
    )
    parser.add_argument(
        "--long", action="store_true", help="blocks whose commands take a minute and more instead"
    )
    chosen = parser.parse_args(words)
    if chosen.check and chosen.measured:
        parser.error("--check cannot be combined with --measured: times differ from run to run")
    if chosen.long and chosen.measured:
        parser.error("--long cannot be combined with --measured: a block is one or the other")
    if chosen.only and not any(chosen.only in command for command in commands(kind(chosen))):
        parser.error(f"--only {chosen.only}: no block's command contains it")
    return chosen


def kind(chosen: argparse.Namespace) -> re.Pattern[str]:
    """The blocks that are meant."""
    return LONG if chosen.long else MEASURED if chosen.measured else BLOCK


def commands(block: re.Pattern[str]) -> list[str]:
    """The commands of all blocks of a kind, without the program."""
    texts = (path.read_text(encoding="utf-8") for path in documents())
    return [found["arguments"] for text in texts for found in block.finditer(text)]


def main(words: list[str] | None = None) -> None:
    """Rewrite, or with ``--check`` only compare; with ``--measured`` measure."""
    chosen = options(words)
    stale = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new = current(text, kind(chosen), chosen.only)
        if new != text:
            stale.append(str(path.relative_to(ROOT)))
            if not chosen.check:
                path.write_text(new, encoding="utf-8")
    if stale and chosen.check:
        sys.exit(f"not current: {', '.join(stale)}; run make tables")


if __name__ == "__main__":
    main()
