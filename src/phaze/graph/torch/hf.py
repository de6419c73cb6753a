"""Models of the transformers library, from a configuration, as sources of a trace."""

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers import initialization
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.megatron_bert.modeling_megatron_bert import MegatronBertSelfAttention
from transformers.pytorch_utils import Conv1D

from phaze.errors import InputError
from phaze.graph.experts import BALANCED
from phaze.graph.family import MOST_LAYERS
from phaze.graph.torch.attention import MASK
from phaze.graph.torch.fake import building, forget_values
from phaze.graph.torch.hf_inputs import model_inputs
from phaze.graph.torch.hf_plans import plan_of
from phaze.graph.torch.plans import ShardingPlan
from phaze.graph.torch.program import Source, TensorShape, TracedProgram

# The sequence where nothing names one: what most are trained with first; and that of models without
# positions (T5).
USUAL_SEQUENCE, NO_POSITIONS = 4096, 512
POSITIONS = (
    "max_position_embeddings",
    "max_target_positions",
    "n_positions",
    "max_seq_len",
    "seq_length",
)
# How keys end that say which tokens stand for an image, a film or sound.
PLACES = (
    "image_token_id",
    "image_token_index",
    "video_token_id",
    "audio_token_id",
    "audio_token_index",
)
# Keys of configurations of state-space models, linear attention and gated recurrences.
SCANS = ("state_size", "ssm_state_size", "mamba_d_state", "linear_conv_kernel_dim", "lru_width")
# Kinds of rotary scaling whose factor stretches the positions that a configuration names, unless
# they say from what.
STRETCHED = ("linear", "dynamic", "yarn")


def _as_linear(whole: Conv1D) -> nn.Linear:
    """GPT-2's transposed linear map as an ordinary one; the product is the same."""
    rows, columns = whole.weight.shape
    linear = nn.Linear(rows, columns)
    linear.weight = nn.Parameter(whole.weight.t().contiguous())
    linear.bias = whole.bias
    return linear


def plain_linears(model: nn.Module) -> None:
    """Replace every Conv1D of GPT-2 in ``model``."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, Conv1D):
                setattr(module, name, _as_linear(child))


def fuse_megatron_bert(model: nn.Module) -> None:
    """Megatron's BERT is the one model here whose code has no switch to fused attention."""

    def fused(module: Any) -> Any:
        def forward(
            hidden_states: torch.Tensor, attention_mask: torch.Tensor | None = None, **unused: Any
        ) -> Any:
            shape = (*hidden_states.shape[:-1], -1, module.attention_head_size)
            maps = module.query, module.key, module.value
            q, k, v = (each(hidden_states).view(shape).transpose(1, 2) for each in maps)
            context = functional.scaled_dot_product_attention(
                q, k, v, attention_mask, module.dropout.p
            )
            return context.transpose(1, 2).flatten(2), None

        return forward

    for module in model.modules():
        if isinstance(module, MegatronBertSelfAttention):
            module.__dict__["forward"] = fused(module)


def fuse_capped(model: nn.Module) -> None:
    """Models that cap their scores refuse PyTorch's function, which cannot; the fused kernels of
    accelerators can."""
    for module in model.modules():
        config = getattr(module, "config", None)
        if config is not None and hasattr(config, "_attn_implementation_internal"):
            config._attn_implementation_internal = "sdpa"


def no_cache(model: nn.Module) -> None:
    """Training keeps no cache of keys and values; sub-configurations have their own switch."""
    for module in model.modules():
        config = getattr(module, "config", None)
        if config is not None and hasattr(config, "use_cache"):
            config.use_cache = False


