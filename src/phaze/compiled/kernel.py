"""A compiled function: its object code from the shipped library, or numba's compiler."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, cast

from phaze.compiled.arguments import fits, key_of
from phaze.compiled.library import KernelEntry, entry_of

F = TypeVar("F", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[F], F]:
    """Decorate a function that is compiled; the options are those of ``numba.njit``. It is called
    as it is written, and has what a :class:`CompiledKernel` has."""

    def decorated(function: F) -> F:
        return cast(F, CompiledKernel(function, options))

    return decorated


def _function(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


class CompiledKernel:
    """One function. Called from Python it runs the library's code if that is current and the
    arguments have the types it was compiled for, else numba's; numba, compiling another function
    that calls this one, sees its own dispatcher.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self.targetoptions = options
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        self._entry: KernelEntry | None = entry_of(function.__module__, function.__name__)
        self._known: set[object] = set()
        self._compiler: Any = None
        self._observer: Callable[[tuple[Any, ...]], None] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self._entry is not None:
            key = tuple(map(key_of, arguments))
            if key in self._known:
                return self._entry.code(*arguments)
            if len(arguments) == len(self._entry.types) and all(
                map(fits, arguments, self._entry.types)
            ):
                self._known.add(key)
                return self._entry.code(*arguments)
        return self.compiled_here(*arguments)

    def compiled_here(self, *arguments: Any) -> Any:
        """The function as numba compiles it for the types of these arguments, which takes
        seconds."""
        if self._observer is not None:
            self._observer(arguments)
        return self.dispatcher(*arguments)

    def __reduce__(self) -> tuple[Callable[[str, str], Any], tuple[str, str]]:
        """By its name, as functions are pickled."""
        return _function, (self.__module__, self.__name__)

    @property
    def shipped(self) -> bool:
        """Whether calls run from the library."""
        return self._entry is not None

    def leave_library(self, observer: Callable[[tuple[Any, ...]], None] | None = None) -> None:
        """From now on let numba compile it, and let an observer see the arguments of each call from
        Python."""
        self._entry, self._observer = None, observer

    @property
    def dispatcher(self) -> Any:
        """numba's dispatcher of the function; made when it is first needed."""
        if self._compiler is None:
            from numba import njit as compiled

            self._compiler = compiled(**self.targetoptions)(self.py_func)
        return self._compiler

    @property
    def signatures(self) -> list[Any]:
        """The signatures that numba compiled in this process."""
        return [] if self._compiler is None else list(self._compiler.signatures)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_
