"""``phaze.run/1``: a model, where it runs, and the plan that was run (``phaze plan --fixed``).

The model is one of ``gpt``, ``llama`` or ``moe`` by sizes, a ``model`` (a built-in name, or one of
your own such as ``own.py:build``, with a ``tensor_plan`` if need be), or a ``graph`` file. Paths
are relative to the run's file. What a run does not say is that of the cluster and its stack: bf16
with fp32 master weights, Adam, its attention, 1F1B.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from phaze.documents import Document, Format, check, notation_of, parse
from phaze.errors import InputError
from phaze.evaluate.families import family_of, stack_running
from phaze.evaluate.memo import Memo
from phaze.evaluate.parallel_rank import (
    fullest_rows,
    parallel_rank,
    require_shared_out,
    supply_at,
)
from phaze.evaluate.recomputing import require_host, stack_recomputing
from phaze.evaluate.run_plan import RunPlanTable
from phaze.evaluate.run_tables import GptTable, LlamaTable, MoeTable
from phaze.evaluate.training_run import Budget
from phaze.files import STANDARD_INPUT, beside, is_path, read_text
from phaze.graph.ir import Model
from phaze.graph.store import load as load_graph
from phaze.graph.supply.point import RankPoint
from phaze.graph.supply.supply import GraphFamily, Supply, supply_of
from phaze.graph.tensor_plan import is_place, place_beside
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster, grown
from phaze.hardware.formats import Precision
from phaze.hardware.library import load_built_stack, load_chip, load_cluster, require_links
from phaze.hardware.ownership import load_terms
from phaze.hardware.stack import Optimizer, Stack, require_priced
from phaze.options.keys import RunKeys
from phaze.units import Batch, sequences_in

T = TypeVar("T")
# The families that a run may state by sizes.
SIZED = ("gpt", "llama", "moe")
Reference = Annotated[str, Field(min_length=1, max_length=400)]


class RunFile(RunKeys):
    """A run (``phaze.run/1``)."""

    schema_: Annotated[Literal["phaze.run/1"], Field(alias="schema")]
    gpt: GptTable | None = None
    llama: LlamaTable | None = None
    moe: MoeTable | None = None
    model: Reference | None = None
    tensor_plan: Reference | None = None
    graph: Reference | None = None
    chip: Reference
    cluster: Reference
    stack: Reference | None = None
    terms: Reference | None = None
    plan: RunPlanTable
    optimizer: Optimizer | None = None

    @property
    def rows(self) -> float:
        """Routed tokens of the fullest rank over the mean."""
        rows = fullest_rows(self.imbalance, self.capacity)
        require_shared_out(rows, (self.plan.expert,), "imbalance")
        return rows

    @model_validator(mode="after")
    def _one_model(self) -> "RunFile":
        stated = [name for name in (*SIZED, "model", "graph") if getattr(self, name) is not None]
        if len(stated) != 1:
            raise ValueError(
                "give exactly one of gpt, llama, moe, model, graph "
                f"({', '.join(stated) or 'none'} given)"
            )
        plan = self.plan
        wide = plan.context > 1
        used = plan.tensor * plan.context * plan.pipeline * plan.data
        if used > self.devices:
            raise ValueError(
                f"let tensor{' x context' if wide else ''} x pipeline x data, "
                f"{plan.tensor}{f' x {plan.context}' if wide else ''} x {plan.pipeline} "
                f"x {plan.data} = {used}, "
                f"be at most the {self.devices} devices"
            )
        if self.terms is not None and self.tokens is None:
            raise ValueError("give tokens with terms, which price them")
        if self.tensor_plan is not None and (self.model is None or not is_place(self.model)):
            raise ValueError("give tensor_plan with model, your own model that it shards")
        return self


RUN = Format("phaze.run/1", RunFile, "a model, where it runs, and the plan that was run")


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run with everything that its names lead to; ``traced`` says what the layers of its model
    depend on."""

    model: Model
    traced: tuple[str, ...]
    chip: Chip
    cluster: Cluster
    stack: Stack
    devices: int
    batch: int
    plan: RunPlanTable
    precision: Precision
    optimizer: Optimizer
    budget: Budget | None = None
    requested: Batch | None = None
    rows: float = 1.0


