"""A disk that is full or read-only: one sentence, and nothing is lost. It is a small one, mounted
in a namespace."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY

MOUNTED = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
# $0 the folder, $1 the study, $2 the size it begins with; the rest is the command.
FULL = """
folder=$0; study=$1; size=$2; shift 2
mount -t tmpfs -o size=$size tmpfs "$folder" || exit 77
"$@" search "$study" --out "$folder/run" --workers 1 >/dev/null
echo "first $?" >&2
mount -o remount,size=20m "$folder" || exit 77
"$@" search "$study" --out "$folder/run" --workers 1 >/dev/null
echo "again $?" >&2
cat "$folder/run/result.json"
mount -o remount,ro "$folder" || exit 77
"$@" search "$study" --out "$folder/run" --workers 1 >/dev/null
echo "read-only $?" >&2
"$@" verify "$folder/run" >/dev/null
echo "verify $?" >&2
"""


def _mounts(folder: Path) -> bool:
    """Whether this machine lets a user mount a file system of his own."""
    try:
        tried = subprocess.run(
            [*MOUNTED, 'mount -t tmpfs tmpfs "$0"', str(folder)], capture_output=True, check=False
        )
    except OSError:
        return False
    return tried.returncode == 0


@pytest.mark.parametrize("size", ["8k", pytest.param("40k", marks=pytest.mark.slow), "56k"])
def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path, size: str) -> None:
    if not _mounts(tmp_path):
        pytest.skip("no file system can be mounted here")
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path))
    small = tmp_path / "small"
    small.mkdir()
    phaze = [sys.executable, "-m", "phaze"]
    study = str(tmp_path / "study.toml")
    whole = subprocess.run(
        [*phaze, "search", study, "--out", str(tmp_path / "whole")], capture_output=True, check=True
    )
    command = [*MOUNTED, FULL, str(small), study, size, *phaze]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in ran.stderr.splitlines() if line]
    assert whole.returncode == 0
    assert said[1] == "first 2" and ("free disk space" in said[0]), said
    assert said[2] == "again 0", said
    assert said[3:] == ["read-only 0", "verify 0"], said
    assert ran.stdout == (tmp_path / "whole" / "result.json").read_text()
