"""A software stack: what the training framework fuses, hides and spends, apart from chip and
network.

Every share is between 0 (nothing) and 1 (all).

``fusion``: none (each operator alone), chains (element-wise ones that follow each other become one,
as where fused kernels are written by hand), elementwise (also reductions and normalisations), full
(also epilogues). ``host_s``: host time to launch one operator. ``hides_tensor_collectives``: the
backward all-reduce runs behind the weight-gradient products. ``piecewise_collectives``: gathers and
scatters of a tensor group are cut into pieces that run behind the products next to them.
``hidden_synchronisation``: share of the data-parallel reduction behind the backward pass, and of
ZeRO's collectives. ``synchronisation``: whether the reduction hides that share, runs layer by layer
behind the last backward pass, or is that of the first stage alone, as published.
``scatter_gather``: a tensor group sends each byte between stages once. ``optimizer_traffic_bytes``:
HBM bytes that one update moves for a parameter. ``state_bytes``: bytes held for a parameter
(weight, gradient, master weight, moments). ``reserve_bytes``: memory the framework keeps for
itself. ``trims_recompute``: a compiler leaves out of a second forward pass what the backward pass
does not read. ``balances_stages``: it cuts a model into stages of equal work, not of as many
blocks. ``gradient_bytes``: of ``state_bytes``, those of the gradient; 0: as the precision says.
``state``: both by part where they are not the usual ones; an update then moves the difference more
(:class:`StateBytes`). ``gradient_wire_bytes``: bytes of a gradient on the wire, 2 or 4; weights go
as they are held. ``prefetch``: under ZeRO 3 the gathers of weights overlap with the passes of a
whole stage, or each with the layer before it, so that the weights of two layers are held at once
(FSDP2). ``schedule``: how the operators of a layer may overlap (:func:`require_built`).
``accumulation_inside``: HBM bytes that the product of a weight's gradient moves for each of its
results: 2 where it is written, 8 where the product adds it to a 32-bit sum; ``accumulation_apart``:
those that adding a microbatch's gradient to others moves for a parameter beside that. ``stages``:
transfers between stages stand apart from their layers, or arrive inside stages over one flat link
as the ICML 2024 paper had it; ``pipeline``: 1F1B, or the paper's m + S - 1 times the slowest stage.
``families``: the pipeline schedules that it runs, where it runs 1F1B. ``software_share``: what
training with it leaves of the rate that products hold on chips of clusters, by a chip, its die, the
process of a generation of chips, or ``any`` (:meth:`share_on`). ``attention``: eager (scores go
through memory) or fused (they never leave the chip), as the framework runs it; the generation of
its fused kernel (:meth:`kernel_on`) is one, or one by chip, die or process, whose measured rates count where
the chip's family has them (:mod:`phaze.hardware.attention`). ``recipes``: of other precision than
16 bits that it runs, the first of few bits is what ``fp8`` means; ``low_precision_weights``:
weights are held and gathered in the recipe's format alone; ``casts_apart``: casts to it are kernels
of their own where their scales follow from the values, and for experts' rows; else they are fused
as other element-wise operators. ``overlap_p2p``: transfers of interleaved 1F1B run behind other
chunks, as far as these take as long. ``saves``: what it keeps between the passes of a layer: as eager
PyTorch does (trace), the inputs of every kernel, or the least that a compiler finds
(:mod:`phaze.graph.saved.rules`). ``logit_bytes``: bytes that are alive for each logit of one
microbatch; None: as ``saves`` says, and kept. ``selective``: what selective recompute reruns, the
scores of eager attention or all but every second product (:mod:`phaze.graph.saved.modes`).
``recompute_modules``: parts of a block that it can recompute alone or together, and ``alternate``,
every second block in full; ``recompute_named``: unions of them that a plan names, offered instead
of the efficient ones. ``hidden_offload``: it can keep activations in the memory of the host, and
copies them behind this share of the passes of a layer; None: it cannot. ``gradient_buffer_bytes``:
bytes for each element of one weight gradient of every distinct shape, as where gradients are added
inside the product. ``grouped_share``: what grouped products of experts reach of the rate of other
products, by the same names; ``expert_start``: what the kernel of each expert takes beside its work
where experts have kernels of their own, by the same names. ``hidden_exchange``: share of
the exchanges of experts that runs behind the work of another microbatch;
``overlaps_shared_experts``: they run beside the products of shared experts;
``deduplicated_exchange``: a token is sent to a node once and copied there. ``softmax_matrices``:
its softmax kernel for eager attention takes multiples of so many attention matrices of a rank; of
other counts it runs plain kernels.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from phaze.documents import Count, Document, Format, NonNegative, Positive, Seconds
from phaze.errors import InputError
from phaze.hardware.attention import FusedGeneration, Generation
from phaze.hardware.chip import Chip
from phaze.hardware.formats import PLAIN, Precision, require_format, resolved
from phaze.hardware.gradients import WIDTHS, Gradients, keys_of_gradients
from phaze.hardware.keys import Name, SecondsByName, ShareByName, Sources, Text
from phaze.hardware.overlap import Overlap, with_overlap
from phaze.pipeline.families import SPLIT_FAMILIES
from phaze.pipeline.names import NAMES, PipelineFamily
from phaze.values import FrozenTable, Listed

Fusion = Literal["none", "chains", "elementwise", "full"]
ScheduleRule = Literal["serial", "companions", "links", "overlap", "icml24"]
Optimizer = Literal["sgd", "adam"]
Kernel = Literal["eager", "fused"]
Synchronisation = Literal["pieces", "first"]
StageRule = Literal["layers", "icml24"]
Pipeline = Literal["1f1b", "icml24"]
# Pipeline schedules whose backward pass is split: gradients of inputs and of weights run at
# different times.
Saves = Literal["trace", "kernels", "mincut"]
Selective = Literal["scores", "operators"]
Prefetch = Literal["stage", "layer"]
RecomputeModule = Literal[
    "core_attn", "layernorm", "mlp", "shared_experts", "moe_act", "moe", "mla_up_proj", "alternate"
]
Recipe = Literal["fp8-delayed", "fp8-tensorwise", "fp8-block", "mxfp8", "nvfp4", "fp32"]
V = TypeVar("V")
D = TypeVar("D")
OF_THE_FILE = frozenset({"schema_", "base", "interleaves", "notes", "sources", "gradients"})
"""Keys of a stack's file that answers do not state."""
OF_GRADIENTS = ("gradient_bytes", "state_bytes", "accumulation_inside", "accumulation_apart")
TABLES = ("software_share", "grouped_share", "expert_start")


