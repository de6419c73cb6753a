"""``python -m check RUN``: the claim of a run in words, then ``holds`` or the first line that does
not."""

import argparse
import sys
from pathlib import Path

from .reading import parsed, text_of
from .verdict import check


def _said(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    """Exit code 0: it holds; 1: it does not; 3: this checker does not cover it yet."""
    parser = argparse.ArgumentParser(
        prog="check", description="Check the certificate of a phaze run."
    )
    parser.add_argument("run", help="the folder of a run, a front, or a plan's certificate")
    parser.add_argument("--quick", action="store_true", help="the answer and what rooflines close")
    parser.add_argument(
        "--gap", type=float, default=0.0, help="of a front, or with --space: a wider one"
    )
    parser.add_argument(
        "--space", help="a JSON file, problem.json or its space: hold the answer against that one"
    )
    asked = parser.parse_args()
    table = None if asked.space is None else parsed(text_of(Path(asked.space)), asked.space)
    larger = None if table is None else table.get("space", table)
    found = check(Path(asked.run), asked.quick, watch=_said, wider=asked.gap, larger=larger)
    for line in (*found.words, f"run         {found.run_id}", found.sentence()):
        sys.stdout.write(f"{line}\n")
    return 1 if found.wrong else 3 if found.missing else 0


if __name__ == "__main__":
    sys.exit(main())
