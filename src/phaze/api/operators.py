"""The commands that look into a model, as functions: graph, estimate and schedule."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from phaze.api.answered import answered
from phaze.api.module import Model
from phaze.api.values import Estimated, Graphed, Scheduled
from phaze.cli.estimate import estimate as estimate_command
from phaze.cost.estimate import estimate_document, estimate_product, estimate_work, vector_work
from phaze.cost.layer import estimate_layers, layers_document
from phaze.cost.mapping import product
from phaze.cost.work import Work
from phaze.documents import check
from phaze.errors import InputError
from phaze.evaluate.pass_schedule import Pass, layer_passes, setting_of
from phaze.graph import ir, store
from phaze.graph.fuse import Fusion, fuse
from phaze.graph.ir import Attention
from phaze.graph.supply.rank import Rank, rank_of
from phaze.graph.supply.supply import Family, GraphFile, Supply, supply_of
from phaze.hardware.calibration import Basis
from phaze.hardware.formats import Precision
from phaze.hardware.library import load_chip, load_cluster
from phaze.report.estimate_sheet import show_layers, show_product, show_vector
from phaze.report.gantt import show_schedule
from phaze.report.graph_sheet import show_graph
from phaze.report.progress import on_standard_error
from phaze.schedule.files import OperatorsFile, load_problem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import Scheduler, solve
from phaze.units import parse_length


def length_of(sequence: int | str | None) -> int | None:
    """A sequence as a number; ``"32k"`` is a text for one."""
    try:
        return parse_length(sequence) if isinstance(sequence, str) else sequence
    except ValueError as fault:
        raise InputError("sequence", f"'{sequence}' cannot be used", str(fault)) from None


def _rank(supply: Supply, rank: Rank) -> ir.Model:
    with on_standard_error() as progress:
        progress.step("opening the model")
        return rank_of(supply, rank, watch=progress.counting("tracing"))


def _supply(model: str | Model, fresh: bool) -> Supply:
    return model if isinstance(model, Model) else supply_of(model, fresh=fresh)


def graph(
    model: str | Model,
    *,
    tensor: int | None = None,
    microbatch: int | None = None,
    sequence: int | str | None = None,
    attention: Attention | None = None,
    sequence_parallel: bool | None = None,
    sizes: Mapping[str, Any] | None = None,
    fusion: Fusion = "none",
    fresh: bool = False,
) -> Graphed:
    """The operators of one rank of a model, forward and backward, as ``phaze graph``.

    Args:
        model: A built-in name, ``"own.py:build"``, a ``config.json``, a graph's file, or a :class:`phaze.Model`.
        tensor: Tensor-parallel degree; 1 if not given, of a graph's file as it was traced. So are the next four.
        microbatch: Sequences of a microbatch; 1 if not given.
        sequence: Tokens of a sequence, or ``"32k"``; the model's if not given.
        attention: ``"eager"`` (if not given) or ``"fused"``.
        sequence_parallel: Norms and dropouts split over the tensor-parallel ranks.
        sizes: Sizes of a family; ``model`` is then ``"gpt"`` or ``"llama"``.
        fusion: What is fused: ``"none"``, ``"chains"``, ...
        fresh: Trace a model of your own again.

    Returns:
        The graph: ``document`` (``phaze.graph/1``), and ``model``, the graph itself.

    Examples:
        >>> import phaze
        >>> graph = phaze.graph("bert-large", tensor=2)
        >>> graph["name"], graph["tensor"]
        ('bert-large', 2)
    """
    supply = Family(str(model), sizes) if sizes is not None else _supply(model, fresh)
    rank = Rank(tensor, microbatch, length_of(sequence), attention, sequence_parallel)
    found = fuse(_rank(supply, rank), fusion)
    document = store.document_of(found)
    return Graphed(document, lambda console: show_graph(console, document), found)


def estimate(
    *,
    chip: str | None = None,
    gemm: Sequence[int] | None = None,
    vector: tuple[str, int] | tuple[str, int, int] | None = None,
    collective: tuple[str, int | str, int] | None = None,
    model: str | Model | None = None,
    cluster: str | None = None,
    tensor: int | None = None,
    microbatch: int | None = None,
    sequence: int | str | None = None,
    attention: Attention | None = None,
    fusion: Fusion = "none",
    basis: Basis = "calibrated",
    load: Literal["alone", "training"] = "alone",
    residency: bool = True,
    fresh: bool = False,
    precision: Precision = "bf16",
) -> Estimated:
    """What an operator, a collective, or every layer of one rank of a model takes, as ``phaze estimate``.

    Args:
        chip: A preset or the path of a chip file; a collective needs none.
        gemm: A product (batch, m, n, k) or (m, n, k). One of ``gemm``, ``vector``, ``collective``, ``model`` is given.
        vector: A vector operator (kind, elements) or (kind, elements, elements of a row).
        collective: A collective (kind, bytes, ranks) over a ``cluster``, such as ``("all_reduce", "64MiB", 8)``.
        model: A built-in name, ``"own.py:build"``, a ``config.json``, a graph's file, or a :class:`phaze.Model`.
        cluster: Over what the collectives of a model go, where ``tensor`` is above 1.
        tensor: Tensor-parallel degree of the model.
        microbatch: Sequences of a microbatch.
        sequence: Tokens of a sequence, or ``"32k"``.
        attention: ``"eager"`` or ``"fused"``.
        fusion: What is fused: ``"none"``, ``"chains"``, ...
        basis: ``"calibrated"`` or ``"datasheet"`` constants.
        load: ``"alone"``, or ``"training"`` (at the clock that training holds).
        residency: What the global buffer still holds spares a trip to HBM.
        fresh: Trace a model of your own again, whatever the cache holds.
        precision: Of a product: ``"bf16"``, ``"fp8"``, ``"mxfp8"``, ...

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
    if precision != "bf16" and gemm is None:
        raise InputError("precision", f"'{precision}' and no product", "give gemm=(m, n, k)")
    if sum(one is not None for one in (gemm, vector, collective, model)) != 1:
        seen = "there must be one operator, collective or model"
        raise InputError("estimate", seen, "give gemm=(m, n, k), vector, collective or model")
    if collective is not None:
        words = ":".join(str(part) for part in collective)
        told = answered(estimate_command, collective=words, cluster=cluster, basis=basis, load=load)
        return Estimated(told.document, told.draw)
    if chip is None:
        raise InputError("estimate", "there is no chip", "add chip='tpu-v4'")
    device = load_chip(chip)
    if model is not None:
        rank = _rank(_supply(model, fresh), Rank(tensor, microbatch, length_of(sequence), attention))
        traced = fuse(rank, fusion)
        layers = estimate_layers(traced, device, load_cluster(cluster) if cluster else None, basis, residency)
        title = f"{traced.name}, width {traced.tensor}, microbatch {traced.microbatch}, on {device.name}"
        return Estimated(layers_document(layers), lambda console: show_layers(console, title, layers))
    if gemm is not None:
        if len(gemm) not in (3, 4):
            raise InputError("gemm", f"{len(gemm)} sizes", "give (batch, m, n, k) or (m, n, k)")
        p = product(*(gemm if len(gemm) == 4 else (1, *gemm)))
        found = estimate_product(p, device, basis, load, precision)
        return Estimated(estimate_document(found), lambda console: show_product(console, p, found, device))
    assert vector is not None
    kind, *counts = vector
    found = estimate_work(Work("vector", vector=vector_work(kind, *counts)), device, basis, load)
    title = f"{kind} of {counts[0]:,} elements"
    return Estimated(estimate_document(found), lambda console: show_vector(console, title, found, device))


