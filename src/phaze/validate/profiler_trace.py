"""PyTorch profiler traces (Kineto's Chrome trace JSON, also gzipped) as measured intervals of one
rank.

Read are complete events (``ph`` X) with finite, non-negative ``ts`` and ``dur`` in microseconds;
others are counted and left out. Steps are the annotations ``ProfilerStep#N``, else the whole trace
is one. On an accelerator the work is in events of category ``kernel``, ``gpu_memcpy`` and
``gpu_memset``; without any, the operators of a CPU are it: products and attention whole, of other
``cpu_op`` events those that hold no other (leaves), and the collectives that gloo runs on threads
of its own.
"""

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, one_line
from phaze.files import MOST_BYTES, read_bytes
from phaze.validate.kernel_names import COLLECTIVES, KernelClass, class_of, collective_of

MICRO = 1e-6
"""Seconds in the trace's unit."""
STEP = re.compile(r"ProfilerStep#\d+$")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CORES = ("tensor", "vector", "both", "network", "none")
"""Categories of the operators of a schedule in a trace that phaze drew, by the part of a chip that
runs them."""
GZIP = b"\x1f\x8b"
MOST_MICROSECONDS = 1e18
"""Beyond, a time is none: the age of no clock in microseconds."""
MOST_EVENTS = 20_000_000
"""Beyond, a trace is of hours, not of steps."""
# Bytes of an element by the names that profilers use.
ELEMENT_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("float", "float32", "int", "int32"), 4),
        **dict.fromkeys(("bfloat16", "c10::bfloat16", "half", "c10::half", "float16", "short"), 2),
        **dict.fromkeys(("double", "float64", "long", "int64", "long int"), 8),
        **dict.fromkeys(
            (
                "byte",
                "char",
                "uint8",
                "int8",
                "unsigned char",
                "float8_e4m3fn",
                "float8_e5m2",
                "bool",
            ),
            1,
        ),
    }
)
# Classes of CPU operators that count with all that they hold.
WHOLE: tuple[KernelClass, ...] = ("gemm", "attention")
# Name, category, start, end, arguments and thread of an event.
Timed = tuple[str, str, float, float, Mapping[str, Any], tuple[str, str]]
WAITS = (
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "hipDeviceSynchronize",
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Something that ran from ``start_s`` to ``end_s``; of a collective also kind, bytes of the
    whole tensor and ranks, None where the trace does not say."""

    name: str
    what: KernelClass
    start_s: float
    end_s: float
    bytes: float | None = None
    ranks: int | None = None

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank: its steps, what ran on its device (or CPU), when its host was at work, and how
    often it launched.

    ``on_device``: false where the operators of a CPU stand for it."""

    where: str
    steps: tuple[tuple[float, float], ...]
    work: tuple[Interval, ...]
    host: tuple[tuple[float, float], ...]
    launches: int
    on_device: bool
    skipped: int


def trace_text(path: str) -> str:
    """The text of a trace, unpacked if need be, of bounded size."""
    try:
        raw = read_bytes(path)
        if raw[:2] == GZIP:
            raw = _unpacked(raw, path)
        return raw.decode("utf-8", "replace")
    except FileNotFoundError:
        raise InputError(path, "there is no such file") from None
    except OSError as fault:
        raise InputError(path, f"the file cannot be read ({fault.strerror or fault})") from None
    except ValueError as fault:
        raise InputError(path, f"this is not a file path ({fault})") from None


def _unpacked(raw: bytes, path: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        content = unpacker.decompress(raw, MOST_BYTES + 1)
    except (zlib.error, gzip.BadGzipFile) as fault:
        raise InputError(
            path, f"it is gzipped and broken ({fault})", "profile again, or give the JSON"
        ) from None
    if len(content) > MOST_BYTES:
        raise InputError(
            path, f"unpacked there is more than {MOST_BYTES >> 20} MiB", "profile fewer steps"
        )
    if not unpacker.eof:
        raise InputError(
            path, "it is gzipped and ends too early", "profile again, or give the JSON"
        )
    return content


def _events(text: str, where: str) -> tuple[list[Any], Mapping[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as fault:
        reason = "its nesting is too deep" if isinstance(fault, RecursionError) else str(fault)
        raise InputError(
            where,
            f"this is not a whole JSON trace ({reason})",
            "profile again; a trace ends with }",
        ) from None
    head = document if isinstance(document, dict) else {}
    events = head.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list):
        raise InputError(
            where, "there is no list 'traceEvents'", "give a trace that torch.profiler exported"
        )
    if len(events) > MOST_EVENTS:
        raise InputError(where, f"there are {len(events):,} events", "profile fewer steps")
    return events, head


def _finite(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if good and abs(value) < MOST_MICROSECONDS else None


def _timed(event: Any) -> Timed | None:
    """Name, category, start, end, arguments and thread of a complete event, or None."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    name, ts, dur = event.get("name"), _finite(event.get("ts")), _finite(event.get("dur"))
    if not isinstance(name, str) or ts is None or dur is None or dur < 0:
        return None
    args = event.get("args")
    arguments = args if isinstance(args, dict) else {}
    thread = str(event.get("pid")), str(event.get("tid"))
    return (
        one_line(name),
        str(event.get("cat", "")),
        ts * MICRO,
        (ts + dur) * MICRO,
        arguments,
        thread,
    )


def _number(value: Any) -> float | None:
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        return float(value)
    good = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value > 0
    )
    return float(value) if good else None


def _shape_bytes(args: Mapping[str, Any]) -> float | None:
    """Bytes of the first operand that a recorded shape states."""
    shapes, kinds = args.get("Input Dims"), args.get("Input type")
    while isinstance(shapes, list) and shapes and isinstance(shapes[0], list):
        shapes = shapes[0]
    if (
        not isinstance(shapes, list)
        or not all(isinstance(n, int) and 0 < n < 2**40 for n in shapes)
        or not shapes
    ):
        return None
    kind = kinds[0] if isinstance(kinds, list) and kinds else None
    size = ELEMENT_BYTES.get(str(kind).lower())
    return None if size is None else float(math.prod(shapes)) * size


def _sizes(
    name: str, args: Mapping[str, Any], world: int | None
) -> tuple[float | None, int | None]:
    """Bytes of the whole tensor and ranks of a collective, as NCCL's or gloo's events state
    them."""
    ranks = _number(args.get("Group size")) or world
    counted = [_number(args.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    size = ELEMENT_BYTES.get(str(args.get("dtype", "")).lower())
    counts = [count for count in counted if count is not None]
    size_bytes = max(counts) * size if counts and size is not None else _shape_bytes(args)
    if not counts and size_bytes is not None and ranks and collective_of(name) == "all_gather":
        size_bytes *= ranks  # a recorded shape is that of this rank's part
    return size_bytes, int(ranks) if ranks and ranks < 2**31 else None


def _leaves(operators: Iterable[Timed]) -> Iterable[tuple[str, float, float]]:
    """Operators of a CPU: products and attention as a whole, of all others those that hold no other
    of their thread."""
    by_thread: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    for name, _, start, end, _, thread in operators:
        by_thread.setdefault(thread, []).append((name, start, end))
    for thread_operators in by_thread.values():
        thread_operators.sort(key=lambda operator: (operator[1], -operator[2]))
        covered = -math.inf
        for index, (name, start, end) in enumerate(thread_operators):
            if start < covered:
                continue
            if class_of(name) in WHOLE:
                covered = end
            if (
                class_of(name) in WHOLE
                or index + 1 == len(thread_operators)
                or thread_operators[index + 1][1] >= end
            ):
                yield name, start, end


def _world(head: Mapping[str, Any]) -> int | None:
    distributed = head.get("distributedInfo")
    size = _number(distributed.get("world_size")) if isinstance(distributed, dict) else None
    return int(size) if size and size < 2**31 else None


def read_trace(text: str, where: str) -> RankTrace:
    """A trace as measured intervals."""
    events, head = _events(text, where)
    timed = [_timed(event) for event in events]
    skipped = sum(
        row is None and isinstance(event, dict) and event.get("ph") == "X"
        for row, event in zip(timed, events, strict=True)
    )
    complete = [row for row in timed if row is not None]
    if not complete:
        raise InputError(where, "no event has a time", "give a trace that torch.profiler exported")
    world = _world(head)
    device = [row for row in complete if row[1] in DEVICE]
    work: list[Interval] = []
    operators = [row for row in complete if row[1] == "cpu_op"]
    if device:
        source = [(n, a, b, args) for n, _, a, b, args, _ in device]
    else:
        gloo = [
            (n, a, b, args)
            for n, _, a, b, args, _ in complete
            if collective_of(n) is not None and ":" in n and "::" not in n
        ]
        source = [
            (n, a, b, {}) for n, a, b in _leaves(operators) if not n.startswith(COLLECTIVES)
        ] + gloo
    for name, start, end, args in source:
        what = class_of(name)
        label = one_line(str(args.get("Collective name", name))) if what == "collective" else name
        sizes = _sizes(label, args, world) if what == "collective" else (None, None)
        work.append(Interval(label, what, start, end, *sizes))
    if not work and {cat for _, cat, *_ in complete} <= set(CORES):
        seen = "these are operators of a schedule as phaze drew it, without the passes of a step"
        raise InputError(
            where,
            seen,
            "give a trace of torch.profiler, or a plan's timeline (phaze plan --perfetto)",
        )
    if not work:
        raise InputError(
            where, "it has neither kernels nor operators", "profile with activities CPU and CUDA"
        )
    launches = sum("launchkernel" in n.lower() for n, *_ in complete)
    host = [
        (a, b)
        for n, cat, a, b, _, _ in complete
        if cat in ("cpu_op", "cuda_runtime", "cuda_driver") and n not in WAITS
    ]
    steps = sorted((a, b) for n, _, a, b, _, _ in complete if STEP.match(n) and b > a)
    whole = (min(interval.start_s for interval in work), max(interval.end_s for interval in work))
    return RankTrace(
        where,
        tuple(dict.fromkeys(steps)) or (whole,),
        tuple(work),
        tuple(host),
        launches,
        bool(device),
        skipped,
    )
