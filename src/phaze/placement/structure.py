"""A plan as it is requested, and whether it has the structure of one: its layers, degrees and modes
of recompute."""

from collections.abc import Sequence
from dataclasses import dataclass

from phaze.errors import InputError
from phaze.pipeline.family import Family
from phaze.placement.layers import LayerGraph
from phaze.placement.layout import Shape
from phaze.placement.problem import AGAIN, PlacementProblem
from phaze.placement.rules import Mode


@dataclass(frozen=True, slots=True)
class StageCut:
    """A stage as it is requested: the ids of its layers, and its recompute mode."""

    layers: tuple[int, ...]
    mode: Mode


def require_structure(
    problem: PlacementProblem, graph: LayerGraph, shape: Shape, cuts: Sequence[StageCut]
) -> dict[int, int]:
    """The stage of every layer; an InputError where the stages are no partition in the order of the
    edges."""
    owner = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    if shape.stages != len(cuts) or not cuts:
        raise InputError(
            "pipeline", f"{shape.stages} stages are stated and {len(cuts)} given", "let them agree"
        )
    if sorted(id_ for cut in cuts for id_ in cut.layers) != sorted(
        layer.id for layer in graph.layers
    ):
        raise InputError(
            "stages", "they do not hold every layer once", "give every layer one stage"
        )
    if any(not cut.layers for cut in cuts):
        raise InputError("stages", "a stage is empty", "leave it out")
    for edge in graph.edges:
        tail, head = graph.layers[edge.tail].id, graph.layers[edge.head].id
        if owner[tail] > owner[head]:
            raise InputError(
                "stages",
                f"the edge from {tail} to {head} runs backwards",
                "keep the order of the edges",
            )
    if not problem.rules.last_stage_recomputes and cuts[-1].mode != "none":
        raise InputError(
            f"stages[{len(cuts) - 1}]", "the last stage recomputes", "let it keep what it computed"
        )
    return owner


def require_degrees(problem: PlacementProblem, shape: Shape, family: Family, devices: int) -> None:
    """Refuse degrees that the devices, the experts or the family do not allow."""
    if not 1 <= shape.data <= problem.microbatches or devices * shape.data > problem.devices:
        raise InputError(
            "data", f"{shape.data} replicas are out of range", "use fewer replicas or stages"
        )
    shard, alike = problem.sharing.shard, problem.sharing.context * shape.data
    if shard and (alike % shard or not problem.sharing.allows(shape)):
        raise InputError(
            "shard",
            f"{shard} ranks do not divide the {alike} with the same weights"
            if alike % shard
            else f"{shard} ranks are not the nearest of a stage, which order pipeline puts apart",
            "use another degree, or order data",
        )
    if not problem.sharing.allows(shape):
        whole, ranks = shape.tensor * shape.data, problem.sharing.group
        raise InputError(
            "expert",
            f"experts over {ranks} ranks do not divide the {whole} of a stage"
            if whole % ranks
            else (
                f"experts over {ranks} ranks reach other replicas, which order pipeline puts apart"
            ),
            "use other degrees, or order data",
        )
    rounds = problem.rounds(shape.data)
    if family.most_stages and shape.stages > family.most_stages:
        raise InputError(
            "family",
            f"{family.name} with {shape.stages} stages is not allowed",
            "allow it, or use 1 stage",
        )
    if rounds < family.min_microbatches_per_stage * shape.stages:
        least = f"{family.min_microbatches_per_stage * shape.stages} microbatches of a replica"
        raise InputError(
            "family",
            f"{family.name} needs {least}, and there are {rounds}",
            "use fewer stages, or 1f1b",
        )
    if not family.divides(rounds, shape.stages):
        raise InputError(
            "chunks",
            f"{family.chunks} need a multiple of the {shape.stages} stages as "
            "microbatches of a replica, and there are "
            f"{rounds}",
            "use 1, or another microbatch, batch, data or pipeline degree",
        )


def require_exchanged_once(problem: PlacementProblem, cuts: Sequence[StageCut]) -> None:
    """Refuse modes that run exchanges of experts again where they run behind another microbatch."""
    for cut in cuts if problem.runs_exchanges_beside else ():
        if not AGAIN.isdisjoint(cut.mode.split("+")):
            raise InputError(
                "recompute",
                f"'{cut.mode}' runs exchanges again, which run behind another microbatch",
                "leave expert_overlap out, or recompute no experts",
            )


def require_modes(family: Family, cuts: Sequence[StageCut]) -> None:
    """Refuse to recompute where a family keeps everything."""
    mode = next((cut.mode for cut in cuts if family.split and cut.mode != "none"), None)
    if mode is not None:
        seen = (
            f"{mode} under {family.name}, which keeps activations from the forward pass to "
            "the weight gradients"
        )
        raise InputError("recompute", seen, "use none, or another family")
