"""The answers of today are those on file, byte for byte but for digests of the source."""

from pathlib import Path

import pytest

from tests.golden.answers import ANSWERS, ask, differences, without_code
from tests.golden.cases import CASES, Case


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.quick else pytest.mark.slow)
        for case in CASES
    ],
)
def test_an_answer_is_the_one_on_file(case: Case, tmp_path: Path) -> None:
    assert list(differences(case, ask(case, tmp_path))) == []


def test_every_answer_on_file_has_its_question() -> None:
    assert {folder.name for folder in ANSWERS.iterdir()} == {case.name for case in CASES}


def test_a_changed_digit_and_a_missing_file_are_differences() -> None:
    case = next(case for case in CASES if case.name == "search-paper")
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in (ANSWERS / case.name).iterdir()
    }
    assert list(differences(case, texts)) == []
    changed = texts["result.json"].replace("1", "2", 1)
    assert len(list(differences(case, texts | {"result.json": changed}))) == 1
    del texts["certificate.json"]
    assert len(list(differences(case, texts))) == 1


def test_a_digest_of_the_source_is_no_part_of_an_answer() -> None:
    digest = "0123456789abcdef" * 4
    assert without_code(f'{{"code_digest": "{digest}"}}') == '{"code_digest": "-"}'
    assert without_code(f'{{"graph_digest": "{digest}"}}') == f'{{"graph_digest": "{digest}"}}'
