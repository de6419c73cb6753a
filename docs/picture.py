"""Make the pictures of the pages in docs/images, as chromium shows them: plan, search, front, sweep, view.

python docs/picture.py           needs chromium and playwright; ``make picture`` sees to both
python docs/picture.py plan      only that one

Every picture is made from the commands that ``COMMANDS`` lists, in an empty folder.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WIDE, SHRUNK = 1360, 0.7
COMMANDS = {
    "plan": "plan --model llama3-8b --chip h100 --devices 64 --batch 1024 --tokens 15T --json --html plan.html",
    "search": "search --model llama3-8b --out search",
    "front": "front --model bert-large --rules icml24 --of throughput,area,power --time 60 --out front",
    "sweep": "sweep --model bert-large --rules icml24 --over cluster.link_bytes_per_s=1e9..1e12 --points 5 --out sweep",
}
PAGES = {"plan": "plan.html", "search": "search/report.html", "front": "front/front.html", "sweep": "sweep/sweep.html"}
# The runs that the picture of phaze view lists.
LISTED = ("plan", "sweep")
HIGH = {"plan": 1500, "search": 1600, "front": 1250, "sweep": 1150, "view": 620}


def small(taken: Path, picture: Path) -> None:
    """The picture shrunk, in a palette to stay small."""
    from PIL import Image

    whole = Image.open(taken).convert("RGB")
    shrunk = whole.resize((round(whole.width * SHRUNK), round(whole.height * SHRUNK)), Image.Resampling.LANCZOS)
    shrunk.quantize(96, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(picture, optimize=True)
    print(f"{picture}: {picture.stat().st_size:,} bytes")  # noqa: T201


def taken(browser: Any, address: str, high: int, path: Path) -> None:
    """The top of a page, so high, in light colours."""
    page = browser.new_page(viewport={"width": WIDE, "height": high}, color_scheme="light")
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=str(path))
    page.close()


def main() -> None:
    """Run what the pictures need, open the pages, keep their tops."""
    wanted = sys.argv[1:] or [*COMMANDS, "view"]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=SWITCHES)
        for kind, command in COMMANDS.items():
            if kind in wanted or ("view" in wanted and kind in LISTED):
                words = [sys.executable, "-m", "phaze", *command.split()]
                done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=folder)
                if kind == "plan":
                    (folder / "plan.json").write_text(done.stdout)
            if kind in wanted:
                taken(browser, (folder / PAGES[kind]).as_uri(), HIGH[kind], folder / "taken.png")
                small(folder / "taken.png", IMAGES / f"{kind}.png")
        if "view" in wanted:
            from phaze.view.server import ViewServer

            with ViewServer(folder) as server:
                Thread(target=server.serve_forever, daemon=True).start()
                taken(browser, server.address, HIGH["view"], folder / "taken.png")
                server.shutdown()
            small(folder / "taken.png", IMAGES / "view.png")
        browser.close()


if __name__ == "__main__":
    main()
