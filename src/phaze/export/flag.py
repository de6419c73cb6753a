"""What a framework's flags mean, in one table that is read in both directions.

A :class:`Framework` is a table of :class:`Flag` rows, in the order of its launch file, and one of
:class:`Limit` rows. Three things follow from them:

    lines, launch_text     a plan as a launch file, with the reason of every line
    refuse                 why a plan cannot be launched: the first limit that holds
    read                   a launch file as the fields of a run (``phaze plan --against``)

A row names the ``field`` of the run that its flag states, by itself or together with other flags
(the framework's ``together``); a flag without a field prices nothing, and reading lists it as not
read. A text of a table may name values of the plan, ``{split.zero}``, and of the framework,
``{name}`` and ``{version}``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError
from phaze.export.launch import Launch, launch_of
from phaze.export.source import PlannedSplit
from phaze.export.values import Values
from phaze.options.frameworks import FRAMEWORK_NAMES

Text = str | Callable[[PlannedSplit], str]
Condition = Callable[[PlannedSplit], bool]
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Limit:
    """What a framework cannot run: whether a plan is of that kind, what of it is meant, and what to
    plan instead."""

    applies: Condition
    problem: Text
    remedy: Text
    where: str = "{split.model}"


class Same:
    """The value of a flag that is the plan's field as it is."""


SAME = Same()


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag or key, both ways.

    ``value`` is what a plan writes: its ``field`` as it is (SAME), the framework's word for it (a
    mapping from ours to theirs), what a function makes of the plan, or a constant, True for a
    switch; None is not written. ``needed`` says on which plans it is written at all. The field is
    read back as a whole number (SAME), as our word (a mapping), or by ``decode``. ``default`` is
    what a file without the flag means, by the release itself.
    """

    name: str
    field: str = ""
    value: Any = None
    reason: Text | Mapping[str, str] = ""
    decode: Callable[[Values, str], Any] | None = None
    default: Any = None
    needed: Condition = lambda split: True

    def encoded(self, split: PlannedSplit) -> Any:
        """The value for a plan, None where it needs no such line."""
        if not self.needed(split):
            return None
        if isinstance(self.value, Same):
            return planned(split, self.field)
        if isinstance(self.value, Mapping):
            return self.value.get(planned(split, self.field))
        return self.value(split) if callable(self.value) else self.value

    def decoded(self, values: Values) -> dict[str, Any]:
        """The field that it states, by name; nothing where other flags are needed to tell."""
        if self.decode is not None:
            return {self.field: self.decode(values, self.name)}
        if isinstance(self.value, Same):
            return {self.field: values.count(self.name)}
        if isinstance(self.value, Mapping):
            ours = {theirs: word for word, theirs in self.value.items()}
            kind = f"priced {self.field.replace('_', ' ')}"
            return {self.field: ours[values.choice(self.name, kind, tuple(ours))]}
        return {}


def with_others(values: Values, name: str) -> None:
    """A decode: the flag states its field only together with others."""


def planned(split: PlannedSplit, field: str) -> Any:
    """The field of a run as a plan has it: its stages recompute alike where it can be launched."""
    return (
        split.recompute[0]
        if field == "recompute"
        else split.schedule
        if field == "family"
        else getattr(split, field)
    )


def above_one(field: str) -> Condition:
    """Whether a degree of the plan is more than 1."""
    return lambda split: bool(planned(split, field) > 1)


def when(needed: Condition, *flags: Flag) -> tuple[Flag, ...]:
    """Flags that are written on some plans only."""
    return tuple(replace(flag, needed=needed) for flag in flags)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a launch file: a flag, its value and why it is so."""

    name: str
    value: Any
    reason: str


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework and the release that its table is of.

    ``described`` says what its launch files are. ``stacks`` are the bundled ones that price it, the
    usual one first. ``form`` spells a value, ``write`` a whole file from its lines and from what
    will not be as planned; ``parse`` gives the flags of a file by name, ``recognises`` says whether
    a file is one, from its path, its text and the name to call it by. ``deviations`` are what it
    does otherwise than planned, and when. ``together`` gives the fields that several flags state.
    ``module`` gives the name and the text of a Python file that a plan may need beside its launch
    file.
    """

    key: str
    version: str
    file: str
    described: str
    stacks: tuple[str, ...]
    flags: tuple[Flag, ...]
    form: Callable[[Any], str]
    write: Callable[[PlannedSplit, Sequence[Line], Sequence[str]], str]
    parse: Callable[[str, str], Mapping[str, Any]]
    recognises: Callable[[str, str, str], bool]
    limits: tuple[Limit, ...] = ()
    deviations: tuple[tuple[Condition, str], ...] = ()
    together: Callable[[Values], Mapping[str, Any]] = lambda values: NOTHING
    module: Callable[[PlannedSplit], tuple[str, str] | None] | None = None

    @property
    def name(self) -> str:
        """What texts call it."""
        return FRAMEWORK_NAMES[self.key]


def _text(framework: Framework, text: Text, split: PlannedSplit) -> str:
    if not isinstance(text, str):
        return text(split)
    return text.format(split=split, name=framework.name, version=framework.version)


def refuse(framework: Framework, split: PlannedSplit) -> None:
    """Raise an InputError with the reason where a framework cannot launch a plan."""
    for limit in framework.limits:
        if limit.applies(split):
            where, problem, remedy = (
                _text(framework, text, split) for text in (limit.where, limit.problem, limit.remedy)
            )
            raise InputError(where, problem, remedy)


def lines(framework: Framework, split: PlannedSplit) -> list[Line]:
    """The lines of a plan's launch file, or an InputError that says why there is none."""
    refuse(framework, split)
    written = []
    for flag in framework.flags:
        value = flag.encoded(split)
        if value is not None:
            reason = (
                flag.reason[planned(split, flag.field)]
                if isinstance(flag.reason, Mapping)
                else flag.reason
            )
            written.append(Line(flag.name, value, _text(framework, reason, split)))
    return written


def deviations(framework: Framework, split: PlannedSplit) -> list[str]:
    """What a framework will do otherwise than planned, though it can run the plan."""
    texts = [text for applies, text in framework.deviations if applies(split)]
    priced = (
        split.stack.startswith(tuple(f"{stack}-" for stack in framework.stacks))
        or split.stack in framework.stacks
    )
    if split.stack and not priced:
        texts.insert(
            0,
            f"it was priced for the stack {split.stack}, whose kernels, overlap and "
            f"memory are not {framework.name}'s; "
            f"phaze plan --stack {framework.stacks[0]} prices it for {framework.name}",
        )
    return texts


def launch_text(framework: Framework, split: PlannedSplit) -> str:
    """The launch file of a plan, or an InputError that says why there is none."""
    return framework.write(split, lines(framework, split), deviations(framework, split))


def read(framework: Framework, text: str, where: str, devices: int | None = None) -> Launch:
    """The launch that a file describes; ``devices`` fill in a degree that the file leaves open."""
    defaults = {flag.name: flag.default for flag in framework.flags}
    values = Values(framework.parse(text, where), defaults, where, framework.version, devices)
    fields = {
        field: value for flag in framework.flags for field, value in flag.decoded(values).items()
    }
    fields |= framework.together(values)
    priced = {flag.name for flag in framework.flags if flag.field}
    not_read = tuple(sorted(set(values.stated) - priced))
    return launch_of(framework.key, framework.stacks[0], fields, not_read)
