"""Files: a hostile folder leads nowhere, a file is written whole or not at all, and nothing without
end is read."""

import os
import socket
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from phaze import files
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.errors import InputError
from phaze.files import folder_for, read_text, write_whole
from phaze.search.journal import SqliteJournal, read_closed


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "run"
    precious.write_text("mine")
    folder.mkdir()
    for name in ("report.html.part", ".report.html.part", "report.html.tmp"):
        (folder / name).symlink_to(precious)
    write_whole(folder / "report.html", "page")
    assert (folder / "report.html").read_text() == "page"
    assert precious.read_text() == "mine"


def test_a_temporary_name_that_exists_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    monkeypatch.setattr("phaze.files.secrets.token_hex", lambda size: "0" * 2 * size)
    (tmp_path / f".{'0' * 16}.part").symlink_to(precious)
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "page", "text")
    assert precious.read_text() == "mine"
    assert (tmp_path / f".{'0' * 16}.part").is_symlink()


def test_what_is_no_file_is_not_written_over(tmp_path: Path) -> None:
    precious, link, pipe = tmp_path / "precious", tmp_path / "link", tmp_path / "pipe"
    precious.write_text("mine")
    link.symlink_to(precious)
    os.mkfifo(pipe)
    (tmp_path / "folder").mkdir()
    for path, kind in (
        (link, "symbolic link"),
        (pipe, "pipe"),
        (tmp_path / "folder", "folder"),
        (Path(), "folder"),
    ):
        with pytest.raises(InputError, match=kind):
            write_whole(path, "text")
    with pytest.raises(InputError, match="a device"):
        write_whole(Path("/dev/null"), "text")
    assert precious.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "folder",
        "link",
        "pipe",
        "precious",
    ]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page"
    page.write_text("old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("phaze.files.os.fsync", full)
    with pytest.raises(InputError, match="free disk space"):
        write_whole(page, "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_name_as_long_as_names_may_be_is_written(tmp_path: Path) -> None:
    write_whole(tmp_path / ("x" * 255), b"bytes")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"bytes"
    for path in (
        tmp_path / ("x" * 256),
        tmp_path / "a\0b",
        tmp_path / "no" / "folder",
        tmp_path / ("x" * 255) / "in",
    ):
        with pytest.raises(InputError, match=r"cannot be written|not a file path"):
            write_whole(path, "text")
        with pytest.raises(InputError, match=r"cannot be (made|written)|not a (file|folder) path"):
            folder_for(path if len(path.name) != 6 else tmp_path / ("x" * 255))


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_journal_that_is_a_link_is_refused(suffix: str, tmp_path: Path) -> None:
    precious, journal = tmp_path / "precious", tmp_path / "journal.sqlite"
    precious.write_text("mine")
    with SqliteJournal(journal, "study", "code"):
        pass
    if not suffix:
        journal.unlink()
    (tmp_path / f"journal.sqlite{suffix}").symlink_to(precious)
    with pytest.raises(InputError, match="symbolic link"):
        SqliteJournal(journal, "study", "code")
    with pytest.raises(InputError, match="symbolic link"):
        read_closed(journal)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize(
    "command", ["place", "schedule", "validate", "graph --model", "calibrate --chip a100-80gb"]
)
def test_a_device_is_refused_by_every_reader(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(app, [*command.split(), "/dev/zero"]) == 2
    assert "/dev/zero" in capsys.readouterr().err


def test_what_is_no_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path may not be long
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as at:
        at.bind("socket")
        for path, said in (
            ("pipe", "a pipe"),
            ("/dev/zero", "a device"),
            (".", "a folder"),
            ("socket", "cannot be"),
        ):
            with pytest.raises(InputError, match=said):
                read_text(path)


def test_a_file_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = tmp_path / "big.json"
    with big.open("wb") as file:
        file.truncate(files.MOST_BYTES + 1)  # a file of holes takes no room
    with pytest.raises(InputError, match="more than 256 MiB"):
        read_text(str(big))
    monkeypatch.setattr(files, "MOST_BYTES", 8)
    for content, fits in ((b"12345678", True), (b"123456789", False)):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content)))
        if fits:
            assert read_text("-") == ("12345678", "standard input")
        else:
            with pytest.raises(InputError, match="standard input: there is more than"):
                read_text("-")


def test_a_byte_order_mark_is_no_part_of_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf{}\r\n")
    assert read_text(str(tmp_path / "marked.json"))[0] == "{}\n"
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"\xff{}")))
    with pytest.raises(InputError, match="standard input: the file is not UTF-8"):
        read_text("-")