def _less_with_base(schema: dict[str, Any]) -> None:
    """In the JSON schema of a stack: a file with ``base`` may leave out every key that one without
    must have."""
    needed = schema["required"]
    schema["required"] = ["schema"]
    schema["anyOf"] = [
        {"required": ["base"], "properties": {"base": {"type": "string"}}},
        {"required": needed},
    ]


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


class AttentionTable(Document):
    """The attention kernel of a stack: eager, a generation of fused ones, or such generations by a
    chip, its die, the process of a generation of chips, or ``any``."""

    kernel: Generation | Annotated[dict[Name, FusedGeneration], AfterValidator(FrozenTable)]

    @property
    def by_name(self) -> Mapping[str, Generation]:
        """The generation by name of a chip or a generation of chips."""
        return {"any": self.kernel} if isinstance(self.kernel, str) else self.kernel


class StateBytes(Document):
    """Bytes that a stack holds for a parameter, in 16 bits with Adam: its weight, the weight that
    the optimizer updates, the gradient, and the optimizer's two moments; a precision-aware
    optimizer holds some in fewer."""

    weight: NonNegative = 2.0
    main_weight: NonNegative = 4.0
    gradient: NonNegative = 4.0
    first_moment: NonNegative = 4.0
    second_moment: NonNegative = 4.0

    @property
    def optimizer(self) -> float:
        """Those of the optimizer."""
        return self.main_weight + self.first_moment + self.second_moment

    @property
    def update(self) -> float:
        """HBM bytes of one fused update: all but the weight is read, all but the gradient is
        written."""
        return self.gradient + 2 * self.optimizer + self.weight


