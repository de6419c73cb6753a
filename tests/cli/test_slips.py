"""Slips of a first user: each is one sentence with what was given and what is allowed, and exit
code 2."""

from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.evaluate.levers import _parts
from tests.cli.fuzz_run import fault_in
from tests.conftest import Ran

SLIPS = {
    "verify nowhere": "nowhere: there is no such folder; give that of a run",
    "verify folder": (
        "folder: there is no finished run, front, sweep or plan's certificate here; give the folder"
    ),
    "verify empty.json": (
        "empty.json: this is a file; give the folder of a run, or of a plan's certificate"
    ),
    "compare": "there is no study and no --model; give one of them, such as --model llama3-8b",
    ("compare --run nowhere --chip h100"): (
        "--run: nowhere holds no finished run; give the folder of a search"
    ),
    "sweep --over training.devices=4,8": "there is no study and no --model",
    ("front empty.toml --model gpt2-xl --of throughput,area"): (
        "a study and --model are given together; give one of them"
    ),
    "graph --model llama3-8b --tensor -1": "--tensor: -1 is out of range; it must be at least 1",
    "new chip --area -5": "--area: '-5' cannot be used; give a number above 0 in mm2",
    ("plan --model folder --chip h100 --devices 8 --batch 8"): (
        "folder: no bundled model is called that, and a folder is"
    ),
    "plan --fixed empty.json": "empty.json: there is nothing in it; give an object with keys",
    ("plan --against empty.toml --model llama3-8b --chip h100"): (
        "empty.toml: there is nothing in it; give a shell file"
    ),
    ("plan --fixed run.json --html --json"): (
        "--html: '--json' is an option, not a value; give its value"
    ),
    "place x.json --perfetto --pretty": "--perfetto: '--pretty' is an option, not a value",
    "compare --model gpt2-xl --chips --json": "--chips: '--json' is an option, not a value",
    "search --model bert-large --set --workers": "--set: '--workers' is an option, not a value",
}


@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_is_one_sentence_with_what_is_allowed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Ran]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("empty.json", "empty.toml"):
        (tmp_path / name).write_text("\n")
    ran = phaze(*line.split())
    assert (
        ran.code == 2 and ran.err.startswith(f"phaze: {SLIPS[line]}") and ran.err.count("\n") == 1
    ), ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "empty.json",
        "empty.toml",
        "folder",
    ]


@pytest.mark.parametrize("microbatch", ["2147483648", "6917529027641081856"])
def test_what_would_fit_of_a_huge_microbatch_is_found_in_seconds(microbatch: str) -> None:
    """Its parts are tried from the largest on; there are as many numbers below it as a loop never
    ends with."""
    sizes = "hidden=256,layers=2,heads=4,vocabulary=512,sequence=64"
    line = (
        f"plan --gpt {sizes} --chip a100-80gb --devices 8 --batch 8 --tensor 1 --microbatch "
        f"{microbatch}"
    )
    assert not fault_in(line.split())


def test_the_parts_of_a_microbatch_are_its_divisors() -> None:
    for size in (1, 2, 7, 12, 64, 360, 4096):
        assert _parts(size) == [part for part in range(size - 1, 0, -1) if size % part == 0]
