"""One finished run of a small space for all tests of the checker, of cores and of clusters."""

from pathlib import Path

import pytest

from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS
from tests.search.test_verify import STUDY, finished


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a small space."""
    return finished(tmp_path_factory.mktemp("checked"), STUDY)


@pytest.fixture(scope="session")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run under rules cluster over a small space of chips of clusters."""
    return finished(tmp_path_factory.mktemp("clustered"), CLUSTER_STUDY, CLUSTERS)
