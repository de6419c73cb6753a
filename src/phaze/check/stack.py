"""The software stack of a job under rules cluster, read strictly: what this checker does not know is not covered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .families import SPLIT
from .passes import Exchanging
from .reading import cover, listed, number, whole
from .recompute import Keeping

KNOWN = frozenset({
    "name", "title", "fusion", "host_s", "hides_tensor_collectives", "hidden_synchronisation", "scatter_gather",
    "optimizer_traffic_bytes", "state_bytes", "reserve_bytes", "schedule", "precision", "optimizer",
    "piecewise_collectives", "trims_recompute", "balances_stages", "gradient_bytes", "attention", "synchronisation",
    "families", "accumulation_inside", "accumulation_apart", "stages", "pipeline", "software_share", "saves",
    "logit_bytes", "selective", "gradient_buffer_bytes", "attention_kernel", "recipes", "low_precision_weights",
    "overlap_p2p", "recompute_modules", "recompute_named", "state", "gradient_wire_bytes", "prefetch", "hidden_offload",
    "grouped_share", "hidden_exchange", "overlaps_shared_experts", "deduplicated_exchange",
    "softmax_matrices",
})  # fmt: skip
"""The keys whose meaning is in the rules here, or that no search in 16 bits depends on."""
LAUNCHES_A_CHUNK = 2.0
"""A receive before a chunk, and a send after it."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What times and bytes of plans depend on.

    ``rule`` of schedules; ``pieces``: collectives are cut; ``trims`` recompute; ``host`` seconds an
    operator; ``inside`` and ``apart``: bytes a gradient's adding moves in its product and apart from it;
    ``buffer_bytes`` of a gradient; ``hidden`` share of collectives over replicas; ``by_layer``: gradients are reduced
    layer by layer; ``scatters``: transfers are cut over a tensor group; ``families`` of pipelines, where transfers of
    several chunks are ``overlapped``; ``paired``: gathers of ZeRO run a layer ahead, so that two are held at once;
    ``offload``: share of the passes that hides copies to the host, None without such; ``matrices`` of scores
    whose multiples its softmax takes."""

    keeping: Keeping
    rule: str
    pieces: bool
    trims: bool
    host: float
    inside: float
    apart: float
    buffer_bytes: float
    hidden: float
    by_layer: bool
    reserve: float
    scatters: bool
    families: tuple[str, ...]
    overlapped: bool
    paired: bool
    offload: float | None
    exchanging: Exchanging
    matrices: int

    @property
    def splits(self) -> bool:
        """Whether it runs gradients of inputs and of weights at different times."""
        return bool(set(self.families) & set(SPLIT))

    @property
    def chunk_start(self) -> float:
        """Seconds that a chunk beyond the first adds to a pass."""
        return LAUNCHES_A_CHUNK * self.host


def stack_of(table: Mapping[str, Any]) -> Stack:
    """The stack of a machine."""
    more = sorted(set(table) - KNOWN)
    cover(not more, f"the key {more[0] if more else ''}, which this checker does not know")
    cover(table["schedule"] in ("serial", "companions", "links"), f"stack.schedule = {table['schedule']!r}")
    cover(table["stages"] == "layers", f"stack.stages = {table['stages']!r}")
    cover(table["pipeline"] == "1f1b", f"stack.pipeline = {table['pipeline']!r}")
    cover(table["synchronisation"] in ("share", "layers"), f"stack.synchronisation = {table['synchronisation']!r}")
    cover(table["prefetch"] in ("stage", "layer"), f"stack.prefetch = {table['prefetch']!r}")
    logits, offload = table["logit_bytes"], table["hidden_offload"]
    keeping = Keeping(
        str(table["saves"]), None if logits is None else number(logits, "logit_bytes"), str(table["selective"]),
        tuple(map(str, listed(table["recompute_modules"], "recompute_modules"))),
        tuple(map(str, listed(table["recompute_named"], "recompute_named"))),
    )  # fmt: skip
    rule = str(table["schedule"])
    rule = "companions" if rule == "serial" and table["hides_tensor_collectives"] is True else rule

    def value(name: str, most: float = 1e300) -> float:
        return number(table[name], f"stack.{name}", 0, most)

    exchanging = Exchanging(
        value("hidden_exchange", 1), table["overlaps_shared_experts"] is True, table["deduplicated_exchange"] is True
    )
    return Stack(
        keeping, rule, table["piecewise_collectives"] is True, table["trims_recompute"] is True, value("host_s"),
        value("accumulation_inside"), value("accumulation_apart"), value("gradient_buffer_bytes"),
        value("hidden_synchronisation", 1), table["synchronisation"] == "layers", value("reserve_bytes"),
        table["scatter_gather"] is True, tuple(str(name) for name in listed(table["families"], "families")),
        table["overlap_p2p"] is True, table["prefetch"] == "layer",
        None if offload is None else value("hidden_offload", 1), exchanging,
        whole(table["softmax_matrices"], "stack.softmax_matrices", 1),
    )  # fmt: skip
