"""Files of software stacks (``phaze.stack/1``): which keys they may have, and the value that they stand for."""

from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, model_validator

from phaze.documents import Count, Document, Format, NonNegative, Positive, Seconds, Share
from phaze.hardware.attention import Generation
from phaze.hardware.files import Name, Sources, Text
from phaze.hardware.formats import Precision
from phaze.hardware.stack import (
    Fusion,
    Kernel,
    Optimizer,
    Pipeline,
    PipelineFamily,
    Prefetch,
    RecomputeModule,
    Saves,
    ScheduleRule,
    Selective,
    Stack,
    StageRule,
    StateBytes,
    Synchronisation,
)


def _less_with_base(schema: dict[str, Any]) -> None:
    """In the JSON schema of a stack: a file with ``base`` may leave out every key that one without must have."""
    needed = schema["required"]
    schema["required"] = ["schema"]
    schema["anyOf"] = [{"required": ["base"], "properties": {"base": {"type": "string"}}}, {"required": needed}]


FAMILIES: tuple[PipelineFamily, ...] = get_args(PipelineFamily)
Recipe = Literal["fp8-delayed", "fp8-tensorwise", "fp8-block", "mxfp8", "nvfp4", "fp32"]


class AttentionTable(Document):
    """The attention kernel of a stack: eager, or a generation of fused ones."""

    kernel: Generation


class StateTable(Document):
    """Bytes held for a parameter in 16 bits with Adam; what is left out is as usual."""

    weight: NonNegative = 2.0
    main_weight: NonNegative = 4.0
    gradient: NonNegative = 4.0
    first_moment: NonNegative = 4.0
    second_moment: NonNegative = 4.0


class StackFile(Document):
    """A software stack (``phaze.stack/1``)."""

    model_config = ConfigDict(json_schema_extra=_less_with_base)

    schema_: Annotated[Literal["phaze.stack/1"], Field(alias="schema")]
    base: Annotated[Name | None, Field(description="a bundled stack, whose keys hold where this file has none")] = None
    name: Name
    title: Text
    fusion: Fusion
    host_time: Seconds
    hides_tensor_collectives: bool
    hidden_synchronisation: Share
    scatter_gather: bool
    optimizer_traffic_bytes: NonNegative
    state_bytes: NonNegative
    reserve: Annotated[NonNegative, Field(description="bytes the framework keeps")]
    schedule: ScheduleRule = "serial"
    precision: Precision = "bf16"
    optimizer: Optimizer = "adam"
    piecewise_collectives: bool = False
    trims_recompute: bool = False
    balances_stages: bool = False
    gradient_bytes: NonNegative = 0.0
    attention: Annotated[
        Kernel | AttentionTable, Field(description="eager, fused, or a table with the kernel that the stack runs")
    ] = "fused"
    synchronisation: Synchronisation = "share"
    interleaves: Annotated[bool, Field(description="false: interleaved 1F1B is none of its families")] = True
    families: Annotated[
        list[PipelineFamily], Field(min_length=1, description="the pipeline schedules that it runs")
    ] = Field(default_factory=lambda: list[PipelineFamily](("1f1b", "interleaved")))
    software_share: Annotated[
        dict[Name, Share], Field(description="of the rate products hold on chips of clusters, by chip, process or any")
    ] = Field(default_factory=dict)
    accumulation_inside: NonNegative = 2.0
    accumulation_apart: NonNegative = 8.0
    stages: StageRule = "layers"
    pipeline: Pipeline = "1f1b"
    saves: Annotated[Saves, Field(description="what it keeps between the passes: trace, kernels or mincut")] = "trace"
    logit_bytes: Annotated[
        NonNegative | None, Field(description="bytes alive for each logit of one microbatch; none: as saves says")
    ] = None
    selective: Annotated[Selective, Field(description="what selective recompute reruns")] = "scores"
    gradient_buffer_bytes: Annotated[
        NonNegative, Field(description="bytes for each element of one weight gradient of every distinct shape")
    ] = 0.0
    recompute_modules: Annotated[
        list[RecomputeModule],
        Field(description="parts of a block that it can recompute, or alternate blocks"),
    ] = Field(default_factory=list)
    recipes: Annotated[
        list[Recipe], Field(description="other precisions that it runs; the first low-precision one is what fp8 means")
    ] = Field(default_factory=list)
    low_precision_weights: bool = False
    overlap_p2p: bool = False
    hidden_offload: Annotated[
        Share | None, Field(description="share of a layer's passes that overlaps transfers of activations to the host")
    ] = None
    state: Annotated[
        StateTable | None, Field(description="bytes a parameter by part, instead of state_bytes and gradient_bytes")
    ] = None
    gradient_wire_bytes: Annotated[Positive, Field(description="bytes of a gradient on the wire, 2 or 4")] = 2.0
    prefetch: Annotated[Prefetch, Field(description="what ZeRO 3's gathers overlap with: a stage or a layer")] = "stage"
    grouped_share: Annotated[
        dict[Name, Share], Field(description="of the rate of other products, by chip, process or any")
    ] = Field(default_factory=dict)
    hidden_exchange: Annotated[Share, Field(description="of the exchanges of experts, behind other work")] = 0.0
    overlaps_shared_experts: Annotated[bool, Field(description="exchanges overlap shared experts")] = False
    deduplicated_exchange: Annotated[bool, Field(description="a token is sent to a node once")] = False
    softmax_matrices: Annotated[Count, Field(description="attention matrices whose multiples its softmax takes")] = 1
    notes: Text | None = None
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, raw: Any) -> Any:
        return cls.renamed(raw)

    @staticmethod
    def renamed(raw: Any) -> Any:
        """Keys by today's names: ``accumulation_bytes`` was all of it, apart from the product."""
        if isinstance(raw, dict) and "accumulation_bytes" in raw and "accumulation_apart" not in raw:
            return {"accumulation_apart" if key == "accumulation_bytes" else key: raw[key] for key in raw}
        return raw

    @model_validator(mode="after")
    def _consistent(self) -> "StackFile":
        if self.optimizer_traffic_bytes and not self.state_bytes:
            raise ValueError("an optimizer that moves bytes must hold state_bytes")
        if not self._families():
            raise ValueError("interleaves = false leaves no family: name another in families")
        return self

    def _families(self) -> list[PipelineFamily]:
        return [name for name in self.families if self.interleaves or name != "interleaved"]

    def value(self) -> Stack:
        """The stack; keys are called as its fields but for two, whose fields name their unit."""
        lists = {"recipes", "recompute_modules", "families", "interleaves"}
        renamed = {"host_time", "reserve", "software_share", "grouped_share", "attention", "state", *lists}
        same = self.model_dump(exclude={"schema_", "base", "notes", "sources", *renamed})
        kernel = self.attention.kernel if isinstance(self.attention, AttentionTable) else None
        fused: Kernel = "eager" if kernel == "eager" else "fused"
        return Stack(
            host_s=self.host_time,
            reserve_bytes=self.reserve,
            software_share=tuple(sorted(self.software_share.items())),
            grouped_share=tuple(sorted(self.grouped_share.items())),
            attention=self.attention if not isinstance(self.attention, AttentionTable) else fused,
            attention_kernel=kernel,
            recipes=tuple(self.recipes),
            recompute_modules=tuple(dict.fromkeys(self.recompute_modules)),
            state=None if self.state is None else StateBytes(**self.state.model_dump()),
            families=tuple(name for name in FAMILIES if name in self._families()),
            **same,
        )


STACK = Format("phaze.stack/1", StackFile, "a training framework's constants")
