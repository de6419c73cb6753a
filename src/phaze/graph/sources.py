"""From what a user names to a model: shipped graphs where there are any, a graph file, or a fresh
trace.

a name              shipped graphs; traced where none of that width is bundled, or when asked to
gpt, llama          sizes as ``hidden=4096,layers=36,...``: the shipped family, or traced
file.json           a ``phaze.graph/1`` document as it is, else a configuration of transformers,
                    traced
file.py:function    the user's code, which is run, traced
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from phaze import documents
from phaze.errors import InputError
from phaze.files import read_text
from phaze.graph import store, zoo
from phaze.graph.family import check_sizes
from phaze.graph.ir import Model
from phaze.graph.supply.point import Rank

if TYPE_CHECKING:
    from phaze.graph.torch.program import Source


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Which rank of which model.

    ``model`` is a name or a place; or ``family`` and its ``sizes`` are given. ``fresh`` asks for a
    trace.
    """

    model: str = ""
    family: str = ""
    sizes: Mapping[str, Any] | None = None
    rank: Rank = field(default_factory=Rank)
    fresh: bool = False


def parse_sizes(text: str, family: str, sequence: int | None) -> dict[str, Any]:
    """``hidden=4096,layers=36`` as sizes of a family; a sequence that is not among them is
    ``sequence``."""
    sizes: dict[str, Any] = {}
    for part in text.split(","):
        key, mark, value = part.partition("=")
        if not mark or key.strip() in sizes:
            raise InputError(
                f"--{family}",
                f"'{part.strip()}' is not a size",
                "write for example hidden=4096,layers=36",
            )
        words = {"true": True, "false": False}
        number = value.strip()
        sizes[key.strip()] = words.get(number, int(number) if number.isdecimal() else number)
    if sequence is not None:
        sizes.setdefault("sequence", sequence)
    return check_sizes(family, sizes)


def load(request: ModelRequest) -> Model:
    """The model that ``request`` names."""
    if request.model.endswith(".json") or request.model == "-":
        text, where = read_text(request.model)
        raw = documents.parse(text, "json", where)
        if "schema" in raw or request.model == "-":
            return store.model_of(raw, where)
    elif not request.fresh and request.family:
        return zoo.load_family(request.family, request.sizes or {}, **request.rank.stated())
    elif not request.fresh and ":" not in request.model:
        rank = request.rank
        length = zoo.check_sequence(zoo.entry_of(request.model), rank.sequence)
        if zoo.is_shipped(request.model, rank.tensor or 1, length, rank.sequence_parallel or False):
            return zoo.load_model(request.model, **rank.stated())
    return _trace(request)


def need_torch(what: str, loads: bool = True) -> None:
    """An InputError unless PyTorch and transformers are there and, where this process ``loads``
    them, import."""
    for name in ("torch", "transformers"):
        if importlib.util.find_spec(name) is None:
            raise InputError(
                what,
                f"a trace needs {name}, which is missing",
                "pip install -e '.[torch]' in phaze's folder",
            )
        try:
            if loads:
                importlib.import_module(name)
        except Exception as fault:
            reason = f"{type(fault).__name__}: {fault}"
            raise InputError(
                what, f"a trace needs {name}, which cannot be imported ({reason})"
            ) from None


def source_of(request: ModelRequest) -> "Source":
    """What a trace of ``request`` starts from; code that the user named is run."""
    need_torch(request.model or request.family)
    from phaze.graph.torch import families, source

    if not request.family:
        return source.source_of(request.model)
    sizes = dict(request.sizes or {})
    if request.family == "gpt":
        return source.gpt_source(families.Gpt(**sizes))
    return source.llama_source(families.Llama(**sizes))


def _trace(request: ModelRequest) -> Model:
    source = source_of(request)
    from phaze.graph.torch.trace import trace_model

    return trace_model(source, **request.rank.stated())


def unknown_operators(request: ModelRequest) -> tuple[tuple[str, str, str], ...]:
    """Name, module and source line of every operator of the model that :mod:`phaze.graph.opset`
    does not know."""
    source = source_of(request)
    from phaze.graph.torch import trace

    return trace.unknown_operators(source, request.rank.sequence)
