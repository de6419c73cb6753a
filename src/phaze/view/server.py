"""The server of ``phaze view``: for one person, on the loopback address, with a token, and nothing
is ever written.

Python's own http.server is enough: four addresses, GET alone, no state but a cache of pages. A
request must name this host and port (so that no page of another site can be made to ask for it) and
carry the token, in the address once and then in a cookie that scripts cannot read and other sites
do not send. Pages are made one at a time.
"""

import re
import sys
from collections.abc import Callable
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from phaze.errors import PhazeError
from phaze.view.library import RunEntry, entries
from phaze.view.pages import (
    compare_page,
    fault_page,
    list_page,
    point_page,
    run_page,
)

LOOPBACK = "127.0.0.1"
HTML = "text/html; charset=utf-8"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)
# How many finished pages are kept: of 1 MB each at most.
KEPT_PAGES = 16
# The number of a design in an address: a front has fewer than a million.
DESIGN = re.compile(r"\d{1,6}", re.ASCII)


class ViewServer(ThreadingHTTPServer):
    """Serves the runs of a folder."""

    daemon_threads = True

    def __init__(self, root: Path, port: int = 0) -> None:
        self.root, self.token = root, token_urlsafe(24)
        self.making, self.pages = Lock(), dict[tuple[str, float], str]()
        super().__init__((LOOPBACK, port), ViewHandler)
        self.hosts = frozenset({f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"})

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that has gone is no fault of the server; of any other fault there is a
        traceback."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.server_port}/?token={self.token}"

    def page_of(self, run: RunEntry, design: int | None = None) -> str:
        """A run's page, or that of a design of a front; a finished one is made once while it stays
        as it is."""
        if run.status != "finished":
            return run_page(run)
        with self.making:
            place = (run.key if design is None else f"{run.key}/{design}", run.changed_s)
            if place not in self.pages:
                if len(self.pages) >= KEPT_PAGES:
                    del self.pages[next(iter(self.pages))]
                self.pages[place] = run_page(run) if design is None else point_page(run, design)
            return self.pages[place]


class ViewHandler(BaseHTTPRequestHandler):
    """One request."""

    server: ViewServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "phaze", ""

    def do_GET(self) -> None:
        """Answer, or say why not."""
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.headers.get("Host", "") not in self.server.hosts:
            return self._send(403, "this address is not served")
        if self._is_token(query.get("token", "")):
            return self._welcome(parts.path)
        if not self._is_token(self._cookie()):
            return self._send(403, "open the address that phaze view printed: it holds the token")
        try:
            self._answer(parts.path.strip("/").split("/"), query)
        except PhazeError as fault:
            self._send(422, fault_page(str(fault)))
        return None

    def _answer(self, steps: list[str], query: dict[str, str]) -> None:
        runs = entries(self.server.root)
        by_key = {run.key: run for run in runs}
        page: Callable[[], str] | None = None
        if steps == [""]:
            page = lambda: list_page(str(self.server.root), runs)  # noqa: E731
        elif len(steps) == 2 and steps[0] == "run" and steps[1] in by_key:
            page = lambda: self.server.page_of(by_key[steps[1]])  # noqa: E731
        elif (
            len(steps) == 3
            and steps[0] == "run"
            and steps[1] in by_key
            and DESIGN.fullmatch(steps[2])
        ):
            page = lambda: self.server.page_of(by_key[steps[1]], int(steps[2]))  # noqa: E731
        elif steps == ["compare"] and query.get("a") in by_key and query.get("b") in by_key:
            page = lambda: compare_page(by_key[query["a"]], by_key[query["b"]])  # noqa: E731
        if page is None:
            self._send(404, fault_page("There is no such run here."))
        else:
            self._send(200, page())

    def _is_token(self, text: str) -> bool:
        """Compared as bytes: texts that are not ASCII are refused by the comparison of texts."""
        return compare_digest(text.encode("utf-8", "backslashreplace"), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(self._cookie_name())
        except CookieError:
            return ""
        return "" if cookie is None else cookie.value

    def _cookie_name(self) -> str:
        return f"phaze-view-{self.server.server_port}"

    def _welcome(self, path: str) -> None:
        """Keep the token in a cookie, and out of the address."""
        self.send_response(303)
        self.send_header(
            "Location", path if path.startswith("/") and not path.startswith("//") else "/"
        )
        self.send_header(
            "Set-Cookie",
            f"{self._cookie_name()}={self.server.token}; HttpOnly; SameSite=Strict; Path=/",
        )
        self._end(b"")

    def _send(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Type", HTML)
        self._end(text.encode("utf-8", "backslashreplace"))

    def _end(self, body: bytes) -> None:
        for name, value in HEADERS:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed for a request."""
