"""The reference of the API: every function says each parameter, and its example runs."""

import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze import api

NAMES = sorted(name for name in phaze.__all__ if name != "__version__")
LONG = ("front", "sweep")
# Values that functions return, and what they can do: part of the reference too.
VALUES = ("Planned", "Searched", "Fronted", "Swept", "Compared")


def _function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(api, name)
    return found


@pytest.mark.parametrize("name", [*VALUES, "Space"])
def test_every_method_of_a_value_is_documented(name: str) -> None:
    for key, method in vars(getattr(api, name)).items():
        if inspect.isfunction(method) and not key.startswith("_"):
            told = re.findall(r"^    (\w+): ", inspect.getdoc(method) or "", re.M)
            wanted = [one for one in inspect.signature(method).parameters if one != "self"]
            assert inspect.getdoc(method) and wanted == told, f"{name}.{key}"


def _run_example(name: str) -> None:
    (found,) = doctest.DocTestFinder(recurse=False).find(_function(name), name, globs={})
    assert found.examples
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found)
    assert result.failed == 0


@pytest.mark.parametrize(
    "name", [*(name for name in NAMES if name not in LONG), "Planned", "Searched"]
)
def test_the_example_of_a_function_runs(name: str) -> None:
    if name == "Model":
        pytest.importorskip("torch")
    _run_example(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_the_example_of_a_longer_function_runs(name: str) -> None:
    _run_example(name)


def test_every_function_is_in_the_reference() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
    assert {name for name in NAMES if f"::: phaze.api.{name}\n" not in text} == set()
