"""python -m tools.bench [placement | schedule | cost | search ...] [--limit SECONDS] [--json]

Solver times against published figures and other tools, on the same inputs. About two minutes on an
idle machine; the extra ``peers`` installs the other tools. Exit code 1: two answers contradict each
other.
"""

import argparse
import json
import sys

from rich.console import Console

from tools.bench.line import PARTS
from tools.bench.run import LIMIT_S, run
from tools.bench.table import show_bench


def main() -> int:
    """Measure, and print a table or one JSON document."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"what to measure: {', '.join(PARTS)}; default: all",
    )
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds of another solver on one schedule"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"part {part!r}: give {', '.join(PARTS)}")
    if not 0 < options.limit <= 3600:
        parser.error(f"--limit {options.limit:g}: give more than 0 and at most 3600 seconds")
    document = run(
        options.parts or PARTS, options.limit, lambda part: sys.stderr.write(f"measuring {part}\n")
    )
    if options.json:
        sys.stdout.write(json.dumps(document) + "\n")
    else:
        show_bench(Console(highlight=False), document)
    return 0 if document["agree"] else 1


if __name__ == "__main__":
    sys.exit(main())
