"""The commands that list what is bundled, as functions."""

from typing import Annotated, Any, Unpack

from phaze.api.function import api
from phaze.api.values import Answer, Sheeted, sheet
from phaze.errors import InputError
from phaze.options.option import Option
from phaze.options.runs import ChipsOptions

SHEET = "phaze.report.library_sheet"
# How a source begins that nobody can look up.
UNREAD = ("assumed:", "recalled:", "derived:")


@api
def models(
    name: Annotated[str | None, Option("One of the named models.", argument=True)] = None,
) -> Answer:
    """The built-in models, or one, as ``phaze models``.

    Returns:
        Layers, hidden size, parameters, sequence and tensor-parallel degrees.

    Examples:
        >>> import phaze
        >>> phaze.models("llama2-7b")["layers"]
        32
    """
    from phaze.graph.zoo import ZOO, entry_of

    if name is not None:
        row = _model(entry_of(name).name)
        return Answer(row, sheet(SHEET, "model_sections", row))
    rows = [_model(each) for each in ZOO]
    return Answer({"models": rows}, sheet(SHEET, "models_sections", rows))


def _model(name: str) -> dict[str, Any]:
    from dataclasses import asdict

    from phaze.graph.zoo import ZOO, load_model

    row = asdict(ZOO[name])
    split = row.pop("experts")
    experts = (
        None if split is None else dict(zip(("pipeline", "data", "tensor"), split, strict=True))
    )
    shipped = row.pop("shipped")
    return {
        **row,
        "parameters": load_model(name).parameters,
        "shipped_widths": shipped,
        "experts": experts,
    }


@api
def chips(
    name: Annotated[
        str | None,
        Option("A preset, or the path of a chip file (- for standard input).", argument=True),
    ] = None,
    **options: Unpack[ChipsOptions],
) -> Answer:
    """The bundled chips, or one, as ``phaze chips``; :func:`phaze.chip` also changes one.

    Returns:
        Parts, areas in mm2, powers in W, costs in USD.

    Examples:
        >>> import phaze
        >>> "h100" in [chip["name"] for chip in phaze.chips()["chips"]]
        True
    """
    if options["space"] is not None:
        if name is not None:
            raise InputError(
                "--space", f"the chip '{name}' is given too", "give either a chip or a space"
            )
        if not options["count"]:
            raise InputError(
                "--space", "there is nothing to show of a whole space but its size", "add --count"
            )
        return _counted(options["space"])
    if options["count"]:
        raise InputError("--count", "there is no space to count", "add --space paper")
    return _listed_chips(options["terms"]) if name is None else _sheeted(name, {}, options["terms"])


def _counted(space: str) -> Answer:
    from phaze.search.chips import enumerate_space
    from phaze.search.spaces import load_space

    loaded = load_space(space)
    chips = enumerate_space(loaded)
    document = {
        "chips": len(chips),
        "tensor_parts": chips.tensor_parts(),
        "vector_parts": chips.vector_parts(),
    }
    about = (loaded.name, loaded.title, loaded.sources)
    return Answer(document, sheet(SHEET, "space_sections", *about, document))


def _listed_chips(terms: str) -> Answer:
    from phaze.hardware.chip_document import brief_document, sheet_of
    from phaze.hardware.library import chip_names, load_chip
    from phaze.hardware.ownership import load_terms

    prices = load_terms(terms)
    sheets = [sheet_of(load_chip(name), prices) for name in chip_names()]
    return Answer(
        {"chips": [brief_document(estimates) for estimates in sheets]},
        sheet(SHEET, "chips_sections", sheets),
    )


def _sheeted(name: str, changes: dict[str, Any], terms: str) -> Sheeted:
    """A chip, changed or as it is, with its estimates and where they come from."""
    from phaze.hardware.chip_document import sheet_document, sheet_of
    from phaze.hardware.library import changed_keys, chip_in, chip_keys
    from phaze.hardware.ownership import load_terms

    prices = load_terms(terms)
    keys, where = chip_keys(name)
    device = chip_in(changed_keys(keys, changes), name if changes else where)
    estimates = sheet_of(device, prices)
    about = {
        "name": prices.name,
        "title": prices.title,
        "notes": prices.notes,
        "sources": dict(prices.sources),
    }
    document = {
        **sheet_document(estimates),
        "sources": dict(device.sources),
        "notes": device.notes,
        "terms": about,
    }
    doubtful = {
        path: source for path, source in device.sources.items() if source.startswith(UNREAD)
    }
    shown = sheet("phaze.report.chip_sheet", "chip_sections", estimates, device.notes, doubtful)
    return Sheeted(document, shown, estimates.chip)


