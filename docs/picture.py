"""Make docs/images/page.png: the top of the page of ``phaze search --model bert-large``, as chromium shows it.

python docs/picture.py           needs chromium and playwright; ``make picture`` sees to both
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "page.png"
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WIDE, HIGH = 1120, 1560


def main() -> None:
    """Search, open the page, and keep what the first screens show, in a palette to stay small."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "phaze", "search", "--model", "bert-large", "--out", str(run)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken = Path(folder) / "page.png"
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=SWITCHES)
            page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
            page.goto((run / "report.html").as_uri())
            page.evaluate("document.querySelector('#certificate').before(document.querySelector('#operators'))")
            page.evaluate("document.querySelector('#memory').remove(); document.querySelector('#pipeline').remove()")
            page.screenshot(path=str(taken))
            browser.close()
        small = Image.open(taken).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
        small.save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
