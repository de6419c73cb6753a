"""python -m tests.golden make | compare | verify [NAME ...] [--source FOLDER]

make writes the answers anew, compare lists every difference (exit code 1 if there is one), verify
answers anew and lets the phaze of a source folder, such as that of an earlier commit, verify every
certificate.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.golden.answers import OF_CODE, ask, differences, write
from tests.golden.cases import CASES, ROOT, Case


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
    print(
        (
            f"{case.name:24} {seconds:6.1f} s  "
            f"{'same' if not wrong else 'written' if make else 'DIFFERENT'}"
        ),
        flush=True,
    )
    if make:
        write(case, texts)
        return 0
    for line in wrong:
        print(f"  {line}")
    return int(bool(wrong))


def _digest_of(source: str) -> str:
    """The digest of the source in a folder, as its answers state it."""
    line = "from phaze.search.code import code_digest; print(code_digest())"
    return _python(source, "-c", line).stdout.strip()


def _python(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
    )


def _verified(case: Case, source: str) -> int:
    """Whether the phaze of a source folder accepts a certificate as if it had made it."""
    if "certificate.json" not in case.files:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        ask(case, Path(folder))
        run = Path(folder) / "run"
        for path in run.glob("*.json"):
            text = path.read_text(encoding="utf-8")
            path.write_text(OF_CODE.sub(rf'\g<1>{_digest_of(source)}"', text), encoding="utf-8")
        done = _python(source, "-m", "phaze", "verify", str(run), "--json")
    print(
        (
            f"{case.name:24} exit code {done.returncode}  "
            f"{done.stdout[:200]}{done.stderr[-200:].strip()}"
        ),
        flush=True,
    )
    return int(done.returncode != 0)


def main() -> int:
    """Make, compare or verify all answers, or those named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("make", "compare", "verify"))
    parser.add_argument("names", nargs="*")
    parser.add_argument(
        "--source", default=str(ROOT / "src"), help="the src folder of the phaze that verifies"
    )
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.names or case.name in options.names]
    if options.action == "verify":
        wrong = [_verified(case, options.source) for case in chosen]
    else:
        wrong = [_compared(case, options.action == "make") for case in chosen]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
