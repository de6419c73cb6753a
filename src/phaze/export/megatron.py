"""Launch flags of a plan for Megatron-LM, as its documentation of Megatron Core 0.19 has them.

A pipeline is told as a layout, ``--pipeline-model-parallel-layout``: E what lies before the blocks, t a block, L what
lies after them, ``|`` between stages; with chunks, the stages of the first chunk of all ranks come first.
What Megatron-LM cannot express is refused: see :func:`phaze.export.source.require_launchable` and below.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phaze import __version__
from phaze.errors import InputError
from phaze.export.flags import Choice, aligned
from phaze.export.source import Split, require_launchable

VERSION = "Megatron-LM with Megatron Core 0.19"
SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "gpt": "pretrain_gpt.py",
        "llama": "pretrain_gpt.py",
        "gpt2-xl": "pretrain_gpt.py",
        "gpt3-175b": "pretrain_gpt.py",
        "megatron-gpt2-54": "pretrain_gpt.py",
        "megatron-gpt2-72": "pretrain_gpt.py",
        "llama2-7b": "pretrain_gpt.py",
        "llama3-8b": "pretrain_gpt.py",
        "llama3-70b": "pretrain_gpt.py",
        "bert-large": "pretrain_bert.py",
        "megatron-bert-large": "pretrain_bert.py",
    }
)
# What a named llama's sizes are beyond those that phaze models lists, by its published configuration.
LLAMAS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "llama": {},
        "llama2-7b": {"mlp": 11008, "kv_heads": 32},
        "llama3-8b": {"mlp": 14336, "kv_heads": 8},
        "llama3-70b": {"mlp": 28672, "kv_heads": 8},
    }
)
NOT_THERE: Mapping[str, str] = MappingProxyType(
    {
        "t5-large": "its pipeline layouts know no encoders",
        "vit-large": "its pipeline layouts are for language models",
        "mixtral-8x7b": "a plan does not say how experts are spread over devices",
        "opt-350m": "it has no blocks with the norm behind and projections around them",
    }
)


def layout(split: Split) -> str:
    """The pipeline as a layout string; chunk c of rank r is the stage c * ranks + r of the string."""
    if split.chunks == 1:
        return "|".join(_stage(blocks, before, after) for blocks, before, after in split.stages)
    pieces: list[list[str]] = []
    for number, (blocks, _, _) in enumerate(split.stages):
        if blocks % split.chunks:
            raise InputError(
                split.model,
                f"stage {number} has {blocks} blocks in {split.chunks} chunks",
                "plan with chunks that divide the blocks of a stage",
            )
        pieces.append([_stage(blocks // split.chunks, False, False)] * split.chunks)
    flat = [pieces[rank][chunk] for chunk in range(split.chunks) for rank in range(split.pipeline)]
    flat[0], flat[-1] = "E" + flat[0], flat[-1] + "L"
    return "|".join(flat)


def _stage(blocks: int, before: bool, after: bool) -> str:
    own = "" if blocks == 0 else "t" if blocks == 1 else f"t*{blocks}"
    return f"{'E' if before else ''}{own}{'L' if after else ''}"


def _even(split: Split) -> bool:
    """Whether Megatron-LM cuts the pipeline so without being told."""
    first, last = split.stages[0], split.stages[-1]
    return len({blocks for blocks, _, _ in split.stages}) == 1 and first[1] and last[2] and split.chunks == 1


def _pipeline(split: Split) -> list[Choice]:
    if split.pipeline == 1:
        return [Choice("--pipeline-model-parallel-size", "1", "no pipeline")]
    found = [Choice("--pipeline-model-parallel-size", str(split.pipeline), "stages of a copy")]
    if _even(split):
        return found
    if SCRIPTS.get(split.model) == "pretrain_bert.py":
        raise InputError(
            split.model, "its stages are uneven", "Megatron-LM's layouts are for decoders; plan with even stages"
        )
    why = "uneven stages: E before the blocks, t a block, L after them"
    if split.chunks > 1:
        why = f"{split.chunks} virtual stages a rank, the first of every rank first"
    return [*found, Choice("--pipeline-model-parallel-layout", f'"{layout(split)}"', why)]


def _recompute(mode: str) -> list[Choice]:
    if mode == "full":
        return [
            Choice("--recompute-granularity", "full", "every block runs its forward pass again"),
            Choice("--recompute-method", "uniform", "block by block"),
            Choice("--recompute-num-layers", "1", "only the input of each block is kept"),
        ]
    if mode == "selective":
        return [
            Choice("--recompute-granularity", "selective", "only what is cheap to compute again"),
            Choice("--recompute-modules", "core_attn", "scores, softmax and dropout of attention"),
        ]
    return []


def _state(split: Split) -> list[Choice]:
    found = []
    if split.precision in ("bf16", "fp16"):
        why = f"weights and activations in {split.precision}, state in fp32"
        found.append(Choice(f"--{split.precision}", None, why))
    found.append(Choice("--optimizer", split.optimizer, "as planned"))
    if split.zero == 1:
        found.append(Choice("--use-distributed-optimizer", None, "ZeRO 1: each copy keeps its share of the state"))
    if split.zero > 1:
        kind = "optim_grads" if split.zero == 2 else "optim_grads_params"
        found += [
            Choice("--use-megatron-fsdp", None, f"ZeRO {split.zero}"),
            Choice("--data-parallel-sharding-strategy", kind, "what the copies share out"),
        ]
    if split.hides_synchronisation and split.data > 1:
        found.append(Choice("--overlap-grad-reduce", None, "the plan counts on hidden synchronisation"))
    return found


def _model(split: Split) -> list[Choice]:
    sizes = {**split.sizes, **LLAMAS.get(split.model, {})}
    named = (("--num-layers", "layers"), ("--hidden-size", "hidden"), ("--num-attention-heads", "heads"))
    found = [Choice(flag, str(sizes[key]), "of the model") for flag, key in named if key in sizes]
    if "mlp" in sizes:
        found.append(Choice("--ffn-hidden-size", str(sizes["mlp"]), "of the model"))
    if sizes.get("kv_heads", sizes.get("heads")) != sizes.get("heads"):
        found.append(Choice("--group-query-attention", None, "of the model"))
        found.append(Choice("--num-query-groups", str(sizes["kv_heads"]), "of the model"))
    if split.model in LLAMAS:
        found += [
            Choice("--swiglu", None, "gated MLP"),
            Choice("--normalization", "RMSNorm", "of the model"),
            Choice("--position-embedding-type", "rope", "rotary positions"),
            Choice("--disable-bias-linear", None, "of the model"),
        ]
        if not sizes.get("tied", 0):
            found.append(Choice("--untie-embeddings-and-output-weights", None, "of the model"))
    if split.sequence is not None:
        found.append(Choice("--seq-length", str(split.sequence), "positions of a sequence"))
        found.append(Choice("--max-position-embeddings", str(split.sequence), "positions of a sequence"))
    return found


def choices(split: Split) -> list[Choice]:
    """Every flag of the plan, or an InputError that says why there is none."""
    if split.model in NOT_THERE:
        raise InputError(split.model, "Megatron-LM cannot run this plan", NOT_THERE[split.model])
    require_launchable(split, "Megatron-LM")
    found = [*_model(split), Choice("--tensor-model-parallel-size", str(split.tensor), "width of a tensor group")]
    if split.sequence_parallel:
        found.append(Choice("--sequence-parallel", None, "norms and dropout split over the tensor group too"))
    found += _pipeline(split)
    if split.order == "pipeline" and split.pipeline > 1 and split.data > 1:
        found.append(Choice("--use-tp-pp-dp-mapping", None, "stages of a copy side by side, copies further apart"))
    found += [
        Choice("--micro-batch-size", str(split.microbatch), "sequences that pass the pipeline together"),
        Choice("--global-batch-size", str(split.batch), f"{split.rounds} microbatches in each of {split.data} copies"),
        *_recompute(split.recompute[0]),
        *_state(split),
    ]
    if split.attention == "fused":
        found.append(Choice("--attention-backend", "flash", "scores never leave the chip"))
    return found


def megatron(split: Split) -> str:
    """A shell file that sets MEGATRON_FLAGS."""
    lines = [(f"  {c.name}{'' if c.value is None else ' ' + c.value}", c.why) for c in choices(split)]
    used = split.tensor * split.pipeline * split.data
    script = SCRIPTS.get(split.model, "your pretraining script")
    return (
        f"# {split.model} on {used} x {split.chip}: flags for {VERSION}, by phaze {__version__}.\n"
        f"# The data-parallel degree, {split.data}, follows from the {used} processes that are started.\n"
        f"MEGATRON_FLAGS=(\n{aligned(lines)}\n)\n"
        f"# Then, with data, tokenizer and learning rate of your own and torchrun's own options for {used} processes:\n"
        f'#   torchrun ... {script} "${{MEGATRON_FLAGS[@]}}" ...\n'
    )
