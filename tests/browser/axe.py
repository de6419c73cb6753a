"""axe-core, the checker of accessible pages: fetched once by npm, held to its published hash.

python -m tests.browser.axe      fetches it into .cache (make browser does)

It is a tool of the tests under the MPL 2.0 and no part of phaze. Without npm or a network the tests
say NOT RUN.
"""

import base64
import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

VERSION = "4.14.0"
# The registry's SHA-512 of the package, and the SHA-256 of the script in it, which is what is kept.
INTEGRITY = (
    "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
)
DIGEST = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
KEPT = Path(__file__).parents[2] / ".cache" / f"axe-core-{VERSION}.min.js"
PATIENCE_S = 60


def script_in(packed: bytes, folder: Path) -> bytes | None:
    """The script of a package that has the published hash; None of any other."""
    if base64.b64encode(hashlib.sha512(packed).digest()).decode() != INTEGRITY:
        return None
    (folder / "axe.tgz").write_bytes(packed)
    with tarfile.open(folder / "axe.tgz") as archive:
        member = archive.extractfile("package/axe.min.js")
        return None if member is None else member.read()


def _fetched() -> bytes | None:
    with TemporaryDirectory() as made:
        command = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
        try:
            subprocess.run(command, cwd=made, check=True, capture_output=True, timeout=PATIENCE_S)
        except (OSError, subprocess.SubprocessError):
            return None
        packed = next(Path(made).glob("*.tgz"), None)
        return None if packed is None else script_in(packed.read_bytes(), Path(made))


def axe_source(kept: Path = KEPT) -> str | None:
    """The script, from the cache or by npm; None where neither has the one with the published
    hash."""
    found = kept.read_bytes() if kept.is_file() else None
    if found is None or hashlib.sha256(found).hexdigest() != DIGEST:
        found = _fetched()
        if found is None or hashlib.sha256(found).hexdigest() != DIGEST:
            return None
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(found)
    return found.decode()


if __name__ == "__main__":
    said = (
        f"axe-core {VERSION}: {KEPT}"
        if axe_source()
        else f"axe-core {VERSION} is not here: its tests are NOT RUN"
    )
    sys.stdout.write(f"{said}\n")
