"""A software stack: what the training framework fuses, hides and spends, apart from chip and network."""

from dataclasses import dataclass
from typing import Literal

from phaze.errors import InputError
from phaze.hardware.attention import Generation
from phaze.hardware.chip import Chip
from phaze.hardware.formats import PLAIN, Precision, Recipes, require_format, resolved

Fusion = Literal["none", "chains", "elementwise", "full"]
ScheduleRule = Literal["serial", "companions", "links", "overlap", "icml24"]
Optimizer = Literal["sgd", "adam"]
Kernel = Literal["eager", "fused"]
Synchronisation = Literal["share", "layers", "first"]
StageRule = Literal["layers", "icml24"]
Pipeline = Literal["1f1b", "icml24"]
PipelineFamily = Literal["gpipe", "1f1b", "interleaved", "zb-h1", "zb-interleaved", "zb-v", "dualpipe-v"]
# Pipeline schedules whose backward pass is split: gradients of inputs and of weights run at different times.
SPLIT_FAMILIES: tuple[PipelineFamily, ...] = ("zb-h1", "zb-interleaved", "zb-v", "dualpipe-v")
Saves = Literal["trace", "kernels", "mincut"]
Selective = Literal["scores", "operators"]
Prefetch = Literal["stage", "layer"]
RecomputeModule = Literal[
    "core_attn", "layernorm", "mlp", "shared_experts", "moe_act", "moe", "mla_up_proj", "alternate"
]


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes that a stack holds for a parameter, in 16 bits with Adam: its weight, the weight that the optimizer
    updates, the gradient, and the optimizer's two moments; a precision-aware optimizer holds some in fewer."""

    weight: float = 2.0
    main_weight: float = 4.0
    gradient: float = 4.0
    first_moment: float = 4.0
    second_moment: float = 4.0

    @property
    def optimizer(self) -> float:
        """Those of the optimizer."""
        return self.main_weight + self.first_moment + self.second_moment

    @property
    def update(self) -> float:
        """HBM bytes of one fused update: all but the weight is read, all but the gradient is written."""
        return self.gradient + 2 * self.optimizer + self.weight


