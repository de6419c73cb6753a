"""The shipped library: used only where it is right, and never in silence where it is not."""

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tools.kernels.build import compiled_room, stale_rooms

from phaze.compiled.arguments import fits, key_of
from phaze.compiled.kernel import CompiledKernel, njit
from phaze.compiled.library import (
    DESCRIPTION,
    PACKAGE,
    description,
    entry_of,
    library,
    library_serves,
    room_of,
)
from phaze.compiled.sources import sources_of, warming_modules
from phaze.schedule import kernels

HERE = library("schedule") is not None
potentials: CompiledKernel = vars(kernels)["potentials"]
needs_library = pytest.mark.skipif(
    not HERE, reason="the shipped library is for another Python or machine"
)


class Other(np.ndarray[Any, Any]):
    """Arrays of another class."""


class Pair(NamedTuple):
    """A named tuple of a test."""

    first: np.ndarray[Any, Any]
    second: int


def test_values_of_other_types_do_not_fit() -> None:
    floats = np.zeros((2, 3))
    declared = ["array", "float64", 2, "C", True]
    assert fits(floats, declared)
    read_only = floats.copy()
    read_only.setflags(write=False)
    swapped = floats.astype(">f8")
    unaligned = np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64).reshape(2, 3)
    others = [
        floats.T,
        floats[:, ::2],
        floats[0],
        floats.astype(np.float32),
        floats.astype(np.int64),
        swapped,
    ]
    for other in (*others, read_only, unaligned, floats.tolist(), 1.0, None, floats.view(Other)):
        assert not fits(other, declared), other
        assert key_of(other) != key_of(floats), other


def test_scalars_and_tuples_fit_by_their_exact_type() -> None:
    assert (
        fits(1, ["int64"])
        and fits(np.int64(1), ["int64"])
        and fits(1.0, ["float64"])
        and fits(True, ["bool"])
    )
    assert not any(fits(value, ["int64"]) for value in (True, 1.0, np.int32(1), np.uint64(1), None))
    pair = Pair(np.zeros(2), 1)
    declared = ["named", __name__, "Pair", ["array", "float64", 1, "C", True], ["int64"]]
    assert (
        fits(pair, declared)
        and not fits(tuple(pair), declared)
        and not fits(Pair(np.zeros(2), True), declared)
    )
    assert fits((1, 2), ["tuple", ["int64"], ["int64"]]) and not fits(
        (1,), ["tuple", ["int64"], ["int64"]]
    )
    assert len({key_of(value) for value in (pair, tuple(pair), Pair(np.zeros(2, int), 1))}) == 3


@needs_library
def test_the_shipped_libraries_are_current() -> None:
    assert stale_rooms() == [], "kernels or versions changed since they were compiled: make kernels"


def test_a_function_that_the_library_lacks_is_compiled_by_numba() -> None:
    @njit(nogil=True, inline="always")
    def added(x: int, y: int) -> int:
        return x + y

    @njit(nogil=True)
    def doubled(x: int) -> int:
        return int(added(x, x))

    assert isinstance(doubled, CompiledKernel) and not doubled.shipped and doubled.signatures == []
    assert doubled(21) == 42 and len(doubled.signatures) == 1


def test_sources_are_a_kernels_own_file_and_what_it_imports_of_phaze() -> None:
    found = sources_of("phaze.schedule.phase_kernels")
    assert {"schedule/phase_kernels.py", "schedule/packing_kernels.py", "schedule/part.py"} <= set(
        found
    )
    assert not [path for path in found if path.startswith(("cli", "search", "compiled"))]


