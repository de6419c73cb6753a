"""Models made by hand and by hypothesis, for tests that need no PyTorch."""

from collections.abc import Sequence

from hypothesis import strategies as st

from phaze.graph.ir import (
    Access,
    Call,
    Core,
    Edge,
    Layer,
    Model,
    Operator,
    OperatorGraph,
    Parameter,
    Recompute,
    Role,
    Tensor,
    Tie,
)
from phaze.graph.opset import KINDS
from phaze.graph.store import graph_from
from phaze.graph.summary import SIZES

VECTOR_KINDS = (
    "add",
    "multiply",
    "cast",
    "gelu",
    "dropout",
    "copy",
    "reduce",
    "softmax",
    "layer_norm",
    "scatter",
)
KIND_NAMES = ("product", "attention", "all_reduce", *VECTOR_KINDS)
EMPTY = OperatorGraph((), (), (), ())
# Files hold what can be printed: no control characters, no halves of characters.
PRINTED = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=9)


def operator(
    number: int, kind: str, reads: Sequence[int], writes: Sequence[int], size: int = 8
) -> Operator:
    """An operator of ``kind`` whose sizes are all ``size`` and whose operands are 2 ``size`` bytes
    each."""
    core: Core = KINDS[kind].core
    sizes = tuple((name, size) for name in SIZES[KINDS[kind].rule])
    inputs, outputs = ([Access(tensor, 2 * size) for tensor in group] for group in (reads, writes))
    return Operator(number, kind, core, sizes, tuple(inputs), tuple(outputs), f"part{number}")


def graph(operators: Sequence[Operator], outputs: Sequence[int] = ()) -> OperatorGraph:
    """The graph of ``operators``; ``outputs`` default to what nobody reads. Tensor 1 is a
    parameter, those from 10 on are intermediate."""
    written = {access.tensor for op in operators for access in op.writes}
    read = {access.tensor for op in operators for access in op.reads}
    tensors: dict[int, Tensor] = {}
    for number in read | written:
        role: Role = "intermediate" if number >= 10 else "parameter" if number == 1 else "input"
        tensors[number] = Tensor(number, 64 + number, 2, role)
    ends = tuple(outputs) or tuple(sorted(written - read))
    return graph_from(operators, ends, tensors)


@st.composite
def graphs(draw: st.DrawFn, most: int = 14, first: int = 0) -> OperatorGraph:
    """Any graph: operator i writes tensor 100 + i and reads earlier ones, inputs 0..3 among
    them."""
    count = draw(st.integers(1, most))
    operators: list[Operator] = []
    for place in range(count):
        earlier = [*range(4), *(100 + first + i for i in range(place))]
        reads = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=3, unique=True))
        kind = draw(st.sampled_from(KIND_NAMES))
        operators.append(
            operator(first + place, kind, reads, [100 + first + place], draw(st.integers(1, 64)))
        )
    made = graph(operators)
    kept = draw(st.lists(st.sampled_from([op.writes[0].tensor for op in operators]), unique=True))
    return graph(operators, sorted({*made.outputs, *kept}))


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    forward = draw(graphs(6))
    backward = draw(graphs(6, first=50))
    tensors = [t for t in forward.tensors if t.role == "intermediate"]
    saved = tuple(t.id for t in draw(st.lists(st.sampled_from(tensors), unique=True)))
    size = draw(st.integers(0, 2**40))
    partial = graph(forward.operators[:1], [forward.operators[0].writes[0].tensor])
    return Layer(
        name=draw(st.sampled_from(("prologue", "h.*", "epilogue", "naïve"))),
        forward=forward,
        backward=backward,
        parameters=(Parameter("weight", forward.inputs[0], 4, 2, True, draw(st.booleans())),),
        none=Recompute(saved, size, EMPTY),
        selective=Recompute(saved[1:], size // 2, partial),
        full=Recompute(forward.inputs, size // 3, forward),
        shared_bytes=draw(st.integers(0, 99)),
        input_bytes=draw(st.integers(0, 99)),
        output_bytes=draw(st.integers(0, 99)),
        sharded=draw(st.booleans()),
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    distinct = draw(st.lists(layers(), min_size=1, max_size=3))
    order = draw(st.lists(st.integers(0, len(distinct) - 1), min_size=1, max_size=5))
    calls = tuple(Call(layer, f"h.{place}") for place, layer in enumerate(order))
    return Model(
        name="made",
        tensor=draw(st.sampled_from((1, 2, 4))),
        microbatch=draw(st.integers(1, 8)),
        sequence=draw(st.integers(0, 4096)),
        sequence_parallel=draw(st.booleans()),
        attention=draw(st.sampled_from(("eager", "fused"))),
        layers=tuple(distinct),
        calls=calls,
        edges=tuple(Edge(i, i + 1, draw(st.integers(0, 99)), 7) for i in range(len(calls) - 1)),
        ties=(Tie("shared.weight", tuple(range(len(calls))), 2, 2),) if len(calls) > 1 else (),
        approximations=tuple(draw(st.lists(PRINTED, max_size=2))),
    )
