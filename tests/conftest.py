"""Shared by all tests: repeatable hypothesis runs and the command line in the same process."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.compiled.kernel import CompiledKernel

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Thousands of tests and their modules stay to the end: no collection needs to walk through
    them again."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _shipped_kernels_serve_every_call() -> Iterator[None]:
    """A kernel of the library that is called with other types is compiled for seconds, in a test
    and for a user."""
    compiled_here = CompiledKernel.compiled_here

    def refused(kernel: CompiledKernel, *arguments: Any) -> Any:
        assert not kernel.shipped, (
            f"{kernel.__module__}.{kernel.__name__} is not shipped for these types of arguments"
        )
        return compiled_here(kernel, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledKernel, "compiled_here", refused)
        yield


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def phaze(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the command line in this process: ``phaze("chips", "tpu-v4", "--json")``."""

    def run(*arguments: Any) -> Ran:
        capsys.readouterr()
        code = exit_code_of(app, [str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run
