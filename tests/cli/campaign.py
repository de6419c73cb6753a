"""``python -m tests.cli.campaign SECONDS FIRST``: bad files and odd command lines whose seeds begin
at FIRST, in turn, until the time is up. Each fault is told as it is found, with what repeats it;
the exit code is 1 if there is one.

The slow tests of ``test_fuzz.py`` have the seeds from 0 on; a campaign has others.
"""

import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic

from tests.cli.fuzz_cases import cases_in
from tests.cli.fuzz_lines import odd_line
from tests.cli.fuzz_own import traced_here
from tests.cli.fuzz_run import fault_in
from tests.cli.test_fuzz import fault_of

LONG_S = 20
"""What takes longer is told, fault or not."""


def _told(what: str, run: Callable[[], str]) -> bool:
    """Whether something went wrong; told on standard output."""
    began = monotonic()
    fault, seconds = run(), monotonic() - began
    if fault or seconds > LONG_S:
        sys.stdout.write(f"{what}: {fault or 'right, and slow'} ({seconds:.0f} s)\n")
        sys.stdout.flush()
    return bool(fault)


def campaign(folder: Path, seconds: float, first: int) -> int:
    """How many faults were found."""
    cases, end, found, files = cases_in(folder, runs=True), monotonic() + seconds, 0, 0
    for seed in count(first):
        if monotonic() > end:
            break
        (case,) = Random(seed).choices(cases, [case.weight for case in cases])
        found += _told(f"{case.name}, seed {seed}", partial(fault_of, case, seed))
        files += 1
        for at in (2 * seed, 2 * seed + 1):
            shutil.rmtree("new", ignore_errors=True)
            line = odd_line(folder, at)
            found += _told(f"line {at}, {line}", partial(fault_in, line))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    said = (
        f"{files} bad files, {2 * files} odd lines, seeds from {first}: {found} faults; "
        f"{most:.2f} GiB at most\n"
    )
    sys.stdout.write(said)
    return found


def main() -> int:
    """The command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "here").mkdir()
        os.chdir(folder / "here")
        os.environ["PHAZE_CACHE"] = str(folder / "cache")
        with traced_here():
            return int(campaign(folder, float(sys.argv[1]), int(sys.argv[2])) > 0)


if __name__ == "__main__":
    sys.exit(main())
