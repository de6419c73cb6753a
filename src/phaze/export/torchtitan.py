"""torchtitan's job file: TOML as release 0.2.2 reads it, the last one with TOML files.

Release 0.3.0 has Python configurations; its tables ``training`` and ``parallelism`` keep these keys
and take them on the command line (``--training.seq_len 4096``), its model, recomputing and
optimizer are chosen in Python. torchtitan shards with FSDP, which knows no ZeRO 1 alone, and its
replication stands alone; without FSDP it trains in fp32 beside tensor or pipeline parallelism. FSDP
that keeps weights gathered through the step (``fsdp_reshard_after_forward = "never"``) shares state
and gradients, ZeRO 2; one that gathers them again, ZeRO 3; ``default`` gathers again unless there
is a pipeline. ``tests/export/against_releases.py`` has every kind of job read by the release
itself.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from phaze import __version__
from phaze.documents import parse
from phaze.export.flag import SAME, Condition, Flag, Framework, Line, above_one, when, with_others
from phaze.export.launch import stages_of
from phaze.export.notation import aligned, dotted, not_as_planned, tables_of, toml_value
from phaze.export.source import PlannedSplit
from phaze.export.torchtitan_flavour import FLAVOUR, MODULE, as_comment, flavour_module
from phaze.export.torchtitan_limits import (
    CONVERTERS,
    FLAVOURS,
    LIMITS,
    MIXTURES,
    ROTATED,
    SCHEDULES,
    VERSION,
    kind_of,
)
from phaze.export.values import Values
from phaze.graph.saved.modes import ALTERNATE
from phaze.pipeline.families import FAMILIES, SPLIT_FAMILIES

SCHEDULE_REASONS: Mapping[str, str] = MappingProxyType(
    {name: FAMILIES[name].reason for name in SCHEDULES}
)
RESHARDS = ("default", "always", "never")


def module_names(split: PlannedSplit) -> list[list[str]]:
    """The modules of every stage (with chunks: of every virtual stage, the first of all ranks
    first; folded into a V the second ones of all ranks from the last rank back)."""
    parts: list[list[str]] = []
    block, ranks = 0, list(range(split.pipeline))
    turns = [
        ranks[::-1] if chunk and FAMILIES[split.schedule].v_shaped else ranks
        for chunk in range(split.chunks)
    ]
    order = [rank for turn in turns for rank in turn]
    for number, rank in enumerate(order):
        blocks = split.stages[rank][0] // split.chunks
        names = ["tok_embeddings"] if number == 0 and split.stages[0][1] else []
        names += [f"layers.{block + offset}" for offset in range(blocks)]
        names += ["norm", "output"] if number == len(order) - 1 and split.stages[-1][2] else []
        block += blocks
        parts.append(names)
    return parts


def _in_recipe(recipe: str) -> Condition:
    return lambda split: split.precision == recipe


def _grouped(split: PlannedSplit) -> bool:
    """Whether the grouped products of experts are in low precision too."""
    return split.precision == "mxfp8" and kind_of(split) in MIXTURES


def _converters(split: PlannedSplit) -> list[str]:
    return [
        CONVERTERS[split.precision][0],
        *(["quantize.grouped_mm.mx"] if _grouped(split) else []),
    ]


def _without_flavour(split: PlannedSplit) -> bool:
    return split.model not in FLAVOURS


def _local_batch(split: PlannedSplit) -> int:
    return split.batch // split.data if split.pipeline > 1 else split.microbatch


def _local_batch_reason(split: PlannedSplit) -> str:
    return (
        f"{split.rounds} microbatches of {split.microbatch}"
        if split.pipeline > 1
        else "one microbatch at a time"
    )


TRAINING = (
    Flag("model.name", "model", kind_of, "its model of this kind", default="llama3"),
    Flag("model.flavor", "model", lambda split: FLAVOURS.get(split.model, ("", FLAVOUR))[1],
         lambda split: f"{split.model}'s sizes" + f", which {MODULE}.py adds" * _without_flavour(split),
         default="debugmodel"),
    Flag("model.converters", "precision", _converters, lambda split: CONVERTERS[split.precision][1],
    default=[],
         needed=lambda split: split.precision in CONVERTERS),
    Flag("training.local_batch_size", "microbatch", _local_batch, _local_batch_reason, default=8),
    Flag("training.global_batch_size", "batch", SAME, "sequences in a batch", Values.open_count,
    default=-1),
    Flag("training.mixed_precision_param", "precision", "float32", "as planned", default="bfloat16",
         needed=_in_recipe("fp32")),
    Flag("training.seq_len", "sequence", SAME, "positions of a sequence", default=2048),
    Flag("parallelism.tensor_parallel_degree", "tensor", SAME, (
        "width of a tensor group, "
        "sequence parallel"
    ), default=1),
)  # fmt: skip
REPLICATION = when(
    lambda split: split.zero == 0,
    Flag("parallelism.data_parallel_replicate_degree", "shards", lambda split: split.data,
         "replicas, each with the whole state", default=1),
    Flag("parallelism.data_parallel_shard_degree", "devices", 1, "no sharding", default=-1),
)  # fmt: skip
SHARDING = when(
    lambda split: split.zero > 0,
    Flag("parallelism.data_parallel_replicate_degree", "shards", lambda split: split.shards,
         lambda split: (
             "no replication" if split.shards == 1 else (
                 "groups that shard state, one a "
                 "replica of the others"
             )
         ),
         default=1),
    Flag("parallelism.data_parallel_shard_degree", "devices",
    lambda split: split.data // split.shards,
         "replicas, nearest to ZeRO {split.zero}", default=-1),
    Flag("parallelism.fsdp_reshard_after_forward", "zero",
    lambda split: "never" if split.zero < 3 else "always",
         lambda split: "weights stay gathered through the step" if split.zero < 3 else "as ZeRO 3",
         default="default"),
)  # fmt: skip
SHARED = (
    *when(
        above_one("context"),
        Flag("parallelism.context_parallel_degree", "context", SAME, "ranks that share a sequence",
        default=1),
        Flag("parallelism.context_parallel_rotate_method", "context_way", ROTATED,
        "{split.context_way}",
             default="allgather"),
    ),
    *when(
        above_one("expert"),
        Flag("parallelism.expert_parallel_degree", "expert", SAME, (
            "ranks that experts are "
            "distributed over"
        ),
             default=1),
        Flag("parallelism.expert_tensor_parallel_degree", "expert_tensor", SAME,
        "ranks that share one expert",
             default=1),
        Flag("parallelism.expert_parallel_comm_backend", "stack",
             lambda split: "deepep" if split.deduplicated_exchange else "standard",
             "how tokens are exchanged, as planned"),
    ),
)  # fmt: skip
STAGES = when(
    above_one("pipeline"),
    Flag("parallelism.pipeline_parallel_schedule", "family", SCHEDULES, SCHEDULE_REASONS,
    default="1F1B"),
    Flag("parallelism.pipeline_parallel_microbatch_size", "microbatch", SAME,
         "{split.rounds} microbatches of a replica", default=1),
    Flag("parallelism.module_fqns_per_model_part", "blocks", module_names,
         lambda split: (
             "the stages of a replica" if split.chunks == 1 else (
                 "its virtual stages, the first of "
                 "every rank first"
             )
         )),
)  # fmt: skip
REST = (
    Flag("activation_checkpoint.mode", "recompute",
         {"none": "none", "selective": "selective", "full": "full", ALTERNATE: "selective"},
         "what is recomputed in the backward pass", with_others, default="selective"),
    Flag("activation_checkpoint.selective_ac_option", "recompute",
    {"selective": "op", ALTERNATE: "2"},
         {"selective": "every second product is kept, the rest runs again",
          ALTERNATE: "every second block runs its forward pass again"}, with_others, default="2"),
    Flag("optimizer.name", "optimizer", "AdamW", "as planned",
         lambda values, name: {"Adam": "adam", "AdamW": "adam"}.get(values.word(name),
         values.word(name).lower()),
         default="AdamW"),
    Flag("experimental.custom_import", "", MODULE, "adds the flavor", needed=_without_flavour),
    Flag("quantize.linear.mx.recipe_name", "", "mxfp8_cublas", "products by cuBLAS",
    needed=_in_recipe("mxfp8")),
    *(
        Flag(f"{table}.filter_fqns", "", ["output"], "logits stay in 16 bits",
        needed=_in_recipe(recipe))
        for recipe, (table, _) in CONVERTERS.items()
    ),
    Flag("quantize.linear.float8.enable_fsdp_float8_all_gather", "",
    lambda split: split.low_precision_weights,
         "weights are gathered in 8 bits as planned", needed=_in_recipe("fp8-tensorwise")),
    Flag("quantize.grouped_mm.mx.fqns", "", ["experts"], (
        "grouped products of the "
        "experts too"
    ), needed=_grouped),
)  # fmt: skip
PIPELINE = Flag(
    "parallelism.pipeline_parallel_degree", "pipeline", SAME, "stages of a replica", default=1
)
FLAGS = (*TRAINING, *REPLICATION, *SHARDING, *SHARED, PIPELINE, *STAGES, *REST)
READ = tables_of({flag.name for flag in FLAGS if flag.field})


def _stages(values: Values, pipeline: int) -> dict[str, Any]:
    """The family, the chunks, and the blocks of every stage where the job states its modules."""
    if pipeline == 1:
        return {"chunks": 1}
    schedule = values.word("parallelism.pipeline_parallel_schedule")
    family = next(family for family, name in SCHEDULES.items() if name == schedule)
    stages: dict[str, Any] = {"family": None if FAMILIES[family].implied else family}
    name = "parallelism.module_fqns_per_model_part"
    parts = values.listed(name)
    if parts is None:
        return {**stages, "chunks": FAMILIES[family].chunks}
    if not all(isinstance(part, list) for part in parts):
        raise values.fault(
            name, "a part is not a list of modules", 'write [["tok_embeddings", "layers.0"], ...]'
        )
    counts = [sum(str(module).startswith("layers.") for module in part) for part in parts]
    if (
        FAMILIES[family].v_shaped and len(counts) == 2 * pipeline
    ):  # the second chunks lie from the last rank back
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
        raise values.fault(
            "activation_checkpoint.selective_ac_option", seen, 'phaze prices "op" and "2"'
        )
    return mode


def _precision(values: Values) -> str:
    converters = values.listed("model.converters") or []
    recipes = [recipe for recipe, (converter, _) in CONVERTERS.items() if converter in converters]
    if recipes:
        return recipes[0]
    return "fp32" if values.value("training.mixed_precision_param") == "float32" else "bf16"


def _together(values: Values) -> dict[str, Any]:
    """What several keys state together."""
    tensor, pipeline, context, replicate = (
        values.required(f"parallelism.{axis}_degree")
        for axis in (
            "tensor_parallel",
            "pipeline_parallel",
            "context_parallel",
            "data_parallel_replicate",
        )
    )
    rest, shard = (
        tensor * pipeline * context * replicate,
        values.open_count("parallelism.data_parallel_shard_degree"),
    )
    if shard == 0:
        if values.devices is None or values.devices % rest:
            seen = "the sharding degree is left to the number of processes"
            raise values.fault(
                "parallelism.data_parallel_shard_degree", seen, "add --devices, a multiple"
            )
        shard = values.devices // rest
    reshard = values.choice("parallelism.fsdp_reshard_after_forward", "policy", RESHARDS)
    gathers_again = reshard == "always" or (reshard == "default" and pipeline == 1)
    shards_state = shard * context > 1
    local = values.required("training.local_batch_size")
    stages = _stages(values, pipeline)
    names = {theirs: ours for ours, theirs in FLAVOURS.items()}
    name = names.get((values.word("model.name"), values.word("model.flavor")))
    return {
        **stages,
        **({} if pipeline > 1 else {"microbatch": local}),
        "sequence_parallel": tensor > 1,
        "recompute": _recompute(values),
        "zero": 0 if not shards_state else 3 if gathers_again else 2,
        "shards": replicate if shards_state else 1,
        "batch": values.open_count("training.global_batch_size") or local * shard * replicate,
        "devices": rest * shard,
        "model": {} if name is None else {"model": name},
        "precision": _precision(values),
        "attention": "fused",
        # Blocks whose backward pass is split are not compiled.
        "stack": "torchtitan-eager" if stages.get("family") in SPLIT_FAMILIES else "torchtitan",
    }


def _write(split: PlannedSplit, lines: Sequence[Line], deviations: Sequence[str]) -> str:
    text = (
        f"# {split.model} on {split.processes} x {split.chip}: a job for {VERSION}, by "
        f"phaze {__version__}.\n"
        f"# Start {split.processes} processes: torchrun ... -m torchtitan.train "
        "--job.config_file THIS_FILE.\n"
        "# Release 0.3.0 reads no TOML: give [training] and [parallelism] as --table.key "
        "value; the rest in Python.\n" + not_as_planned(deviations)
    )
    if split.model not in FLAVOURS:
        text += as_comment(split)
    for table, group in groupby(lines, lambda line: line.name.rpartition(".")[0]):
        rows = [
            (f"{line.name.rpartition('.')[2]} = {toml_value(line.value)}", line.reason)
            for line in group
        ]
        short = [row for row in rows if "\n" not in row[0]]
        long = [f"# {reason}\n{row}\n" for row, reason in rows if "\n" in row]
        text += f"\n[{table}]\n{aligned(short)}\n" + "".join(long)
    return text


def _parse(text: str, where: str) -> dict[str, Any]:
    raw = parse(text, "toml", where)
    tables = READ | {name for name, value in raw.items() if isinstance(value, Mapping)}
    return dotted(raw, tables, where, "[{}]")


DEVIATIONS: tuple[tuple[Condition, str], ...] = (
    (lambda split: split.attention == "eager",
     "attention is fused: the scores that the plan keeps never leave the chip"),
    (lambda split: split.zero in (1, 2),
     "FSDP shards weights outside the step too, so memory is below the plan"),
    (lambda split: split.order == "pipeline" and split.pipeline > 1 and split.data > 1,
     "the replicas of a stage are adjacent, in the plan the stages of a replica are"),
    (lambda split: FAMILIES[split.schedule].v_shaped and split.pipeline > 1,
     "what follows the blocks lies on the first rank, where the V ends, in the plan on the last"),
)  # fmt: skip
FRAMEWORK = Framework(
    key="torchtitan",
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
    deviations=DEVIATIONS,
    together=_together,
    module=lambda split: (
        None if split.model in FLAVOURS else (f"{MODULE}.py", flavour_module(split))
    ),
)
