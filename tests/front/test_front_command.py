"""``phaze front`` end to end: its files, its page, resuming after kills, verifying, refusals; the
Python face."""

import csv
import html
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import phaze as face
from phaze import documents
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.front.schema import FrontFile
from phaze.report.answer_text import front_warning
from phaze.report.front_sheet import front_page
from tests.conftest import Ran
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY


def made_study(folder: Path) -> Path:
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.format(folder=folder) + "[search]\nround_size = 2\n")
    return folder / "study.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished fronts: of one metric of a run, and of two."""
    where = tmp_path_factory.mktemp("front")
    study = made_study(where)
    for name, of in (("one", "throughput,area"), ("two", "throughput,carbon,area")):
        arguments = ["front", str(study), "--of", of, "--out", str(where / name), "--workers", "1"]
        assert exit_code_of(app, arguments) == 0
    return where


def _read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "front.json").read_text(encoding="utf-8"))
    return found


def test_the_files_of_a_front(folder: Path, phaze: Callable[..., Ran]) -> None:
    document = _read(folder / "one")
    documents.check(FrontFile, document, "front.json")
    points = document["points"]
    assert [point["metrics"]["area"] for point in points] == sorted(
        point["metrics"]["area"] for point in points
    )
    assert document["certificate"]["gap"] == 0.0
    assert document["certificate"]["closed"]["bound"] > 0
    rows = list(
        csv.DictReader((folder / "one" / "front.csv").read_text(encoding="utf-8").splitlines())
    )
    assert [float(row["throughput"]) for row in rows] == [
        point["metrics"]["throughput"] for point in points
    ]
    page = (folder / "one" / "front.html").read_text(encoding="utf-8")
    assert page == front_page(document)
    assert page.count('<tr data-at="') == len(points)
    shown = phaze(
        "front", folder / "study.toml", "--of", "throughput,area", "--out", folder / "one"
    )
    assert shown.code == 0
    assert (
        "No other design of the space is at least as good in all of these metrics and better in "
        "one: proved."
    ) in " ".join(shown.out.split())
    assert all(
        len(line) <= 80 for line in shown.out.splitlines() if not line.startswith("The front:")
    )
    assert json.loads(phaze("schema", "front", "--json").out)["$id"] == "phaze.front/1"


def test_a_front_names_its_network_and_stands_beside_shipped_chips(
    folder: Path, phaze: Callable[..., Ran]
) -> None:
    document, page = (
        _read(folder / "one"),
        (folder / "one" / "front.html").read_text(encoding="utf-8"),
    )
    shown = phaze(
        "front", folder / "study.toml", "--of", "throughput,area", "--out", folder / "one"
    )
    said = " ".join(shown.out.split())
    label = document["cluster"]["label"]
    dense = [
        point["plausibility"]["peak_flops_per_mm2"]["value"] / 1e12 for point in document["points"]
    ]
    shipped = document["points"][0]["plausibility"]["peak_flops_per_mm2"]["shipped_chip"]
    for text in (said, " ".join(html.unescape(page).split())):
        assert f"{label}; 8 devices" in text
        assert f"{min(dense):.2f} to {max(dense):.2f} TFLOP/s" in text
        assert shipped in text
        assert "optimizer sgd, attention eager" in text
    assert document["setting"]["process"] in said


def test_a_front_counts_its_designs_beyond_what_was_shipped(folder: Path) -> None:
    document = _read(folder / "one")
    for point in document["points"]:
        point["plausibility"]["warnings"] = []
    assert front_warning(document) == ""
    first, last = document["points"][0], document["points"][-1]
    first["plausibility"]["warnings"] = last["plausibility"]["warnings"] = [
        "a clock of 9 GHz is 4 times the most"
    ]
    last["plausibility"]["clock_hz"]["ratio"] = 99.0
    count = len(document["points"])
    assert (
        f"2 of the {count} designs are beyond what was shipped; of {last['chip']['name']}"
        in front_warning(document)
    )
    assert "Trust the comparison of designs" in front_page(document)


