"""``phaze.graph``: the operators of one rank of a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from phaze.api.function import api_renamed
from phaze.api.load_study import announce, with_plan
from phaze.api.values import Graphed, notes, sheet
from phaze.errors import InputError
from phaze.options.arguments import parsed
from phaze.options.jobs import ModelSource, Sizes
from phaze.options.runs import GraphOptions
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.graph import ir
    from phaze.graph.sources import ModelRequest
    from phaze.report.progress import Progress


def length_of(sequence: int | str | None) -> int | None:
    """A sequence as a number; ``"32k"`` is a text for one."""
    from phaze.units import parse_length

    return None if sequence is None else parsed("--sequence", sequence, parse_length)


def sizes_of(family: str, sizes: Sizes, sequence: int | None) -> dict[str, Any]:
    """Sizes of a family, a text or values; a sequence that is not among them is ``sequence``."""
    from phaze.graph.family import check_sizes
    from phaze.graph.sources import parse_sizes

    if isinstance(sizes, str):
        return parse_sizes(sizes, family, sequence)
    usual = {} if sequence is None else {"sequence": sequence}
    return check_sizes(family, {**usual, **sizes})


def _former_sizes(model: Any = None, *, sizes: Any, **options: Any) -> dict[str, Any]:
    """A family by its name and ``sizes``, as it was given before."""
    return {**options, str(model): sizes}


@api_renamed(sizes=_former_sizes)
def graph(model: ModelSource = None, **options: Unpack[GraphOptions]) -> Graphed:
    """The operators of one rank of a model, forward and backward, as ``phaze graph``.

    Returns:
        The graph: ``document`` (``phaze.graph/1``), and ``model``, the graph itself.

    Examples:
        >>> import phaze
        >>> graph = phaze.graph("bert-large", tensor=2)
        >>> graph["name"], graph["tensor"]
        ('bert-large', 2)
    """
    from phaze.graph import fuse, store
    from phaze.graph.sources import ModelRequest
    from phaze.graph.supply.point import Rank

    sources = {"--model": model, "--gpt": options["gpt"], "--llama": options["llama"]}
    named = [key for key, value in sources.items() if value]
    if len(named) != 1:
        problem = f"{' and '.join(named)} are given together" if named else "no model is given"
        raise InputError("", problem, "give one of --model, --gpt, --llama")
    for option, value in (("--tensor", options["tensor"]), ("--microbatch", options["microbatch"])):
        if value is not None and value < 1:
            raise InputError(option, f"{value} is out of range", "it must be at least 1")
    length, family = length_of(options["sequence"]), "" if model else named[0].removeprefix("--")
    with on_standard_error() as progress:
        progress.step("phaze graph")
        request = ModelRequest(
            model=with_plan(model, None if options["tp_plan"] is None else str(options["tp_plan"]))
            if isinstance(model, str)
            else "",
            family=family,
            sizes=sizes_of(family, options["gpt"] or options["llama"] or "", length)
            if family
            else None,
            rank=Rank(
                options["tensor"],
                options["microbatch"],
                length,
                options["attention"],
                options["sequence_parallel"] or None,
            ),
            fresh=options["fresh"],
        )
        if options["check"]:
            return _checked(request)
        if options["show_plan"]:
            return _planned(request.model or family)
        fused = fuse.fuse(requested_rank(model, request, progress), options["fusion"])
    document = store.document_of(fused)
    return Graphed(document, sheet("phaze.report.graph_sheet", "graph_sections", document), fused)


def requested_rank(model: ModelSource, request: "ModelRequest", progress: "Progress") -> "ir.Model":
    """A rank of a model: built in, of a family, of a graph's file, or one's own, which is
    traced."""
    from phaze.graph import sources
    from phaze.graph.supply.rank import rank_of
    from phaze.graph.supply.supply import SuppliedGraph, TracedSupply, supply_of

    rank, place = request.rank, request.model
    if not isinstance(model, str | None):
        return rank_of(model, rank, watch=progress.counting("tracing"))
    named = (
        ":" in place
        or place.endswith(".json")
        or "/" in place
        or "@" in place
        or Path(place).is_dir()
    )
    supply = (
        supply_of(place, allow_code=True, fresh=request.fresh)
        if named and not request.family
        else None
    )
    if not isinstance(supply, TracedSupply | SuppliedGraph):
        return sources.load(request)
    rank_model = rank_of(supply, rank, watch=progress.counting("tracing"))
    progress.clear()
    announce(place, rank.sequence)
    return rank_model


def _planned(place: str) -> Graphed:
    """The tensor-parallel plan of a model that is traced."""
    from phaze.graph.supply.supply import TracedSupply, supply_of
    from phaze.graph.tensor_plan import plan_text

    supply = supply_of(place, allow_code=True)
    if not isinstance(supply, TracedSupply):
        raise InputError(
            "--show-plan", f"{place} is built in, with a plan of its own", "name your own model"
        )
    facts = supply.facts
    supply.close()
    if facts.plan is None:
        raise InputError(
            place, f"its tensor-parallel plan is {facts.basis}", "there is none to show"
        )
    document = dict(facts.plan)
    return Graphed(document, notes(plan_text(document).removesuffix("\n")))


def _checked(request: "ModelRequest") -> Graphed:
    """The operators of a model that phaze does not know."""
    from phaze.graph.sources import unknown_operators

    if not (request.model or request.family):
        raise InputError("--check", "a model's file is read for it", "name the model by its place")
    rows = [
        {"operator": name, "module": module, "line": line}
        for name, module, line in unknown_operators(request)
    ]
    document: dict[str, Any] = {"model": request.model or request.family, "unknown": rows}
    shown = sheet("phaze.report.graph_sheet", "unknown_sections", rows)
    return Graphed(document, shown, exit_code=2 if rows else 0)
