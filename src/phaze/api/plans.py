"""``phaze.plan``: the fastest split of a training job over devices that exist."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from phaze.api.module import Model
from phaze.api.renamed import renamed
from phaze.api.values import Planned
from phaze.cli.against import degrees_tried, launched_job, named_model, with_given
from phaze.cli.plan import planned_answer
from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.evaluate.request import Asked, AskedAttention
from phaze.evaluate.training_run import Budget
from phaze.graph.split_context import way_named
from phaze.hardware.calibration import Basis
from phaze.hardware.ownership import load_run_terms
from phaze.placement.problem import RecomputeChoice
from phaze.report.progress import on_standard_error
from phaze.units import parse_batch, parse_length, parse_tokens

T = TypeVar("T")


@renamed(
    microbatches="microbatch",
    widths="tensor",
    contexts="context",
    shards="shard",
    families="family",
    ways="context_way",
)
def plan(
    model: str | Model | None = None,
    *,
    chip: str | None = None,
    devices: int | None = None,
    batch: int | str | None = None,
    gpt: Mapping[str, Any] | None = None,
    llama: Mapping[str, Any] | None = None,
    cluster: str | None = None,
    stack: str | None = None,
    sequence: int | str | None = None,
    microbatch: Sequence[int] | None = None,
    tensor: Sequence[int] | None = None,
    zero: int | None = None,
    recompute: RecomputeChoice = "best",
    attention: AskedAttention | None = None,
    basis: Basis = "calibrated",
    chunks: Sequence[int] | None = None,
    headroom: float = USUAL_HEADROOM,
    tokens: int | str | None = None,
    terms: str | None = None,
    fresh: bool = False,
    context: Sequence[int] | None = None,
    expert: Sequence[int] | None = None,
    precision: str | None = None,
    shard: Sequence[int] | None = None,
    family: Sequence[str] | None = None,
    context_way: Sequence[str] | None = None,
    imbalance: float | None = None,
    capacity: float | None = None,
    against: str | Path | None = None,
    what_if: bool = False,
    over: Sequence[str] = (),
    certificate: str | Path | None = None,
) -> Planned:
    """The fastest split of a training job over devices that exist, proved, as ``phaze plan``.

    Args:
        model: A built-in name, ``"own.py:build"``, a ``config.json``, or a :class:`phaze.Model`. One of ``model``,
            ``gpt`` and ``llama`` is given.
        chip: A preset or the path of a chip file.
        devices: How many devices there are; with ``against`` those of the launch file.
        batch: Sequences of a global batch, or ``"4M-tokens"``; with ``against`` that of the launch file.
        gpt: Sizes of a Megatron-style decoder: hidden, layers, heads, vocabulary, sequence.
        llama: Sizes of a Llama-style decoder.
        cluster: A preset or path; without it the usual cluster of the chip.
        stack: The training framework, a preset or path; without it the usual one of the chip.
        sequence: Tokens of a sequence, or ``"32k"``; without it the model's.
        microbatch: Sequences of a microbatch that may be chosen.
        tensor: Tensor-parallel degrees that may be chosen.
        zero: The stage of ZeRO, 0 to 3; without it the best is chosen.
        recompute: ``"best"``, ``"none"``, ``"selective"``, ``"full"``, or modules; with ``"offload"`` beside it.
        attention: ``"eager"``, ``"fused"`` or ``"best"``; without it the stack's.
        basis: ``"calibrated"`` (constants fitted on measurements where there are any) or ``"datasheet"``.
        chunks: Model chunks of a stage (interleaving) that may be chosen.
        headroom: Share of a device's memory that is left free.
        tokens: Tokens to train on, or ``"15T"``: adds days, cost, energy and carbon.
        terms: A file ``phaze.ownership/1`` with the prices for ``tokens``.
        fresh: Trace a model of your own again, whatever the cache holds.
        context: Context-parallel degrees that may be chosen.
        expert: Expert-parallel degrees that may be chosen.
        precision: ``"bf16"``, ``"fp32"``, ``"fp8"`` (the stack's recipe) or a recipe by name; without it the stack's.
        shard: Hybrid sharding: how many of the ranks with the same weights may share out ZeRO's state, 0 for
            all of them; without it all.
        family: Pipeline families that may be chosen, of those that the stack runs; without it all of them.
        context_way: How ranks may share a sequence: ``"ring"``, ``"all_gather"``, ``"ulysses"``,
            ``"hierarchical"``; without it the fastest.
        imbalance: Tokens of the fullest rank of experts over the mean, from 1 on.
        capacity: Tokens that it takes at most, over the mean; beyond it they are dropped.
        against: A plan that runs today, to stand beside the best: a run (``phaze.run/1``) or a launch file of
            Megatron-LM, torchtitan, MaxText or DeepSpeed; ``against`` of the document.
        what_if: Plan other devices, batches, sequences and chips as well: ``what_if`` of the document.
        over: Axes to plan along as well, such as ``"devices=64..1024"`` or ``"chip=h200,b200"``: ``what_if``.
        certificate: A folder for what proves the plan, which :func:`phaze.verify` checks.

    Returns:
        The plan: ``batch_s`` (seconds of a global batch), ``document`` (``phaze.plan/1``), ``frame()`` of its stages.

    Raises:
        InputError: A value that cannot be used, with what is allowed.
        InfeasibleError: No choice fits into memory, with the shortage and what would fix it.

    Examples:
        >>> import phaze
        >>> plan = phaze.plan("llama2-7b", chip="h100", devices=16, batch="1M-tokens", tensor=[1, 2])
        >>> plan["proved"], plan["tensor"] * plan["pipeline"] * plan["data"] <= 16
        (True, True)
        >>> "--tensor-model-parallel-size" in plan.export("megatron")
        True
    """
    length = None if sequence is None else _told("sequence", sequence, parse_length)
    size = None if batch is None else _told("batch", batch, parse_batch)
    budget, launched = _budget(tokens, terms), None
    if against is not None:
        named = _named(model, gpt, llama) if (model, gpt, llama) != (None, None, None) else {}
        launched = launched_job(str(against), named, chip, cluster, stack, devices, size, length, precision)
        run = launched.run
        chip, cluster, stack, devices = run["chip"], run["cluster"], run.get("stack"), run["devices"]
        size, length, precision = run["batch"], run.get("sequence"), run.get("precision")
        name, sizes = named_model(run)
    elif chip is None or devices is None or size is None:
        raise InputError("plan", "a job needs a chip, devices and a batch", "add chip=, devices= and batch=")
    else:
        (family_name, value), *_ = _named(model, gpt, llama).items()
        name, sizes = (str(value), None) if family_name == "model" else (family_name, value)
    asked = Asked(
        name, sizes, chip, devices, size, cluster, stack, length, _several(microbatch), _several(tensor), zero,
        recompute, attention, basis, _several(chunks), headroom, budget, fresh,
        model if isinstance(model, Model) else None,
        _several(context) or degrees_tried(launched, "context"), _several(expert) or degrees_tried(launched, "expert"),
        precision, _several(shard), _several(family),
        None if context_way is None else tuple(way_named(way) for way in context_way), imbalance, capacity,
    )  # fmt: skip
    with on_standard_error() as progress:
        answer = planned_answer(
            asked, None, progress, what_if, list(over), None if certificate is None else str(certificate)
        )
        if launched is not None:
            answer = with_given(answer, launched, basis, progress)
    (document,) = answer.documents
    if answer.exit_code:
        raise InfeasibleError(document["shortage"]["sentence"], dict(document))
    return Planned(document, answer.show)


def _several(values: Sequence[T] | None) -> tuple[T, ...] | None:
    return None if values is None else tuple(values)


def _named(model: str | Model | None, gpt: Mapping[str, Any] | None, llama: Mapping[str, Any] | None) -> dict[str, Any]:
    """The one model that was given, as a run states it."""
    given: dict[str, Any] = {key: value for key, value in (("gpt", gpt), ("llama", llama)) if value is not None}
    if model is not None:
        given["model"] = model.name if isinstance(model, Model) else model
    if len(given) != 1:
        raise InputError("plan", "there must be one model", "give one of model, gpt, llama")
    return given


def _told(name: str, value: int | str, parse: Callable[[str], T]) -> int | T:
    """A number as it is, a text as ``parse`` has it."""
    try:
        return parse(value) if isinstance(value, str) else value
    except ValueError as fault:
        raise InputError(name, f"'{value}' cannot be used", str(fault)) from None


def _budget(tokens: int | str | None, terms: str | None) -> Budget | None:
    if tokens is None:
        if terms is not None:
            raise InputError("terms", "there is nothing to price", "add tokens='15T'")
        return None
    return Budget(_told("tokens", tokens, parse_tokens), load_run_terms(terms or "default"))
