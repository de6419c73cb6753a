"""The two settings of a study, as values: what ``rules`` names, with what the study changes, and
its models ready.

``rules`` names defaults (``ByRules`` in the tables of :mod:`phaze.options`) and nothing else: a
study may say any of them itself, and what it says counts. What the ICML 2024 paper did is the stack
``icml24``, every rule of which is a key.
"""

from functools import partial
from typing import Any

from phaze.documents import Reader
from phaze.errors import InputError
from phaze.evaluate.families import stack_with_families
from phaze.evaluate.layers import Setting
from phaze.evaluate.parallel_rank import (
    Refusals,
    fullest_rows,
    parallel_rank,
    parallels,
    require_shared_out,
    supply_at,
)
from phaze.evaluate.recomputing import parts_of, require_host, stack_recomputing
from phaze.evaluate.request import attentions_of, sequences_of
from phaze.evaluate.run_file import require_traced
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.graph.split_context import Way
from phaze.graph.supply.point import RankPoint
from phaze.graph.supply.supply import Bundled
from phaze.graph.zoo import check_sequence, entry_of
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster, grown
from phaze.hardware.library import load_cluster, require_links
from phaze.hardware.stack import Stack, require_priced
from phaze.options.key_fields import rule_default
from phaze.pipeline.families import SPLIT_FAMILIES
from phaze.placement.job import TrainingJob
from phaze.placement.machine import Machine
from phaze.placement.problem import RecomputeChoice
from phaze.placement.rules import ZEROS, Rules
from phaze.placement.settings import job_rules, require_levels, stack_rules
from phaze.schedule.rules import RULE
from phaze.search.rank_graph import block_model, rank_graph
from phaze.search.space import Space
from phaze.search.task import ModelTask, task_of
from phaze.study.network import changed_cluster, states_links
from phaze.study.schema import ModelTable, StudyFile, TrainingTable
from phaze.study.stack import changed_stack
from phaze.units import Batch
from phaze.values import replace

# Context and expert degrees, the ways to share a sequence, and the load of the fullest rank of
# experts.
Degrees = tuple[list[int], list[int], list[Way], float]


def usual(study: StudyFile, key: str) -> Any:
    """What the rules of a study say of a key that it does not state."""
    return rule_default(key, study.rules)


def space_name(study: StudyFile) -> str:
    """The space that a study names, or that of its setting."""
    return study.space or str(usual(study, "space"))


def cluster_name(study: StudyFile, space: Space) -> str:
    """The cluster that a study names, or the one that the space's chips are usually joined by, or
    its setting's."""
    return study.training.cluster or space.usual_cluster or str(usual(study, "training.cluster"))


def baseline_name(study: StudyFile, space: Space) -> str:
    """The chip that models are compared on, in the same order."""
    return (
        study.objective.baseline or space.usual_baseline or str(usual(study, "objective.baseline"))
    )


def gap_of(study: StudyFile) -> float:
    """How near to the best the proof must come."""
    gap: float = usual(study, "search.gap") if study.search.gap is None else study.search.gap
    return gap


def batch_of(study: StudyFile) -> Batch:
    """The batch, in sequences or in tokens."""
    stated = study.training.batch
    batch: Batch = usual(study, "training.batch") if stated is None else stated
    return batch


def _devices(study: StudyFile) -> int | None:
    """How many devices there are; None: all of the cluster that the study names."""
    table = study.training
    if table.devices is None and table.cluster is None:
        return int(usual(study, "training.devices"))
    return table.devices


def memories_of(study: StudyFile, space: Space) -> tuple[int, ...]:
    """The memories to choose from, ascending: those of the study, or those that the space's chips
    have."""
    if space.memories is None:
        return tuple(sorted(set(study.hbm or usual(study, "hbm"))))
    if study.hbm is not None:
        seen = f"the chips of {space.name} have the memory of their HBM stacks, which are an axis"
        raise InputError("hbm", seen, "leave it out")
    return space.memories