@api
def chip(
    name: Annotated[str, Option("A preset or the path of a chip file.")],
    **changes: Annotated[
        Any,
        Option(
            (
                "Keys of the chip's file, a table's one by one; a number given for a table "
                "is its count."
            ),
            python='``clock="1.5 GHz", clusters={"count": 66}``, ``tensor_cores=16``.',
        ),
    ],
) -> Sheeted:
    """A chip with its area, power and cost, as ``phaze chips NAME``, or another one that differs
    from it.

    Returns:
        Its sheet; areas in mm2, powers in W, costs in USD. ``chip`` is the chip itself.

    Examples:
        >>> import phaze
        >>> slow = phaze.chip("h100", clock="1.2 GHz")
        >>> slow["peak_flops"] < phaze.chip("h100")["peak_flops"]
        True
    """
    return _sheeted(name, changes, "default")


@api
def clusters(
    name: Annotated[
        str | None,
        Option("A preset, or the path of a cluster file (- for standard input).", argument=True),
    ] = None,
) -> Answer:
    """The bundled clusters, or one, as ``phaze clusters``.

    Returns:
        Levels with bandwidths in bytes/s and latencies in s.

    Examples:
        >>> import phaze
        >>> phaze.clusters("dgx-h100")["chip"]
        'h100'
    """
    from phaze.documents import plain_value
    from phaze.hardware.bundled import preset_names
    from phaze.hardware.cluster import Cluster
    from phaze.hardware.library import load_cluster

    def plain(cluster: Cluster) -> dict[str, Any]:
        """A cluster as its file has it; whether it grows is no part of that."""
        return {
            key: value
            for key, value in plain_value(cluster).items()
            if key not in ("limit", "enlarged_from")
        }

    if name is not None:
        cluster = load_cluster(name)
        document = {**plain(cluster), "notes": cluster.notes, "sources": dict(cluster.sources)}
        return Answer(document, sheet(SHEET, "cluster_sections", cluster, cluster.notes))
    bundled = [load_cluster(each) for each in preset_names("clusters")]
    return Answer(
        {"clusters": [plain(cluster) for cluster in bundled]},
        sheet(SHEET, "clusters_sections", bundled),
    )


@api
def stacks(
    name: Annotated[
        str | None,
        Option("A preset, or the path of a stack file (- for standard input).", argument=True),
    ] = None,
) -> Answer:
    """The bundled software stacks, or one, as ``phaze stacks``.

    Returns:
        What a stack fuses, overlaps and saves; times in s, state in bytes.

    Examples:
        >>> import phaze
        >>> phaze.stacks("megatron-core")["optimizer"]
        'adam'
    """
    from phaze.documents import plain_value
    from phaze.hardware.bundled import preset_names
    from phaze.hardware.library import load_stack

    if name is not None:
        stack = load_stack(name)
        document = {**plain_value(stack), "notes": stack.notes, "sources": dict(stack.sources)}
        return Answer(document, sheet(SHEET, "stacks_sections", [stack], stack.notes))
    bundled = [load_stack(each) for each in preset_names("stacks")]
    return Answer(
        {"stacks": [plain_value(stack) for stack in bundled]},
        sheet(SHEET, "stacks_sections", bundled),
    )


@api
def technologies(
    name: Annotated[
        str | None,
        Option("A preset, or the path of a technology file (- for standard input).", argument=True),
    ] = None,
) -> Answer:
    """The bundled process technologies, or one, as ``phaze technologies``.

    Returns:
        Areas in mm2, energies in J, wafer prices in USD, each with its source.

    Examples:
        >>> import phaze
        >>> phaze.technologies("n5")["name"]
        'n5'
    """
    from phaze.documents import plain_value
    from phaze.hardware.technologies import technologies as bundled_technologies
    from phaze.hardware.technologies import technologies_named

    processes = bundled_technologies() if name is None else technologies_named(name)
    documents: list[dict[str, Any]] = [
        {"schema": process.schema_, **plain_value(process)} for process in processes
    ]
    if name is None:
        return Answer({"technologies": documents}, sheet(SHEET, "processes_sections", processes))
    whole = [{**row, "notes": process.notes, "sources": dict(process.sources)}
             for row, process in zip(documents, processes, strict=True)]  # fmt: skip
    # A name that both versions have: that of chips of cores first, the other one beside it.
    joined = whole[0] if len(whole) == 1 else {**whole[0], "of_clusters": whole[1]}
    return Answer(joined, sheet(SHEET, "named_processes_sections", processes))
