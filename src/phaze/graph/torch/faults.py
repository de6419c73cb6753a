"""What goes wrong in somebody's model, as one sentence that quotes it."""

import sysconfig
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from phaze.errors import InputError, PhazeError

ADD_A_ROW = "add a row with its kind to NAMES in phaze/graph/opset.py"
# What a fault that another size of the inputs may cause speaks of; a remedy for sizes helps with no
# other.
SIZE_WORDS = (
    "shape",
    "size",
    "dimension",
    "batch",
    "match",
    "divi",
    "expand",
    "broadcast",
    "range",
    "stride",
    "multiple",
)
NO_DEVICE = "build it on the CPU or on the meta device: a trace needs no GPU and no memory"
# Where a fault arose, as those say who do not know what the model is called.
THE_MODEL = "the model"
SIXTEEN_BITS = "models are traced in 16 bit (bfloat16), and its code must run in that"


@cache
def _installed() -> tuple[str, ...]:
    """The folders of Python, of installed packages and of phaze: two thousand files are compared
    with them."""
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(
        folder.rstrip("/") + "/" for folder in sorted({*folders, str(Path(__file__).parents[2])})
    )


def is_foreign(file: str) -> bool:
    """Whether a file of code is a user's: not Python's, not an installed package's, not phaze's."""
    return (
        not file.startswith(_installed()) and "/site-packages/" not in file and Path(file).is_file()
    )


def user_line(fault: BaseException) -> str:
    """Where in the user's own code a fault arose, as `` (file.py:12)``; nothing where it was not
    there."""
    frames = [
        frame for frame in traceback.extract_tb(fault.__traceback__) if is_foreign(frame.filename)
    ]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""


def running_line(frame: FrameType | None) -> str:
    """The line of the user's own code that ``frame`` is in, as ``file.py:12``; nothing where it is
    in none."""
    while frame is not None:
        if is_foreign(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def quoted(fault: BaseException) -> str:
    """The kind of what somebody's code raised, and its text if it has one; only a real Ctrl-C is
    raised again."""
    if type(fault) is KeyboardInterrupt:
        raise fault
    kind = type(fault).__name__[:80]
    try:
        return f"{kind}: {' '.join(str(fault).split())[:400]}{user_line(fault)}"
    except BaseException:  # its own __str__ raises
        return kind


@contextmanager
def of_model(name: str, remedy: str = "") -> Iterator[None]:
    """Turn whatever a model raises into an :class:`InputError`, with a ``remedy`` if it is about
    sizes."""
    try:
        yield
    except InputError as fault:
        if fault.where != THE_MODEL:
            raise
        raise type(fault)(name, fault.problem, fault.remedy) from None
    except PhazeError:
        raise
    except (DataDependentOutputException, DynamicOutputShapeException) as fault:
        raise InputError(
            name,
            (
                "the model's shapes or branches depend on data (operator "
                f"{fault.func}){user_line(fault)}"
            ),
            "a trace needs shapes that follow from the sizes of the inputs",
        ) from None
    except BaseException as fault:
        message = quoted(fault)
        sizes = any(word in message.lower() for word in SIZE_WORDS)
        hint = advice(message) or (remedy if sizes else "")
        raise InputError(name, f"the model raised {message}", hint) from fault


def advice(message: str) -> str:
    """What helps against a fault that tracing brings about, told by its text; nothing where it is
    none of those."""
    words = message.lower()
    return (
        SIXTEEN_BITS
        if "bfloat16" in words
        else NO_DEVICE
        if "cuda" in words or "nvidia" in words
        else ""
    )


def check_known(name: str, unknown: Mapping[str, tuple[str, str]]) -> None:
    """Stop at the first operator that the table does not know."""
    for operator, (module, line) in unknown.items():
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        where = f"{name}: {module}" if module else name
        raise InputError(
            where, f"unknown operator {operator}{more} from {line or 'a gradient'}", ADD_A_ROW
        )


def check_called(blocks: Mapping[str, nn.Module], called: Sequence[str]) -> None:
    """Every block must have run: one that is skipped would vanish from the graph."""
    seen = set(called)
    missing = [path for path in blocks if path not in seen]
    if missing:
        raise InputError(
            missing[0],
            f"the block was never called ({len(missing)} of {len(blocks)} were not)",
            "call it in forward, or keep it out of the list of blocks",
        )
