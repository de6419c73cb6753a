"""Ctrl-C: every command ends with one sentence and exit code 130, wherever it is.

Python runs its own signal handlers between two of its instructions, so not before a compiled kernel
has come back, and a library may swallow the exception. So the interpreter's C handler also writes
each signal to a pipe, and a thread reads it (kernels run without the interpreter's lock). The
command gets ``GRACE_S`` to end by itself, its files whole; after that, or at a second interrupt,
the thread ends the process. Nothing is lost by that: what a search found lies in its journal, round
by round, and a kernel writes no file.
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

# A person who pressed Ctrl-C is told within two seconds; files in progress take far less than this.
GRACE_S = 0.7
CODE = 130
# Commands that keep a journal, so that a second run goes on where the first one was stopped.
RESUMED = ("search", "front", "sweep")


def stopped(arguments: Sequence[str]) -> str:
    """The sentence of a command that was interrupted."""
    return (
        "stopped; the same command resumes from here"
        if arguments[:1] and arguments[0] in RESUMED
        else "stopped"
    )


def _fragile(frame: FrameType | None) -> bool:
    """Whether an exception would go through an import or through torch: C++ there aborts on it.
    None writes files."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module == "importlib._bootstrap" or module.split(".")[0] == "torch":
            return True
        frame = frame.f_back
    return False


class Interrupt:
    """One command's interrupts: ``heard`` when there was one, ``done`` when the command has ended
    by itself."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = arguments
        self.heard, self.done = threading.Event(), threading.Event()

    def listen(self) -> None:
        """Hear interrupts from now on; a process that was started to ignore them goes on ignoring
        them."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        ours, theirs = os.pipe()
        os.set_blocking(theirs, False)
        threading.Thread(target=self._watch, args=(ours,), daemon=True).start()
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._raise)
        sys.unraisablehook = self._unraisable

    def finish(self) -> None:
        """The command has ended by itself: while the interpreter winds up there is nothing left to
        stop."""
        self.done.set()
        if signal.getsignal(signal.SIGINT) == self._raise:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _unraisable(self, fault: "sys.UnraisableHookArgs") -> None:
        """An interrupt inside a finalizer is lost there: the thread ends the command, and nothing
        is shown."""
        if not self.heard.is_set():
            sys.__unraisablehook__(fault)

    def _raise(self, _number: int, frame: FrameType | None) -> None:
        self.heard.set()
        if _fragile(frame):
            self.end()
        raise KeyboardInterrupt

    def _watch(self, pipe: int) -> None:
        while os.read(pipe, 1) != bytes([signal.SIGINT]):
            continue
        self.heard.set()
        os.set_blocking(pipe, False)
        for _ in range(round(GRACE_S / 0.05)):
            if self.done.wait(0.05):
                return
            try:
                if bytes([signal.SIGINT]) in os.read(pipe, 64):
                    break
            except BlockingIOError:
                continue
        self.end()

    def leave(self) -> None:
        """End the process and its workers, the sentence being said.

        Not by ``sys.exit``: where the exception went through code that was made of a string, the
        interpreter would end by the signal instead, without an exit code.
        """
        if "multiprocessing" in sys.modules:
            from multiprocessing import active_children

            for worker in active_children():
                worker.kill()
        os._exit(CODE)

    def end(self) -> None:
        """Say the sentence and end the process; what was half printed is dropped."""
        sentence = stopped(self.arguments)
        lead = "\n" if os.isatty(2) else ""
        with suppress(OSError):
            os.write(2, f"{lead}phaze: {sentence}\n".encode())
            if "--json" in self.arguments:
                os.write(1, f'{{"error":"{sentence}"}}\n'.encode())
        self.leave()