def _cluster(study: StudyFile, space: Space, reader: Reader) -> Cluster:
    """The cluster, as large as the job; where links are an axis, its innermost level is a chip's
    own."""
    cluster = changed_cluster(
        load_cluster(cluster_name(study, space), reader, space.base), study.cluster
    )
    if not states_links(study.cluster, cluster) and not space.own_links:
        require_links(space.base, space.base_name, cluster, "space.base")
    devices = _devices(study)
    return cluster if devices is None else grown(cluster, devices, "training.devices")


def stack_of(study: StudyFile, cluster: Cluster, reader: Reader) -> Stack:
    """The software: that of the study, else of its setting, else of the cluster, with what the
    study changes of it."""
    name, families = (
        study.training.stack or usual(study, "training.stack") or cluster.stack,
        study.training.family,
    )
    named = None if families is None or families == "best" else families
    return stack_with_families(changed_stack(name, study.stack, reader), named, "training.family")


def _chunks(table: TrainingTable, stack: Stack) -> tuple[int, ...] | None:
    """The chunks that a study allows beside 1, None for all; a stack that does not interleave has
    none."""
    interleaves = stack.pipeline == "1f1b" and not {"interleaved", "zb-interleaved"}.isdisjoint(
        stack.families
    )
    if table.chunks is not None and max(table.chunks) > 1 and not interleaves:
        seen = f"{table.chunks} are stated and the stack {stack.name} does not interleave"
        raise InputError("training.chunks", seen, "leave them out, or name a stack that does")
    stated = None if table.chunks is None else tuple(sorted(set(table.chunks)))
    return stated if interleaves else (1,)


def _zeros(study: StudyFile) -> tuple[int, ...]:
    """The stages of ZeRO that a study allows, or those of its setting; some that shard state
    where ranks do."""
    table = study.training
    stated = usual(study, "training.zero") if table.zero is None else table.zero
    stages = ZEROS if stated == "best" else (int(stated),)
    if table.shard is None:
        return stages
    if table.zero == 0:
        raise InputError(
            "training.shard", "ZeRO 0 shards no state", "use training.zero 1, 2, 3 or best"
        )
    return tuple(zero for zero in stages if zero) or ZEROS[1:]


def _shards(study: StudyFile, stack: Stack, rules: Rules, devices: int) -> tuple[int, ...]:
    """How many of the ranks with the same weights may shard state, ascending, 0: all."""
    table = study.training
    if table.shard is None:
        return (0,)
    if rules.flat_link_bytes_per_s is not None or rules.unsplit_stages:
        seen = (
            f"the stack {stack.name} reduces gradients over one flat link, of which no group "
            "of ranks is the nearest"
        )
        raise InputError("training.shard", seen, "leave it out, or name another stack")
    if max(expert_degrees(study)) > 1:
        seen = f"{table.shard} with training.expert {table.expert} is not priced"
        raise InputError("training.shard", seen, "leave one of them out")
    shards = tuple(sorted({0 if shard == "all" else shard for shard in table.shard}))
    if max(shards) > devices:
        raise InputError(
            "training.shard", f"{max(shards)} ranks of {devices} devices", "give fewer ranks"
        )
    return shards


def training_of(study: StudyFile, space: Space, reader: Reader) -> TrainingJob:
    """The job that all models of a study have in common: what it says, and else what its setting
    has."""
    table, cluster = study.training, _cluster(study, space, reader)
    stack = _recomputing(study, stack_of(study, cluster, reader), space.base)
    rule = RULE[stack.schedule]
    if stack.splits_backward and not (rule.one_queue or rule.named_only):
        split = ", ".join(name for name in stack.families if name in SPLIT_FAMILIES)
        seen = (
            f"{split} under schedule '{rule.name}', of whose passes a search has bounds that "
            "no such family keeps"
        )
        raise InputError(
            "training.family", seen, "choose schedule serial or companions, or other families"
        )
    require_levels(stack, cluster, "training.cluster")
    origin = (
        "training.precision"
        if table.precision is not None
        else f"the stack {stack.name}: precision"
    )
    precision = require_priced(table.precision or stack.precision, stack, space.base, origin)
    machine = Machine(
        cluster,
        stack,
        study.cost.basis or usual(study, "cost.basis"),
        study.cost.residency,
        precision,
        space.base.host_bytes_per_s,
    )
    devices = _devices(study) or cluster.devices
    return TrainingJob(
        machine,
        devices,
        stated_batch(batch_of(study)),
        table.optimizer or stack.optimizer,
        _zeros(study),
        chunks=_chunks(table, stack),
        headroom=usual(study, "training.headroom") if table.headroom is None else table.headroom,
        shards=_shards(study, stack, stack_rules(stack, cluster), devices),
    )


