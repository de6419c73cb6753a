"""Devices of a job that its plan leaves idle, and the batch with which the same degrees would use
them.

A plan of t c devices a stage, p stages and d replicas, each of r microbatches of b sequences, on K
devices:

    idle      K - t c p d, which are bought all the same
    replicas  d' = K / (t c p), where that is whole and experts and state can be sharded over so
              many
    batch     r d' b sequences: every replica has as many microbatches as now
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the words are shown of finished runs, without numpy
    from phaze.placement.layout import Shape
    from phaze.placement.sharing import Sharing


def idle_document(
    shape: "Shape", sharing: "Sharing", devices: int, used: int, work: tuple[int, int]
) -> dict[str, Any]:
    """The key ``idle`` of a plan's document, nothing where every device works; ``work``: sequences
    of a batch and of a microbatch. Its batch is None where none helps while tensor, context and
    pipeline degree stay."""
    if used >= devices:
        return {}
    batch, microbatch = work
    rounds = -(-batch // (microbatch * shape.data))
    replicas, rest = divmod(devices, shape.tensor * shape.stages)
    wider = shape._replace(data=replicas)
    fills = rest == 0 and sharing.allows(wider)
    return {
        "idle": {
            "devices": devices - used,
            "batch": rounds * replicas * microbatch if fills else None,
        }
    }


def idle_words(document: Any) -> str:
    """How many devices are used and idle, and what batch would use them; empty where all are
    used."""
    idle = document.get("idle")
    if not idle:
        return ""
    used = f"{document['devices_used']:,} of {document['devices']:,} used, {idle['devices']:,} idle"
    if idle["batch"] is None:
        return f"{used}; with these degrees no batch uses all of them"
    return (
        f"{used}; a batch of {idle['batch']:,} sequences would use all of them with these degrees"
    )
