"""torchtitan's job file: TOML as release 0.2.2 reads it, the last one with TOML files.

Release 0.3.0 has Python configurations; its tables ``training`` and ``parallelism`` keep these keys and take them on
the command line (``--training.seq_len 4096``), its model, recomputing and optimizer are chosen in Python. torchtitan
shards with FSDP, which knows no ZeRO 1 alone, and its replication stands alone; without FSDP it trains in fp32 beside
tensor or pipeline parallelism. FSDP that keeps weights gathered through the step (``fsdp_reshard_after_forward =
"never"``) shares state and gradients, ZeRO 2; one that gathers them again, ZeRO 3; ``default`` gathers again unless
there is a pipeline. ``tests/export/against_releases.py`` has every kind of job read by the release itself.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from phaze import __version__
from phaze.documents import parse
from phaze.export.flag import Condition, Flag, Framework, Line, above_one, only, our_word
from phaze.export.launch import stages_of
from phaze.export.notation import aligned, dotted, not_as_planned, tables_of, toml_value
from phaze.export.source import Split
from phaze.export.torchtitan_flavour import FLAVOUR, MODULE, as_comment, flavour_module
from phaze.export.torchtitan_limits import (
    CONVERTERS,
    FLAVOURS,
    FOLDED,
    LIMITS,
    MIXTURES,
    RECOMPUTED,
    ROTATED,
    SCHEDULES,
    VERSION,
    kind_of,
)
from phaze.export.values import Values
from phaze.graph.saved.modes import ALTERNATE
from phaze.hardware.stack import SPLIT_FAMILIES

RESHARDS = ("default", "always", "never")


def module_names(split: Split) -> list[list[str]]:
    """The modules of every stage (with chunks: of every virtual stage, the first of all ranks first; folded into a V
    the second ones of all ranks from the last rank back)."""
    parts: list[list[str]] = []
    block, ranks = 0, list(range(split.pipeline))
    turns = [ranks[::-1] if chunk and split.schedule in FOLDED else ranks for chunk in range(split.chunks)]
    order = [rank for turn in turns for rank in turn]
    for number, rank in enumerate(order):
        blocks = split.stages[rank][0] // split.chunks
        names = ["tok_embeddings"] if number == 0 and split.stages[0][1] else []
        names += [f"layers.{block + offset}" for offset in range(blocks)]
        names += ["norm", "output"] if number == len(order) - 1 and split.stages[-1][2] else []
        block += blocks
        parts.append(names)
    return parts


def _pipelined(split: Split) -> bool:
    return split.pipeline > 1


def _in_recipe(recipe: str) -> Condition:
    return lambda split: split.precision == recipe


def _grouped(split: Split) -> bool:
    """Whether the grouped products of experts are in low precision too."""
    return split.precision == "mxfp8" and kind_of(split) in MIXTURES


def _converters(split: Split) -> list[str] | None:
    if split.precision not in CONVERTERS:
        return None
    return [CONVERTERS[split.precision][0], *(["quantize.grouped_mm.mx"] if _grouped(split) else [])]


def _flavour_reason(split: Split) -> str:
    return f"{split.model}'s sizes" + ("" if split.model in FLAVOURS else f", which {MODULE}.py adds")


def _local_batch_reason(split: Split) -> str:
    return f"{split.rounds} microbatches of {split.microbatch}" if _pipelined(split) else "one microbatch at a time"


def _replicate_reason(split: Split) -> str:
    if split.zero == 0:
        return "replicas, each with the whole state"
    return "no replication" if split.shards == 1 else "groups that shard state, one a replica of the others"


MODEL = (
    Flag("model.name", "model", kind_of, "its model of this kind", default="llama3"),
    Flag("model.flavor", "model", lambda split: FLAVOURS.get(split.model, ("", FLAVOUR))[1], _flavour_reason,
         default="debugmodel"),
    Flag("model.converters", "precision", _converters, lambda split: CONVERTERS[split.precision][1], default=[]),
)  # fmt: skip
TRAINING = (
    Flag("training.local_batch_size", "microbatch",
         lambda split: split.batch // split.data if _pipelined(split) else split.microbatch, _local_batch_reason,
         default=8),
    Flag("training.global_batch_size", "batch", "batch", "sequences in a batch", default=-1),
    Flag("training.mixed_precision_param", "precision", only("float32", lambda split: split.precision == "fp32"),
         "as planned", default="bfloat16"),
    Flag("training.seq_len", "sequence", "sequence", "positions of a sequence", Values.count, default=2048),
)  # fmt: skip
PARALLELISM = (
    Flag("parallelism.tensor_parallel_degree", "tensor", "tensor", "width of a tensor group, sequence parallel",
         Values.count, default=1),
    Flag("parallelism.data_parallel_replicate_degree", "shards",
         lambda split: split.data if split.zero == 0 else split.shards, _replicate_reason, default=1),
    Flag("parallelism.data_parallel_shard_degree", "devices",
         lambda split: 1 if split.zero == 0 else split.data // split.shards,
         lambda split: "no sharding" if split.zero == 0 else f"replicas, nearest to ZeRO {split.zero}", default=-1),
    Flag("parallelism.fsdp_reshard_after_forward", "zero",
         lambda split: None if split.zero == 0 else "never" if split.zero < 3 else "always",
         lambda split: "weights stay gathered through the step" if split.zero < 3 else "as ZeRO 3",
         default="default"),
    Flag("parallelism.context_parallel_degree", "context", above_one("context"), "ranks that share a sequence",
         Values.degree, default=1),
    Flag("parallelism.context_parallel_rotate_method", "context_way",
         lambda split: ROTATED[split.context_way] if split.context > 1 else None, "{split.context_way}",
         default="allgather"),
    Flag("parallelism.expert_parallel_degree", "expert", above_one("expert"),
         "ranks that experts are distributed over", Values.degree, default=1),
    Flag("parallelism.expert_tensor_parallel_degree", "expert_tensor",
         lambda split: split.expert_tensor if split.expert > 1 else None, "ranks that share one expert", default=1),
    Flag("parallelism.expert_parallel_comm_backend", "stack",
         lambda split: (None if split.expert == 1 else "deepep" if split.deduplicated_exchange else "standard"),
         "how tokens are exchanged, as planned"),
    Flag("parallelism.pipeline_parallel_degree", "pipeline", "pipeline", "stages of a replica", Values.count,
         default=1),
    Flag("parallelism.pipeline_parallel_schedule", "family",
         lambda split: SCHEDULES[split.schedule][0] if _pipelined(split) else None,
         lambda split: SCHEDULES[split.schedule][1], default="1F1B"),
    Flag("parallelism.pipeline_parallel_microbatch_size", "microbatch",
         lambda split: split.microbatch if _pipelined(split) else None, "{split.rounds} microbatches of a replica",
         default=1),
    Flag("parallelism.module_fqns_per_model_part", "blocks",
         lambda split: module_names(split) if _pipelined(split) else None,
         lambda split: (
             "the stages of a replica" if split.chunks == 1 else "its virtual stages, the first of every rank first"
         )),
)  # fmt: skip
REST = (
    Flag("activation_checkpoint.mode", "recompute", lambda split: RECOMPUTED[split.recompute[0]],
         "what is recomputed in the backward pass", default="selective"),
    Flag("activation_checkpoint.selective_ac_option", "recompute",
         lambda split: {"selective": "op", ALTERNATE: "2"}.get(split.recompute[0]),
         lambda split: (
             "every second block runs its forward pass again" if split.recompute[0] == ALTERNATE
             else "every second product is kept, the rest runs again"
         ), default="2"),
    Flag("optimizer.name", "optimizer", lambda split: "AdamW", "as planned",
         lambda values, name: {"Adam": "adam", "AdamW": "adam"}.get(values.word(name), values.word(name).lower()),
         default="AdamW"),
    Flag("experimental.custom_import", "", only(MODULE, lambda split: split.model not in FLAVOURS),
         "adds the flavor"),
    Flag("quantize.linear.mx.recipe_name", "", only("mxfp8_cublas", _in_recipe("mxfp8")),
         "products by cuBLAS"),
    *(
        Flag(f"{table}.filter_fqns", "", only(["output"], _in_recipe(recipe)),
             "logits stay in 16 bits")
        for recipe, (table, _) in CONVERTERS.items()
    ),
    Flag("quantize.linear.float8.enable_fsdp_float8_all_gather", "",
         lambda split: split.low_precision_weights if split.precision == "fp8-tensorwise" else None,
         "weights are gathered in 8 bits as planned"),
    Flag("quantize.grouped_mm.mx.fqns", "", only(["experts"], _grouped), "grouped products of the experts too"),
)  # fmt: skip
FLAGS = (*MODEL, *TRAINING, *PARALLELISM, *REST)
READ = tables_of({flag.name for flag in FLAGS if flag.field})


def _stages(values: Values, pipeline: int) -> dict[str, Any]:
    """The family, the chunks, and the blocks of every stage where the job states its modules."""
    if pipeline == 1:
        return {"chunks": 1}
    families = {theirs: family for family, (theirs, _) in SCHEDULES.items()}
    schedule = "parallelism.pipeline_parallel_schedule"
    family = families[values.choice(schedule, "priced schedule", tuple(families))]
    stages: dict[str, Any] = {} if family in ("1f1b", "interleaved") else {"family": family}
    name = "parallelism.module_fqns_per_model_part"
    parts = values.listed(name)
    if parts is None:
        return {**stages, "chunks": 1 if family in ("1f1b", "gpipe") else 2}
    if not all(isinstance(part, list) for part in parts):
        raise values.fault(name, "a part is not a list of modules", 'write [["tok_embeddings", "layers.0"], ...]')
    counts = [sum(str(module).startswith("layers.") for module in part) for part in parts]
    if family in FOLDED and len(counts) == 2 * pipeline:  # the second chunks lie from the last rank back
        counts = [*counts[:pipeline], *counts[pipeline:][::-1]]
    blocks, chunks = stages_of(counts, pipeline, f"{values.where}: {name}")
    return {**stages, "blocks": blocks, "chunks": chunks}


def _recompute(values: Values) -> str:
    mode = values.choice("activation_checkpoint.mode", "mode", ("none", "selective", "full"))
    option = values.word("activation_checkpoint.selective_ac_option")
    if mode == "selective" and option == "2":
        return ALTERNATE
    if mode == "selective" and option != "op":
        seen = f"blocks in turn of {option} are not priced"
        raise values.fault("activation_checkpoint.selective_ac_option", seen, 'phaze prices "op" and "2"')
    return mode


def _context_way(values: Values) -> str:
    return our_word(ROTATED, "way")(values, "parallelism.context_parallel_rotate_method")


def _precision(values: Values) -> str:
    converters = values.listed("model.converters") or []
    recipes = [recipe for recipe, (converter, _) in CONVERTERS.items() if converter in converters]
    if recipes:
        return recipes[0]
    return "fp32" if values.value("training.mixed_precision_param") == "float32" else "bf16"


def _together(values: Values) -> dict[str, Any]:
    """What several keys state together."""
    tensor, pipeline, context, replicate, expert = (
        values.number(f"parallelism.{axis}_degree")
        for axis in (
            "tensor_parallel", "pipeline_parallel", "context_parallel", "data_parallel_replicate", "expert_parallel",
        )
    )  # fmt: skip
    rest, shard = tensor * pipeline * context * replicate, values.open_count("parallelism.data_parallel_shard_degree")
    if shard == 0:
        if values.devices is None or values.devices % rest:
            seen = "the sharding degree is left to the number of processes"
            raise values.fault("parallelism.data_parallel_shard_degree", seen, "add --devices, a multiple")
        shard = values.devices // rest
    reshard = values.choice("parallelism.fsdp_reshard_after_forward", "policy", RESHARDS)
    gathers_again = reshard == "always" or (reshard == "default" and pipeline == 1)
    shards_state = shard * context > 1
    local = values.number("training.local_batch_size")
    stages = _stages(values, pipeline)
    names = {theirs: ours for ours, theirs in FLAVOURS.items()}
    name = names.get((values.word("model.name"), values.word("model.flavor")))
    microbatch = values.number("parallelism.pipeline_parallel_microbatch_size") if pipeline > 1 else local
    return {
        **stages,
        "microbatch": microbatch,
        "sequence_parallel": tensor > 1,
        "recompute": _recompute(values),
        "zero": 0 if not shards_state else 3 if gathers_again else 2,
        "shards": replicate if shards_state else 1,
        "context_way": our_word(ROTATED, "way")(values, "parallelism.context_parallel_rotate_method")
        if context > 1
        else None,
        "expert_tensor": values.number("parallelism.expert_tensor_parallel_degree") if expert > 1 else None,
        "batch": values.open_count("training.global_batch_size") or local * shard * replicate,
        "devices": rest * shard,
        "model": {} if name is None else {"model": name},
        "precision": _precision(values),
        "attention": "fused",
        # Blocks whose backward pass is split are not compiled.
        "stack": "torchtitan-eager" if stages.get("family") in SPLIT_FAMILIES else "torchtitan",
    }


def _write(split: Split, lines: Sequence[Line], deviations: Sequence[str]) -> str:
    text = (
        f"# {split.model} on {split.processes} x {split.chip}: a job for {VERSION}, by phaze {__version__}.\n"
        f"# Start {split.processes} processes: torchrun ... -m torchtitan.train --job.config_file THIS_FILE.\n"
        "# Release 0.3.0 reads no TOML: give [training] and [parallelism] as --table.key value; the rest in Python.\n"
        + not_as_planned(deviations)
    )
    if split.model not in FLAVOURS:
        text += as_comment(split)
    for table, group in groupby(lines, lambda line: line.name.rpartition(".")[0]):
        rows = [(f"{line.name.rpartition('.')[2]} = {toml_value(line.value)}", line.reason) for line in group]
        short = [row for row in rows if "\n" not in row[0]]
        long = [f"# {reason}\n{row}\n" for row, reason in rows if "\n" in row]
        text += f"\n[{table}]\n{aligned(short)}\n" + "".join(long)
    return text


def _parse(text: str, where: str) -> dict[str, Any]:
    raw = parse(text, "toml", where)
    tables = READ | {name for name, value in raw.items() if isinstance(value, Mapping)}
    return dotted(raw, tables, where, "[{}]")


FRAMEWORK = Framework(
    key="torchtitan",
    name="torchtitan",
    version=VERSION,
    file="torchtitan.toml",
    described="a torchtitan TOML",
    stacks=("torchtitan",),
    flags=FLAGS,
    limits=LIMITS,
    form=toml_value,
    write=_write,
    parse=_parse,
    recognises=lambda path, text, where: path.endswith(".toml"),
    deviations=(
        (
            lambda split: split.attention == "eager",
            "attention is fused: the scores that the plan keeps never leave the chip",
        ),
        (
            lambda split: split.zero in (1, 2),
            "FSDP shards weights outside the step too, so memory is below the plan",
        ),
        (
            lambda split: split.order == "pipeline" and split.pipeline > 1 and split.data > 1,
            "the replicas of a stage are adjacent, in the plan the stages of a replica are",
        ),
        (
            lambda split: split.schedule in FOLDED and split.pipeline > 1,
            "what follows the blocks lies on the first rank, where the V ends, in the plan on the last",
        ),
    ),
    together=_together,
    module=lambda split: None if split.model in FLAVOURS else (f"{MODULE}.py", flavour_module(split)),
)
