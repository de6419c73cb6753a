"""Where a model comes from: a name, a family by its sizes, a ``config.json``, or a function of the
user.

``path.py:function`` and ``package.module:function`` are imported and called, so their code runs.
The function takes no arguments and returns ``(module, inputs)`` or ``(module, inputs, loss)``:
``inputs`` is a tensor, a tuple or a dict of arguments, ``loss`` a function of the module's result.
It is called without memory for tensors. A fourth element, a dict ``{"blocks.*.up": "colwise",
...}`` in the notation of transformers, is a tensor-parallel plan.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

from phaze import documents
from phaze.errors import InputError, unknown_name
from phaze.files import read_text
from phaze.graph.experts import BALANCED
from phaze.graph.torch.families import Gpt, GptModel, Llama, LlamaModel, Moe
from phaze.graph.torch.named import NAMED
from phaze.graph.torch.plans import PLANS
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.user import user_source


def _tokens(shape: TensorShape) -> tuple[torch.Tensor, torch.Tensor]:
    size = shape.sequence, shape.microbatch
    return torch.zeros(size, dtype=torch.long), torch.zeros(size, dtype=torch.long)


def _family_program(make: Callable[[TensorShape], nn.Module], shape: TensorShape) -> TracedProgram:
    module, inputs = make(shape), _tokens(shape)
    return TracedProgram(module, inputs, lambda: module(*inputs))


def _embedding_and_head(module: nn.Module) -> tuple[nn.Module, nn.Module]:
    return module.get_submodule("embedding"), module.get_submodule("head")


def _check_heads(where: str, sizes: Gpt | Llama) -> None:
    for name in (field.name for field in fields(sizes)):
        value = getattr(sizes, name)
        if name not in ("dropout", "tied", "shared_mlp", "gated") and (
            not isinstance(value, int) or value < 1
        ):
            raise InputError(f"{where}: {name}", f"{value!r} is not a positive whole number")
    if isinstance(sizes, Gpt) and sizes.hidden % sizes.heads:
        raise InputError(
            f"{where}: heads", f"hidden {sizes.hidden} does not divide by {sizes.heads} heads"
        )
    if isinstance(sizes, Llama) and sizes.heads % sizes.kv_heads:
        raise InputError(
            f"{where}: kv_heads", f"{sizes.heads} heads do not divide by {sizes.kv_heads} kv_heads"
        )
    if isinstance(sizes, Llama) and sizes.head_dim % 2:
        raise InputError(
            f"{where}: head_dim", f"{sizes.head_dim} is odd and rotary positions rotate pairs"
        )


def gpt_source(sizes: Gpt, name: str = "gpt") -> Source:
    """A Megatron-style decoder by its sizes."""
    _check_heads(name, sizes)
    return Source(
        name=name,
        build=lambda shape: _family_program(lambda s: GptModel(sizes, s.fused), shape),
        sequence=sizes.sequence,
        longest=sizes.sequence,
        fixed=False,
        plan=PLANS["gpt"],
        vocabulary=sizes.vocabulary,
        token_modules=_embedding_and_head,
    )


def llama_source(sizes: Llama, name: str = "llama") -> Source:
    """A Llama-style decoder by its sizes."""
    _check_heads(name, sizes)
    return Source(
        name=name,
        build=lambda shape: _family_program(lambda s: LlamaModel(sizes, s.fused), shape),
        sequence=sizes.sequence,
        longest=sizes.sequence,
        fixed=False,
        plan=PLANS["llama-family" if sizes.gated else "llama-ungated"],
        vocabulary=sizes.vocabulary,
        token_modules=_embedding_and_head,
        rotary=True,
    )


def moe_source(sizes: Moe, name: str = "moe") -> Source:
    """A decoder whose blocks have experts, by its sizes."""
    plan = PLANS["moe-family-shared" if sizes.shared_mlp else "moe-family"]
    return replace(
        llama_source(sizes, name),
        plan=plan,
        notes=(BALANCED,),
    )


def named_source(name: str, **changes: Any) -> Source:
    """A named model; ``changes`` replace sizes of its configuration."""
    if name not in NAMED:
        raise unknown_name("", "model", name, NAMED)
    row = NAMED[name]
    if row.kind == "gpt":
        return gpt_source(Gpt(**{**row.sizes, **changes}), name)
    if not row.architecture:
        return replace(llama_source(Llama(**{**row.sizes, **changes}), name), sequence=row.sequence)
    from phaze.graph.torch.hf import (
        hf_config,
        hf_source,
    )  # transformers takes seconds, and own code needs none of it

    raw = {"model_type": row.kind, "architectures": [row.architecture], **row.sizes, **changes}
    return hf_source(name, hf_config(raw, name), row.sequence)


def config_source(path: str) -> Source:
    """A transformers ``config.json`` on disk; nothing else is read and nothing is downloaded."""
    from phaze.graph.torch.hf import hf_config, hf_source

    text, where = read_text(path)
    raw: Mapping[str, Any] = documents.parse(text, "json", where)
    return hf_source(where, hf_config(raw, where))


def source_of(model: str) -> Source:
    """A source from what a user wrote: a name, a path to a ``config.json``, or
    ``file.py:function``."""
    if model in NAMED:
        return named_source(model)
    if ":" in model:
        return user_source(model)
    if model.endswith(".json"):
        return config_source(model)
    raise unknown_name("", "model", model, NAMED)
