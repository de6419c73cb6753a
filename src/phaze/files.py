"""Files in and out: what is read is a file of bounded size, what is written is seen whole or not at
all.

Every file that phaze reads for a user passes :func:`read_text`, every file that it writes
:func:`write_whole`. A folder may come from somebody else: nothing in it is followed or overwritten
but the regular file that was named.
"""

import errno
import os
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path

from phaze.errors import InputError

# The largest file that is read as text. The largest graphs of real models take some 10 MB; parsed
# values take about ten times their text, so this is what a small machine can still hold.
MOST_BYTES = 256 << 20
# How much is read at a time, so that a stream without end is refused after MOST_BYTES and not after
# all memory.
CHUNK_BYTES = 1 << 20
STANDARD_INPUT = ("-", "/dev/stdin")
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def is_path(text: str) -> bool:
    """Whether ``text`` means a file rather than a bundled name."""
    return text == "-" or "/" in text or text.endswith((".toml", ".json"))


def kind_of(mode: int) -> str:
    """What stands at a path, in words; empty for a regular file."""
    return next((words for is_kind, words in KINDS if is_kind(mode)), "")


def _bounded(handle: int, where: str) -> bytes:
    """All bytes of an open file, refused beyond ``MOST_BYTES``."""
    content = bytearray()
    while chunk := os.read(handle, CHUNK_BYTES):
        content += chunk
        if len(content) > MOST_BYTES:
            raise InputError(
                where, f"there is more than {MOST_BYTES >> 20} MiB", "give a smaller file"
            )
    return bytes(content)


def read_bytes(path: str) -> bytes:
    """The bytes of a regular file; opening does not wait, whatever stands at ``path``."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        kind = kind_of(os.fstat(handle).st_mode)
        if kind:
            raise InputError(path, f"this is {kind}", "give a file, or - for standard input")
        return _bounded(handle, path)
    finally:
        os.close(handle)


def _standard_input() -> bytes:
    binary = getattr(sys.stdin, "buffer", None)
    if binary is None:  # a text stream that stands in for it, or none at all
        return (sys.stdin.read() if sys.stdin else "").encode("utf-8", "surrogatepass")
    content: bytes = binary.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InputError(
            "standard input",
            f"there is more than {MOST_BYTES >> 20} MiB",
            "give a smaller document",
        )
    return content


def read_text(path: str) -> tuple[str, str]:
    """The text at ``path`` (``-``: standard input) and the name to call it by in messages."""
    where = "standard input" if path in STANDARD_INPUT else path
    try:
        content = _standard_input() if path in STANDARD_INPUT else read_bytes(path)
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"), where
    except FileNotFoundError:
        raise InputError(where, "there is no such file") from None
    except UnicodeDecodeError:
        raise InputError(where, "the file is not UTF-8 text") from None
    except ValueError as fault:
        raise InputError(where, f"this is not a file path ({fault})") from None
    except OSError as fault:
        raise InputError(where, f"the file cannot be read ({fault.strerror})") from None


def refuse_other_kinds(path: Path, remedy: str = "remove it, or write elsewhere") -> None:
    """Refuse to write where something stands that is no regular file: a link leads elsewhere, a
    device is no file."""
    try:
        kind = kind_of(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if kind:
        raise InputError(str(path), f"this is {kind}, not a file", remedy)


def _written(folder: int, name: str, content: bytes) -> None:
    """Write to a temporary file with an unpredictable name in the same open folder, then rename."""
    beside = f".{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(beside, flags, 0o666, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is never seen half written, and nothing but it is touched."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        refuse_other_kinds(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _written(folder, path.name or ".", data)
        finally:
            os.close(folder)
    except ValueError as fault:
        raise InputError(str(path), f"this is not a file path ({fault})") from None
    except OSError as fault:
        full = fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        change = "free disk space; the same command resumes" if full else "write elsewhere"
        raise InputError(
            str(path), f"the file cannot be written ({fault.strerror})", change
        ) from None


def folder_for(folder: Path) -> Path:
    """The folder of a run, made where there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except ValueError as fault:
        raise InputError(
            str(folder), f"this is not a folder path ({fault})", "give another --out"
        ) from None
    except OSError as fault:
        raise InputError(
            str(folder), f"the folder cannot be made ({fault.strerror})", "give another --out"
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(str(folder), "the folder cannot be written", "give another --out")
    return folder


def beside(folder: Path, path: str) -> str:
    """A path that a document in ``folder`` names, as it is opened: relative to the document, or
    else to the working folder; where neither has it, the document's."""
    near = str(folder / path)
    if path in STANDARD_INPUT or (not os.path.exists(near) and os.path.exists(path)):  # noqa: PTH110 (no text raises)
        return path
    return near