def constants_on(job: TrainingJob, chip: Chip) -> Constants:
    """What a chip reaches of its peaks in a job."""
    machine = job.machine
    return Setting(
        chip, machine.cluster, machine.stack, machine.basis, precision=machine.precision
    ).constants


def stated_batch(batch: Batch) -> int:
    """A batch in sequences, or 1 where it is in tokens, which each model divides by its own
    sequence."""
    return batch if isinstance(batch, int) else 1


def _mode(choice: bool | str) -> RecomputeChoice:
    """A recompute choice by its name."""
    return choice if isinstance(choice, str) else "full" if choice else "none"


def recompute_of(study: StudyFile) -> tuple[RecomputeChoice, ...]:
    """The recompute choices of a study, in a fixed order; without any those of its setting."""
    stated = study.training.recompute
    modes = usual(study, "training.recompute") if stated is None else stated
    wanted = tuple(_mode(mode) for mode in modes)
    order: tuple[RecomputeChoice, ...] = (
        "none",
        "selective",
        *sorted(filter(parts_of, wanted)),
        "full",
        "best",
    )
    return tuple(dict.fromkeys(choice for choice in order if choice in wanted))


def _recomputing(study: StudyFile, stack: Stack, chip: Chip) -> Stack:
    """The stack with the modules that a study names; refused where stack, chip or rules have no
    such mode."""
    where, modes = "training.recompute", recompute_of(study)
    named = tuple(mode for mode in modes if parts_of(mode))
    if stack.stages == "icml24" and (named or "selective" in modes):
        raise InputError(
            where, f"the stack {stack.name} recomputes all or nothing", "use true or false"
        )
    if named and "best" in modes:
        raise InputError(
            where,
            f"'best' and {', '.join(named)}",
            "name modules alone, or leave the choice to best",
        )
    for mode in named:
        require_host(mode, chip, where)
        stack_recomputing(stack, mode, where)
    return replace(stack, recompute_modules=(), recompute_named=named) if named else stack


def graph_files(table: ModelTable, study: StudyFile, reader: Reader, where: str) -> list[Model]:
    """The graphs of a model in files; what the study states of graphs must be true of each."""
    paths, training, _ = table.graphs or [], study.training, degrees_of(study)
    models = [store.loads(*reader(path)) for path in paths]
    for path, model in zip(paths, models, strict=True):
        spread = ("sequence_parallel",) if model.tensor > 1 else ()
        length = (
            "sequence" if table.sequence is None else "attention"
        )  # a model's own sequence comes first
        require_traced(table, model, ("sequence",), f"{where}: {path}")
        require_traced(
            training, model, (length, "attention", *spread), f"{where}.graphs: {path}: training"
        )
        if table.widths is not None and model.tensor not in table.widths:
            seen = f"{table.widths} are stated and the graph has a width of {model.tensor}"
            raise InputError(f"{where}.widths: {path}", seen, "name it there, or leave them out")
        if (
            "microbatches" in training.model_fields_set
            and model.microbatch not in training.microbatches
        ):
            seen = (
                f"{training.microbatches} are stated and the graph has a microbatch of "
                f"{model.microbatch}"
            )
            raise InputError(
                f"{where}.graphs: {path}: training.microbatches",
                seen,
                "name it there, or leave them out",
            )
        for key, degree in (("context", model.context), ("expert", model.expert)):
            stated = getattr(training, key)
            if stated is not None and degree not in stated:
                seen = f"{stated} are stated and the graph is one of {degree} ranks"
                raise InputError(
                    f"{where}.graphs: {path}: training.{key}",
                    seen,
                    "name it there, or leave them out",
                )
    return models


