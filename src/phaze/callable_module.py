"""Rooms that can also be asked: ``phaze.search`` is the room of the search, and ``phaze.search(study)`` runs one.

A verb of the Python API that is the name of a room as well would hide the room, or be hidden by it, by order of
imports. So such a room's module is callable; what it does when called stands in :mod:`phaze.api`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class Askable(ModuleType):
    """A module that passes a call on to the function of its name in the API."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        verb = self.__name__.rpartition(".")[2]
        return getattr(import_module("phaze.api"), verb)(*arguments, **options)


def make_callable(name: str) -> None:
    """Let the module of that name be called."""
    sys.modules[name].__class__ = Askable