def _class_of(config: Any, where: str) -> type[nn.Module]:
    names = getattr(config, "architectures", None) or []
    if not names:
        raise InputError(
            where, "the key 'architectures' is missing", 'give for example ["LlamaForCausalLM"]'
        )
    if not isinstance(names, list) or not isinstance(names[0], str):
        problem = f"{str(names)[:40]!r} is not a list of names"
        raise InputError(
            f"{where}: architectures", problem, 'give for example ["LlamaForCausalLM"]'
        )
    model_class = getattr(transformers, names[0], None)
    if not isinstance(model_class, type) or not issubclass(
        model_class, transformers.PreTrainedModel
    ):
        raise InputError(f"{where}: architectures", f"transformers has no model {names[0]}")
    return model_class


@contextmanager
def _quiet() -> Iterator[None]:
    """The library's advice is for those who run its models."""
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)


@contextmanager
def _masks_told() -> Iterator[None]:
    """While it lasts, queries carry what the library knows of their mask: whether it is causal, and
    its window."""
    attention = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def masked(module: Any, query: torch.Tensor, *args: Any, **named: Any) -> Any:
        is_causal = named.get("is_causal")
        causal = (
            bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
            and query.shape[2] > 1
        )
        setattr(query, MASK, (causal, int(named.get("sliding_window") or 0)))
        # Fused kernels cap scores on the way; PyTorch's own function is the one that cannot.
        named.pop("softcap", None)
        return attention(module, query, *args, **named)

    ALL_ATTENTION_FUNCTIONS["sdpa"] = masked
    try:
        yield
    finally:
        ALL_ATTENTION_FUNCTIONS["sdpa"] = attention


def _build(config: Any, kind: type[nn.Module], shape: TensorShape) -> TracedProgram:
    config = copy.deepcopy(config)
    fused = shape.fused and getattr(kind, "_supports_sdpa", False)
    config._attn_implementation = "sdpa" if fused else "eager"
    with initialization.no_init_weights(), _quiet(), building():
        model: Any = kind(config)
    forget_values(model)
    model.tie_weights()
    if getattr(model, "loss_type", "") is None:
        model.loss_type = "ForCausalLM"
    plain_linears(model)
    no_cache(model)
    if shape.fused and (getattr(config, "attn_logit_softcapping", None) or has_sinks(config)):
        fuse_capped(model)
    if shape.fused:
        fuse_megatron_bert(model)
    inputs = model_inputs(model, config, shape)

    def step() -> Any:
        with _quiet(), _masks_told():
            result = model(**inputs)
        loss = getattr(result, "loss", None)
        return result if loss is None else loss

    return TracedProgram(model, inputs, step)


NO_SINKS = "a fused attention leaves out the learned sink of every head, one more term of each sum"


def has_sinks(config: Any) -> bool:
    """Whether heads have a learned logit that no key has: fused kernels add it to the sum of their
    softmax."""
    return bool(config.model_type == "gpt_oss")


