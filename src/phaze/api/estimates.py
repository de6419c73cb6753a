"""``phaze.estimate``: what an operator, a collective or every layer of a model takes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from phaze.api.function import api
from phaze.api.graphs import length_of
from phaze.api.values import Estimated, sheet
from phaze.errors import InputError
from phaze.options.runs import EstimateOptions
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from phaze.graph import ir
    from phaze.graph.fuse import Fusion
    from phaze.hardware.calibration import Basis, Load
    from phaze.hardware.chip import Chip
    from phaze.hardware.cluster import Cluster

SHEET = "phaze.report.estimate_sheet"


@api
def estimate(**options: Unpack[EstimateOptions]) -> Estimated:
    """Time of an operator, a collective, or every layer of one rank of a model, as ``phaze
    estimate``.

    Returns:
        The estimate: ``time_s`` in seconds; of an operator also bound, mapping, bytes and joules.

    Examples:
        >>> import phaze
        >>> product = phaze.estimate(chip="h100", gemm=(4096, 4096, 4096))
        >>> product.time_s < phaze.estimate(chip="a100-80gb", gemm=(4096, 4096, 4096)).time_s
        True
        >>> phaze.estimate(collective=("all_reduce", "64MiB", 8), cluster="selene").time_s > 0
        True
    """
    sources = {
        "--gemm": options["gemm"],
        "--vector": options["vector"],
        "--collective": options["collective"],
        "--graph": options["graph"],
        "--model": options["model"],
    }
    named = [name for name, value in sources.items() if value is not None]
    if len(named) != 1:
        seen = " and ".join(named) if named else "nothing"
        raise InputError("", f"{seen} is requested", f"give one of {', '.join(sources)}")
    with on_standard_error() as progress:
        progress.step("phaze estimate")
        from phaze.hardware.library import load_chip, load_cluster

        network = None if options["cluster"] is None else load_cluster(options["cluster"])
        if options["collective"] is not None:
            if network is None:
                raise InputError("--collective", "there is no cluster", "add --cluster selene")
            return _collective(options["collective"], network, options["basis"])
        if options["chip"] is None:
            raise InputError(named[0], "there is no chip", "add --chip tpu-v4")
        device = load_chip(options["chip"])
        if options["gemm"] is not None:
            return _gemm(
                options["gemm"], device, options["basis"], options["load"], options["precision"]
            )
        if options["precision"] != "bf16":
            raise InputError(
                "--precision", f"'{options['precision']}' and no product", "give it with --gemm"
            )
        if options["vector"] is not None:
            return _vector(options["vector"], device, options["basis"], options["load"])
        from phaze.graph import store
        from phaze.graph.supply.point import Rank
        from phaze.graph.supply.rank import rank_of
        from phaze.graph.supply.tracing import OPENING

        if options["model"] is None:
            model_rank = store.load(str(options["graph"]))
        else:
            rank = Rank(
                options["tensor"],
                options["microbatch"],
                length_of(options["sequence"]),
                options["attention"],
            )
            progress.step(OPENING)
            model_rank = rank_of(
                options["model"], rank, options["fresh"], progress.counting("tracing")
            )
            progress.step("costing operators")
        return _graph(
            model_rank, (device, network), options["basis"], options["fusion"], options["residency"]
        )


def whole_field(option: str, text: str) -> int:
    """A field of an operator that is a whole number."""
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError(option, f"'{text}' is not a whole number", "give digits alone")
    return int(text)


def _gemm(
    size: str | Sequence[int], chip: "Chip", basis: "Basis", load: "Load", precision: str
) -> Estimated:
    from phaze.cost.estimate import estimate_document, estimate_product
    from phaze.cost.mapping import product
    from phaze.hardware.formats import known_precision

    text = size if isinstance(size, str) else "x".join(map(str, size))
    fields = text.lower().split("x")
    if len(fields) not in (3, 4):
        raise InputError(
            "--gemm",
            f"'{text}' has {len(fields)} sizes",
            "give BATCHxMxNxK such as 1x4096x4096x4096",
        )
    sizes = [whole_field("--gemm", field) for field in fields]
    batch, m, n, k = sizes if len(sizes) == 4 else (1, *sizes)
    p = product(batch, m, n, k)
    estimated = estimate_product(p, chip, basis, load, known_precision(precision, "--precision"))

    operator = {"gemm": {"batch": batch, "m": m, "n": n, "k": k}}
    return Estimated(
        {**operator, **estimate_document(estimated)},
        sheet(SHEET, "product_sections", p, estimated, chip),
    )


def _vector(
    operator: str | Sequence[str | int], chip: "Chip", basis: "Basis", load: "Load"
) -> Estimated:
    from phaze.cost.estimate import estimate_document, estimate_work, vector_work
    from phaze.cost.work import Work

    text = operator if isinstance(operator, str) else ":".join(map(str, operator))
    kind, *numbers = text.split(":")
    if len(numbers) not in (1, 2):
        raise InputError(
            "--vector",
            f"'{text}' is not an operator",
            "give KIND:ELEMENTS such as softmax:16777216:4096",
        )
    sizes = [whole_field("--vector", number) for number in numbers]
    estimated = estimate_work(Work("vector", vector=vector_work(kind, *sizes)), chip, basis, load)

    rows = f" in {sizes[1]:,} rows" if len(sizes) > 1 else ""
    title = f"{kind} of {sizes[0]:,} elements{rows}"
    question: dict[str, Any] = {
        "vector": {"kind": kind, "elements": sizes[0], "rows": sizes[1] if sizes[1:] else None}
    }
    return Estimated(
        {**question, **estimate_document(estimated)},
        sheet(SHEET, "vector_sections", title, estimated, chip),
    )


def _collective(
    operation: str | Sequence[str | int], cluster: "Cluster", basis: "Basis"
) -> Estimated:
    from dataclasses import asdict

    from phaze import units
    from phaze.cost.collective import kind_named, ways

    text = operation if isinstance(operation, str) else ":".join(map(str, operation))
    fields = text.split(":")
    if len(fields) != 3:
        raise InputError(
            "--collective",
            f"'{text}' is not a collective",
            "give KIND:BYTES:RANKS, all_reduce:64MiB:8",
        )
    try:
        size = (
            float(whole_field("", fields[1]))
            if fields[1].isdigit()
            else units.parse(fields[1], "B")
        )
    except ValueError as fault:
        raise InputError("--collective", f"'{fields[1]}' is not a size", str(fault)) from None
    ranks = whole_field("--collective", fields[2])
    algorithms = ways(kind_named(fields[0]), size, ranks, cluster, basis)

    title = f"{fields[0]} of {units.show(size, 'B')} over {ranks} devices of {cluster.name}"
    question = {"kind": fields[0], "bytes": size, "ranks": ranks}
    measured = basis == "calibrated" and cluster.levels[0].share is not None
    used = "calibrated" if measured else "datasheet" if basis == "calibrated" else basis
    document = {
        "collective": question,
        "cluster": cluster.name,
        "basis": used,
        **asdict(algorithms[0]),
    }
    document["ways"] = [asdict(way) for way in algorithms]
    return Estimated(document, sheet(SHEET, "collective_sections", title, algorithms))


def _graph(
    loaded: "ir.Model",
    on: "tuple[Chip, Cluster | None]",
    basis: "Basis",
    fusion: "Fusion",
    residency: bool,
) -> Estimated:
    from phaze.cost.layer import estimate_layers, layers_document
    from phaze.graph.fuse import fuse
    from phaze.hardware.provenance import chip_provenance

    chip, cluster = on
    model = fuse(loaded, fusion)
    layers = estimate_layers(model, chip, cluster, basis, residency)
    used = chip_provenance(chip, basis).basis
    question = {
        "graph": model.name,
        "chip": chip.name,
        "cluster": cluster.name if cluster else None,
        "basis": used,
    }
    document = {**question, "fusion": fusion, "residency": residency, **layers_document(layers)}
    title = f"{model.name}, width {model.tensor}, microbatch {model.microbatch}, on {chip.name}"
    return Estimated(document, sheet(SHEET, "layers_sections", title, layers))
