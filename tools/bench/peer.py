"""Peers from the package index: whether one is there, and a question to it in a process and a
folder of its own.

A peer may write files, log and change settings of the process; so each is a module of this room
that is run with ``python -m`` in a folder that is thrown away, reads ``question.json`` there and
writes ``answer.json``.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from phaze.files import write_whole

ROOT = Path(__file__).resolve().parents[2]
NOT_INSTALLED = "not installed: pip install -e '.[peers]' in phaze's folder"
QUESTION, ANSWER = "question.json", "answer.json"


class PeerError(Exception):
    """A peer that is not there or gave no answer; the sentence says why."""


def ask(peer: str, package: str, question: Any, limit_s: float = 600.0) -> Any:
    """The answer of the module ``peer`` to ``question``; it needs ``package``."""
    if importlib.util.find_spec(package) is None:
        raise PeerError(NOT_INSTALLED)
    with tempfile.TemporaryDirectory(prefix="phaze-bench-") as name:
        folder = Path(name)
        write_whole(folder / QUESTION, json.dumps(question))
        surroundings = {
            **os.environ,
            "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": name,
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", peer]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=surroundings,
                capture_output=True,
                text=True,
                check=False,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired:
            raise PeerError(f"stopped after {limit_s:g} s without an answer") from None
        if done.returncode != 0 or not (folder / ANSWER).exists():
            said = done.stderr.strip().splitlines() or ["it printed nothing"]
            raise PeerError(f"failed: {said[-1][:120]}")
        return json.loads((folder / ANSWER).read_text(encoding="utf-8"))


def question() -> Any:
    """In the peer's process: what is asked."""
    return json.loads(Path(QUESTION).read_text(encoding="utf-8"))


def answer(found: Any) -> None:
    """In the peer's process: the answer."""
    write_whole(Path(ANSWER), json.dumps(found))
