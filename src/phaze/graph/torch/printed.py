"""What somebody's model prints: on standard error, each place of its code once, with its line.

A trace builds and runs a model many times; a line that says where it was printed is all that helps.
"""

import io
import sys
from typing import TextIO

from phaze.graph.torch.faults import running_line

# Characters of one print that are shown.
LONGEST = 200


class Printed(io.TextIOBase):
    """Stands for standard output while a user's code runs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.seen: set[str] = set()
        self.line, self.silent = "", False

    def writable(self) -> bool:
        """It can be written to."""
        return True

    def write(self, text: str) -> int:
        """Take ``text``; when its line ends, show it if its place in the code has not printed
        before."""
        self.line += text[:LONGEST]
        if "\n" in text:
            place = running_line(sys._getframe(1)) or "the model's code"
            words, self.line = " ".join(self.line.split())[:LONGEST], ""
            if words and not self.silent and place not in self.seen:
                self.seen.add(place)
                self.stream.write(f"{place} prints: {words}\n")
                self.stream.flush()
        return len(text)
