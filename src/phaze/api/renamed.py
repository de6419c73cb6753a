"""Parameters that have the names of the commands' options now: former names work for one release, with a note."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def renamed(**former: str | Callable[..., dict[str, Any]]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function take parameters by former names, each with its name of now, or with what makes arguments of now
    from those that were given."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            given: tuple[Any, ...] = args
            named: dict[str, Any] = dict(kwargs)
            for old, new in former.items():
                if old not in named:
                    continue
                if new in named:
                    raise TypeError(f"{function.__name__}() got both '{new}' and '{old}', its former name")
                if isinstance(new, str):
                    named[new] = named.pop(old)
                    now = {new}
                else:
                    before = set(named)
                    given, named = (), new(*given, **named)
                    now = set(named) - before
                told = " or ".join(f"{name}=" for name in sorted(now))
                note = f"{function.__name__}({old}=...) is called {told} now; the former name ends with this release"
                warnings.warn(note, DeprecationWarning, stacklevel=2)
            return function(*given, **named)

        return called

    return decorate
