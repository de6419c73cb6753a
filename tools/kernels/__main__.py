"""python -m tools.kernels [ROOM ...]: compile the shipped libraries that are not current (needs a C
compiler).

For a generic CPU of this architecture, into src/phaze/compiled/shipped; a room is a folder of
kernels, such as cost.
"""

import argparse
import sys

from tools.kernels.build import rebuild


def main() -> int:
    """Compile what is stale, and say what was."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.kernels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "rooms",
        nargs="*",
        metavar="ROOM",
        help="only these; default: every one that is not current",
    )
    rebuilt = rebuild(parser.parse_args().rooms)
    sys.stdout.write(f"recompiled: {', '.join(rebuilt) or 'nothing, all are current'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
