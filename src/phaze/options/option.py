"""What is stated of an option, and the parameters that a function has by its tables."""

import inspect
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ForwardRef, Required, Unpack, get_args, get_origin

from phaze.options.arguments import Reader, reader_of

# The default of an option that must be given.
REQUIRED: Any = inspect.Parameter.empty
# Columns of a docstring.
WIDTH = 120

# Another option that a sentence names.
NAMED = re.compile(r"(?<!`)`(\w+)`(?!`)")


def spelled(name: str) -> str:
    """A name as it is spelled on the command line: ``context_way`` is ``--context-way``, ``pass_``
    is ``--pass``."""
    return f"--{name.strip('_').replace('_', '-')}"


# Where a sentence has the default that the rules of a study name.
BY_RULES = "{rules}"


@dataclass(frozen=True, slots=True)
class ByRules:
    """What a key of a study is under each set of rules where the study does not state it, as a file
    would state it; ``otherwise`` are the words for None: something else of the study decides."""

    cluster: Any
    icml24: Any
    otherwise: str = ""

    def under(self, rules: str) -> Any:
        """The default under these rules."""
        value = getattr(self, rules)
        return list(value) if isinstance(value, tuple) else value

    def spelled(self, rules: str) -> str:
        """The same in words."""
        value = self.under(rules)
        if value is None:
            return self.otherwise
        parts = value if isinstance(value, list) else [value]
        return ", ".join(part if isinstance(part, str) else json.dumps(part) for part in parts)

    @property
    def words(self) -> str:
        """Both, or the one that holds under either."""
        usual, paper = self.spelled("cluster"), self.spelled("icml24")
        return usual if usual == paper else f"{usual}, under rules icml24 {paper}"


def _split(sentence: str) -> tuple[str, str]:
    """A sentence without its default, and the words of that."""
    meaning, _, default = sentence.partition("; default")
    return meaning.rstrip(".") + ".", default.lstrip(":").strip().rstrip(".")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: a sentence that states the unit and, where there is none to show, the default.

    Another option is named in it as `name`: ``--name`` on the command line. ``flag`` is the
    spelling there where that is not the name; an ``argument`` has none, and what is ``repeatable``
    may be given several times. ``python`` is what the documentation in Python adds, ``former`` a
    name that it had there. ``key`` is the key of a study that stands for it, and ``rules`` the
    default there where the rules name one; ``{rules}`` in the sentence stands for their words.
    ``read`` reads its value where that does not follow from the type.

    In files (:mod:`.keys`) it is of the type ``value``, a name of :mod:`.values`; in a study, which
    states what plans are chosen from, of the type ``choices`` where that is another. ``of_plan`` is
    the sentence where a file states it of one plan, ``unstated`` holds for a plan without it.
    """

    sentence: str
    default: Any = None
    flag: str = ""
    argument: bool = False
    repeatable: bool = False
    python: str = ""
    former: str = ""
    key: str = ""
    read: Reader | None = None
    value: str = ""
    choices: str = ""
    of_plan: str = ""
    unstated: Any = REQUIRED
    rules: ByRules | None = None

    @property
    def text(self) -> str:
        """Its sentence with the default that the rules name."""
        words = "" if self.rules is None else self.rules.words
        return self.sentence.replace(BY_RULES, words)

    @property
    def description(self) -> str:
        """Its sentence in the schema of a file, without the default."""
        return _split(self.text)[0]

    @property
    def of_one(self) -> tuple[str, str]:
        """What it is of one plan, and what it is where the plan does not state it, in words."""
        return _split(self.of_plan) if self.of_plan else (self.description, "")

    @property
    def default_words(self) -> str:
        """What a key of a study is where it is not stated, in words; none where the type shows
        it."""
        if self.rules is not None and BY_RULES not in self.sentence:
            return self.rules.words
        return _split(self.text)[1]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function of the API with its option, and the type of its value."""

    name: str
    kind: Any
    type: Any
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """The spelling on the command line."""
        return self.option.flag or spelled(self.name)

    @property
    def reader(self) -> Reader | None:
        """What reads a value that is given, or its text; None where it is taken as it is."""
        return self.option.read or reader_of(self.type)

    @property
    def help(self) -> str:
        """Its sentence in the help of a command."""
        return NAMED.sub(lambda named: spelled(named[1]), self.option.text)

    @property
    def document(self) -> str:
        """Its lines of the documentation in Python."""
        sentence = NAMED.sub(r"``\1``", self.option.text)
        text = f"{self.name}: {sentence} {self.option.python}".rstrip()
        return textwrap.fill(
            text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
        )


def _parts(annotation: Any) -> tuple[Any, Option | None]:
    """The type and the option of an annotation."""
    if get_origin(annotation) is Required:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is not Annotated:
        return annotation, None
    kind, *stated = get_args(annotation)
    option = next((part for part in stated if isinstance(part, Option)), None)
    return kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind, option


def table_parameters(table: type) -> list[Parameter]:
    parameters = []
    for name, annotation in table.__annotations__.items():
        kind, option = _parts(annotation)
        if option is None:
            raise TypeError(f"{table.__name__}.{name} states no option")
        parameters.append(
            Parameter(name, inspect.Parameter.KEYWORD_ONLY, kind, option.default, option)
        )
    return parameters


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a function that are options: those of its signature, and those of its
    table."""
    parameters = []
    for stated in inspect.signature(function).parameters.values():
        if get_origin(stated.annotation) is Unpack:
            parameters += table_parameters(get_args(stated.annotation)[0])
            continue
        kind, option = _parts(stated.annotation)
        if option is not None:
            parameters.append(Parameter(stated.name, stated.kind, kind, stated.default, option))
    return parameters
