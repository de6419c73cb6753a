"""Models by their sizes, as tables of ``phaze.run/1``."""

from typing import Annotated

from pydantic import Field

from phaze.documents import Document, Length

Size = Annotated[int, Field(gt=0, le=2**31)]


class GptTable(Document):
    """A Megatron-style decoder by its sizes."""

    hidden: Size
    layers: Size
    heads: Size
    vocabulary: Size
    sequence: Length


class DecoderTable(Document):
    """A decoder with RMS norm and rotary positions by its sizes."""

    hidden: Size
    layers: Size
    heads: Size
    kv_heads: Size | None = None
    head_dim: Size | None = None
    mlp: Size
    vocabulary: Size
    sequence: Length
    tied: bool = False


class LlamaTable(DecoderTable):
    """One with a gated MLP, or without the gate one of a squared ReLU."""

    gated: bool = True


class MoeTable(DecoderTable):
    """A decoder with ``experts`` of which a token has ``active``; the first ``dense_layers`` have
    the ``mlp`` instead, and ``shared_mlp`` is the width of an expert that all tokens have (0:
    none)."""

    mlp: Size | None = None  # type: ignore[assignment]
    experts: Size
    active: Size
    expert_mlp: Size
    shared_mlp: Annotated[int, Field(ge=0, le=2**31)] = 0
    dense_layers: Annotated[int, Field(ge=0, le=2**31)] = 0
