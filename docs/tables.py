"""Rewrite the outputs shown in README.md and docs/: a block under ``<!-- shows: COMMAND -->`` is what COMMAND prints.

python docs/tables.py             rewrite them
python docs/tables.py --only TEXT rewrite those whose command has TEXT in it
python docs/tables.py --check     exit 1 and name the files that are not current
python docs/tables.py --measured  rewrite what stands under ``<!-- measured: COMMAND -->`` instead: times, which differ
                                  from run to run and so are not checked
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- shows: phaze (?P<arguments>.+?) -->\n```text\n)(?P<shown>.*?)(```\n)", re.DOTALL)
MEASURED = re.compile(BLOCK.pattern.replace("shows", "measured"), re.DOTALL)


def documents() -> list[Path]:
    """The pages that may show outputs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def printed(arguments: str) -> str:
    """What ``phaze ARGUMENTS`` prints in a folder with the examples, 80 columns wide, without trailing blanks."""
    command = [sys.executable, "-m", "phaze", *arguments.split()]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return "".join(line.rstrip() + "\n" for line in done.stdout.rstrip().splitlines())


def current(text: str, block: re.Pattern[str] = BLOCK, only: str = "") -> str:
    """``text`` with every shown output made anew whose command has ``only`` in it."""

    def anew(found: re.Match[str]) -> str:
        return f"{found[1]}{printed(found['arguments'])}{found[4]}" if only in found["arguments"] else found[0]

    return block.sub(anew, text)


def main() -> None:
    """Rewrite, or with ``--check`` only compare; with ``--measured`` measure."""
    stale = []
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new = current(text, MEASURED if "--measured" in sys.argv else BLOCK, only)
        if new != text:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"not current: {', '.join(stale)}; run make tables")


if __name__ == "__main__":
    main()
