"""One finished run of a small space for all tests of the checker, of cores and of clusters."""

from pathlib import Path

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY, finished


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a small space."""
    return finished(tmp_path_factory.mktemp("checked"), STUDY)


@pytest.fixture(scope="session")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run under rules cluster over a small space of chips of clusters."""
    return finished(tmp_path_factory.mktemp("clustered"), CLUSTER_STUDY, CLUSTERS)


LIMIT = 125.0


def front_run(folder: Path, study: str, space: str, *more: str) -> Path:
    """The run of a front over a small space."""
    (folder / "space.toml").write_text(space)
    (folder / "study.toml").write_text(study.format(folder=folder))
    arguments = [
        "front",
        str(folder / "study.toml"),
        "--out",
        str(folder / "run"),
        "--workers",
        "1",
        *more,
    ]
    assert exit_code_of(app, arguments) == 0
    return folder / "run"


@pytest.fixture(scope="session")
def cores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A front of chips of cores, to a wide gap."""
    folder = tmp_path_factory.mktemp("front_of_cores")
    return front_run(folder, STUDY, SPACE, "--of", "throughput,area", "--gap", "0.1")


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exact front of chips of clusters within a limit."""
    folder = tmp_path_factory.mktemp("front_of_clusters")
    return front_run(
        folder, CLUSTER_STUDY, CLUSTERS, "--of", "throughput,price,power", "--within",
        f"power={LIMIT}"
    )  # fmt: skip


JOB = (
    "--model",
    "bert-large",
    "--chip",
    "a100-80gb",
    "--devices",
    "8",
    "--batch",
    "32",
    "--sequence",
    "128",
)


def planned(folder: Path, *more: str) -> Path:
    """The folder of a plan's certificate."""
    assert exit_code_of(app, ["plan", *JOB, *more, "--certificate", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan over two widths and two microbatches, proved."""
    return planned(
        tmp_path_factory.mktemp("plan") / "proof", "--microbatch", "1,2", "--tensor", "1,2"
    )