@pytest.mark.parametrize(
    ("key", "value"),
    [("precision", None), ("levels", "two"), ("link_bytes_per_s", []), ("stack", 3)],
)
def test_a_front_that_lacks_what_its_page_says_is_refused_in_a_sentence(
    key: str, value: Any, folder: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    document = _read(folder / "one")
    shutil.copytree(folder / "one", tmp_path / "bad")
    document["setting"] = {name: own for name, own in document["setting"].items() if name != key}
    document["setting"] |= {} if value is None else {key: value}
    (tmp_path / "bad" / "front.json").write_text(json.dumps(document), encoding="utf-8")
    shown = phaze("report", tmp_path / "bad")
    assert shown.code == 2
    assert f"front.json: setting{': the key ' if value is None else '.'}" in shown.err
    assert key in shown.err


def test_a_page_keeps_names_as_text(folder: Path) -> None:
    document = json.loads(json.dumps(_read(folder / "one")).replace("tiny", "<script>&"))
    assert "<script>&" not in front_page(document)


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_good_front_holds_and_others_do_not(
    folder: Path, name: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    good = phaze("verify", folder / name)
    assert good.code == 0, good.out

    def spoil(change: Callable[[dict[str, Any]], None], *options: str) -> Ran:
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(folder / name, tmp_path / "bad")
        document = _read(tmp_path / "bad")
        change(document)
        (tmp_path / "bad" / "front.json").write_text(
            json.dumps(document, indent=2) + "\n", encoding="utf-8"
        )
        return phaze("verify", tmp_path / "bad", *options)

    def faster(document: dict[str, Any]) -> None:
        for point in document["points"]:
            point["metrics"]["throughput"] *= 1.01

    def other_plan(document: dict[str, Any]) -> None:
        for point in document["points"]:
            point["models"][0]["batch_s"] *= 0.5

    def other_chip(document: dict[str, Any]) -> None:
        for point in document["points"]:
            point["chip"]["tensor_cores"] += 1

    def plausible(document: dict[str, Any]) -> None:
        for point in document["points"]:
            point["plausibility"]["design_w_per_mm2"]["value"] *= 0.5

    def network(document: dict[str, Any]) -> None:
        document["cluster"]["label"] = "another"

    def missing(document: dict[str, Any]) -> None:
        del document["points"][len(document["points"]) // 2]

    def counts(document: dict[str, Any]) -> None:
        document["certificate"]["closed"]["bound"] += 1

    def limits(document: dict[str, Any]) -> None:
        document["within"]["area"] = 100.0

    ours = (faster, other_plan, other_chip, counts, limits, plausible, network)
    changes = ours if name == "one" else (faster,)
    for change in (*changes, missing):
        ran = spoil(
            change, "--quick"
        )  # what is shown is compared whole, whether or not the proof is run through again
        assert ran.code == 1, change.__name__
        assert "does not hold" in " ".join(ran.out.split())
    assert spoil(missing).code == 1


def test_a_journal_that_was_changed_is_not_believed(
    folder: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(folder / "one", tmp_path / "bad")
    base = sqlite3.connect(tmp_path / "bad" / "journal.sqlite")
    base.execute("UPDATE closed SET bound = bound * 1.5 WHERE reason = 'bound'")
    base.commit()
    base.close()
    ran = phaze("verify", tmp_path / "bad")
    assert ran.code == 0 and "16 chips with a memory proved" in " ".join(ran.out.split())


def test_one_sentence_where_there_is_no_front(tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    study = made_study(tmp_path)
    for arguments, code, said in (
        (("--of", "throughput"), 2, "one metric alone"),
        (("--of", "throughput,speed"), 2, "speed"),
        (("--of", ""), 2, "no metric"),
        (("--of", "throughput,area", "--gap", "2"), 2, "gap"),
        (
            ("--of", "throughput,area", "--within", "area=1"),
            3,
            "No design of the space few has area at most 1",
        ),
        (("--of", "power,area", "--within", "throughput=1e12"), 3, "throughput at least 1e+12"),
        (("--of", "throughput,area", "--set", "hbm=['1 MiB']"), 3, "bert-large"),
    ):
        ran = phaze("front", study, *arguments, "--out", tmp_path / "out" / str(code) / said)
        assert (ran.code, ran.err.count("\n")) == (code, 1), ran.err
        assert said in ran.err
    assert phaze("front", study, "--of", "throughput,area", "--out", tmp_path / "a").code == 0
    other = phaze("front", study, "--of", "throughput,power", "--out", tmp_path / "a")
    assert other.code == 2
    assert "another study" in other.err


def test_a_front_killed_at_any_moment_goes_on(tmp_path: Path) -> None:
    study = made_study(tmp_path)

    def start(out: str) -> "subprocess.Popen[bytes]":
        command = [
            sys.executable,
            "-m",
            "phaze",
            "front",
            str(study),
            "--of",
            "throughput,area,price",
        ]
        command += ["--out", str(tmp_path / out), "--workers", "2"]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    began = time.monotonic()
    assert start("whole").wait() == 0
    took = time.monotonic() - began
    expected = (tmp_path / "whole" / "front.json").read_bytes()
    for seed in range(2):
        process = start(str(seed))
        time.sleep(random.Random(seed).uniform(0.4, 1.0) * took)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        again = start(str(seed))
        _, said = again.communicate(timeout=300)
        assert again.returncode == 0, said.decode()
        assert (tmp_path / str(seed) / "front.json").read_bytes() == expected


def test_what_the_journal_has_is_not_done_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Ran]
) -> None:
    def never(*anything: object) -> None:
        raise AssertionError("opened again")

    monkeypatch.setattr(import_module("phaze.front.state").FrontState, "evaluate", never)
    before = (folder / "one" / "front.json").read_bytes()
    arguments = ("front", folder / "study.toml", "--of", "throughput,area", "--out", folder / "one")
    assert phaze(*arguments, "--workers", "1").code == 0
    assert (folder / "one" / "front.json").read_bytes() == before


def test_from_python(folder: Path, tmp_path: Path) -> None:
    found = face.front(
        folder / "study.toml", of=("throughput", "carbon", "area"), out=tmp_path / "run"
    )
    assert found.document == _read(folder / "two")
    assert len(found.points) == len(found.frame()["throughput"])
    assert "throughput" in repr(found)
    assert (
        found.page(tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    )