def _models(
    table: ModelTable, study: StudyFile, stack: Stack, reader: Reader, where: str
) -> list[Model]:
    """Every traced rank to try: by microbatch, then width, without and with sequence parallelism
    and with the attention as it is asked; graphs that are given have their own."""
    if table.graphs is not None:
        models = graph_files(table, study, reader, where)
        return sorted(
            models, key=lambda model: (model.microbatch, model.tensor, model.sequence_parallel)
        )
    training = study.training
    sequence = training.sequence if table.sequence is None else table.sequence
    widths = entry_of(table.name).widths if table.widths is None else tuple(table.widths)
    sequence_parallel = training.sequence_parallel
    spreads = (False, True) if sequence_parallel == "best" else (sequence_parallel,)
    length, refusals, models = (
        check_sequence(entry_of(table.name), sequence),
        Refusals(),
        list[Model](),
    )
    for size in sorted(set(training.microbatches)):
        for width in sorted(set(widths)):
            for spread in spreads if width > 1 else (False,):
                for kind in attentions_of(training.attention, stack, "training.attention"):
                    load = supply_at(Bundled(table.name), RankPoint(width, size, length, kind))
                    for parallel in parallels(width, *degrees_of(study)):
                        rank = partial(parallel_rank, load, parallel, length, spread)
                        model = refusals.attempted(parallel, rank)
                        models += [] if model is None else [model]
    refusals.require()
    return models


def context_degrees(study: StudyFile) -> list[int]:
    """The context-parallel degrees that a study chooses from, ascending."""
    return sorted(set(study.training.context or usual(study, "training.context")))


def expert_degrees(study: StudyFile) -> list[int]:
    """The expert-parallel degrees that a study chooses from, ascending."""
    return sorted(set(study.training.expert or usual(study, "training.expert")))


def degrees_of(study: StudyFile) -> Degrees:
    """The context and expert degrees that a study chooses from."""
    training, contexts, experts = study.training, context_degrees(study), expert_degrees(study)
    rows = fullest_rows(training.imbalance, training.capacity, "training.")
    require_shared_out(rows, experts, "training.imbalance")
    if training.context_way is not None and max(contexts) == 1:
        raise InputError(
            "training.context_way", "no ranks share a sequence", "give training.context too"
        )
    ways = training.context_way or usual(study, "training.context_way")
    return contexts, experts, list(dict.fromkeys(ways)), rows


def _ranks(model: Model) -> int:
    """The fewest devices that a model runs on: those of a stage, or those that shard its
    experts."""
    return max(model.tensor * model.context, model.expert * model.expert_tensor)


def model_task(
    table: ModelTable,
    study: StudyFile,
    job: TrainingJob,
    constants: Constants,
    where: str,
    reader: Reader,
) -> ModelTask:
    """One model of a study; ``constants`` are those of the space's chips."""
    traced = _models(table, study, job.machine.stack, reader, where)
    job = replace(job, batch=sequences_of(batch_of(study), traced[0].sequence, "training.batch"))
    models = [
        model for model in traced if _ranks(model) <= job.devices and model.microbatch <= job.batch
    ]
    if not models:
        raise InputError(
            where, "no width and microbatch fits the devices and the batch", "give smaller ones"
        )
    models = [block_model(model) for model in models] if table.part == "block" else models
    graphs = [
        rank_graph(model, job.machine, selective="selective" in job_rules(job).modes)
        for model in models
    ]
    return task_of(table.name, table.weight, job, constants, graphs, recompute_of(study))