def _positions(config: Any) -> tuple[int, int | None, bool]:
    """Usual sequence, longest sequence, and whether it is the model's own."""
    pixels = getattr(config, "image_size", None)
    if isinstance(pixels, int) and isinstance(getattr(config, "patch_size", None), int):
        patches = (pixels // config.patch_size) ** 2 + 1
        return patches, patches, True
    longest = next(
        (n for name in POSITIONS if isinstance(n := getattr(config, name, None), int) and n > 0),
        None,
    )
    if longest is None:
        return NO_POSITIONS, None, False
    return min(USUAL_SEQUENCE, longest), max(longest, _stretched(config, longest)), False


def _is_rotary(config: Any) -> bool:
    """Whether positions are rotated, by rates that do not depend on the length of what comes in."""
    scaling = getattr(config, "rope_parameters", None)
    return isinstance(scaling, Mapping) and scaling.get("rope_type", "default") not in (
        "dynamic",
        "longrope",
    )


def _stretched(config: Any, positions: int) -> int:
    """The positions of rotary embeddings whose scaling ``positions`` does not count yet."""
    scaling = getattr(config, "rope_parameters", None)
    if not isinstance(scaling, Mapping) or scaling.get("rope_type") not in STRETCHED:
        return 0
    factor, original = (
        scaling.get("factor"),
        scaling.get("original_max_position_embeddings", positions),
    )
    if (
        not isinstance(factor, int | float)
        or not isinstance(original, int)
        or not 1 <= factor <= 1024
    ):
        return 0
    return int(original * factor)


def _require_no_scan(config: Any, name: str) -> None:
    """Refuse a model with a recurrent scan: accelerators run it as one kernel, and the library's
    plain code, which would be traced, is another: token by token, or by products that no kernel
    makes."""
    scans = [key for key in SCANS if isinstance(getattr(config, key, None), int)]
    if scans:
        raise InputError(
            name,
            f"{config.model_type} has a recurrent scan ({scans[0]}), which is not one operator yet",
            "give a model of attention and products, such as llama",
        )


def _require_one_input(config: Any, name: str) -> None:
    """Refuse a model whose text has places for images or sound: how many, and which, is in the
    data."""
    places = sorted(
        key
        for key in dir(config)
        if key.endswith(PLACES) and isinstance(getattr(config, key, None), int)
    )
    if places:
        part = (
            "text_config" if getattr(config, "text_config", None) is not None else "its text model"
        )
        raise InputError(
            name,
            (
                f"{config.model_type} is multimodal ({places[0]}: what is no text takes "
                "places in it), which is not traced"
            ),
            (
                f"plan its text model alone: a config.json of {part}, with its own "
                "model_type and architectures"
            ),
        )


def hf_source(name: str, config: Any, sequence: int | None = None) -> Source:
    """A source from a transformers configuration object, whose ``architectures`` names the
    class."""
    kind = _class_of(config, name)
    _require_no_scan(config, name)
    _require_one_input(config, name)
    usual, longest, fixed = _positions(config)
    vocabulary = 0 if fixed else int(getattr(config, "vocab_size", 0) or 0)
    notes = (
        (BALANCED,)
        if getattr(config, "num_local_experts", 0) or getattr(config, "num_experts", 0)
        else ()
    )
    notes = (*notes, NO_SINKS) if has_sinks(config) else notes
    plan, fault = _plan(config, name)
    return Source(
        name=name,
        build=lambda shape: _build(config, kind, shape),
        sequence=usual if fixed or sequence is None else min(sequence, longest or sequence),
        longest=longest,
        fixed=fixed,
        plan=plan,
        vocabulary=vocabulary,
        token_modules=_embedding_and_head,
        notes=notes,
        plan_fault=fault,
        rotary=not fixed and _is_rotary(config),
    )


def _embedding_and_head(model: Any) -> list[nn.Module | None]:
    """Where the library says that tokens come in and go out; a model without either is left
    whole."""
    modules: list[nn.Module | None] = []
    for ask in (model.get_input_embeddings, model.get_output_embeddings):
        try:
            modules.append(ask())
        except (AttributeError, NotImplementedError):
            modules.append(None)
    return modules


def _plan(config: Any, name: str) -> tuple[ShardingPlan | None, InputError | None]:
    """The plan, or what is wrong with it: that matters only to a width above 1."""
    try:
        return plan_of(config, name), None
    except InputError as fault:
        return None, fault


def hf_config(raw: Mapping[str, Any], where: str) -> Any:
    """A configuration object from the contents of a ``config.json``."""
    kind = raw.get("model_type")
    if not isinstance(kind, str):
        raise InputError(where, "the key 'model_type' is missing", 'give for example "llama"')
    rest = {key: value for key, value in raw.items() if key != "model_type"}
    for key, value in rest.items():
        if "layer" in key and isinstance(value, int) and value > MOST_LAYERS:
            raise InputError(
                f"{where}: {key}", f"{value} is more than {MOST_LAYERS:,}", "give fewer"
            )
    try:
        with _quiet():
            return transformers.AutoConfig.for_model(kind, **rest)
    except Exception as fault:
        reason = " ".join(str(fault).split())[:300]
        raise InputError(
            f"{where}: model_type '{kind}'", f"transformers refuses the configuration: {reason}"
        ) from None
