"""One finished run of a small space for all tests of the checker."""

from pathlib import Path

import pytest

from tests.search.test_verify import STUDY, finished


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a small space."""
    return finished(tmp_path_factory.mktemp("checked"), STUDY)