@dataclass(frozen=True, slots=True)
class Stack:
    """Constants of a framework; every share is between 0 (nothing) and 1 (all).

    ``fusion``: none (each operator alone), chains (element-wise ones that follow each other become one, as where
    fused kernels are written by hand), elementwise (also reductions and normalisations), full (also epilogues).
    ``host_s``: host time to launch one operator. ``hides_tensor_collectives``: the backward all-reduce runs behind
    the weight-gradient products. ``piecewise_collectives``: gathers and scatters of a tensor group are cut into pieces
    that run behind the products next to them. ``hidden_synchronisation``: share of the data-parallel reduction behind
    the backward pass, and of ZeRO's collectives. ``synchronisation``: whether the reduction hides that share, runs
    layer by layer behind the last backward pass, or is that of the first stage alone, as published.
    ``scatter_gather``: a tensor group sends each byte between stages once.
    ``optimizer_traffic_bytes``: HBM bytes that one update moves for a parameter. ``state_bytes``: bytes held for a
    parameter (weight, gradient, master weight, moments). ``reserve_bytes``: memory the framework keeps for itself.
    ``trims_recompute``: a compiler leaves out of a second forward pass what the backward pass does not read.
    ``balances_stages``: it cuts a model into stages of equal work, not of as many blocks.
    ``gradient_bytes``: of ``state_bytes``, those of the gradient; 0: as the precision says. ``state``: both by part
    where they are not the usual ones; an update then moves the difference more (:class:`StateBytes`).
    ``gradient_wire_bytes``: bytes of a gradient on the wire, 2 or 4; weights go as they are held. ``prefetch``: under
    ZeRO 3 the gathers of weights overlap with the passes of a whole stage, or each with the layer before it, so that
    the weights of two layers are held at once (FSDP2).
    ``schedule``: how the operators of a layer may overlap (:func:`require_built`).
    ``accumulation_inside``: HBM bytes that the product of a weight's gradient moves for each of its results: 2 where it
    is written, 8 where the product adds it to a 32-bit sum; ``accumulation_apart``: those that adding a microbatch's
    gradient to others moves for a parameter beside that.
    ``stages``: transfers between stages stand apart from their layers, or arrive inside stages over one flat link as
    the ICML 2024 paper had it; ``pipeline``: 1F1B, or the paper's m + S - 1 times the slowest stage.
    ``families``: the pipeline schedules that it runs, where it runs 1F1B; ``interleaves``: interleaved 1F1B is one.
    ``software_share``: what training with it leaves of the rate that products hold on chips of clusters, by a chip, the
    process of a generation of chips, or ``any`` (:meth:`share_on`).
    ``attention``: eager (scores go through memory) or fused (they never leave the chip), as the framework runs it;
    ``attention_kernel``: the generation of its fused kernel, whose measured rates count where the chip's family has
    them (:mod:`phaze.hardware.attention`).
    ``recipes``: of other precision than 16 bits that it runs, the first of few bits is what ``fp8`` means;
    ``low_precision_weights``: weights are held and gathered in the recipe's format alone.
    ``overlap_p2p``: transfers of interleaved 1F1B run behind other chunks, as far as these take as long.
    ``saves``: what it keeps between the passes of a layer: as eager PyTorch does (trace), the inputs of every kernel,
    or the least that a compiler finds (:mod:`phaze.graph.saved.rules`). ``logit_bytes``: bytes that are alive for each
    logit of one microbatch; None: as ``saves`` says, and kept. ``selective``: what selective recompute reruns, the
    scores of eager attention or all but every second product (:mod:`phaze.graph.saved.modes`).
    ``recompute_modules``: parts of a block that it can recompute alone or together, and ``alternate``, every second
    block in full; ``recompute_named``: unions of them that a plan names, offered instead of the efficient ones.
    ``hidden_offload``: it can keep activations in the memory of the host, and copies them behind this share of the
    passes of a layer; None: it cannot. ``gradient_buffer_bytes``: bytes for each element of one weight gradient of
    every distinct shape, as where gradients are added inside the product.
    ``grouped_share``: what grouped products of experts reach of the rate of other products, by a chip, the process of a
    generation of chips, or ``any``. ``hidden_exchange``: share of the exchanges of experts that runs behind the work of
    another microbatch; ``overlaps_shared_experts``: they run beside the products of shared experts;
    ``deduplicated_exchange``: a token is sent to a node once and copied there. ``softmax_matrices``: its softmax kernel
    for eager attention takes multiples of so many attention matrices of a rank; of other counts it runs plain kernels.
    """

    name: str
    title: str
    fusion: Fusion
    host_s: float
    hides_tensor_collectives: bool
    hidden_synchronisation: float
    scatter_gather: bool
    optimizer_traffic_bytes: float
    state_bytes: float
    reserve_bytes: float
    schedule: ScheduleRule = "serial"
    precision: Precision = PLAIN
    optimizer: Optimizer = "adam"
    piecewise_collectives: bool = False
    trims_recompute: bool = False
    balances_stages: bool = False
    gradient_bytes: float = 0.0
    attention: Kernel = "fused"
    synchronisation: Synchronisation = "share"
    families: tuple[PipelineFamily, ...] = ("1f1b", "interleaved")
    # 4 bytes read and 4 written: gradients are added in 32 bits.
    accumulation_apart: float = 8.0
    stages: StageRule = "layers"
    pipeline: Pipeline = "1f1b"
    software_share: tuple[tuple[str, float], ...] = ()
    saves: Saves = "trace"
    logit_bytes: float | None = None
    selective: Selective = "scores"
    gradient_buffer_bytes: float = 0.0
    recompute_modules: tuple[RecomputeModule, ...] = ()
    recompute_named: tuple[str, ...] = ()
    attention_kernel: Generation | None = None
    recipes: Recipes = ()
    low_precision_weights: bool = False
    overlap_p2p: bool = False
    accumulation_inside: float = 2.0
    state: StateBytes | None = None
    hidden_offload: float | None = None
    gradient_wire_bytes: float = 2.0
    prefetch: Prefetch = "stage"
    grouped_share: tuple[tuple[str, float], ...] = ()
    hidden_exchange: float = 0.0
    overlaps_shared_experts: bool = False
    deduplicated_exchange: bool = False
    softmax_matrices: int = 1

    @property
    def interleaves(self) -> bool:
        """Whether it can cut the blocks of a stage into chunks (interleaved 1F1B)."""
        return "interleaved" in self.families

    @property
    def splits_backward(self) -> bool:
        """Whether it runs gradients of inputs and of weights at different times in some schedule."""
        return self.pipeline == "1f1b" and not set(self.families).isdisjoint(SPLIT_FAMILIES)

    def share_on(self, *generation: str | None) -> float:
        """The software share on a generation of chips, by the first of its names that is known (chip, process); 1 where
        nothing is."""
        return _share_of(self.software_share, generation)

    def grouped_share_on(self, *generation: str | None) -> float:
        """The share of grouped products, in the same way."""
        return _share_of(self.grouped_share, generation)

    def __post_init__(self) -> None:
        for field in ("host_s", "optimizer_traffic_bytes", "state_bytes", "reserve_bytes", "gradient_bytes"):
            if not 0 <= getattr(self, field) < float("inf"):
                raise InputError(
                    f"{self.name}.{field}", f"{getattr(self, field)!r} is out of range", "it must be at least 0"
                )
        for field in ("hidden_synchronisation", "hidden_exchange"):
            if not 0 <= getattr(self, field) <= 1:
                raise InputError(
                    f"{self.name}.{field}", f"{getattr(self, field)!r} is out of range", "it must be between 0 and 1"
                )


def _share_of(shares: tuple[tuple[str, float], ...], generation: tuple[str | None, ...]) -> float:
    known = dict(shares)
    return next((known[name] for name in (*generation, "any") if name in known), 1.0)


def require_priced(precision: Precision, stack: Stack, chip: Chip, where: str) -> Precision:
    """The precision by its full name, or a refusal where the stack has no such recipe or the chip no such arrays."""
    name = resolved(precision, stack.recipes, stack.name, where)
    require_format(name, chip.formats, chip.name, where)
    return name


def require_built(stack: Stack, where: str) -> Stack:
    """The stack, or a refusal if its layers cannot be run by the schedule that it names.

    ``companions`` run tensor collectives behind the weight gradients, so the stack must hide them; older files call
    that ``serial`` too. Under ``links``, ``overlap`` and ``icml24`` the rule alone says what runs beside what.
    """
    if stack.schedule == "companions" and not stack.hides_tensor_collectives:
        path = f"{where}: schedule" if where else "schedule"
        raise InputError(path, "'companions' and hides_tensor_collectives = false", "make it true or say 'serial'")
    return stack
