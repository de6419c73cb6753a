"""Make the pictures of the pages in docs/images, as chromium shows them.

python docs/picture.py                     needs chromium and playwright; ``make picture`` sees to
                                           both
python docs/picture.py plan                only that one
python docs/picture.py --runs DIR plan     runs that lie in DIR are taken from there, others are
                                           made there

Every picture is made from the commands that ``COMMANDS`` lists, in an empty folder if none is
given.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
WIDE, SHRUNK = 1360, 0.7
COMMANDS = {
    "plan": [
        (
            "plan --model llama3-8b --chip h100 --devices 64 --batch 1024 --tokens 15T "
            "--json --html plan.html"
        )
    ],
    "search": [
        "search --model llama3-8b --out search",
        "explain search --flatness 3% --held-out gpt3-175b --held-out bert-large "
        "--compare a100-80gb --compare h200 --compare b200",
        "report search",
    ],
    "front": [
        "front --model bert-large --rules icml24 --of throughput,area,power --time 60 --out front"
    ],
    "design": ["report front --design 100"],
    "sweep": [
        (
            "sweep --model bert-large --rules icml24 --over "
            "cluster.link_bytes_per_s=1e9..1e12 --points 5 --out sweep"
        )
    ],
}
LIVE = "search --model llama3-8b --out live --workers 1"
PAGES = {
    "plan": "plan.html",
    "search": "search/report.html",
    "front": "front/front.html",
    "design": "front/design-100.html",
    "sweep": "sweep/sweep.html",
}
# What a picture needs beside its own commands.
NEEDS = {"design": ("front",), "view": ("plan", "sweep")}
HIGH = {
    "plan": 1500,
    "search": 1750,
    "front": 1250,
    "design": 1250,
    "sweep": 1150,
    "view": 620,
    "live": 1420,
}
LONGEST_S, ROWS = 300.0, 1
"""How long a search under way is waited for, and the rows of its course that make a picture."""


def small(taken: Path, picture: Path) -> None:
    """The picture shrunk, in a palette to stay small."""
    from PIL import Image

    whole = Image.open(taken).convert("RGB")
    shrunk = whole.resize(
        (round(whole.width * SHRUNK), round(whole.height * SHRUNK)), Image.Resampling.LANCZOS
    )
    shrunk.quantize(96, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        picture, optimize=True
    )
    print(f"{picture}: {picture.stat().st_size:,} bytes")  # noqa: T201


def taken(browser: Any, address: str, high: int, path: Path) -> None:
    """The top of a page, so high, in light colours."""
    page = browser.new_page(viewport={"width": WIDE, "height": high}, color_scheme="light")
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=str(path))
    page.close()


def made(folder: Path, kind: str) -> None:
    """Run what a picture is made from, unless its page lies there."""
    if (folder / PAGES[kind]).is_file():
        return
    for command in COMMANDS[kind]:
        words = [sys.executable, "-m", "phaze", *command.split()]
        done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=folder)
        if kind == "plan":
            (folder / "plan.json").write_text(done.stdout)


def watched(folder: Path, browser: Any) -> None:
    """A search under way, as phaze view shows it once it has evaluated some chips; it waits while
    it is pictured."""
    from phaze.view.library import key_of
    from phaze.view.server import ViewServer

    going = subprocess.Popen(
        [sys.executable, "-m", "phaze", *LIVE.split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    course, began = folder / "live" / "progress.json", time.monotonic()
    try:
        while going.poll() is None and time.monotonic() - began < LONGEST_S:
            rows = json.loads(course.read_text())["rows"] if course.is_file() else []
            if sum(row[1] is not None for row in rows) >= ROWS:
                break
            time.sleep(0.1)
        going.send_signal(signal.SIGSTOP)
        with ViewServer(folder) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            context = browser.new_context(
                viewport={"width": WIDE, "height": HIGH["live"]}, color_scheme="light"
            )
            page = context.new_page()
            page.goto(server.address)
            page.goto(f"http://127.0.0.1:{server.server_port}/run/{key_of('live')}")
            page.wait_for_timeout(1500)
            page.screenshot(path=str(folder / "taken.png"))
            context.close()
            server.shutdown()
    finally:
        going.kill()
        going.wait()
    small(folder / "taken.png", IMAGES / "live.png")


def pictures(folder: Path, wanted: list[str]) -> None:
    """Open the pages and keep their tops."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=SWITCHES)
        for kind in wanted:
            for needed in (*NEEDS.get(kind, ()), *([kind] if kind in COMMANDS else [])):
                made(folder, needed)
            if kind in PAGES:
                taken(browser, (folder / PAGES[kind]).as_uri(), HIGH[kind], folder / "taken.png")
                small(folder / "taken.png", IMAGES / f"{kind}.png")
        if "view" in wanted:
            from phaze.view.server import ViewServer

            with ViewServer(folder) as server:
                Thread(target=server.serve_forever, daemon=True).start()
                taken(browser, server.address, HIGH["view"], folder / "taken.png")
                server.shutdown()
            small(folder / "taken.png", IMAGES / "view.png")
        if "live" in wanted:
            watched(folder, browser)
        browser.close()


def main() -> None:
    """Run what the pictures need, in a folder that is thrown away if none is given."""
    parser = argparse.ArgumentParser(
        prog="docs/picture.py", description="Make the pictures of the pages."
    )
    parser.add_argument(
        "--runs", metavar="DIR", type=Path, help="a folder for the runs; those in it are used"
    )
    parser.add_argument(
        "kinds", nargs="*", metavar="PICTURE", help=f"of {', '.join(HIGH)}; all if none is named"
    )
    chosen = parser.parse_args()
    wanted = chosen.kinds or list(HIGH)
    if not set(wanted) <= set(HIGH):
        parser.error(f"there are pictures of {', '.join(HIGH)}")
    if chosen.runs is not None:
        chosen.runs.mkdir(parents=True, exist_ok=True)
        pictures(chosen.runs.resolve(), wanted)
        return
    with tempfile.TemporaryDirectory() as name:
        pictures(Path(name), wanted)


if __name__ == "__main__":
    main()
