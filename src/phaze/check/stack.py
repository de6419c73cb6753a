"""The software stack of a job, read strictly: what this checker does not know is not covered.

The rules of the ICML 2024 paper (``stages = "icml24"``) are values of the same stack.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from types import MappingProxyType
from typing import Any

from .families import PUBLISHED, SPLIT
from .passes import Exchanging
from .reading import cover, listed, number, whole
from .recompute import Keeping

KNOWN = frozenset({
    "name", "title", "fusion", "host_s", "hides_tensor_collectives", "hidden_synchronisation",
    "scatter_gather",
    "optimizer_traffic_bytes", "state_bytes", "reserve_bytes", "schedule", "precision", "optimizer",
    "piecewise_collectives", "trims_recompute", "balances_stages", "gradient_bytes", "attention",
    "synchronisation",
    "families", "accumulation_inside", "accumulation_apart", "stages", "pipeline", "software_share",
    "saves",
    "logit_bytes", "selective", "gradient_buffer_bytes", "attention_kernel", "recipes",
    "low_precision_weights",
    "overlap_p2p", "recompute_modules", "recompute_named", "state", "gradient_wire_bytes",
    "prefetch", "hidden_offload",
    "grouped_share", "hidden_exchange", "overlaps_shared_experts", "deduplicated_exchange",
    "softmax_matrices",
})  # fmt: skip
"""The keys whose meaning is in the rules here, or that no search in 16 bits depends on."""
TRAINING = frozenset({
    "devices", "batch", "optimizer", "machine", "constants", "precision", "zeros", "chunks",
    "headroom",
})  # fmt: skip
"""What a job may say."""
AS_TRACED = Keeping("trace", None, "scores", (), ())
NOTHING_HIDDEN = Exchanging()
LAUNCHES_A_CHUNK = 2.0
"""A receive before a chunk, and a send after it."""
PAPER = "icml24"
PAPER_KEYS: Mapping[str, Any] = MappingProxyType({
    "schedule": PAPER, "stages": PAPER, "pipeline": PAPER, "synchronisation": "first",
    "host_s": 0.0,
    "softmax_matrices": 1, "hides_tensor_collectives": False, "hidden_synchronisation": 0.0,
    "optimizer_traffic_bytes": 0.0, "accumulation_inside": 2.0, "accumulation_apart": 0.0,
    "piecewise_collectives": False, "saves": "trace", "logit_bytes": None,
    "gradient_buffer_bytes": 0.0, "state": None,
})  # fmt: skip
"""What a stack of the paper's rules says; with any other value it would be a mixture of two sets of
rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What times and bytes of plans depend on; a default is what has no effect.

    Passes: ``keeping`` of activations; ``rule`` of schedules; ``pieces``: collectives are cut;
    ``trims`` recompute; ``host`` seconds an operator; ``inside`` and ``apart``: bytes a gradient's
    adding moves in its product and apart from it; ``buffer_bytes`` of a gradient; ``offload``:
    share of the passes that hides copies to the host, None without such; ``exchanging`` of experts;
    ``matrices`` of scores whose multiples its softmax takes.

    Plans: ``hidden`` share of collectives over replicas; ``by_layer``: gradients are reduced layer
    by layer; ``reserve`` bytes; ``scatters``: transfers are cut over a tensor group; ``families``
    of pipelines, where transfers of several chunks are ``overlapped``; ``paired``: gathers of ZeRO
    run a layer ahead, so that two are held at once.

    Paper: ``arriving``: edges of a stage arrive while it runs, over a flat ``link`` (infinite:
    there is none); ``first_end``: the end of a batch is that of the first stage; ``unsplit``: a
    stage without a sharded layer takes one device; ``last_recomputes``: whether the last stage may;
    ``all_recompute``: every layer does, not blocks alone, and by halves there is no mode; ``ties``:
    parameters that calls share are summed and held once.
    """

    keeping: Keeping = AS_TRACED
    rule: str = "serial"
    pieces: bool = False
    trims: bool = False
    host: float = 0.0
    inside: float = 0.0
    apart: float = 0.0
    buffer_bytes: float = 0.0
    offload: float | None = None
    exchanging: Exchanging = NOTHING_HIDDEN
    matrices: int = 1
    hidden: float = 0.0
    by_layer: bool = False
    reserve: float = 0.0
    scatters: bool = False
    families: tuple[str, ...] = ()
    overlapped: bool = False
    paired: bool = False
    arriving: bool = False
    link: float = inf
    first_end: bool = False
    unsplit: bool = False
    last_recomputes: bool = True
    all_recompute: bool = False
    ties: bool = True

    @property
    def flat(self) -> bool:
        """Whether all devices share one link and the first stage ends a batch: replicas change
        nothing but that end."""
        return self.first_end and isfinite(self.link)

    @property
    def schedules(self) -> bool:
        """Whether passes are schedules, which an answer states, and no formula."""
        return self.rule in ("links", PAPER)

    @property
    def splits(self) -> bool:
        """Whether it runs gradients of inputs and of weights at different times."""
        return bool(set(self.families) & set(SPLIT))

    @property
    def chunk_start(self) -> float:
        """Seconds that a chunk beyond the first adds to a pass."""
        return LAUNCHES_A_CHUNK * self.host


def paper_stack(reserve: float, link: float) -> Stack:
    """The rules of the ICML 2024 paper, all devices on one link."""
    return Stack(
        rule=PAPER,
        inside=PAPER_KEYS["accumulation_inside"],
        reserve=reserve,
        families=(PUBLISHED,),
        arriving=True,
        link=link,
        first_end=True,
        unsplit=True,
        last_recomputes=False,
        all_recompute=True,
        ties=False,
    )


def stack_of(table: Mapping[str, Any], link: float) -> Stack:
    """The stack of a machine whose innermost level has this link."""
    more = sorted(set(table) - KNOWN)
    cover(not more, f"the key {more[0] if more else ''}, which this checker does not know")
    if PAPER in (table["stages"], table["pipeline"]):
        for key, fixed in PAPER_KEYS.items():
            cover(table[key] == fixed, f"stack.{key} = {table[key]!r}")
        return paper_stack(number(table["reserve_bytes"], "reserve_bytes"), link)
    cover(
        table["schedule"] in ("serial", "companions", "links"),
        f"stack.schedule = {table['schedule']!r}",
    )
    cover(table["stages"] == "layers", f"stack.stages = {table['stages']!r}")
    cover(PUBLISHED not in table["families"], "the published pipeline under other rules")
    cover(table["pipeline"] == "1f1b", f"stack.pipeline = {table['pipeline']!r}")
    cover(
        table["synchronisation"] in ("share", "layers"),
        f"stack.synchronisation = {table['synchronisation']!r}",
    )
    cover(table["prefetch"] in ("stage", "layer"), f"stack.prefetch = {table['prefetch']!r}")
    logits, offload = table["logit_bytes"], table["hidden_offload"]
    keeping = Keeping(
        str(table["saves"]), None if logits is None else number(logits, "logit_bytes"),
        str(table["selective"]),
        tuple(map(str, listed(table["recompute_modules"], "recompute_modules"))),
        tuple(map(str, listed(table["recompute_named"], "recompute_named"))),
    )  # fmt: skip
    rule = str(table["schedule"])
    rule = "companions" if rule == "serial" and table["hides_tensor_collectives"] is True else rule

    def value(name: str, most: float = 1e300) -> float:
        return number(table[name], f"stack.{name}", 0, most)

    exchanging = Exchanging(
        value("hidden_exchange", 1),
        table["overlaps_shared_experts"] is True,
        table["deduplicated_exchange"] is True,
    )
    return Stack(
        keeping=keeping,
        rule=rule,
        pieces=table["piecewise_collectives"] is True,
        trims=table["trims_recompute"] is True,
        host=value("host_s"),
        inside=value("accumulation_inside"),
        apart=value("accumulation_apart"),
        buffer_bytes=value("gradient_buffer_bytes"),
        offload=None if offload is None else value("hidden_offload", 1),
        exchanging=exchanging,
        matrices=whole(table["softmax_matrices"], "stack.softmax_matrices", 1),
        hidden=value("hidden_synchronisation", 1),
        by_layer=table["synchronisation"] == "layers",
        reserve=value("reserve_bytes"),
        scatters=table["scatter_gather"] is True,
        families=tuple(str(name) for name in listed(table["families"], "families")),
        overlapped=table["overlap_p2p"] is True,
        paired=table["prefetch"] == "layer",
    )