def _supply(run: RunFile, allow_code: bool) -> Supply:
    """The model of a run: a family by its sizes, or a name."""
    for family in SIZED:
        table: Document | None = getattr(run, family)
        if table is not None:
            return GraphFamily(family, table.model_dump(exclude_none=True))
    return supply_of(str(run.model), allow_code=allow_code, where="model")


def _model_of(run: RunFile, traced: RankPoint, allow_code: bool) -> Model:
    if run.graph is not None:
        return _graph_file(run)
    supply = _supply(run, allow_code)
    parallel = replace(run.plan.parallel, rows=run.rows)
    return parallel_rank(
        supply_at(supply, traced), parallel, supply.facts.length(run.sequence), traced.split
    )


# The keys of a run that may be paths, but for its model.
PATHS = ("graph", "chip", "cluster", "stack", "terms", "tensor_plan")


def read_run(path: str) -> tuple[dict[str, Any], str]:
    """The plain values of a run's file, its paths as they are opened, and the name to call it by in
    messages."""
    text, where = read_text(path)
    raw = parse(text, notation_of(path, text), where)
    folder = Path() if path in STANDARD_INPUT else Path(path).parent
    values = {
        key: beside(folder, value)
        if key in PATHS and isinstance(value, str) and is_path(value)
        else value
        for key, value in raw.items()
    }
    if isinstance(raw.get("model"), str) and is_place(raw["model"]):
        values["model"] = place_beside(folder, raw["model"])
    return with_tensor_plan(values), where


def with_tensor_plan(raw: dict[str, Any]) -> dict[str, Any]:
    """A run's ``model`` and ``tensor_plan`` as one place."""
    model, plan = raw.get("model"), raw.get("tensor_plan")
    if not isinstance(model, str) or not isinstance(plan, str) or not is_place(model):
        return raw
    return {key: value for key, value in raw.items() if key != "tensor_plan"} | {
        "model": f"{model}@{plan}"
    }


def require_traced(table: Document, model: Model, keys: Sequence[str], where: str) -> None:
    """Refuse what a table states of a model and its graph contradicts: a graph is what it was
    traced as."""
    for key in keys:
        stated, traced = getattr(table, key), getattr(model, key)
        if key in table.model_fields_set and stated is not None and stated not in (traced, "best"):
            seen = f"{stated!r} is stated and the graph was traced with {traced!r}"
            raise InputError(f"{where}: {key}", seen, "leave it out, or give another graph")


def _graph_file(run: RunFile) -> Model:
    model = load_graph(str(run.graph))
    wanted = (run.plan.tensor, run.plan.microbatch)
    if (model.tensor, model.microbatch) != wanted:
        raise InputError(
            "graph",
            f"{run.graph} is of TP {model.tensor} and microbatch {model.microbatch}",
            f"give one of TP {wanted[0]} and microbatch {wanted[1]}",
        )
    stated = (run.plan.context, run.plan.expert, run.plan.expert_tensor or model.expert_tensor)
    if stated != (model.context, model.expert, model.expert_tensor):
        raise InputError(
            "graph",
            f"{run.graph} is one rank of context {model.context}, expert {model.expert} "
            "and expert_tensor "
            f"{model.expert_tensor}, and the plan says {stated[0]}, {stated[1]} and {stated[2]}",
            "let them agree, or name the model",
        )
    require_traced(run, model, ("sequence", "attention"), "graph")
    require_traced(run.plan, model, ("sequence_parallel",) if model.tensor > 1 else (), "plan")
    return model


