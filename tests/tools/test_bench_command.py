"""``make bench`` as a person and as a program meet it, on its quickest part."""

import json
import subprocess
import sys

import pytest


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_document_has_the_documented_schema() -> None:
    done = ran("placement", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "measuring placement\n"
    document = json.loads(done.stdout)
    assert sorted(document) == ["agree", "machine", "published", "schema", "sections"]
    assert document["schema"] == "phaze.bench/1" and document["agree"] is True
    assert sorted(document["machine"]) == ["cores", "load", "processor", "python", "system"]
    (section,) = document["sections"]
    assert sorted(section) == ["lines", "notes", "part"] and section["part"] == "placement"
    keys = [
        "against",
        "agree",
        "answers",
        "basis",
        "input",
        "missing",
        "ours",
        "ratio",
        "theirs",
        "unit",
        "values",
    ]
    for line in section["lines"]:
        assert sorted(line) == keys
        assert sorted(line["ours"]) == ["elapsed_s", "memory_bytes", "processor_s", "stopped"]
        least, most = line["theirs"]["processor_s"]
        assert 0 < least <= most
        assert line["ratio"] == pytest.approx(least / line["ours"]["processor_s"][1])
    numpy_tables = [line for line in section["lines"] if line["basis"] == "measured"]
    assert all(
        line["theirs"]["memory_bytes"] is None
        for line in section["lines"]
        if line["basis"] == "published"
    )
    if sys.platform == "linux":
        assert numpy_tables[-1]["theirs"]["memory_bytes"] > 2**20, (
            "a table of 98 layers x 1,024 devices in numpy"
        )
    inputs = [line["input"] for line in section["lines"][::3]]
    assert inputs == ["26 layers, width 1", "50 layers, 3 widths", "98 layers, 4 widths"]


def test_an_unknown_part_and_a_wrong_limit_are_bad_input() -> None:
    done = ran("placements")
    assert done.returncode == 2 and "placement" in done.stderr
    done = ran("schedule", "--limit", "0")
    assert done.returncode == 2 and "--limit" in done.stderr


@pytest.mark.parametrize(
    ("line", "serves"),
    [
        ("bench placement", "make bench"),
        ("validate --held-back", "tools.fits"),
        ("validate --bands --write x.json", "tools.fits"),
        ("calibrate --rows products", "tools.fits"),
        ("kernels --rebuild --room cost", "make kernels"),
    ],
)
def test_what_left_the_package_names_what_serves_now(line: str, serves: str) -> None:
    command = [sys.executable, "-m", "phaze", *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert serves in done.stderr and "it is no part of the package any more" in done.stderr


@pytest.mark.slow
def test_the_search_is_certified_and_no_plain_chip_beats_it() -> None:
    done = ran("search", "--json")
    assert done.returncode == 0, done.stderr
    lines = json.loads(done.stdout)["sections"][0]["lines"]
    assert lines[0]["answers"] == "certified" and lines[0]["agree"] is True
