"""Studies under rules ``cluster``: their cluster, stack and models made ready for a search."""

from collections.abc import Sequence
from dataclasses import replace

from phaze.documents import Reader
from phaze.errors import InputError
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.evaluate.prices import KnownPrices, LevelPrices
from phaze.evaluate.request import attentions_of, sequences_of
from phaze.evaluate.run_file import require_traced
from phaze.evaluate.serial import Machine
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.graph.zoo import entry_of, load_model
from phaze.hardware.calibration import constants_of
from phaze.hardware.cluster import Cluster, grown
from phaze.hardware.library import load_built_stack, load_cluster, require_links
from phaze.hardware.stack import Precision, Stack, require_priced
from phaze.placement.problem import Recompute
from phaze.search.cluster_task import ClusterTask, ClusterTraining, serial_graph
from phaze.search.space import Space
from phaze.search.task import ways_of
from phaze.study.network import changed_cluster
from phaze.study.schema import ModelTable, StudyFile, TrainingTable
from phaze.units import Batch


def _refuse_what_has_no_meaning(study: StudyFile, space: Space) -> None:
    """Settings that rules ``cluster`` do not know, each with what to do instead."""
    if not study.cost.residency:
        raise InputError("cost.residency", "rules cluster always count it", "leave it out, or search with icml24")
    if space.axes.links is not None:
        raise InputError(
            "space",
            f"{space.name} has links as an axis, and under rules cluster the cluster's levels are the links",
            "leave the axis out and give training.cluster the speed",
        )
    for at, table in enumerate(study.tables()):
        if table.part == "block":
            raise InputError(f"models[{at}].part", "rules cluster place whole models", "search blocks with icml24")


def _cluster(study: StudyFile, space: Space, reader: Reader) -> tuple[Cluster, int]:
    """The cluster, as large as the job, and the devices of the job."""
    cluster = changed_cluster(load_cluster(study.training.cluster, reader, space.base), study.cluster)
    require_links(space.base, space.file.base, cluster, "space.base")
    devices = cluster.devices if study.training.devices is None else study.training.devices
    return grown(cluster, devices, "training.devices"), devices


def _precision(study: StudyFile, stack: Stack) -> Precision:
    if study.training.precision is not None:
        return require_priced(study.training.precision, "training.precision")
    return require_priced(stack.precision, f"the stack {stack.name}: precision")


def stated_batch(batch: Batch) -> int:
    """A batch in sequences, or 1 where it is in tokens, which each model divides by its own sequence."""
    return batch if isinstance(batch, int) else 1


def cluster_training(study: StudyFile, space: Space, reader: Reader) -> ClusterTraining:
    """The job that all models of a study have in common."""
    _refuse_what_has_no_meaning(study, space)
    table, (cluster, devices) = study.training, _cluster(study, space, reader)
    stack = load_built_stack(table.stack or cluster.stack, reader)
    machine = Machine(cluster, stack, study.cost.basis or "calibrated")
    return ClusterTraining(
        devices,
        stated_batch(table.batch),
        cluster.levels[0].bandwidth_bytes_per_s,
        table.optimizer or stack.optimizer,
        machine=machine,
        precision=_precision(study, stack),
        zero=table.zero,
        constants=constants_of(space.base.calibration, machine.basis, "training"),
        headroom=USUAL_HEADROOM if table.headroom is None else table.headroom,
    )


def graph_files(table: ModelTable, training: TrainingTable, reader: Reader, where: str) -> list[Model]:
    """The graphs of a model in files; what the study states of graphs must be true of each."""
    paths = table.graphs or []
    for key in ("sequence", "widths"):
        if getattr(table, key) is not None:
            seen = f"{getattr(table, key)} beside graphs, which are as they were traced"
            raise InputError(f"{where}.{key}", seen, "leave it out, or give the model by name")
    found = [store.loads(*reader(path)) for path in paths]
    for path, model in zip(paths, found, strict=True):
        spread = ("sequence_parallel",) if model.tensor > 1 else ()
        require_traced(training, model, ("sequence", "attention", *spread), f"{where}.graphs: {path}: training")
        if "microbatches" in training.model_fields_set and model.microbatch not in training.microbatches:
            seen = f"{training.microbatches} are stated and the graph has a microbatch of {model.microbatch}"
            raise InputError(f"{where}.graphs: {path}: training.microbatches", seen, "name it there, or leave them out")
    return found


def _models(table: ModelTable, study: StudyFile, stack: Stack, reader: Reader, where: str) -> list[Model]:
    """Every traced rank to try: by microbatch, then width, without and with sequence parallelism and with the attention
    as it is asked; graphs that are given have their own."""
    if table.graphs is not None:
        found = graph_files(table, study.training, reader, where)
        return sorted(found, key=lambda model: (model.microbatch, model.tensor, model.sequence_parallel))
    training = study.training
    sequence = training.sequence if table.sequence is None else table.sequence
    widths = entry_of(table.name).widths if table.widths is None else tuple(table.widths)
    asked = training.sequence_parallel
    spreads = (False, True) if asked == "best" else (asked,)
    return [
        load_model(table.name, width, size, sequence, attention=kind, sequence_parallel=spread)
        for size in sorted(set(training.microbatches))
        for width in sorted(set(widths))
        for spread in (spreads if width > 1 else (False,))
        for kind in attentions_of(training.attention, stack, "training.attention")
    ]


def cluster_task(
    table: ModelTable,
    study: StudyFile,
    job: ClusterTraining,
    choices: Sequence[Recompute],
    where: str,
    reader: Reader,
) -> ClusterTask:
    """One model of a study."""
    found = _models(table, study, job.machine.stack, reader, where)
    job = replace(job, batch=sequences_of(study.training.batch, found[0].sequence, "training.batch"))
    models = [model for model in found if model.tensor <= job.devices and model.microbatch <= job.batch]
    if not models:
        raise InputError(where, "no width and microbatch fits the devices and the batch", "give smaller ones")
    graphs = tuple(serial_graph(model, job.machine) for model in models)
    prices = KnownPrices(LevelPrices(job.machine.cluster, job.machine.basis))
    return ClusterTask(table.name, table.weight, job, graphs, ways_of(graphs, tuple(choices)), prices=prices)
