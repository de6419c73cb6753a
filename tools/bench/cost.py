"""Products: one chip and all tensor parts of the paper against the published mapper; one core
against ZigZag and SCALE-Sim, cycles beside time."""

from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from phaze.cost.gemm import array_cycles
from phaze.cost.kernels import warm
from phaze.cost.mapped import part_of
from phaze.cost.mapping import Flow, TensorPart
from phaze.cost.products import map_product, sweep_products
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip
from tools.bench import clock
from tools.bench.inputs import CHIP, SHAPES, SIMULATED_SHAPES, core_part, paper_parts, shape_product
from tools.bench.line import Line, Section, Took, same, took
from tools.bench.loops import nest_of
from tools.bench.peer import PeerError, ask
from tools.bench.published import MAPPER, SOURCE

Shape = tuple[int, int, int]
NEAR = 0.05
"""Two models of one array agree within what their start and end conventions differ by."""
SIMULATED: tuple[tuple[str, Flow], ...] = (("os", "os-mn"), ("ws", "ws"))
NOTES = (
    f"Published: the paper's mapper, {SOURCE}: 0.25 s median for one operator on one "
    "chip (3 s at most); over all "
    "tensor parts that time is multiplied, not run.",
    f"zigzag-dse and SCALE-Sim: one tensor core of {CHIP} (128 x 128, buffer 256 KiB) "
    "with the global buffer (128 MiB, "
    "4096 bytes a cycle) and an eighth of HBM (150 GB/s); 16-bit operands, 32-bit sums. "
    "Ours tries all its mappings in "
    "all four dataflows; zigzag-dse has stationary weights and its default effort (6 "
    "loop factors).",
    "'zigzag, our loops': its model evaluated on our best mapping with stationary "
    "weights. The two agree when within "
    f"{NEAR:.0%}, or apart by no more than one tile's way in and out, which zigzag-dse "
    "charges and ours hides. Loops "
    "that it searches itself may take longer, which is not judged, but not less.",
    "'gb/8': an eighth of the global buffer and of its rate as well (16 MiB, 512 bytes a "
    "cycle), which is what an "
    "operator on one core has in our searches. The global buffer decides there, and six "
    "loop factors leave zigzag-dse "
    "no tile of 128 rows: what it searches is twice as slow as our loops by its own model.",
    "SCALE-Sim runs one pass after the other; ours lets a pass begin while the one "
    "before drains. Its cycles must be "
    "ours in that dataflow plus, for every pass, the skew R + C - 2 and, with stationary "
    "weights (ws), their load R: "
    "to the cycle. It writes a trace of every cycle, which ours does not; our time is "
    "that of the search of mappings.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A product on one core, our cycles and time."""

    called: str
    part: TensorPart
    shape: Shape
    cycles: float
    ours: Took


def _case(shape: Shape, whole: bool) -> Case:
    part, asked = core_part(whole), shape_product(shape)
    cost, ours = clock.warm(lambda: map_product(asked, part))
    called = "x".join(map(str, shape)) + ("" if whole else ", gb/8")
    return Case(called, part, shape, cost.time_s * part.clock_hz, ours)


def _published() -> list[Line]:
    shape, chip = (512, 4096, 1024), part_of(load_chip(CHIP), IDEAL)
    asked, called = shape_product(shape), "x".join(map(str, shape))
    _, one = clock.warm(lambda: map_product(asked, chip))
    parts = paper_parts()
    _, every = clock.warm(lambda: sweep_products([asked], parts))
    theirs = Took(MAPPER.least_s * len(parts), MAPPER.most_s * len(parts))
    return [
        Line(called, "published mapper", "published", one, MAPPER),
        Line(f"{len(parts):,} parts", "published mapper", "estimated", every, theirs),
    ]


def _peer(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def _spent(told: list[Any]) -> Took:
    """Processor seconds, elapsed seconds and memory, as a peer tells them of itself."""
    processor_s, elapsed_s, memory_bytes = told
    return took(processor_s, elapsed_s, memory_bytes=memory_bytes)


def _absent(name: str, cases: list[Case], why: str) -> list[Line]:
    return [Line(case.called, name, "measured", case.ours, None, missing=why) for case in cases]


def _zigzag(cases: list[Case]) -> list[Line]:
    """Each product twice: loops that zigzag-dse searches, which may not beat ours, and ours, which
    must agree."""
    name = _peer("zigzag-dse")
    nests = [nest_of(case.shape, case.part) for case in cases]
    searched = [{"part": asdict(case.part), "shape": case.shape} for case in cases]
    given = [{**case, "loops": nest.loops} for case, nest in zip(searched, nests, strict=True)]
    try:
        rows = ask("tools.bench.zigzag_peer", "zigzag", {"cases": [*searched, *given]})["rows"]
    except PeerError as fault:
        return _absent(name, cases, str(fault))
    lines = []
    for case, (cycles, *spent) in zip(cases, rows[: len(cases)], strict=True):
        answers, near = same(case.cycles, cycles, NEAR)
        lines.append(
            Line(case.called, name, "measured", case.ours, _spent(spent),
                 answers, True if near else None if cycles > case.cycles else False,
                 (case.cycles, cycles), "cycles")
        )  # fmt: skip
    for case, nest, (cycles, *spent) in zip(cases, nests, rows[len(cases) :], strict=True):
        answers, near = same(nest.cycles, cycles, NEAR)
        agree = near or 0 <= cycles - nest.cycles <= nest.ends
        lines.append(
            Line(case.called, "zigzag, our loops", "measured", case.ours, _spent(spent),
                 answers, agree, (nest.cycles, cycles), "cycles")
        )  # fmt: skip
    return lines


def streamed_cycles(flow: Flow, shape: Shape, part: TensorPart) -> tuple[float, float]:
    """Cycles of the whole product as one item in ``flow``: ours, and what passes that do not
    overlap would take."""
    m, n, k = shape
    busy = array_cycles(flow, m, n, k, k, part)
    on_rows, on_columns = {"os-mn": (m, n), "os-nm": (n, m), "ws": (k, n), "is": (k, m)}[flow]
    passes = -(-on_rows // part.rows) * -(-on_columns // part.columns)
    paid = part.rows + part.columns - 2 + (0 if flow.startswith("os") else part.rows)
    return busy + 2 * part.rows + part.columns - 2, busy + passes * paid


def _scalesim(cases: list[Case]) -> list[Line]:
    name, part = _peer("scalesim"), core_part(True)
    asked = [(case, label, flow) for case in cases for label, flow in SIMULATED]
    shapes = [(label, *case.shape) for case, label, _ in asked]
    try:
        found = ask(
            "tools.bench.scalesim_peer",
            "scalesim",
            {"rows": part.rows, "columns": part.columns, "cases": shapes},
        )
    except PeerError as fault:
        return _absent(name, cases, str(fault))
    lines = []
    for (case, label, flow), (cycles, *spent) in zip(asked, found["rows"], strict=True):
        own, apart = streamed_cycles(flow, case.shape, part)
        answers, _ = same(own, cycles, NEAR)
        lines.append(
            Line(f"{case.called}, {label}", name, "measured", case.ours, _spent(spent),
                 answers, cycles == apart, (own, cycles), "cycles")
        )  # fmt: skip
    return lines


def section(
    shapes: tuple[Shape, ...] = SHAPES, simulated: tuple[Shape, ...] = SIMULATED_SHAPES
) -> Section:
    """All lines; ``simulated`` are the shapes that SCALE-Sim is asked about."""
    warm()
    mapped = [*(_case(shape, True) for shape in shapes), *(_case(shape, False) for shape in shapes)]
    lines = [
        *_published(),
        *_zigzag(mapped),
        *_scalesim([_case(shape, True) for shape in simulated]),
    ]
    return Section("cost", tuple(lines), NOTES)
