"""Whatever stands in a file, a command answers, or says in one sentence what is wrong: it never
fails or hangs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.fuzz_cases import Case, cases_in
from tests.cli.fuzz_lines import odd_lines
from tests.cli.fuzz_own import traced_here
from tests.cli.fuzz_rows import answer_of
from tests.cli.fuzz_run import code_of, fault_in
from tests.cli.mutate import mutated_bytes, mutated_document, mutated_journal

EVERYDAY, ALL = 60, 20_000
EVERYDAY_LINES, ALL_LINES = 60, 3_000
OPTIONS = (
    *(
        "chips TEXT",
        "clusters TEXT",
        "stacks TEXT",
        "models TEXT",
        "schema TEXT",
        "place TEXT",
        "report TEXT",
    ),
    *(
        "estimate --chip tpu-v4 --gemm TEXT",
        "estimate --chip tpu-v4 --vector TEXT",
        "estimate --gemm 8x8x8 --chip TEXT",
    ),
    *(
        "estimate --cluster selene --collective TEXT",
        "schedule TEXT",
        "validate TEXT",
        "study check TEXT",
    ),
    *(
        "plan --chip a100-80gb --devices 8 --batch 8 --gpt TEXT",
        "plan --model gpt2 --chip a100-80gb --devices TEXT",
    ),
    *(
        "graph --gpt TEXT",
        "export TEXT --to csv",
        "verify TEXT",
        "compare --run TEXT",
        "explain TEXT",
    ),
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Every command that reads a single file, with a good one."""
    return cases_in(tmp_path_factory.mktemp("fuzz"), runs=False)


def _bad(case: Case, random: Random) -> bytes:
    if case.path.suffix == ".sqlite" and random.random() < 0.7:
        return mutated_journal(random, case.path)
    if case.raw is None or random.random() < 0.2:
        return mutated_bytes(random, case.good)
    found = mutated_document(random, case.raw, case.path.suffix == ".toml")
    return mutated_bytes(random, found) if random.random() < 0.05 else found


def fault_of(case: Case, seed: int) -> str:
    """What is wrong with how a command took a bad file; empty where nothing is."""
    random = Random(f"{case.name} {seed}")
    case.prepare()
    case.path.write_bytes(_bad(case, random))
    try:
        return fault_in([*case.arguments, *(["--json"] if random.random() < 0.5 else [])])
    finally:
        case.path.parent.mkdir(parents=True, exist_ok=True)
        case.path.write_bytes(case.good)


def _shares(cases: list[Case], count: int) -> Iterator[tuple[Case, int]]:
    """``count`` inputs over the cases by weight, seeds from 0."""
    total = sum(case.weight for case in cases)
    for case in cases:
        for seed in range(max(1, round(count * case.weight / total))):
            yield case, seed


def _faults(cases: list[Case], count: int) -> list[str]:
    found = ((case.name, seed, fault_of(case, seed)) for case, seed in _shares(cases, count))
    return [f"{name}, seed {seed}: {fault}" for name, seed, fault in found if fault]


def test_a_seed_gives_the_same_bad_file_whatever_came_before() -> None:
    raw = {"rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], "c": [1, 2]}
    first = [mutated_document(Random(seed), raw, False) for seed in range(300)]
    for seed in range(300, 3000):
        mutated_document(Random(seed), raw, False)
    assert [mutated_document(Random(seed), raw, False) for seed in range(300)] == first


def test_a_good_file_of_every_case_is_answered(
    cases: list[Case],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for case in cases:
        if case.name.startswith(
            "search"
        ):  # stopped after two seconds, it may have found nothing yet
            continue
        wanted = 2 if "torchtitan" in case.name else 0  # it has no gpt
        assert code_of(case.arguments) == wanted, (case.name, capsys.readouterr().err)
        assert case.path.read_bytes() == case.good


def test_dozens_of_bad_files_are_answered_or_refused(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not _faults([case for case in cases if not case.name.startswith("search")], EVERYDAY)


@pytest.mark.slow
def test_twenty_thousand_bad_files_are_answered_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    with traced_here():
        assert not _faults(cases_in(tmp_path, runs=True), ALL)


@pytest.mark.parametrize("count", [EVERYDAY_LINES, pytest.param(ALL_LINES, marks=pytest.mark.slow)])
def test_odd_command_lines_are_answered_or_refused(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    cases_in(tmp_path, runs=False)
    answer_of("search", f"{tmp_path}/study.toml", "--out", f"{tmp_path}/run", "--workers", "1")
    faults = []
    for line in odd_lines(tmp_path, count):
        shutil.rmtree("new", ignore_errors=True)
        faults += [(line, fault)] if (fault := fault_in(line)) else []
    assert not faults


@given(text=st.text(max_size=40), command=st.sampled_from(OPTIONS))
@settings(max_examples=40)
def test_any_text_as_an_option_is_answered_or_refused(text: str, command: str) -> None:
    before, _, after = command.partition(" TEXT")
    assert not fault_in([*before.split(), text, *after.split()])