class Stack(Document):
    """A software stack (``phaze.stack/1``)."""

    model_config = ConfigDict(json_schema_extra=_less_with_base)

    schema_: Annotated[Literal["phaze.stack/1"], Field(alias="schema")]
    base: Annotated[
        Name | None, Field(description="a bundled stack, whose keys hold where this file has none")
    ] = None
    name: Name
    title: Text
    fusion: Fusion
    host_s: Annotated[Seconds, Field(alias="host_time")]
    hides_tensor_collectives: bool
    scatter_gather: bool
    optimizer_traffic_bytes: NonNegative
    state_bytes: NonNegative
    reserve_bytes: Annotated[
        NonNegative, Field(alias="reserve", description="bytes the framework keeps")
    ]
    schedule: ScheduleRule = "serial"
    precision: Precision = PLAIN
    optimizer: Optimizer = "adam"
    trims_recompute: bool = False
    balances_stages: bool = False
    gradient_bytes: NonNegative = 0.0
    kernel: Annotated[
        Kernel | AttentionTable,
        Field(
            alias="attention",
            description="eager, fused, or a table with the kernel that the stack runs",
        ),
    ] = "fused"
    synchronisation: Synchronisation = "pieces"
    interleaves: Annotated[
        bool, Field(description="false: interleaved 1F1B is none of its families")
    ] = True
    families: Annotated[
        Listed[PipelineFamily],
        Field(
            min_length=1, validate_default=True, description="the pipeline schedules that it runs"
        ),
    ] = Field(default_factory=lambda: ("1f1b", "interleaved"))
    # 4 bytes read and 4 written: gradients are added in 32 bits.
    accumulation_apart: NonNegative = 8.0
    stages: StageRule = "layers"
    pipeline: Pipeline = "1f1b"
    software_share: Annotated[
        ShareByName,
        Field(
            description="of the rate products hold on chips of clusters, by chip, process or any"
        ),
    ] = Field(default_factory=FrozenTable)
    saves: Annotated[
        Saves, Field(description="what it keeps between the passes: trace, kernels or mincut")
    ] = "trace"
    logit_bytes: Annotated[
        NonNegative | None,
        Field(description="bytes alive for each logit of one microbatch; none: as saves says"),
    ] = None
    selective: Annotated[Selective, Field(description="what selective recompute reruns")] = "scores"
    gradient_buffer_bytes: Annotated[
        NonNegative,
        Field(description="bytes for each element of one weight gradient of every distinct shape"),
    ] = 0.0
    recompute_modules: Annotated[
        Listed[RecomputeModule],
        AfterValidator(_once),
        Field(description="parts of a block that it can recompute, or alternate blocks"),
    ] = Field(default_factory=tuple)
    recipes: Annotated[
        Listed[Recipe],
        Field(
            description=(
                "other precisions that it runs; the first low-precision one is what fp8 means"
            )
        ),
    ] = Field(default_factory=tuple)
    low_precision_weights: bool = False
    casts_apart: Annotated[
        bool,
        Field(description="casts whose scales follow from the values are kernels of their own"),
    ] = False
    accumulation_inside: NonNegative = 2.0
    state: Annotated[
        StateBytes | None,
        Field(description="bytes a parameter by part, instead of state_bytes and gradient_bytes"),
    ] = None
    gradient_wire_bytes: Annotated[
        Positive, Field(description="bytes of a gradient on the wire, 2 or 4")
    ] = 2.0
    prefetch: Annotated[
        Prefetch, Field(description="what ZeRO 3's gathers overlap with: a stage or a layer")
    ] = "stage"
    grouped_share: Annotated[
        ShareByName, Field(description="of the rate of other products, by chip, process or any")
    ] = Field(default_factory=FrozenTable)
    expert_start: Annotated[
        SecondsByName,
        Field(
            description="of each expert's kernel, by chip, die, process or any; else one runs all"
        ),
    ] = Field(default_factory=FrozenTable)
    softmax_matrices: Annotated[
        Count, Field(description="attention matrices whose multiples its softmax takes")
    ] = 1
    overlap: Annotated[
        Overlap, Field(description="what runs beside other work, and how much it slows that")
    ] = Overlap()
    gradients: Annotated[
        Gradients | None,
        Field(description="their width: bytes held, on the wire and moved to add them"),
    ] = None
    zeroes_gradients: Annotated[
        bool, Field(description="gradients are set to zero before a step")
    ] = False
    clips_gradients: Annotated[
        bool, Field(description="the norm of all gradients is taken before a step")
    ] = False
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)
    # What a plan names to be recomputed; no file states it.
    _recompute_named: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, raw: Any) -> Any:
        keys = with_new_names(raw)
        stated = keys.get("gradients") if isinstance(keys, dict) else None
        if isinstance(stated, str) and stated in WIDTHS:
            keys = {**keys, **keys_of_gradients(keys["gradients"], keys)}
        return keys

    @field_validator("families")
    @classmethod
    def _in_order(
        cls, names: tuple[PipelineFamily, ...], info: ValidationInfo
    ) -> tuple[PipelineFamily, ...]:
        without = () if info.data.get("interleaves", True) else ("interleaved",)
        return tuple(name for name in NAMES if name in names and name not in without)

    @model_validator(mode="after")
    def _consistent(self) -> "Stack":
        if self.optimizer_traffic_bytes and not self.state_bytes:
            raise ValueError("an optimizer that moves bytes must hold state_bytes")
        if self.overlap.exchange.runs and not self.overlap.exchange.offered:
            raise ValueError("overlap.exchange runs and is not offered")
        if not self.families:
            raise ValueError("interleaves = false leaves no family: name another in families")
        return self

    @property
    def attention(self) -> Kernel:
        """Whether scores of attention go through memory (eager) or never leave the chip (fused)."""
        if isinstance(self.kernel, AttentionTable):
            return "eager" if self.kernel.kernel == "eager" else "fused"
        return self.kernel

    def kernel_on(self, *generation: str | None) -> Generation | None:
        """The generation of its attention kernel on a generation of chips, by the first of its
        names that is known (chip, die, process); None where the file names none."""
        if not isinstance(self.kernel, AttentionTable):
            return None
        return _first_of(self.kernel.by_name, generation, None)

    @property
    def recompute_named(self) -> tuple[str, ...]:
        """Unions of modules that a plan names."""
        return self._recompute_named

    def as_read(self) -> dict[str, Any]:
        """The constants as answers and certificates state them, sorted shares as pairs."""
        document: dict[str, Any] = {}
        for name in Stack.model_fields:
            if name == "kernel":
                document["attention"] = self.attention
            elif name in TABLES:
                document[name] = sorted(getattr(self, name).items())
            elif name == "overlap":
                document[name] = self.overlap.model_dump()
            elif name not in OF_THE_FILE:
                document[name] = getattr(self, name)
            if name == "recompute_modules":
                document["recompute_named"] = self.recompute_named
                document["attention_kernel"] = self._kernels_as_read()
        return document

    def _kernels_as_read(self) -> Generation | list[tuple[str, Generation]] | None:
        if not isinstance(self.kernel, AttentionTable):
            return None
        kernel = self.kernel.kernel
        return kernel if isinstance(kernel, str) else sorted(kernel.items())

    def with_gradients(self, gradients: Gradients) -> "Stack":
        """The stack with gradients of another width."""
        keys = {name: getattr(self, name) for name in OF_GRADIENTS}
        keys["state"] = None if self.state is None else self.state.model_dump()
        changed = keys_of_gradients(gradients, keys)
        if "state" in changed:
            changed["state"] = StateBytes(**changed["state"])
        return self.model_copy(update={**changed, "gradients": gradients})

    @property
    def hidden_synchronisation(self) -> float:
        """What of a reduction beside backward passes does not slow them."""
        return 1.0 - self.overlap.reduction.cost

    @property
    def hidden_offload(self) -> float | None:
        """The share of a layer's passes behind which it copies activations to the host; None: it
        cannot."""
        link = self.overlap.host_link
        return None if link is None else 1.0 - link.cost

    @property
    def piecewise_collectives(self) -> bool:
        """Whether gathers and scatters of a tensor group are cut into pieces."""
        return self.overlap.tensor.runs

    @property
    def overlaps_shared_experts(self) -> bool:
        """Whether exchanges of experts run beside shared experts."""
        return self.overlap.shared_experts

    @property
    def deduplicated_exchange(self) -> bool:
        """Whether a token is sent to a node once."""
        return self.overlap.dispatcher == "node-once"

    @property
    def hidden_exchange(self) -> float:
        """What of the exchanges of experts behind another microbatch does not slow its work."""
        return 1.0 - self.overlap.exchange.slows if self.overlap.exchange.runs else 0.0

    @property
    def splits_backward(self) -> bool:
        """Whether it runs gradients of inputs and of weights at different times in some
        schedule."""
        return self.pipeline == "1f1b" and not set(self.families).isdisjoint(SPLIT_FAMILIES)

    def share_on(self, *generation: str | None) -> float:
        """The software share on a generation of chips, by the first of its names that is known
        (chip, die, process); 1 where nothing is."""
        return _first_of(self.software_share, generation, 1.0)

    def grouped_share_on(self, *generation: str | None) -> float:
        """The share of grouped products, in the same way."""
        return _first_of(self.grouped_share, generation, 1.0)

    def expert_start_on(self, *generation: str | None) -> float | None:
        """Seconds of each expert's kernel beside its work, in the same way; None: one kernel runs
        all experts."""
        return _first_of(self.expert_start, generation, None)