def _shipped_in(package: Path) -> dict[str, bool]:
    """For each file of kernels of a copied package, whether it runs from the library."""
    code = (
        "import json; from phaze.compiled.library import library_serves;"
        "from phaze.compiled.sources import kernel_files;"
        "print(json.dumps({name: library_serves(name) for name in kernel_files()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(package.parent)},
        capture_output=True,
        check=True,
        text=True,
    )
    found: dict[str, bool] = json.loads(done.stdout)
    return found


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, without caches."""
    return Path(
        shutil.copytree(
            PACKAGE, tmp_path / "phaze", ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    )


@needs_library
def test_a_changed_source_takes_its_own_functions_and_those_that_call_it_out_of_the_library(
    package: Path,
) -> None:
    before = _shipped_in(package)
    source = package / "placement" / "stage_kernels.py"
    source.write_text(source.read_text() + "\n# changed\n")
    after = _shipped_in(package)
    gone = {name for name in before if before[name] and not after[name]}
    callers = {
        name for name in before if before[name] and "placement/stage_kernels.py" in sources_of(name)
    }
    assert (
        gone == callers
        and "phaze.placement.stage_kernels" in gone
        and "phaze.cost.kernels" not in gone
    )


@needs_library
def test_times_of_files_do_not_matter(package: Path) -> None:
    before = _shipped_in(package)
    for path in package.rglob("*_kernels.py"):
        path.touch()
    assert _shipped_in(package) == before and any(before.values())


@needs_library
def test_a_damaged_library_is_not_loaded(package: Path) -> None:
    path = package / "compiled" / "shipped" / description()["rooms"]["schedule"]["file"]
    before = _shipped_in(package)
    own = {
        name for name, shipped in before.items() if shipped and name.startswith("phaze.schedule.")
    }
    content = path.read_bytes()
    for damage in (lambda: path.write_bytes(content[:-1]), path.unlink):
        damage()
        assert {
            name for name, shipped in _shipped_in(package).items() if shipped != before[name]
        } == own


@needs_library
def test_a_shipped_function_gives_what_its_source_gives_and_numba_is_not_asked() -> None:
    numbers = np.random.default_rng(1)
    credits, masks = numbers.random((3, 5)), numbers.integers(0, 32, 7).astype(np.uint64)
    assert potentials.shipped
    assert np.allclose(potentials(credits, masks), potentials.py_func(credits, masks), rtol=1e-15)
    assert potentials.signatures == []


@needs_library
def test_arguments_of_other_types_than_compiled_go_to_numba(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Elsewhere in the tests such a call is a fault.
    monkeypatch.setattr(
        CompiledKernel, "compiled_here", lambda kernel, *arguments: kernel.dispatcher(*arguments)
    )
    kernel = CompiledKernel(potentials.py_func, {"nogil": True})
    credits, masks = np.asfortranarray(np.arange(15.0).reshape(3, 5)), np.arange(7, dtype=np.uint64)
    assert kernel.shipped and np.array_equal(
        kernel(credits, masks), potentials(np.ascontiguousarray(credits), masks)
    )
    assert len(kernel.signatures) == 1


@pytest.mark.slow
@needs_library
def test_every_shipped_function_gives_what_numba_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = set[str]()
    ordinary = CompiledKernel.__call__

    def both(kernel: CompiledKernel, *arguments: Any) -> Any:
        if not kernel.shipped:
            return ordinary(kernel, *arguments)
        other = copy.deepcopy(arguments)
        whole = found = ordinary(kernel, *arguments)
        expected = kernel.dispatcher(*other)
        if kernel.__name__ == "stage_table":  # rows beyond its room, which it asks for, are not set
            found, expected = found[0], expected[0]
        np.testing.assert_equal((found, arguments), (expected, other))
        compared.add(f"{kernel.__module__}.{kernel.__name__}")
        return whole

    monkeypatch.setattr(CompiledKernel, "__call__", both)
    for name in warming_modules():
        import_module(name).warm()
    assert compared == {
        f"{m}.{f}" for m, found in description()["modules"].items() for f in found["functions"]
    }


@needs_library
def test_a_search_of_the_papers_space_compiles_nothing(tmp_path: Path) -> None:
    # numba cannot be imported here: a call whose arguments were not those of the library would
    # fail.
    blocked = "import sys; sys.modules['numba'] = None; from phaze.cli.main import main; main()"
    search = f"search --model bert-large --rules icml24 --out {tmp_path / 'run'} --workers 1 --json"
    command = [sys.executable, "-c", blocked, *search.split()]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: '{"rooms":{"a":1}}',
    ],
)
def test_a_description_that_is_not_whole_leaves_every_function_to_numba(
    broken: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "library.json"
    path.write_text(broken(DESCRIPTION.read_text(encoding="utf-8")), encoding="utf-8")
    monkeypatch.setattr("phaze.compiled.library.DESCRIPTION", path)
    description.cache_clear()
    try:
        assert description() == {} and entry_of("phaze.schedule.kernels", "potentials") is None
        assert not library_serves("phaze.schedule.kernels")
    finally:
        description.cache_clear()


@needs_library
@pytest.mark.slow
def test_a_room_that_is_built_twice_has_the_same_bytes(tmp_path: Path) -> None:
    """Built in folders of other names, by processes whose memory lies elsewhere."""
    types = {
        name: own["functions"]
        for name, own in description()["modules"].items()
        if room_of(name) == "cost"
    }
    built = []
    for name in ("one", "the-other-folder"):
        (tmp_path / name).mkdir()
        built.append(compiled_room("cost", types, tmp_path / name).read_bytes())
    assert built[0] == built[1]
