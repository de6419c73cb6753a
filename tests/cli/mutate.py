"""Good documents made bad: a leaf becomes something hostile, keys vanish or stand twice, bytes are
cut and flipped."""

import contextlib
import json
import sqlite3
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

NUMBERS = (
    *(
        0,
        -1,
        1,
        2,
        3,
        0.5,
        -0.0,
        1e-320,
        1e308,
        -1e308,
        1e15,
        1e-15,
        float("nan"),
        float("inf"),
        -float("inf"),
    ),
    *(2**31, 2**32 + 1, 2**53 + 1, 2**63, 2**64, -(2**63), 10**30, 10**400),
)
TEXTS = (
    *(
        "",
        " ",
        "a" * 5000,
        "\ud800",
        "\x00",
        "\x1b[31m",
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
    ),
    *(
        "../../etc/passwd",
        "/dev/zero",
        "/",
        ".",
        "-",
        "nan",
        "1e999",
        "-5 GiB",
        "0 B",
        "1e400 GB/s",
        "1e-320 B/s",
        "²",
    ),
    *(
        "[bold]x[/nope]",
        "%s%n",
        "é" * 300,
        "\u202e",
        "none",
        "best",
        "gpt",
        "tpu-v4",
        "cluster",
        "full",
        "true",
    ),
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"a": 1},
    {"": ""},
    [0] * 300,
    [[[[[[1]]]]]],
)
TOKENS = (
    "1e999",
    "NaN",
    "-Infinity",
    "1" + "0" * 5000,
    "[" * 3000,
    '{"a":' * 3000,
    "\\ud800",
    "#",
    ",",
    '"',
    "\n",
    "]",
)


def places(value: Any, steps: tuple[int | str, ...] = ()) -> list[tuple[int | str, ...]]:
    """The path of everything inside a document."""
    rows: list[tuple[int | str, Any]] = []
    if isinstance(value, dict):
        rows = list(value.items())
    elif isinstance(value, list):
        rows = list(enumerate(value))
    found = [(*steps, key) for key, _ in rows]
    return found + [place for key, one in rows for place in places(one, (*steps, key))]


def _hostile(random: Random, old: Any) -> Any:
    """Something else: mostly of the same kind, so that it passes the check of its type and goes
    further in."""
    kind = random.random()
    if (
        isinstance(old, int | float)
        and not isinstance(old, bool)
        and abs(old) < 1e290
        and kind < 0.7
    ):
        near = (old * 2, old + 1, old - 1, old * 1000, -old, old / 3, old * 1e9, int(old))
        return random.choice((*NUMBERS, *near))
    if isinstance(old, str) and kind < 0.6:
        return random.choice((*TEXTS, old[:-1], old + "x", old * 50, old.upper()))
    if isinstance(old, bool) and kind < 0.5:
        return not old
    return deepcopy(random.choice((*NUMBERS, *TEXTS, *OTHERS)))  # a later change is made in place


def _change(random: Random, raw: Any) -> None:
    """One change of a document, in place."""
    found = places(raw)
    if not found:
        return
    last: Any
    *way, last = random.choice(found)
    inside: Any = raw
    for step in way:
        inside = inside[step]
    chosen = random.random()
    if chosen < 0.7:
        inside[last] = _hostile(random, inside[last])
    elif chosen < 0.8:
        del inside[last]
    elif chosen < 0.87 and isinstance(inside, list):
        inside.extend([inside[last]] * random.choice((1, 2, 60)))
    elif chosen < 0.92 and isinstance(inside, list):
        random.shuffle(inside)
    elif isinstance(inside, dict) and chosen < 0.96:
        inside[random.choice(TEXTS)] = inside.pop(last)
    elif isinstance(inside, dict):
        inside[random.choice(TEXTS)] = _hostile(random, inside[last])
    else:
        inside[last] = None


def in_toml(value: Any) -> str:
    """A value as TOML writes it in a line; what TOML has no word for becomes an empty text."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(str(key))} = {in_toml(one)}" for key, one in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(in_toml(one) for one in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return '""' if value is None else json.dumps(value)


def mutated_document(random: Random, raw: Any, toml: bool) -> bytes:
    """A document with one to three changes as JSON or TOML; sometimes a key stands twice."""
    changed = json.loads(json.dumps(raw))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        _change(random, changed)
    if toml:
        lines = [f"{json.dumps(str(key))} = {in_toml(value)}" for key, value in changed.items()]
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    text = json.dumps(changed)
    if changed and random.random() < 0.02:
        spelled = json.dumps(random.choice(list(changed))) + ": "
        text = text.replace(spelled, f"{spelled}0, {spelled}", 1)
    return text.encode("utf-8", "surrogatepass")


def mutated_bytes(random: Random, good: bytes) -> bytes:
    """A text cut off, with bytes flipped, moved, doubled or put in, or with a number made
    hostile."""
    found = bytearray(good)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(found) + 1)
        length = random.choice((1, 2, 8, 40))
        chosen = random.random()
        if chosen < 0.1:
            del found[at:]
        elif chosen < 0.3 and at < len(found):
            found[at] ^= 1 << random.randrange(8)
        elif chosen < 0.45:
            del found[at : at + length]
        elif chosen < 0.55:
            found[at:at] = found[at : at + length]
        elif chosen < 0.65:
            found[at:at] = random.choice(TOKENS).encode()
        elif chosen < 0.7:
            found[at:at] = random.randbytes(length)
        else:
            digits = [
                i
                for i, byte in enumerate(found)
                if 48 <= byte < 58 and (i == 0 or not 48 <= found[i - 1] < 58)
            ]
            if digits:
                start = random.choice(digits)
                end = start
                while end < len(found) and found[end] in b"0123456789.eE+-_":
                    end += 1
                number = random.choice((*NUMBERS, *map(float, NUMBERS[:8])))
                found[start:end] = (
                    json.dumps(number).replace("NaN", "nan").replace("Infinity", "inf").encode()
                )
    return bytes(found)


def mutated_journal(random: Random, path: Path) -> bytes:
    """The journal at ``path`` with one to three of its cells changed; it stays a good SQLite
    file."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
        for _ in range(random.choice((1, 1, 2, 3))):
            kind, hostile = (
                random.random(),
                random.choice((*NUMBERS[:18], *TEXTS, None, b"\xff\x00")),
            )
            if isinstance(hostile, str):
                hostile = hostile.encode("utf-8", "replace").decode()
            column = random.choice(("chip", "reason", "bound", "step"))
            with contextlib.suppress(sqlite3.Error):  # a column may refuse it; a table may be gone
                rows = base.execute("SELECT chip, document FROM evaluated").fetchall()
                if kind < 0.55 and rows:
                    chip, text = random.choice(rows)
                    document = json.loads(text)
                    _change(random, document)
                    base.execute(
                        "UPDATE evaluated SET document = ? WHERE chip = ?",
                        (json.dumps(document), chip),
                    )
                elif kind < 0.65:
                    base.execute(
                        (
                            "UPDATE evaluated SET chip = ? WHERE chip = (SELECT max(chip) "
                            "FROM evaluated)"
                        ),
                        (hostile,),
                    )
                elif kind < 0.9:
                    base.execute(
                        (
                            f"UPDATE closed SET {column} = ? WHERE chip = (SELECT min(chip) "
                            "FROM closed)"
                        ),
                        (hostile,),
                    )
                else:
                    base.execute(f"DROP TABLE {random.choice(('about', 'evaluated', 'closed'))}")
    return path.read_bytes()
