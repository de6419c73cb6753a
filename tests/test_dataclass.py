"""Frozen classes of :mod:`phaze.dataclass` are those of :mod:`dataclasses`, whose methods are written later."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze import dataclass as phaze_dataclass

Maker = Callable[..., Callable[[type], type]]
MAKERS: tuple[Maker, Maker] = (dataclasses.dataclass, phaze_dataclass.dataclass)


def _made(maker: Maker) -> tuple[type, type]:
    """A class of every kind of field, and one derived from it."""

    @maker(frozen=True, slots=True)
    class Base:
        """A base."""

        known: ClassVar[int] = 7
        first: Any
        second: Any = 2
        third: list[Any] = dataclasses.field(default_factory=list)
        fourth: Any = dataclasses.field(default=4, compare=False)
        fifth: Any = dataclasses.field(default=5, repr=False)
        sixth: Any = dataclasses.field(default=6, init=False)
        seventh: Any = dataclasses.field(default=(), kw_only=True)

        def __post_init__(self) -> None:
            if self.first == "wrong":
                raise ValueError("a wrong value")

        @property
        def both(self) -> tuple[Any, Any]:
            return self.first, self.second

    @maker(frozen=True, slots=True)
    class Derived(Base):
        """Derived."""

        last: Any = None

        def __hash__(self) -> int:
            return 1

    return Base, Derived


THEIRS, OURS = (_made(maker) for maker in MAKERS)


@phaze_dataclass.dataclass(frozen=True, slots=True)
class Pickled:
    """A class that a worker process could import."""

    size: int
    name: str = ""


def _outcome(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except (TypeError, ValueError, AttributeError) as fault:
        return f"{type(fault).__name__}: {fault}"


plain = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=2), st.just("wrong"))
names = st.sampled_from(["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last", "eighth"])
arguments = st.tuples(st.lists(plain, max_size=7), st.dictionaries(names, plain, max_size=3))


@given(arguments, st.booleans())
def test_values_are_made_refused_and_shown_alike(given_: tuple[list[Any], dict[str, Any]], derived: bool) -> None:
    places, named = given_
    theirs, ours = (_outcome(partial(of[derived], *places, **named)) for of in (THEIRS, OURS))
    assert ours == theirs


@given(st.lists(plain.filter(lambda value: value != "wrong"), min_size=5, max_size=5), st.integers(0, 4), plain)
def test_they_compare_and_change_alike(values: list[Any], place: int, other: Any) -> None:
    changed = [*values[:place], other if other != "wrong" else 0, *values[place + 1 :]]
    found = []
    for base, _ in (THEIRS, OURS):
        one, two = base(*values), base(*changed)
        hashed = _outcome(partial(hash, one))
        again = (dataclasses.replace(one, first=changed[0]), phaze_dataclass.replace(one, seventh=other, first=2))
        found.append((one == two, one != two, one == 5, hashed, repr(again), dataclasses.asdict(one), one.both))
    assert found[0] == found[1]


def test_classes_are_described_alike() -> None:
    for their, our in zip(THEIRS, OURS, strict=True):
        assert [repr(field) for field in dataclasses.fields(their)] == [
            repr(field) for field in dataclasses.fields(our)
        ]
        assert (their.__match_args__, their.__doc__) == (our.__match_args__, our.__doc__)  # type: ignore[attr-defined]
        assert not hasattr(our(1), "__dict__") and our(1).known == 7
    assert hash(OURS[1](1)) == 1 and OURS[1](1) == OURS[1](1) != OURS[0](1)


@pytest.mark.parametrize("name", ["first", "fourth", "unheard_of"])
def test_nothing_can_be_set_or_deleted(name: str) -> None:
    value = OURS[0](1)
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        setattr(value, name, 3)
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        delattr(value, name)


def test_they_can_be_copied_and_sent_to_a_worker() -> None:
    value = Pickled(3, "three")
    assert copy.copy(value) == copy.deepcopy(value) == value
    code = (
        "import pickle, sys; from tests.test_dataclass import Pickled; "
        "assert pickle.loads(sys.stdin.buffer.read()) == Pickled(3, 'three')"
    )
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(value), check=True)


def test_frozen_classes_of_both_kinds_are_derived_from_each_other() -> None:
    for base_by in MAKERS:
        for by in MAKERS:
            base = _made(base_by)[0]
            own: Any = by(frozen=True, slots=True)(
                type("Extended", (base,), {"__annotations__": {"more": int}, "more": 8})
            )
            assert (own(1).more, own(1).second, own(1) == own(1)) == (8, 2, True)
            with pytest.raises(dataclasses.FrozenInstanceError):
                own(1).more = 3


def test_other_options_are_those_of_dataclasses() -> None:
    @phaze_dataclass.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        size: int

    @phaze_dataclass.dataclass(slots=True)
    class Open:
        size: int

    changed = Open(1)
    changed.size = 2
    assert Ordered(1) < Ordered(2) and changed == Open(2)


def test_methods_are_written_at_the_first_call() -> None:
    base, _ = _made(phaze_dataclass.dataclass)
    before = vars(base)["__hash__"]
    value = base(1)
    assert vars(base)["__hash__"] is before
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    assert vars(base)["__hash__"] is not before
