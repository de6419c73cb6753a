"""Progress on standard error: what a command does, how far it is, and how long it may still take.

A thread repeats one line twice a second once a command has taken ``PATIENCE_S``, so that nothing is
silent for two seconds, whatever it computes (kernels run without the interpreter's lock). Shown on
a terminal and in a notebook; not elsewhere, unless ``PHAZE_PROGRESS=1`` asks for plain lines;
``PHAZE_PROGRESS=0`` shows nothing.

    time left = time of the step x (total - done) / done
"""

import os
import sys
import threading
from collections.abc import Callable
from shutil import get_terminal_size
from time import monotonic, process_time
from types import TracebackType
from typing import Literal, TextIO

# A command that ends within a second needs no line; a person wonders after two.
PATIENCE_S = 1.0
REPEAT_S = 0.5
# In a log a line for every half second would be in the way.
LINES_S = 10.0
CLEAR = "\r\x1b[2K"
Form = Literal["none", "line", "notebook", "lines"]


def _in_notebook() -> bool:
    """Whether this is a kernel of a notebook, whose standard error is no terminal but shows lines
    as one does."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def form_for(stream: TextIO | None) -> Form:
    """How progress is shown on a stream."""
    asked = os.environ.get("PHAZE_PROGRESS", "")
    if stream is None or asked in ("0", "no", "never"):
        return "none"
    if stream.isatty():
        return "line"
    if _in_notebook():
        return "notebook"
    return "lines" if asked else "none"


def clock(seconds: float) -> str:
    """A time as people say it: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    """The line of one command; use it as a context, and tell it each step."""

    def __init__(self, stream: TextIO | None = None, form: Form = "none") -> None:
        self.stream, self.form = stream, form
        self.what, self.done, self.total, self.at_most = "", 0, 0, False
        self.began = self.step_began = monotonic()
        self.shown = False
        self.ended, self.lock = threading.Event(), threading.Lock()

    def step(self, what: str) -> None:
        """Something else begins."""
        self.what, self.done, self.total, self.at_most = what, 0, 0, False
        self.step_began = monotonic()

    def count(self, done: int, total: int, what: str, at_most: bool = False) -> None:
        """So much of the step is done; ``at_most``: what is left may turn out to be needless."""
        if total != self.total or done < self.done:
            self.step_began = self.step_began if at_most and self.at_most else monotonic()
        self.what, self.done, self.total, self.at_most = what, done, total, at_most

    def counting(self, verb: str) -> Callable[[int, int, str], None]:
        """What takes (done, total, what) and shows it as ``verb`` of what."""
        return lambda done, total, what: self.count(done, total, f"{verb} {what}".strip())

    def text(self) -> str:
        """The line as it stands."""
        now = monotonic()
        far = f": {self.done:,} of {self.total:,}" if self.total else ""
        left = ""
        if 0 < self.done < self.total:
            seconds = (now - self.step_began) * (self.total - self.done) / self.done
            left = f", {'at most' if self.at_most else 'about'} {clock(seconds)} left"
        return f"{self.what}{far}; {clock(now - self.began)}{left}"

    def _write(self, text: str) -> None:
        if self.stream is None:
            return
        if (
            self.form == "line"
        ):  # not through Python's stream, whose lock a forked worker would inherit
            os.write(self.stream.fileno(), text.encode())
        else:
            self.stream.write(text)
            self.stream.flush()

    def draw(self) -> None:
        """Show the line now."""
        text = self.text()
        with self.lock:
            if self.ended.is_set():
                return
            if self.form == "line":
                room = max(20, get_terminal_size((80, 24)).columns - 1)
                self._write(CLEAR + text[:room])
            elif self.form == "notebook":
                self._write("\r" + text[:100].ljust(100))
            else:
                self._write(text + "\n")
            self.shown = True

    def clear(self) -> None:
        """Take the line away; what is written next stands in its place."""
        with self.lock:
            if self.shown and self.form == "line":
                self._write(CLEAR)
            elif self.shown and self.form == "notebook":
                self._write("\r" + " " * 100 + "\r")
            self.shown = False

    def say(self, text: str) -> None:
        """A line on standard error that stays."""
        self.clear()
        sys.stderr.write(text)
        sys.stderr.flush()

    def _repeat(self) -> None:
        # What was imported before counts too: on a busy machine that alone may take a second.
        pause = max(0.0, PATIENCE_S - process_time())
        while not self.ended.wait(pause):
            self.draw()
            pause = LINES_S if self.form == "lines" else REPEAT_S

    def __enter__(self) -> "Progress":
        if self.form != "none":
            threading.Thread(target=self._repeat, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ended.set()
        self.clear()


def on_standard_error() -> Progress:
    """The progress of a command, as standard error allows."""
    return Progress(sys.stderr, form_for(sys.stderr))
