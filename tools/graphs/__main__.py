"""python -m tools.graphs [NAME ...]: trace named models and families anew, or all, and write
src/phaze/graph/data."""

import sys

from tools.graphs.rebuild import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
