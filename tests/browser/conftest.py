"""A real browser, or a reason why there is none: Debian's chromium, driven by Playwright."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# What a headless browser needs as root in a closed network: nothing of its own goes out.
SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, started once."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip(
            "NOT RUN: there is no chromium here (apt-get install chromium, or make browser)"
        )
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="NOT RUN: playwright is not installed"
    )
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=program, args=SWITCHES.split())
        except playwright.Error as fault:
            pytest.skip(f"NOT RUN: chromium does not start here ({str(fault).splitlines()[0]})")
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page under watch: what it logged, what failed in it, what it asked of a network."""

    page: Any
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Open a file or an address: ``open_page(path, width=390, scheme="dark")``."""
    contexts = []

    def opened(path: Path | str, width: int = 1440, scheme: str = "light") -> Opened:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda said: found.faults.append(said.text))
        found.page.on("pageerror", lambda fault: found.faults.append(str(fault)))
        found.page.on(
            "dialog", lambda dialog: found.faults.append(f"a dialog opened: {dialog.message}")
        )
        found.page.on("request", lambda asked: found.requests.append(asked.url))
        found.page.goto(path.as_uri() if isinstance(path, Path) else path)
        return found

    yield opened
    for context in contexts:
        context.close()