def schedule(
    operators: str | Path | Mapping[str, Any] | None = None,
    *,
    model: str | Model | None = None,
    chip: str | None = None,
    layer: str | None = None,
    pass_: Pass = "forward",
    cluster: str | None = None,
    stack: str | None = None,
    rules: Rules | None = None,
    tensor: int | None = None,
    microbatch: int | None = None,
    sequence: int | str | None = None,
    attention: Attention | None = None,
    sequence_parallel: bool | None = None,
    basis: Basis = "calibrated",
    scheduler: Scheduler = "exact",
) -> Scheduled:
    """The least makespan of operators on one chip, with a proof, as ``phaze schedule``.

    Args:
        operators: A file (``phaze.operators/1``) or its values. One of ``operators`` and ``model`` is given.
        model: A built-in name, ``"own.py:build"``, a ``config.json``, a graph's file, or a :class:`phaze.Model`.
        chip: A preset or the path of a chip file, for a model.
        layer: The layer's name; without it the most repeated one.
        pass_: ``"forward"`` or ``"backward"``.
        cluster: Over what collectives go; without it the usual cluster of the chip.
        stack: The training framework; without it the usual one of the chip.
        rules: The rules of scheduling; without them those of the stack.
        tensor: Tensor-parallel degree.
        microbatch: Sequences of a microbatch.
        sequence: Tokens of a sequence, or ``"32k"``.
        attention: ``"eager"`` or ``"fused"``; without it the stack's.
        sequence_parallel: Norms and dropouts split over the tensor-parallel ranks.
        basis: ``"calibrated"`` or ``"datasheet"`` constants.
        scheduler: ``"exact"``, or a faster one that states its gap.

    Returns:
        The schedule: ``makespan_s`` in seconds, ``lower_bound_s`` and every operator's start.

    Examples:
        >>> import phaze
        >>> layer = phaze.schedule(model="bert-large", chip="tpu-v4", stack="ideal")
        >>> layer["optimal"], layer.makespan_s >= layer["lower_bound_s"]
        (True, True)
    """
    if (operators is None) == (model is None):
        raise InputError("schedule", "there must be operators or a model", "give one of them")
    if operators is not None:
        where = "operators" if isinstance(operators, Mapping) else str(operators)
        values = check(OperatorsFile, operators, where) if isinstance(operators, Mapping) else None
        problem = load_problem(where) if values is None else values.value()
        found = solve(problem, scheduler)
        return Scheduled(found.document(), lambda console: show_schedule(console, where, problem, found))
    if model is None or chip is None:
        raise InputError("schedule", "there is no chip", "add chip='tpu-v4'")
    setting, supply = setting_of(chip, cluster, stack, basis, rules), _supply(model, False)
    kernels = attention or (None if isinstance(supply, GraphFile) else setting.stack.attention)
    rank = _rank(supply, Rank(tensor, microbatch, length_of(sequence), kernels, sequence_parallel))
    one = layer_passes(rank, layer, (pass_,), setting)[0]
    found = solve(one.problem, scheduler)
    document = {**found.document(), "of": one.of}
    return Scheduled(document, lambda console: show_schedule(console, one.title, one.shown, found))
