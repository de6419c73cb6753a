"""A Ray cluster of two machines that share a token, as docs/cluster.md starts it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from phaze.search.folder import RESULT
from tests.search.test_ray import _made, _start, _until, needs_ray


def _free_port() -> int:
    """A port below those that Ray gives its workers."""
    for port in range(6390, 6490):
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no port is free")


def _node(home: Path, *arguments: str, mode: str = "token") -> "subprocess.Popen[str]":
    """``ray start`` on a machine of its own, as far as its home folder makes one."""
    home.mkdir(exist_ok=True)
    told = {**os.environ, "HOME": str(home), "RAY_AUTH_MODE": mode, "RAY_USAGE_STATS_ENABLED": "0"}
    command = [
        str(Path(sys.executable).parent / "ray"),
        "start",
        *arguments,
        "--num-cpus",
        "1",
        "--block",
    ]
    with (home / "log").open("w") as log:
        return subprocess.Popen(
            command, env=told, stdout=log, stderr=log, text=True, start_new_session=True
        )


@needs_ray
@pytest.mark.slow
def test_a_second_machine_joins_with_the_token_of_the_first_as_the_document_says(
    tmp_path: Path,
) -> None:
    _made(tmp_path)
    short = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # the names of sockets must be short
    first, second, port = short / "a", short / "b", _free_port()
    first.mkdir()
    told = {**os.environ, "HOME": str(first)}
    made = [str(Path(sys.executable).parent / "ray"), "get-auth-token", "--generate"]
    subprocess.run(made, env=told, check=True, capture_output=True)
    address, nodes = f"127.0.0.1:{port}", list["subprocess.Popen[str]"]()
    try:
        temporary = ("--temp-dir", str(short / "t"), "--include-dashboard", "false")
        nodes.append(_node(first, "--head", "--port", str(port), *temporary))
        assert _until(lambda: "Ray runtime started" in (first / "log").read_text(), 180)
        nodes.append(_node(second, "--address", address, mode="disabled"))
        assert nodes[-1].wait(180) and "AuthenticationError" in (second / "log").read_text(), (
            "a machine without a token"
        )
        (second / ".ray").mkdir(exist_ok=True)
        shutil.copy(first / ".ray" / "auth_token", second / ".ray" / "auth_token")
        nodes.append(_node(second, "--address", address))
        assert _until(lambda: "Ray runtime started" in (second / "log").read_text(), 180)
        command = [
            sys.executable,
            "-m",
            "phaze",
            "search",
            str(tmp_path / "study.toml"),
            "--gap",
            "0",
        ]
        more = [
            "--out",
            str(tmp_path / "run"),
            "--engine",
            "ray",
            "--address",
            address,
            "--workers",
            "2",
        ]
        done = subprocess.run(
            [*command, *more, "--set", "search.round_size=2"],
            env={**told, "RAY_AUTH_MODE": "token"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        for node in nodes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGTERM)
            node.wait(60)
        shutil.rmtree(short, ignore_errors=True)
    assert _start(tmp_path, "local", "--workers", "1").wait() == 0
    assert (tmp_path / "run" / RESULT).read_bytes() == (tmp_path / "local" / RESULT).read_bytes()
