"""Parameters that have the names of the commands' options now: former names work for one release, with a note."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def renamed(**former: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function take parameters by former names, each with its name of now."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            named: dict[str, Any] = dict(kwargs)
            for old, new in former.items():
                if old in named:
                    if new in named:
                        raise TypeError(f"{function.__name__}() got both '{new}' and '{old}', its former name")
                    note = (
                        f"{function.__name__}({old}=...) is called {new}= now; the former name ends with this release"
                    )
                    warnings.warn(note, DeprecationWarning, stacklevel=2)
                    named[new] = named.pop(old)
            return function(*args, **named)

        return called

    return decorate
