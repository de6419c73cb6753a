"""Frozen dataclasses whose methods are made when they are first called, not when their module is imported.

``dataclasses.dataclass`` compiles six methods for a class, about half a millisecond. A command imports some three
hundred classes of values, makes values of a third of them and compares or prints those of a few. Here a class has its
fields and slots from the start, and in place of a method something that makes it at the first call:

    __init__      sets one field after another; of a class with many values, that of a dataclass with the same fields
    __eq__        the fields that count as tuples, of values of one class
    __hash__      of that tuple
    __replace__   a value with some fields changed, which :func:`replace` calls

Values are the same otherwise: ``fields``, ``replace`` and ``asdict`` of :mod:`dataclasses` know them, they can be
pickled, and a field cannot be set (``FrozenInstanceError``). To a type checker this is ``dataclasses.dataclass``
itself. Classes with other options than ``frozen`` and ``slots`` are made by that.
"""

import dataclasses
import reprlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass", "replace"]

Method = Callable[..., Any]
# A class with more values than this gets a compiled ``__init__``: compiling takes as long as a thousand calls save.
MANY: Final = 500
# In place of a default: there is none, or it is made.
_NONE, _MADE = object(), object()


def _compiled_init(cls: type) -> Method:
    """Taken from another class of the same fields, whose name in messages is that of this one."""
    names, inner = ("default", "default_factory", "init", "kw_only"), dict[str, Any]()
    for field in dataclasses.fields(cls):
        inner[field.name] = dataclasses.field(**{name: getattr(field, name) for name in names})
    about = {"__doc__": cls.__name__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    later = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
    annotations = {"__annotations__": dict.fromkeys(inner, object)}
    like = type(cls.__name__, (), {**about, **later, **inner, **annotations})
    made: Any = dataclasses.dataclass(repr=False, eq=False, frozen=True, slots=True)(like)
    found: Method = made.__init__
    return found


def _init(cls: type) -> Method:
    """Sets fields by the descriptors of their slots; what it cannot take is for the compiled one to take or refuse."""
    fields = dataclasses.fields(cls)
    if any(not field.init or field.kw_only for field in fields):
        return _compiled_init(cls)
    setters, count, left = tuple(getattr(cls, field.name).__set__ for field in fields), len(fields), MANY
    post_init: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)
    defaults = [
        _MADE
        if field.default_factory is not dataclasses.MISSING
        else _NONE
        if field.default is dataclasses.MISSING
        else field.default
        for field in fields
    ]
    places = {field.name: place for place, field in enumerate(fields)}

    def given(arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any] | None:
        values = [*arguments, *defaults[len(arguments) :]]
        for name, value in named.items():
            if places.get(name, -1) < len(arguments):
                return None
            values[places[name]] = value
        for place, value in enumerate(values):
            if value is _MADE:
                values[place] = fields[place].default_factory()  # type: ignore[operator]
        return values if len(values) == count and not any(value is _NONE for value in values) else None

    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        values = arguments if len(arguments) == count and not named else given(arguments, named)
        if values is None or left < 0:
            compiled = _compiled_init(cls)
            setattr(cls, "__init__", compiled)  # noqa: B010
            return compiled(self, *arguments, **named)  # type: ignore[no-any-return]
        for set_value, value in zip(setters, values, strict=True):
            set_value(self, value)
        if post_init is not None:
            post_init(self)
        return None

    return __init__


def _compared(cls: type) -> Callable[[Any], tuple[Any, ...]]:
    """The fields that count as a tuple."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _eq(cls: type) -> Method:
    values_of = _compared(cls)

    def __eq__(self: Any, other: Any) -> Any:
        return values_of(self) == values_of(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(cls: type) -> Method:
    values_of = _compared(cls)
    return lambda self: hash(values_of(self))


def _replaced(cls: type) -> Method:
    names = [field.name for field in dataclasses.fields(cls) if field.init and not field.kw_only]
    if len(names) < max(2, len(dataclasses.fields(cls))):
        return dataclasses.replace
    values_of, places = attrgetter(*names), {name: place for place, name in enumerate(names)}

    def __replace__(self: Any, /, **changes: Any) -> Any:
        values = list(values_of(self))
        for name, value in changes.items():
            if name not in places:
                raise TypeError(f"{cls.__qualname__} has no field {name!r}")
            values[places[name]] = value
        return self.__class__(*values)

    return __replace__


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


# What is made at the first call, and what all classes have in common; the first of these only those that are shown.
_LATER: Final = (("__init__", _init), ("__eq__", _eq), ("__hash__", _hash), ("__replace__", _replaced))
_SHARED: Final = (
    ("__repr__", _repr),
    ("__setattr__", _refuse_set),
    ("__delattr__", _refuse_delete),
    ("__getstate__", _state),
    ("__setstate__", _set_state),
)


def _at_first(cls: type, name: str, make: Callable[[type], Method]) -> Method:
    """What stands for a method until it is called."""

    def first(self: Any, *arguments: Any, **named: Any) -> Any:
        method = make(cls)
        setattr(cls, name, method)
        return method(self, *arguments, **named)

    return first


def _frozen(cls: type, shown: bool) -> type:
    own = {name for name, value in vars(cls).items() if value is not None}
    cls.__doc__ = cls.__doc__ or cls.__name__
    derived = dataclasses.is_dataclass(cls)
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=derived, slots=True)(cls)
    made.__dataclass_params__.frozen = True
    for name, make in _LATER:
        if name not in own:
            setattr(made, name, _at_first(made, name, make))
    for name, method in _SHARED if shown else _SHARED[1:]:
        if name not in own:
            setattr(made, name, method)
    found: type = made
    return found


if TYPE_CHECKING:
    from dataclasses import dataclass, replace
else:

    def replace(value: Any, /, **changes: Any) -> Any:
        """As ``dataclasses.replace``, which looks through all fields of the class at every call."""
        changed = getattr(value, "__replace__", None)
        return dataclasses.replace(value, **changes) if changed is None else changed(**changes)

    def dataclass(*, frozen: bool = False, slots: bool = False, repr: bool = True, **options: bool):
        """As ``dataclasses.dataclass``."""
        if not (frozen and slots) or options:
            return dataclasses.dataclass(frozen=frozen, slots=slots, repr=repr, **options)
        return lambda cls: _frozen(cls, repr)
