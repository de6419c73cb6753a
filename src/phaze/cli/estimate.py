"""``phaze estimate``: what one operator, one collective or one graph takes."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from phaze.cli.answer import Answer, answering, told
from phaze.cli.graph import SOURCES
from phaze.errors import InputError, unknown_name

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.graph.ir import Model
    from phaze.hardware.calibration import Basis, Load
    from phaze.hardware.chip import Chip
    from phaze.hardware.cluster import Cluster
    from phaze.report.progress import Progress

Gemm = Annotated[str | None, typer.Option(help="A product: BATCHxMxNxK, or MxNxK.")]
Vector = Annotated[str | None, typer.Option(help="A vector operator: KIND:ELEMENTS or KIND:ELEMENTS:ROWS.")]
Collective = Annotated[str | None, typer.Option(help="KIND:BYTES:RANKS, such as all_reduce:64MiB:8; with --cluster.")]
Graph = Annotated[str | None, typer.Option(help="A graph file (phaze.graph/1; - for standard input).")]
ModelName = Annotated[str | None, typer.Option("--model", help=SOURCES)]
Tensor = Annotated[int, typer.Option(help="With --model: tensor-parallel degree.")]
Microbatch = Annotated[int, typer.Option(help="With --model: sequences in one microbatch.")]
Sequence = Annotated[str | None, typer.Option(help="With --model: positions, such as 4096 or 32k (k = 1024).")]
Attention = Annotated[Literal["eager", "fused"], typer.Option(help="With --model: how its attention runs.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace the model again, whatever the cache holds.")]
ChipName = Annotated[str | None, typer.Option("--chip", help="A preset, or the path of a chip file.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="A preset, or the path of a cluster file.")]
BasisName = Annotated[str, typer.Option("--basis", help="Constants: calibrated, datasheet or ideal.")]
PrecisionName = Annotated[str, typer.Option("--precision", help="With --gemm: bf16, fp8, mxfp8 or another recipe.")]
LoadName = Annotated[str, typer.Option("--load", help="One operator alone, or queued in training.")]
Fusing = Annotated[str, typer.Option("--fusion", help="With --graph: fuse none, chains, elementwise or full before.")]
Residency = Annotated[bool, typer.Option(help="With --graph: keep results in the global buffer where they fit.")]


@answering
def estimate(
    gemm: Gemm = None,
    vector: Vector = None,
    collective: Collective = None,
    graph: Graph = None,
    model: ModelName = None,
    tensor: Tensor = 1,
    microbatch: Microbatch = 1,
    sequence: Sequence = None,
    attention: Attention = "eager",
    fresh: Fresh = False,
    chip: ChipName = None,
    cluster: ClusterName = None,
    basis: BasisName = "calibrated",
    load: LoadName = "alone",
    precision: PrecisionName = "bf16",
    fusion: Fusing = "none",
    residency: Residency = True,
    *,
    progress: "Progress",
) -> Answer:
    """Time, bound, mapping, traffic and energy of an operator.

    Examples: phaze estimate --gemm 1x4096x4096x4096 --chip tpu-v4 · phaze estimate --vector softmax:16777216:4096
    --chip a100-80gb · phaze estimate --collective all_reduce:64MiB:8 --cluster selene
    """
    asked = {"--gemm": gemm, "--vector": vector, "--collective": collective, "--graph": graph, "--model": model}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        seen = " and ".join(given) if given else "nothing"
        raise InputError("", f"{seen} is asked for", f"give one of {', '.join(asked)}")
    from phaze.hardware.library import load_chip, load_cluster

    constants, loaded = basis_named(basis), _load(load)
    network = load_cluster(cluster) if cluster is not None else None
    if collective is not None:
        if network is None:
            raise InputError("--collective", "there is no cluster", "add --cluster selene")
        return _collective(collective, network, constants)
    if chip is None:
        raise InputError(given[0], "there is no chip", "add --chip tpu-v4")
    device = load_chip(chip)
    if gemm is not None:
        return _gemm(gemm, device, constants, loaded, precision)
    if precision != "bf16":
        raise InputError("--precision", f"'{precision}' and no product", "give it with --gemm")
    if vector is not None:
        return _vector(vector, device, constants, loaded)
    from phaze.graph import store

    if model is None:
        loaded_graph = store.load(str(graph))
    else:
        loaded_graph = _model(model, (tensor, microbatch, sequence, attention), fresh, progress)
    return _graph(loaded_graph, (device, network), constants, fusion, residency)


def _model(
    name: str, at: "tuple[int, int, str | None, Literal['eager', 'fused']]", fresh: bool, progress: "Progress"
) -> "Model":
    """A model at a width, microbatch, sequence and kind of attention, traced where it is not built in."""
    from phaze.graph.supply.rank import Rank, rank_of
    from phaze.graph.supply.tracing import OPENING
    from phaze.units import parse_length

    tensor, microbatch, sequence, attention = at
    asked = None if sequence is None else told("--sequence", sequence, parse_length)
    progress.step(OPENING)
    found = rank_of(name, Rank(tensor, microbatch, asked, attention), fresh, progress.counting("tracing"))
    progress.step("costing operators")
    return found


def basis_named(text: str) -> "Basis":
    """The basis of that name."""
    from phaze.hardware.calibration import Basis

    for basis in get_args(Basis):
        if basis == text:
            return basis  # type: ignore[no-any-return]
    raise unknown_name("--basis", "basis", text, get_args(Basis))


def _load(text: str) -> "Load":
    from phaze.hardware.calibration import Load

    for load in get_args(Load):
        if load == text:
            return load  # type: ignore[no-any-return]
    raise unknown_name("--load", "load", text, get_args(Load))


def _whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError(option, f"'{text}' is no whole number", "give digits alone")
    return int(text)


def _gemm(text: str, chip: "Chip", basis: "Basis", load: "Load", precision: str) -> Answer:
    from phaze.cost.estimate import estimate_document, estimate_product
    from phaze.cost.mapping import product
    from phaze.hardware.formats import known_precision

    fields = text.lower().split("x")
    if len(fields) not in (3, 4):
        raise InputError("--gemm", f"'{text}' has {len(fields)} sizes", "give BATCHxMxNxK such as 1x4096x4096x4096")
    sizes = [_whole("--gemm", field) for field in fields]
    batch, m, n, k = sizes if len(sizes) == 4 else (1, *sizes)
    p = product(batch, m, n, k)
    found = estimate_product(p, chip, basis, load, known_precision(precision, "--precision"))

    def show(console: "Console") -> None:
        from phaze.report.estimate_sheet import show_product

        show_product(console, p, found, chip)

    asked = {"gemm": {"batch": batch, "m": m, "n": n, "k": k}}
    return Answer(({**asked, **estimate_document(found)},), show)


def _vector(text: str, chip: "Chip", basis: "Basis", load: "Load") -> Answer:
    from phaze.cost.estimate import estimate_document, estimate_work, vector_work
    from phaze.cost.work import Work

    kind, *numbers = text.split(":")
    if len(numbers) not in (1, 2):
        raise InputError("--vector", f"'{text}' is no operator", "give KIND:ELEMENTS such as softmax:16777216:4096")
    sizes = [_whole("--vector", number) for number in numbers]
    found = estimate_work(Work("vector", vector=vector_work(kind, *sizes)), chip, basis, load)

    def show(console: "Console") -> None:
        from phaze.report.estimate_sheet import show_vector

        rows = f" in {sizes[1]:,} rows" if len(sizes) > 1 else ""
        show_vector(console, f"{kind} of {sizes[0]:,} elements{rows}", found, chip)

    asked: dict[str, Any] = {"vector": {"kind": kind, "elements": sizes[0], "rows": sizes[1] if sizes[1:] else None}}
    return Answer(({**asked, **estimate_document(found)},), show)


def _collective(text: str, cluster: "Cluster", basis: "Basis") -> Answer:
    from dataclasses import asdict

    from phaze import units
    from phaze.cost.collective import kind_named, ways

    fields = text.split(":")
    if len(fields) != 3:
        raise InputError("--collective", f"'{text}' is no collective", "give KIND:BYTES:RANKS, all_reduce:64MiB:8")
    try:
        size = float(_whole("", fields[1])) if fields[1].isdigit() else units.parse(fields[1], "B")
    except ValueError as fault:
        raise InputError("--collective", f"'{fields[1]}' is no size", str(fault)) from None
    ranks = _whole("--collective", fields[2])
    found = ways(kind_named(fields[0]), size, ranks, cluster, basis)

    def show(console: "Console") -> None:
        from phaze.report.estimate_sheet import show_collective

        told = f"{fields[0]} of {units.show(size, 'B')} over {ranks} devices of {cluster.name}"
        show_collective(console, told, found)

    asked = {"kind": fields[0], "bytes": size, "ranks": ranks}
    measured = basis == "calibrated" and cluster.levels[0].calibration.share is not None
    told = "calibrated" if measured else "datasheet" if basis == "calibrated" else basis
    document = {"collective": asked, "cluster": cluster.name, "basis": told, **asdict(found[0])}
    return Answer(({**document, "ways": [asdict(way) for way in found]},), show)


def _graph(loaded: "Model", on: "tuple[Chip, Cluster | None]", basis: "Basis", fusion: str, residency: bool) -> Answer:
    from phaze.cost.layer import estimate_layers, layers_document
    from phaze.graph.fuse import LEVELS, fuse
    from phaze.hardware.trust import chip_trust

    chip, cluster = on
    depths = [level for level in LEVELS if level == fusion]
    if not depths:
        raise unknown_name("--fusion", "level of fusion", fusion, LEVELS)
    model = fuse(loaded, depths[0])
    layers = estimate_layers(model, chip, cluster, basis, residency)
    used = chip_trust(chip, basis).basis
    asked = {"graph": model.name, "chip": chip.name, "cluster": cluster.name if cluster else None, "basis": used}

    def show(console: "Console") -> None:
        from phaze.report.estimate_sheet import show_layers

        show_layers(
            console, f"{model.name}, width {model.tensor}, microbatch {model.microbatch}, on {chip.name}", layers
        )

    return Answer(({**asked, "fusion": fusion, "residency": residency, **layers_document(layers)},), show)
