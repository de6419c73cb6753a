"""The tests of every day see faults of one line in the checker (slow: each runs tests anew)."""

import pytest

from tests.check.mutants import MUTANTS, SOURCE, Mutant, dies


def test_every_mutant_changes_a_line_that_is_there() -> None:
    texts = {
        mutant.file: (SOURCE / "check" / mutant.file).read_text(encoding="utf-8")
        for mutant in MUTANTS
    }
    assert len(MUTANTS) >= 30
    assert [mutant.old for mutant in MUTANTS if texts[mutant.file].count(mutant.old) != 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.new[:40]}")
def test_a_mutant_of_the_checker_dies(mutant: Mutant) -> None:
    assert dies(mutant)
