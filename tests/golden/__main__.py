"""python -m tests.golden make | compare | verify [NAME ...] [--phaze PATH]

make writes the answers anew, compare lists every difference (exit code 1 if there is one), verify lets
the phaze at a path, such as that of an earlier commit, verify every certificate among the answers.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.golden.answers import ANSWERS, ask, differences, write
from tests.golden.cases import CASES, Case


def _compared(case: Case, make: bool) -> int:
    start = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            texts = ask(case, Path(folder))
    except AssertionError as error:
        print(f"{case.name:24} FAILED: {error}", flush=True)
        return 1
    seconds = time.perf_counter() - start
    wrong = list(differences(case, texts))
    print(f"{case.name:24} {seconds:6.1f} s  {'same' if not wrong else 'written' if make else 'DIFFERENT'}", flush=True)
    if make:
        write(case, texts)
        return 0
    for line in wrong:
        print(f"  {line}")
    return int(bool(wrong))


def _verified(case: Case, phaze: str) -> int:
    if "certificate.json" not in case.files:
        return 0
    done = subprocess.run([phaze, "verify", str(ANSWERS / case.name)], capture_output=True, text=True, check=False)
    print(f"{case.name:24} exit code {done.returncode}  {done.stdout.strip().splitlines()[-1:]}", flush=True)
    return int(done.returncode != 0)


def main() -> int:
    """Make, compare or verify all answers, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("make", "compare", "verify"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--phaze", default="phaze")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.names or case.name in options.names]
    if options.action == "verify":
        wrong = [_verified(case, options.phaze) for case in chosen]
    else:
        wrong = [_compared(case, options.action == "make") for case in chosen]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