def _with_path(path: str, read: Callable[[], T]) -> T:
    """What ``read`` gives, its faults said with the path of the key that led to it."""
    try:
        return read()
    except InputError as fault:
        raise InputError(
            f"{path}: {fault.where}" if fault.where else path, fault.problem, fault.remedy
        ) from None


def traced_as(run: RunFile, traced: RankPoint) -> tuple[str, ...]:
    """What the layers of a run's model depend on; runs that agree in it differ at most in how often
    they are called."""
    sized = [getattr(run, family) for family in SIZED]
    tables = [None if t is None else t.model_dump(exclude={"layers"}) for t in sized]
    split = (run.plan.parallel, run.imbalance, run.capacity, traced)
    return tuple(map(repr, (*tables, run.model, run.graph, run.sequence, *split)))


def _depth(run: RunFile) -> int | None:
    table = run.gpt or run.llama or run.moe
    return None if table is None else table.layers


def _precision(run: RunFile, stack: Stack, chip: Chip, where: str) -> Precision:
    if run.precision is not None:
        return require_priced(run.precision, stack, chip, f"{where}: precision")
    return require_priced(stack.precision, stack, chip, f"{where}: stack: precision")


def _sequences(run: RunFile, model: Model, where: str) -> int:
    try:
        return sequences_in(run.batch, model.sequence)
    except ValueError as fault:
        raise InputError(f"{where}: batch", str(fault), "give a larger batch") from None


def _budget(run: RunFile, where: str) -> Budget | None:
    if run.tokens is None:
        return None
    return Budget(
        run.tokens, _with_path(f"{where}: terms", lambda: load_terms(run.terms or "default"))
    )


def job_of(
    raw: dict[str, Any], where: str, memo: Memo | None = None, allow_code: bool = False
) -> RunJob:
    """The job that a document describes, or an InputError with the path; ``memo`` keeps what jobs
    share. Code that it names as its model runs only if ``allow_code``."""
    run, cache = check(RunFile, with_tensor_plan(raw), where), memo or Memo()

    def preset(kind: str, name: str, load: Callable[[str], T]) -> T:
        return cache.take((kind, name), lambda: _with_path(f"{where}: {kind}", lambda: load(name)))

    chip = preset("chip", run.chip, load_chip)
    cluster = cache.take(
        ("cluster", run.cluster, chip.links),
        lambda: _with_path(f"{where}: cluster", lambda: load_cluster(run.cluster, chip=chip)),
    )
    require_links(chip, run.chip, cluster, f"{where}: chip")
    stack = preset("stack", run.stack or cluster.stack, load_built_stack)
    stack = run.plan.stated(stack)
    path = f"{where}: plan.{'offload' if run.plan.offload else 'recompute'}"
    stack = stack_recomputing(stack, run.plan.mode, path)
    require_host(run.plan.mode, chip, path)
    family = family_of(stack, run.plan.family, run.plan.chunks)
    stack = stack_running(stack, family, f"{where}: plan.family")
    plan = run.plan
    # The sequence is the model's own where the run does not state one.
    point = RankPoint(
        plan.tensor,
        plan.microbatch,
        run.sequence or 0,
        run.attention or stack.attention,
        plan.sequence_parallel,
    )
    traced = traced_as(run, point)
    model = cache.take(
        ("model", traced, _depth(run)),
        lambda: _with_path(where, lambda: _model_of(run, point, allow_code)),
    )
    return RunJob(
        model=model,
        traced=traced,
        chip=chip,
        cluster=_with_path(where, lambda: grown(cluster, run.devices, "devices")),
        stack=stack,
        devices=run.devices,
        batch=_sequences(run, model, where),
        plan=run.plan.model_copy(update={"family": family}),
        precision=_precision(run, stack, chip, where),
        optimizer=run.optimizer or stack.optimizer,
        budget=_budget(run, where),
        requested=run.batch,
        rows=run.rows,
    )
