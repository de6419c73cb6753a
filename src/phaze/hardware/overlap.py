"""What a stack runs beside other work: the table ``overlap`` of its file.

A communication of x seconds on a channel has named work that it may run beside. ``runs``: whether
this release does so; ``slows``: how much a second of it slows that work, between 0 (nothing) and 1
(as much as if it were waited for). In a window with C seconds of work T is then

    T = max( C + sum of cost x,  sum of x on the busiest channel ),   cost = slows if it runs beside, else 1

``slows`` of collectives that run on cores is 0.19 in public measurements (mean; worst 0.40, arXiv
2507.03114), of copy engines 0.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze.documents import Document, NonNegative, Seconds, Share

Dispatcher = Literal["alltoall", "node-once"]
# Keys of older files, which say a part of the table each.
OLDER_KEYS = (
    "hidden_synchronisation",
    "hidden_offload",
    "hidden_exchange",
    "overlap_p2p",
    "piecewise_collectives",
    "overlaps_shared_experts",
    "deduplicated_exchange",
)


class Runs(Document):
    """A kind of communication: whether it runs beside its work."""

    runs: Annotated[bool, Field(description="whether it runs beside its work")] = False


class Beside(Runs):
    """The same with how much it slows that."""

    slows: Annotated[Share, Field(description="seconds of that work for each second beside it")] = (
        0.0
    )

    @property
    def cost(self) -> float:
        """Seconds that a second of it adds to a window that it does not bind."""
        return self.slows if self.runs else 1.0


class Reduction(Beside):
    """Gradients over replicas, behind the last backward pass."""

    bucket: Annotated[
        NonNegative | None,
        Field(description="parameters of a piece; none: 40 million, or 1 million a replica"),
    ] = None


class Exchange(Document):
    """Experts' tokens, behind the work of another microbatch where plans do that."""

    offered: Annotated[bool, Field(description="whether a plan may say expert_overlap")] = False
    runs: Annotated[bool, Field(description="whether plans do that where they do not say")] = False
    slows: Annotated[Share, Field(description="seconds of that work for each second beside it")] = (
        0.0
    )


class Overlap(Document):
    """By kind of communication; a kind that is not named is waited for."""

    transfers: Annotated[
        Runs, Field(description="between stages of interleaved 1F1B, behind other chunks")
    ] = Runs()
    reduction: Annotated[
        Reduction, Field(description="of gradients, behind the last backward pass")
    ] = Reduction()
    gather: Annotated[
        Beside, Field(description="of weights under ZeRO 1 and 2, behind the first forward pass")
    ] = Beside()
    fully_sharded: Annotated[
        Beside, Field(description="under ZeRO 2 and 3, behind each pass of a microbatch")
    ] = Beside()
    exchange: Annotated[
        Exchange, Field(description="of experts, behind the work of another microbatch")
    ] = Exchange()
    shared_experts: Annotated[
        bool, Field(description="the exchange runs beside shared experts")
    ] = False
    tensor: Annotated[
        Runs, Field(description="gathers and scatters of tensor groups, piece by piece")
    ] = Runs()
    host_link: Annotated[
        Beside | None,
        Field(description="offloaded activations, behind both passes; none: it cannot offload"),
    ] = None
    dispatcher: Annotated[
        Dispatcher,
        Field(description="a token goes to every rank with an expert of its, or to a node once"),
    ] = "alltoall"
    step_host: Annotated[Seconds, Field(description="what the host needs between two steps")] = 0.0


def _beside(share: Any, always: bool = False) -> dict[str, Any]:
    """A kind of which the share h is hidden: it slows by 1 - h."""
    if isinstance(share, bool) or not isinstance(share, (int, float)):
        return {"slows": share}
    return {"runs": always or share > 0, "slows": 1.0 - share}


def _older(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The table that older keys of a stack's file mean."""
    table: dict[str, Any] = {}
    if "hidden_synchronisation" in raw:
        for kind in ("reduction", "gather", "fully_sharded"):
            table[kind] = _beside(raw["hidden_synchronisation"])
    if "hidden_offload" in raw:
        share = raw["hidden_offload"]
        table["host_link"] = None if share is None else _beside(share, True)
    if "hidden_exchange" in raw:
        beside = _beside(raw["hidden_exchange"])
        table["exchange"] = {"offered": beside.get("runs", True), **beside}
    for key, kind in (("overlap_p2p", "transfers"), ("piecewise_collectives", "tensor")):
        if key in raw:
            table[kind] = {"runs": raw[key]}
    if "overlaps_shared_experts" in raw:
        table["shared_experts"] = raw["overlaps_shared_experts"]
    if "deduplicated_exchange" in raw:
        once = raw["deduplicated_exchange"]
        table["dispatcher"] = (
            ("node-once" if once else "alltoall") if once in (True, False) else once
        )
    return table


def with_overlap(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a stack's file with those that are older as a part of ``overlap``, which they
    count before."""
    older = _older(raw)
    if not older:
        return dict(raw)
    keys = {key: value for key, value in raw.items() if key not in OLDER_KEYS}
    return layered(keys, {"overlap": older})


def layered(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a stack laid over others; of ``overlap`` and its tables only what is said."""
    keys = {**below, **above}
    tables = below.get("overlap"), above.get("overlap")
    if isinstance(tables[0], Mapping) and isinstance(tables[1], Mapping):
        merged = dict(tables[0])
        for kind, value in tables[1].items():
            before = merged.get(kind)
            both = isinstance(before, Mapping) and isinstance(value, Mapping)
            merged[kind] = {**before, **value} if both else value  # type: ignore[dict-item]
        keys["overlap"] = merged
    return keys


def hiding(overlap: Overlap, share: float) -> Overlap:
    """The table where so much of what runs over replicas does not slow the work beside it."""
    kinds = ("reduction", "gather", "fully_sharded")
    beside = {"runs": share > 0, "slows": 1.0 - share}
    return overlap.model_copy(
        update={kind: getattr(overlap, kind).model_copy(update=beside) for kind in kinds}
    )
