"""Make docs/images/page.png: the top of the page of ``phaze search --model llama3-8b``, as chromium shows it.

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
WIDE, HIGH, SHRUNK = 1120, 1420, 0.62


def main() -> None:
    """Search, open the page, and keep two screens of it side by side, in a palette to stay small."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "phaze", "search", "--model", "llama3-8b", "--out", str(run)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        both = Image.new("RGB", (2 * WIDE + 40, HIGH), "#d8dde5")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=SWITCHES)
            page = browser.new_page(viewport={"width": WIDE, "height": HIGH})
            page.goto((run / "report.html").as_uri())
            for at, part in enumerate(("header", "#pipeline")):
                page.evaluate(f"document.querySelector('{part}').scrollIntoView()")
                taken = Path(folder) / f"{at}.png"
                page.screenshot(path=str(taken))
                both.paste(Image.open(taken), (at * (WIDE + 40), 0))
            browser.close()
        small = both.resize((round(both.width * SHRUNK), round(both.height * SHRUNK)), Image.Resampling.LANCZOS)
        small.quantize(96, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
