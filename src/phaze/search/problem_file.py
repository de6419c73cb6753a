"""``problem.json`` and ``graphs.json``: all that an answer depends on, resolved, as plain values.

    phaze.problem/1   what is asked, with models as

    models            [{name, weight, training, configurations, part, graphs: [{tensor, microbatch,
                      ..., digest}]}]
    training          {devices, batch, optimizer, machine, constants, precision, zeros, chunks,
                      headroom, shards}
    phaze.graphs/1    {schema, models: [[graph]]} as in phaze.graph/1, as traced

``shards``, and ``shard`` of a configuration, are stated only where some of the ranks with the same
weights shard state, not all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.documents import digest, dumps, plain_value
from phaze.graph import store
from phaze.search.task import Configuration, ModelTask

SCHEMA, GRAPHS = "phaze.problem/1", "phaze.graphs/1"
HEADS = ("tensor", "microbatch", "sequence", "sequence_parallel", "attention", *store.DEGREES)


def head_of(graph: Mapping[str, Any]) -> dict[str, Any]:
    """What tells the traced ranks of a model apart."""
    return {key: graph[key] for key in HEADS if key in graph}


def training_document(task: ModelTask) -> dict[str, Any]:
    """The job of a model."""
    job = task.training
    document = {
        "devices": job.devices,
        "batch": job.batch,
        "optimizer": job.optimizer,
        "machine": job.machine,
        "constants": task.constants,
        "precision": job.precision,
        "zeros": job.zeros,
        "chunks": job.chunks,
        "headroom": job.headroom,
        **({"shards": job.shards} if job.shards != (0,) else {}),
    }
    return {name: plain_value(value) for name, value in document.items()}


def _configuration(configuration: Configuration, shards: tuple[int, ...]) -> dict[str, Any]:
    return {
        "graph": configuration.graph,
        "recompute": configuration.recompute,
        "zeros": list(configuration.zeros),
        **({"shard": configuration.shard} if shards != (0,) else {}),
    }


def model_document(
    task: ModelTask, part: str, graphs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A model of a problem, its graphs by their digests."""
    return {
        "name": task.name,
        "weight": task.weight,
        "training": training_document(task),
        "configurations": [
            _configuration(configuration, task.training.shards)
            for configuration in task.configurations
        ],
        "part": part,
        "graphs": [{**head_of(graph), "digest": digest(graph)} for graph in graphs],
    }


def problem_text(problem: Mapping[str, Any]) -> str:
    """``problem.json``."""
    return dumps(problem, pretty=True) + "\n"


def graphs_text(graphs: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """``graphs.json`` of models that have these graphs."""
    return dumps({"schema": GRAPHS, "models": graphs}) + "\n"
