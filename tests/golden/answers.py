"""Ask the forty questions, and compare the answers with the files."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.golden.cases import CASES, ROOT, Case

ANSWERS = Path(__file__).parent / "answers"
# Digests of the source, which every change of it changes; the answers that they stand in must stay.
OF_CODE = re.compile(r'("code_digest": ?")[0-9a-f]{64}"')


def named(name: str) -> Case:
    """The case of a name."""
    return next(case for case in CASES if case.name == name)


def without_code(text: str) -> str:
    """An answer without digests of the source and without where the checkout lies."""
    return OF_CODE.sub(r'\1-"', text).replace(str(ROOT), ".")


def ask(case: Case, folder: Path) -> dict[str, str]:
    """The answer of a case and the files that it leaves, as texts, by name; ``folder`` is empty."""
    if case.first:
        ask(named(case.first), folder)
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "phaze", *case.arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    if done.returncode != case.exit_code:
        raise AssertionError(f"{case.name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    written = {name: (folder / "run" / name).read_text(encoding="utf-8") for name in case.files}
    return {"answer.json": without_code(done.stdout)} | {
        name: without_code(text) for name, text in written.items()
    }


def _first_difference(old: str, new: str) -> int:
    shorter = min(len(old), len(new))
    return next((place for place in range(shorter) if old[place] != new[place]), shorter)


def differences(case: Case, texts: dict[str, str]) -> Iterator[str]:
    """Where texts differ from the files of a case: the file and the first place."""
    folder = ANSWERS / case.name
    stored = {path.name for path in folder.iterdir()} if folder.exists() else set()
    for name in sorted(stored ^ set(texts)):
        yield f"{case.name}/{name} is in one of both only"
    for name in sorted(stored & set(texts)):
        old = (folder / name).read_text(encoding="utf-8")
        new = texts[name]
        if old != new:
            place = _first_difference(old, new)
            shown = slice(max(0, place - 60), place + 60)
            yield f"{case.name}/{name} at {place}: {old[shown]!r} became {new[shown]!r}"


def write(case: Case, texts: dict[str, str]) -> None:
    """Replace the files of a case."""
    folder = ANSWERS / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
