"""axe-core, the checker of accessible pages: fetched once from the npm registry, held to its published hash.

python -m tests.browser.axe      fetches it (make browser does); no node is needed

It is a tool of the tests under the MPL 2.0 and no part of phaze. Where there is no network the tests say NOT RUN.
"""

import base64
import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path

VERSION = "4.14.0"
SOURCE = f"https://registry.npmjs.org/axe-core/-/axe-core-{VERSION}.tgz"
INTEGRITY = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
KEPT = Path(__file__).parents[2] / ".cache" / f"axe-core-{VERSION}.min.js"
PATIENCE_S = 30


def axe_source() -> str | None:
    """The script, from the cache or the registry; None where neither has it."""
    if KEPT.is_file():
        return KEPT.read_text(encoding="utf-8")
    try:
        with urllib.request.urlopen(SOURCE, timeout=PATIENCE_S) as answer:
            packed = answer.read()
    except OSError:
        return None
    if base64.b64encode(hashlib.sha512(packed).digest()).decode() != INTEGRITY:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        text = member.read().decode()
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    found = axe_source()
    sys.stdout.write(f"axe-core {VERSION}: {KEPT}\n" if found else f"no {SOURCE} here: its tests are NOT RUN\n")
