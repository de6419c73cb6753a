"""The server of phaze view: for one person, on this machine, and read-only."""

import http.client
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

from phaze.search.progress_file import PROGRESS, ProgressFile, both
from phaze.search.state import Standing
from phaze.view.library import entries, key_of
from phaze.view.server import ViewServer

MARKUP = "<script>window.ran=1</script>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A search under way, one that was stopped, one whose document is damaged, a plan, and a link
    that leads out."""
    rows = [[0.5, None, 0.9, 0, 10, 0, 90], [1.0, 1.2, 1.0, 3, 60, 0, 37]]
    for name in ("runs/going", "runs/old"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / PROGRESS).write_text(
            json.dumps({"schema": "phaze.progress/1", "rows": rows})
        )
    os.utime(tmp_path / "runs/old" / PROGRESS, (1, 1))
    (tmp_path / "runs/begun").mkdir()  # its space is being bounded: there is no course yet
    (tmp_path / "runs/begun/journal.sqlite").write_bytes(b"")
    (tmp_path / "runs/broken").mkdir()
    (tmp_path / "runs/broken/result.json").write_text('{"schema": 1}')
    job = {"model": MARKUP, "devices": 8, "chip": "h100"}
    plan = {"schema": "phaze.plan/1", "job": job, "tokens_per_s_per_device": 1.0, "mfu": 0.5}
    (tmp_path / "runs/plan.json").write_text(json.dumps(plan))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/result.json").write_text("{}")
    (tmp_path / "runs/out").symlink_to(tmp_path / "secret")
    return tmp_path / "runs"


@pytest.fixture
def server(root: Path) -> Iterator[ViewServer]:
    served = ViewServer(root)
    Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield served
    served.shutdown()
    served.server_close()


def test_a_strange_token_and_a_reader_that_goes_leave_no_traceback(
    server: ViewServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in ("/?token=%C3%A9%F0%9F%98%80", "/?token=", "/"):
        assert asked(server, path, Cookie="phaze-view=1")[0] == 403
    for text in (b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET /?token=x HTTP/1.1\r\n\r\n" * 50, b""):
        with socket.create_connection(("127.0.0.1", server.server_port)) as link:
            link.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # reset, not closed
            link.sendall(text)
            sleep(0.05)
    assert asked(server, "/")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def asked(
    server: ViewServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, str, Any]:
    """Status, text and headers of an answer; the token's cookie comes with it unless another is
    given."""
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    known = {"Cookie": f"phaze-view-{server.server_port}={server.token}", **headers}
    link.request(method, path, headers=known)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text, answer.headers


def test_runs_are_found_by_their_files_and_links_are_not_followed(root: Path) -> None:
    found = {run.name: (run.kind, run.status) for run in entries(root)}
    assert found == {
        "going": ("search", "running"),
        "begun": ("search", "running"),
        "old": ("search", "stopped"),
        "broken": ("search", "damaged"),
        "plan.json": ("plan", "finished"),
    }


def test_it_listens_on_this_machine_alone(server: ViewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_nothing_is_answered_without_the_token(server: ViewServer) -> None:
    for path in ("/", f"/run/{key_of('going')}"):
        for cookie in ("", "phaze-view=x", f"phaze-view-{server.server_port}=wrong"):
            status, text, _ = asked(server, path, Cookie=cookie)
            assert status == 403
            assert "going" not in text
    assert asked(server, f"/?token={server.token}x", Cookie="")[0] == 403


def test_the_token_moves_from_the_address_into_a_cookie(server: ViewServer) -> None:
    status, _, headers = asked(server, f"/?token={server.token}", Cookie="")
    assert status == 303
    assert headers["Location"] == "/"
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["Set-Cookie"].split("; "))
    elsewhere = asked(server, f"//evil.example/?token={server.token}", Cookie="")[2]["Location"]
    assert not elsewhere.startswith("//"), "it leads to another host"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", ""])
def test_a_request_for_another_host_is_refused(host: str, server: ViewServer) -> None:
    assert asked(server, "/", Host=host)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_only_reads(method: str, server: ViewServer, root: Path) -> None:
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*"))
    assert asked(server, "/", method)[0] == 501
    for path in ("/", f"/run/{key_of('going')}", f"/run/{key_of('old')}"):
        assert asked(server, path)[0] == 200
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in root.rglob("*")) == before


@pytest.mark.parametrize(
    "path",
    ["/run/", "/run/000000000000", "/run/../../secret", "/run/%2e%2e%2fsecret",
    "/secret/result.json",
     "/compare?a=1&b=2", "/runs.json", "/etc/passwd"],
)  # fmt: skip
def test_what_is_no_run_of_the_folder_is_not_there(path: str, server: ViewServer) -> None:
    assert asked(server, path)[0] == 404


def test_a_search_under_way_shows_its_course(server: ViewServer) -> None:
    status, text, headers = asked(server, f"/run/{key_of('going')}")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "going: running" in text and "Gap over time" in text and 'data-refresh="1.0"' in text
    stopped = asked(server, f"/run/{key_of('old')}")[1]
    assert "old: stopped" in stopped and "the same command resumes it" in stopped
    begun = asked(server, f"/run/{key_of('begun')}")[1]
    assert "Every chip of the space is bounded first" in begun and "<svg" not in begun


def test_a_damaged_run_is_a_sentence_and_markup_stays_text(server: ViewServer) -> None:
    status, text, _ = asked(server, f"/run/{key_of('broken')}")
    assert status == 422
    assert "<h1>" in text
    status, text, headers = asked(server, "/")
    assert status == 200
    assert MARKUP not in text
    assert "&lt;script&gt;window.ran=1" in text
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_a_damaged_course_draws_nothing(server: ViewServer, root: Path) -> None:
    for rows in ('"x"', '[["<b>", 1, 2, 3, 4, 5, 6]]', "[[1, 2]]", "[[1, 1e99, 2, 3, 4, 5, 6]]"):
        (root / "going" / PROGRESS).write_text(f'{{"rows": {rows}}}')
        status, text, _ = asked(server, f"/run/{key_of('going')}")
        assert status == 200 and "<svg" not in text and "<b>phaze view</b>" in text


def test_a_search_keeps_its_course_and_takes_it_away(tmp_path: Path) -> None:
    kept, seen = ProgressFile(tmp_path), list[Standing]()
    watch = both(kept.watch, seen.append)
    for step in range(3):
        kept.last = -1.0
        watch(Standing(step, 5, 0, 9 - step, float("inf") if step == 0 else 2.0, 1.0))
    rows = json.loads((tmp_path / PROGRESS).read_text())["rows"]
    assert [row[1] for row in rows] == [None, 2.0, 2.0]
    assert [row[3] for row in rows] == [0, 1, 2]
    assert len(seen) == 3
    kept.end()
    assert not (tmp_path / PROGRESS).exists()


def test_a_course_of_a_day_stays_small(tmp_path: Path) -> None:
    kept = ProgressFile(tmp_path)
    for step in range(1500):
        kept.last = -1.0
        kept.watch(Standing(step, 0, 0, 0, 2.0, 1.0))
    rows = json.loads((tmp_path / PROGRESS).read_text())["rows"]
    assert len(rows) <= 600
    assert rows[0][3] == 0


def test_a_folder_that_cannot_be_written_stops_no_search(tmp_path: Path) -> None:
    kept = ProgressFile(tmp_path / "missing")
    kept.watch(Standing(0, 0, 0, 1, 2.0, 1.0))
    kept.end()
