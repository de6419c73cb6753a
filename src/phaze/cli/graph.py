"""``phaze graph``: a model as the training program it runs, layer by layer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from phaze.cli.answer import Answer, answering, told
from phaze.cli.tensor_plan import TpPlan, announce, with_plan
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.graph.ir import Model
    from phaze.graph.sources import Request
    from phaze.report.progress import Progress

SOURCES = (
    "A name (see phaze models), a phaze.graph/1 file, a config.json of transformers, or path.py:function or "
    "package.module:function that returns (module, inputs) or (module, inputs, loss). "
    "Code of a model file is run only when you name it here."
)
ModelName = Annotated[str, typer.Option("--model", help=SOURCES)]
Gpt = Annotated[str, typer.Option(help="A Megatron-style decoder: hidden=4096,layers=36,heads=32,vocabulary=51200.")]
Llama = Annotated[
    str, typer.Option(help="A Llama-style decoder: hidden, layers, heads, kv_heads, head_dim, mlp, vocabulary, tied.")
]
Tensor = Annotated[int, typer.Option(help="Tensor-parallel degree; all sizes are of one rank.")]
Microbatch = Annotated[int, typer.Option(help="Sequences in one microbatch.")]
Sequence = Annotated[
    str | None, typer.Option(help="Positions of a sequence, 4096 or 32k (k = 1024); the model's own by default.")
]
Kernels = Annotated[
    Literal["eager", "fused"], typer.Option("--attention", help="eager, or fused: scores never leave the chip.")
]
Spread = Annotated[bool, typer.Option("--sequence-parallel", help="Shard what tensor parallelism leaves whole.")]
Fusion = Annotated[
    Literal["none", "chains", "elementwise", "full"],
    typer.Option(help="none, chains, elementwise, or full: also epilogues of products."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace PyTorch even if the graph is bundled.")]
ShowPlan = Annotated[
    bool, typer.Option("--show-plan", help="Print the tensor-parallel plan as a file that --tp-plan takes back.")
]
Check = Annotated[bool, typer.Option("--check", help="List the operators that phaze does not know, all at once.")]


@answering
def graph(
    *,
    model: ModelName = "",
    gpt: Gpt = "",
    llama: Llama = "",
    tensor: Tensor = 1,
    microbatch: Microbatch = 1,
    sequence: Sequence = None,
    attention: Kernels = "eager",
    sequence_parallel: Spread = False,
    fusion: Fusion = "none",
    fresh: Fresh = False,
    check: Check = False,
    tp_plan: TpPlan = None,
    show_plan: ShowPlan = False,
    progress: "Progress",
) -> Answer:
    """Show a model as layers of operators, forward and backward, on one rank.

    Examples: phaze graph --model llama2-7b --tensor 4 · phaze graph --model my.py:build --check ·
    phaze graph --gpt hidden=4096,layers=36,heads=32,vocabulary=51200 --sequence 2048 --json
    """
    from phaze.graph import fuse, sources
    from phaze.units import parse_length

    given = {"--model": model, "--gpt": gpt, "--llama": llama}
    named = [key for key, value in given.items() if value]
    if len(named) != 1:
        problem = f"{' and '.join(named)} are given together" if named else "no model is given"
        raise InputError("", problem, "give one of --model, --gpt, --llama")
    family = "" if model else named[0].removeprefix("--")
    length = None if sequence is None else told("--sequence", sequence, parse_length)
    request = sources.Request(
        model=model,
        family=family,
        sizes=sources.parse_sizes(gpt or llama, family, length) if family else None,
        tensor=tensor,
        microbatch=microbatch,
        sequence=length,
        attention=attention,
        sequence_parallel=sequence_parallel,
        fresh=fresh,
    )
    if check:
        return _check(request)
    place = with_plan(model, tp_plan)
    if show_plan:
        return _show_plan(place)
    traced = _traced(place, request, progress)
    return _answer(fuse.fuse(sources.load(request) if traced is None else traced, fusion))


def _traced(place: str, request: "Request", progress: "Progress") -> "Model | None":
    """An own model or a configuration, kept between commands; None for what is built in or a graph."""
    from phaze.graph.supply.point import Point
    from phaze.graph.supply.supply import Traced, supply_of

    named = ":" in place or place.endswith(".json") or "/" in place or "@" in place or Path(place).is_dir()
    if request.family or not named:
        return None
    supply = supply_of(place, fresh=request.fresh)
    if not isinstance(supply, Traced):
        return None
    length = supply.facts.length(request.sequence)
    spread = request.sequence_parallel and request.tensor > 1
    point = Point(request.tensor, request.microbatch, length, request.attention, spread)
    if request.microbatch < 1:
        raise InputError("--microbatch", f"{request.microbatch} is not a positive number")
    for fault in supply.prepare([point], progress.counting("tracing")).values():
        raise fault
    progress.clear()
    announce(place, request.sequence)
    return supply.model(point)


def _show_plan(place: str) -> Answer:
    """The tensor-parallel plan of a model that is traced."""
    from phaze.graph.supply.supply import Traced, supply_of
    from phaze.graph.tensor_plan import plan_text

    supply = supply_of(place)
    if not isinstance(supply, Traced):
        raise InputError("--show-plan", f"{place} is built in, with a plan of its own", "name your own model")
    facts = supply.facts
    supply.close()
    if facts.plan is None:
        raise InputError(place, f"its tensor-parallel plan is {facts.basis}", "there is none to show")
    document = dict(facts.plan)

    def show(console: "Console") -> None:
        console.print(plan_text(document), markup=False, soft_wrap=True, end="")

    return Answer((document,), show)


def _answer(model: "Model") -> Answer:
    from phaze.graph.store import document_of

    document = document_of(model)

    def show(console: "Console") -> None:
        from phaze.report.graph_sheet import show_graph

        show_graph(console, document)

    return Answer((document,), show)


def _check(request: "Request") -> Answer:
    from phaze.graph.sources import unknown_operators

    rows = [{"operator": name, "module": module, "line": line} for name, module, line in unknown_operators(request)]
    document: dict[str, Any] = {"model": request.model or request.family, "unknown": rows}

    def show(console: "Console") -> None:
        from phaze.report.terminal import table

        if not rows:
            console.print("every operator of this model is known")
            return
        console.print(table(("unknown operator", "module", "line"), [tuple(row.values()) for row in rows], left=3))
        console.print("\nTo add one: a row in NAMES of phaze/graph/opset.py, see docs/graph.md.")

    return Answer((document,), show, exit_code=2 if rows else 0)
