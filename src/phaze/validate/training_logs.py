"""Seconds of a step from the lines that trainers print: Megatron-LM and torchtitan.

    Megatron-LM   ... elapsed time per iteration (ms): 1234.5 ...
    torchtitan    step: 10  loss: ...  memory: 42.13GiB(44.5%)  tps: 5,762  ...      tokens a second
                  of one device

The first lines warm up; the median of all counts, which they hardly move. With tps a step takes
batch x sequence / (tps x devices) seconds. Colours that a terminal would show are left out.
"""

import re
from dataclasses import dataclass
from statistics import median

from phaze.errors import InputError

JSON = re.compile(r"\s*(\{|\[\s*[\{\]])")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
MEGATRON = re.compile(r"elapsed time per iteration \(ms\):\s*([0-9]+(?:\.[0-9]+)?)")
TITAN = re.compile(r"step:\s*\d+.*?tps:\s*([0-9][0-9,]*(?:\.[0-9]+)?)")
MEMORY = re.compile(r"memory:\s*([0-9]+(?:\.[0-9]+)?)\s*GiB")
MILLI = 1e-3
"""Seconds in Megatron's unit."""
GIB = 2**30
LEAST_S, MOST_S = 1e-6, 1e7
"""Of a step: beyond, a line is no step."""


@dataclass(frozen=True, slots=True)
class LoggedSteps:
    """The median step of a log, how many lines had one, and the largest memory that they state."""

    step_s: float
    lines: int
    memory_bytes: float | None


def is_log(text: str) -> bool:
    """Whether a text is lines of a trainer, and no JSON that holds such lines."""
    plain = "" if JSON.match(text) else COLOUR.sub("", text)
    return MEGATRON.search(plain) is not None or TITAN.search(plain) is not None


def read_log(text: str, where: str, tokens: int, devices: int) -> LoggedSteps:
    """The steps of a log of a run with so many tokens a batch."""
    plain = COLOUR.sub("", text)
    seconds = [float(number) * MILLI for number in MEGATRON.findall(plain)]
    if not seconds:
        rates = [float(number.replace(",", "")) for number in TITAN.findall(plain)]
        seconds = [tokens / (rate * devices) for rate in rates if rate > 0]
    if not seconds:
        raise InputError(
            where, "no line has a step of Megatron-LM or torchtitan", "give their logs, or a trace"
        )
    step = median(seconds)
    if not LEAST_S < step < MOST_S:
        raise InputError(where, f"its median step is {step:.3g} s", "give the log of the run")
    memories = [float(number) * GIB for number in MEMORY.findall(plain)]
    return LoggedSteps(step, len(seconds), max(memories) if memories else None)
