"""The software stack of a job, read strictly: what this checker does not know is not covered.

Every key is a value of its own: those of the ICML 2024 paper go with any of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from types import MappingProxyType
from typing import Any

from .families import PUBLISHED, SPLIT
from .passes import Exchanging
from .reading import cover, listed, number, only, require, whole
from .recompute import Keeping

KNOWN = frozenset({
    "name", "title", "fusion", "host_s", "hides_tensor_collectives", "overlap",
    "scatter_gather", "zeroes_gradients", "clips_gradients",
    "optimizer_traffic_bytes", "state_bytes", "reserve_bytes", "schedule", "precision", "optimizer",
    "trims_recompute", "balances_stages", "gradient_bytes", "attention",
    "synchronisation",
    "families", "accumulation_inside", "accumulation_apart", "stages", "pipeline", "software_share",
    "saves",
    "logit_bytes", "selective", "gradient_buffer_bytes", "attention_kernel", "recipes",
    "low_precision_weights",
    "recompute_modules", "recompute_named", "state", "gradient_wire_bytes",
    "prefetch",
    "grouped_share", "expert_start", "casts_apart",
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
ON_CORES = ("icml24", "overlap")
"""Rules whose schedules place operators on cores."""
LAUNCHES_A_CHUNK = 2.0
"""A receive before a chunk, and a send after it."""
PAPER = "icml24"
CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "schedule": ("serial", "companions", "links", "overlap", PAPER),
    "stages": ("layers", PAPER),
    "pipeline": ("1f1b", PAPER),
    "synchronisation": ("pieces", "first"),
    "prefetch": ("stage", "layer"),
    "saves": ("trace", "kernels", "mincut"),
    "selective": ("scores", "operators"),
})  # fmt: skip
"""The words that a key may have."""
KINDS = ("transfers", "reduction", "gather", "fully_sharded", "exchange", "tensor", "host_link")
WORDS = ("shared_experts", "dispatcher", "step_host")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What times and bytes of plans depend on; a default is what has no effect.

    Passes: ``keeping`` of activations; ``rule`` of schedules; ``pieces``: collectives are cut;
    ``trims`` recompute; ``host`` seconds an operator; ``inside`` and ``apart``: bytes a gradient's
    adding moves in its product and apart from it; ``buffer_bytes`` of a gradient; ``offload``:
    share of the passes that hides copies to the host, None without such; ``exchanging`` of experts;
    ``matrices`` of scores whose multiples its softmax takes.

    Plans: seconds that a second of a communication adds to the work that it runs beside, 1 where
    it is waited for: ``reducing`` gradients behind the last backward pass in pieces of ``bucket``
    parameters (None: as many as the replicas say), ``gathering`` weights behind the first forward
    pass, ``sharding`` of ZeRO's collectives of a microbatch; ``agrees``: all devices take a norm
    together; ``pause`` between steps; ``reserve`` bytes; ``scatters``: transfers are cut over a
    tensor group; ``families`` of pipelines, where transfers of several chunks are ``overlapped``;
    ``trades``: experts' tokens are exchanged behind another microbatch, never a second time;
    ``paired``: gathers of ZeRO run a layer ahead, so that two are held at once.

    ``first_end``: the end of a batch is that of the first stage, over a ``link`` where all devices
    share one (infinite: there is none).

    Stages of the paper: ``arriving``: their edges arrive while they run, over the link; ``unsplit``:
    a stage without a sharded layer takes one device; ``last_recomputes``: whether the last stage
    may; ``all_recompute``: every layer does, not blocks alone, there is no mode by halves, and none
    of the layers stands out as a block; ``ties``: parameters that calls share are summed and held
    once.
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
    reducing: float = 1.0
    gathering: float = 1.0
    sharding: float = 1.0
    bucket: float | None = None
    agrees: bool = False
    pause: float = 0.0
    reserve: float = 0.0
    scatters: bool = False
    families: tuple[str, ...] = ()
    overlapped: bool = False
    trades: bool = False
    paired: bool = False
    arriving: bool = False
    link: float = inf
    first_end: bool = False
    unsplit: bool = False
    last_recomputes: bool = True
    all_recompute: bool = False
    ties: bool = True

    def keeps(self, mode: str, group: int) -> bool:
        """Whether a stage may recompute so: where exchanges run behind another microbatch none is
        run again."""
        again = {"full", "moe", "alternate"} & set(mode.split("+"))
        return not (self.trades and group > 1 and again)

    @property
    def flat(self) -> bool:
        """Whether the first stage ends a batch, over the one link that all devices share."""
        return self.first_end and isfinite(self.link)

    @property
    def schedules(self) -> bool:
        """Whether passes are schedules, which an answer states, and no formula."""
        return self.rule in ("links", *ON_CORES)

    @property
    def on_cores(self) -> bool:
        """Whether schedules place operators on cores."""
        return self.rule in ON_CORES

    @property
    def splits(self) -> bool:
        """Whether it runs gradients of inputs and of weights at different times."""
        return bool(set(self.families) & set(SPLIT))

    @property
    def chunk_start(self) -> float:
        """Seconds that a chunk beyond the first adds to a pass."""
        return LAUNCHES_A_CHUNK * self.host


@dataclass(frozen=True, slots=True)
class _Beside:
    """The table ``overlap`` of a stack: what runs beside other work, and what that adds to it."""

    kinds: Mapping[str, Any]

    def __post_init__(self) -> None:
        only(self.kinds, "stack.overlap", (*KINDS, *WORDS))
        cover(
            self.kinds["dispatcher"] in ("alltoall", "node-once"),
            f"stack.overlap.dispatcher = {self.kinds['dispatcher']!r}",
        )

    def adds(self, kind: str, more: tuple[str, ...] = ()) -> float:
        """Seconds for each second of a kind."""
        table = only(self.kinds[kind], f"stack.overlap.{kind}", ("runs", "slows", *more))
        slows = number(table["slows"], f"stack.overlap.{kind}.slows", 0, 1)
        return slows if table["runs"] is True else 1.0

    def runs(self, kind: str) -> bool:
        """Whether a kind that slows nothing runs beside its work."""
        return only(self.kinds[kind], f"stack.overlap.{kind}", ("runs",))["runs"] is True

    def bucket(self) -> float | None:
        """Parameters of a piece of the gradients."""
        stated = self.kinds["reduction"]["bucket"]
        return None if stated is None else number(stated, "stack.overlap.reduction.bucket")

    def behind_others(self) -> float:
        """The share of the exchanges that is hidden behind another microbatch."""
        keys = ("offered", "runs", "slows")
        table = only(self.kinds["exchange"], "stack.overlap.exchange", keys)
        slows = number(table["slows"], "stack.overlap.exchange.slows", 0, 1)
        return 1.0 - slows if table["runs"] is True else 0.0

    def exchanges(self) -> bool:
        """Whether exchanges run behind another microbatch, however much they slow it."""
        return self.kinds["exchange"]["runs"] is True


def stack_of(table: Mapping[str, Any], bandwidth: float, levels: int) -> Stack:
    """The stack of a machine of so many levels, of whose innermost one this is the bandwidth."""
    more = sorted(set(table) - KNOWN)
    cover(not more, f"the key {more[0] if more else ''}, which this checker does not know")
    for key, choices in CHOICES.items():
        cover(table[key] in choices, f"stack.{key} = {table[key]!r}")

    def value(name: str, most: float = 1e300) -> float:
        return number(table[name], f"stack.{name}", 0, most)

    arriving = table["stages"] == PAPER
    first_end = table["synchronisation"] == "first"
    require(
        not arriving or levels == 1, "stack.stages: edges arrive over one link, and there are more"
    )
    logits = table["logit_bytes"]
    beside = _Beside(table["overlap"])
    offload = None if beside.kinds["host_link"] is None else 1.0 - beside.adds("host_link")
    keeping = Keeping(
        str(table["saves"]),
        None if logits is None else value("logit_bytes"),
        str(table["selective"]),
        tuple(map(str, listed(table["recompute_modules"], "recompute_modules"))),
        tuple(map(str, listed(table["recompute_named"], "recompute_named"))),
    )
    rule = str(table["schedule"])
    if rule == "serial" and table["hides_tensor_collectives"] is True:
        rule = "companions"
    families = tuple(str(name) for name in listed(table["families"], "families"))
    require(PUBLISHED not in families, "stack.families: the published pipeline is none of them")
    exchanging = Exchanging(
        beside.behind_others(),
        beside.kinds["shared_experts"] is True and not beside.behind_others(),
        beside.kinds["dispatcher"] == "node-once",
    )
    return Stack(
        keeping=keeping,
        rule=rule,
        pieces=beside.runs("tensor"),
        trims=table["trims_recompute"] is True,
        host=value("host_s"),
        inside=value("accumulation_inside"),
        apart=value("accumulation_apart"),
        buffer_bytes=value("gradient_buffer_bytes"),
        offload=offload,
        exchanging=exchanging,
        matrices=whole(table["softmax_matrices"], "stack.softmax_matrices", 1),
        reducing=beside.adds("reduction", ("bucket",)),
        gathering=beside.adds("gather"),
        sharding=beside.adds("fully_sharded"),
        bucket=beside.bucket(),
        agrees=table["clips_gradients"] is True,
        pause=number(beside.kinds["step_host"], "stack.overlap.step_host"),
        reserve=value("reserve_bytes"),
        scatters=table["scatter_gather"] is True,
        families=(PUBLISHED,) if table["pipeline"] == PAPER else families,
        overlapped=beside.runs("transfers"),
        trades=beside.exchanges(),
        paired=table["prefetch"] == "layer",
        arriving=arriving,
        link=bandwidth if arriving or (first_end and levels == 1) else inf,
        first_end=first_end,
        unsplit=arriving,
        last_recomputes=not arriving,
        all_recompute=arriving,
        ties=not arriving,
    )