def _first_of(values: Mapping[str, V], generation: tuple[str | None, ...], other: D) -> V | D:
    names = [name for name in (*generation, "any") if name is not None and name in values]
    return values[names[0]] if names else other


def with_new_names(raw: Any) -> Any:
    """The keys of a stack's file by today's names: ``accumulation_bytes`` was all of it, apart from
    the product, and what is hidden had a key for each kind."""
    if not isinstance(raw, dict):
        return raw
    raw = with_overlap(raw)
    if raw.get("synchronisation") in ("share", "layers"):
        raw["synchronisation"] = "pieces"
    if "accumulation_bytes" in raw and "accumulation_apart" not in raw:
        return {
            "accumulation_apart" if key == "accumulation_bytes" else key: raw[key] for key in raw
        }
    return raw


def require_priced(precision: Precision, stack: Stack, chip: Chip, where: str) -> Precision:
    """The precision by its full name, or a refusal where the stack has no such recipe or the chip
    no such arrays."""
    name = resolved(precision, stack.recipes, stack.name, where)
    require_format(name, chip.formats, chip.name, where)
    return name


def require_built(stack: Stack, where: str) -> Stack:
    """The stack, or a refusal if its layers cannot be run by the schedule that it names.

    ``companions`` run tensor collectives behind the weight gradients, so the stack must hide them;
    older files call that ``serial`` too. Under ``links``, ``overlap`` and ``icml24`` the rule alone
    says what runs beside what.
    """
    if stack.schedule == "companions" and not stack.hides_tensor_collectives:
        path = f"{where}: schedule" if where else "schedule"
        raise InputError(
            path,
            "'companions' and hides_tensor_collectives = false",
            "make it true or say 'serial'",
        )
    return stack


STACK = Format("phaze.stack/1", Stack, "a training framework's constants")
