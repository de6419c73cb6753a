"""Whatever stands in a file, a command answers, or says in one sentence what is wrong: it never fails or hangs."""

import contextlib
import io
import json
import resource
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from tests.cli.fuzz_cases import Case, cases_in
from tests.cli.mutate import mutated_bytes, mutated_document, mutated_journal

# Of verify exit code 1 is an answer too: what was checked does not hold.
ALLOWED = {0, 2, 3}
# A good file of any case takes below two seconds here; a command that is still at it after this many hangs.
MOST_S = 30
# Nor is there one that takes more memory than this; a file must not be able to take all that the machine has.
MOST_BYTES = 9 << 30
EVERYDAY, ALL = 60, 20_000
OPTIONS = (
    *("chips TEXT", "clusters TEXT", "stacks TEXT", "models TEXT", "schema TEXT", "place TEXT", "report TEXT"),
    *(
        "estimate --chip tpu-v4 --gemm TEXT",
        "estimate --chip tpu-v4 --vector TEXT",
        "estimate --gemm 8x8x8 --chip TEXT",
    ),
    *("estimate --cluster selene --collective TEXT", "schedule TEXT", "validate TEXT", "study check TEXT"),
    *("plan --chip a100-80gb --devices 8 --batch 8 --gpt TEXT", "plan --model gpt2 --chip a100-80gb --devices TEXT"),
    *("graph --gpt TEXT", "export TEXT --to csv", "verify TEXT", "compare --run TEXT", "explain TEXT"),
)


class HangError(BaseException):
    """A command that did not end."""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise HangError


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, MOST_S)  # the processor's time: others may be busy on the machine
    memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, memory[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, memory)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


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
    content = _bad(case, random)
    case.path.write_bytes(content)
    arguments = [*case.arguments, *(["--json"] if random.random() < 0.5 else [])]
    said, wrong = io.StringIO(), io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(said):
            warnings.simplefilter("always")
            with contextlib.redirect_stderr(wrong), _limited():
                code = exit_code_of(app, arguments)
    except HangError:
        return f"it hangs: more than {MOST_S} s"
    except BaseException as fault:
        return f"it raised {type(fault).__name__}: {fault}"
    finally:
        case.path.parent.mkdir(parents=True, exist_ok=True)
        case.path.write_bytes(case.good)
    text = wrong.getvalue()
    if code not in ALLOWED and not (code == 1 and case.name.startswith("verify") and not text):
        return f"exit code {code}: {text[:300]}"
    if warned:
        return f"it warned: {warned[0].message} ({warned[0].filename}:{warned[0].lineno})"
    if "Traceback" in text or "Warning" in text or (code == 2 and text.count("\n") != 1):
        return f"standard error: {text[:300]}"
    if arguments[-1] == "--json" and said.getvalue():
        try:
            json.loads(said.getvalue().splitlines()[-1])
            said.getvalue().encode()
        except ValueError as fault:
            return f"what it printed is no JSON: {fault}"
    return ""


def _shares(cases: list[Case], count: int) -> Iterator[tuple[Case, int]]:
    """``count`` inputs over the cases by weight, seeds from 0."""
    total = sum(case.weight for case in cases)
    for case in cases:
        for seed in range(max(1, round(count * case.weight / total))):
            yield case, seed


def _faults(cases: list[Case], count: int) -> list[str]:
    found = ((case.name, seed, fault_of(case, seed)) for case, seed in _shares(cases, count))
    return [f"{name}, seed {seed}: {fault}" for name, seed, fault in found if fault]


def test_a_good_file_of_every_case_is_answered(cases: list[Case], capsys: pytest.CaptureFixture[str]) -> None:
    for case in cases:
        if case.name.startswith("search"):  # stopped after two seconds, it may have found nothing yet
            continue
        wanted = 2 if "torchtitan" in case.name else 0  # torchtitan has no gpt
        assert exit_code_of(app, list(case.arguments)) == wanted, (case.name, capsys.readouterr().err)
        assert case.path.read_bytes() == case.good


def test_dozens_of_bad_files_are_answered_or_refused(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not _faults([case for case in cases if not case.name.startswith("search")], EVERYDAY)


@pytest.mark.slow
def test_twenty_thousand_bad_files_are_answered_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    assert not _faults(cases_in(tmp_path, runs=True), ALL)


@given(text=st.text(max_size=40), command=st.sampled_from(OPTIONS))
@settings(max_examples=40)
def test_any_text_as_an_option_is_answered_or_refused(text: str, command: str) -> None:
    before, _, after = command.partition(" TEXT")
    arguments = [*before.split(), text, *after.split()]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as wrong:
        assert exit_code_of(app, arguments) in ALLOWED, (arguments, wrong.getvalue())
