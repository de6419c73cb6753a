"""A plan as torchtitan's job file: TOML as release 0.2.2 reads it, the last one with TOML files.

Release 0.3.0 has Python configurations; its tables ``training`` and ``parallelism`` keep these keys and take them on
the command line (``--training.seq_len 4096``), its model, recomputing and optimizer are chosen in Python. torchtitan
shards with FSDP, which knows no ZeRO 1 alone, and its replication stands alone; without FSDP it trains in fp32 beside
tensor or pipeline parallelism. What it cannot express is refused with the reason; what only runs otherwise than planned
is said in the file.
``tests/export/against_releases.py`` has every kind of job read by the release itself.
"""

from phaze import __version__
from phaze.errors import InputError
from phaze.export.flags import Choice, aligned
from phaze.export.source import Split, priced_elsewhere
from phaze.export.torchtitan_flavour import FLAVOUR, MODULE, as_comment
from phaze.export.torchtitan_limits import (
    CONVERTERS,
    FLAVOURS,
    FOLDED,
    MIXTURES,
    ROTATED,
    SCHEDULES,
    VERSION,
    WHY,
    kind_of,
    require_there,
)
from phaze.graph.saved.modes import ALTERNATE, OFFLOAD


def differences(split: Split) -> list[str]:
    """What torchtitan will do otherwise than planned, though it can run the plan."""
    found = priced_elsewhere(split, "torchtitan", "torchtitan", ("torchtitan",))
    if split.attention == "eager":
        found.append("attention is fused: the scores that the plan keeps never leave the chip")
    if split.zero in (1, 2):
        found.append("FSDP shards weights outside the step too, so memory is below the plan")
    if split.order == "pipeline" and split.pipeline > 1 and split.data > 1:
        found.append("the replicas of a stage are adjacent, in the plan the stages of a replica are")
    if split.schedule in FOLDED and split.pipeline > 1:
        found.append("what follows the blocks lies on the first rank, where the V ends, in the plan on the last")
    return found


def module_names(split: Split) -> list[list[str]]:
    """The modules of every stage (with chunks: of every virtual stage, the first of all ranks first; folded into a V
    the second ones of all ranks from the last rank back)."""
    parts: list[list[str]] = []
    block, ranks = 0, list(range(split.pipeline))
    turns = [ranks[::-1] if chunk and split.schedule in FOLDED else ranks for chunk in range(split.chunks)]
    order = [rank for own in turns for rank in own]
    for rank in order:
        own = split.stages[rank][0] // split.chunks
        first, last = not parts, len(parts) == len(order) - 1
        names = ["tok_embeddings"] if first and split.stages[0][1] else []
        names += [f"layers.{block + at}" for at in range(own)]
        names += ["norm", "output"] if last and split.stages[-1][2] else []
        block += own
        parts.append(names)
    return parts


def _quoted(parts: list[list[str]]) -> str:
    rows = ",\n".join("    [" + ", ".join(f'"{name}"' for name in part) + "]" for part in parts)
    return f"[\n{rows},\n]"


def _quantized(split: Split) -> dict[str, list[Choice]]:
    """The tables of low precision; none in 16 bits."""
    if split.precision not in CONVERTERS:
        return {}
    converter, table, why = CONVERTERS[split.precision]
    rows = [Choice("filter_fqns", '["output"]', "logits stay in 16 bits")]
    if table == "float8":
        sent = str(split.low_precision_weights).lower()
        rows.append(Choice("enable_fsdp_float8_all_gather", sent, "weights are gathered in 8 bits as planned"))
    else:
        rows.insert(0, Choice("recipe_name", '"mxfp8_cublas"', "products by cuBLAS"))
    found = {f"quantize.linear.{table}": rows}
    names = [converter]
    if table == "mx" and kind_of(split) in MIXTURES:
        names.append("quantize.grouped_mm.mx")
        found["quantize.grouped_mm.mx"] = [Choice("fqns", '["experts"]', "grouped products of the experts too")]
    listed = ", ".join(f'"{name}"' for name in names)
    return {**found, "": [Choice("converters", f"[{listed}]", why)]}


def _training(split: Split) -> list[Choice]:
    local = split.batch // split.data if split.pipeline > 1 else split.microbatch
    why = f"{split.rounds} microbatches of {split.microbatch}" if split.pipeline > 1 else "one microbatch at a time"
    found = [
        Choice("local_batch_size", str(local), why),
        Choice("global_batch_size", str(split.batch), "sequences in a batch"),
    ]
    if split.precision == "fp32":
        found.append(Choice("mixed_precision_param", '"float32"', "as planned"))
    if split.sequence is not None:
        found.append(Choice("seq_len", str(split.sequence), "positions of a sequence"))
    return found


def _replication(split: Split) -> str:
    return "no replication" if split.shards == 1 else "groups that shard state, one a replica of the others"


def _parallelism(split: Split) -> list[Choice]:
    found = [Choice("tensor_parallel_degree", str(split.tensor), "width of a tensor group, sequence parallel")]
    if split.zero == 0:
        found += [
            Choice("data_parallel_replicate_degree", str(split.data), "replicas, each with the whole state"),
            Choice("data_parallel_shard_degree", "1", "no sharding"),
        ]
    else:
        kept = "never" if split.zero < 3 else "always"
        why = "weights stay gathered through the step"
        found += [
            Choice("data_parallel_replicate_degree", str(split.shards), _replication(split)),
            Choice(
                "data_parallel_shard_degree",
                str(split.data // split.shards),
                f"replicas, nearest to ZeRO {split.zero}",
            ),
            Choice("fsdp_reshard_after_forward", f'"{kept}"', why if split.zero < 3 else "as ZeRO 3"),
        ]
    if split.context > 1:
        found += [
            Choice("context_parallel_degree", str(split.context), "ranks that share a sequence"),
            Choice("context_parallel_rotate_method", f'"{ROTATED[split.context_way]}"', f"{split.context_way}"),
        ]
    if split.expert > 1:
        backend = "deepep" if split.deduplicated_exchange else "standard"
        found += [
            Choice("expert_parallel_degree", str(split.expert), "ranks that experts are distributed over"),
            Choice("expert_tensor_parallel_degree", str(split.expert_tensor), "ranks that share one expert"),
            Choice("expert_parallel_comm_backend", f'"{backend}"', "how tokens are exchanged, as planned"),
        ]
    found.append(Choice("pipeline_parallel_degree", str(split.pipeline), "stages of a replica"))
    if split.pipeline > 1:
        kind, why = SCHEDULES[split.schedule], WHY.get(split.schedule, "one forward and one backward in turn")
        found += [
            Choice("pipeline_parallel_schedule", f'"{kind}"', why),
            Choice(
                "pipeline_parallel_microbatch_size",
                str(split.microbatch),
                f"{split.rounds} microbatches of a replica",
            ),
            Choice(
                "module_fqns_per_model_part",
                _quoted(module_names(split)),
                "the stages of a replica" if split.chunks == 1 else "its virtual stages, the first of every rank first",
            ),
        ]
    return found


def _recompute(model: str, mode: str) -> list[Choice]:
    if OFFLOAD in mode:
        raise InputError(model, "activations are offloaded", f"{VERSION} keeps them on the device")
    if mode not in ("none", "selective", "full", ALTERNATE):
        raise InputError(model, f"{mode} is recomputed", f"{VERSION} recomputes operators or whole blocks")
    kind = "selective" if mode == ALTERNATE else mode
    found = [Choice("mode", f'"{kind}"', "what is recomputed in the backward pass")]
    if mode == "selective":
        found.append(Choice("selective_ac_option", '"op"', "every second product is kept, the rest runs again"))
    if mode == ALTERNATE:
        found.append(Choice("selective_ac_option", '"2"', "every second block runs its forward pass again"))
    return found


def tables(split: Split) -> dict[str, list[Choice]]:
    """Every table of the job file, or an InputError that says why there is none."""
    require_there(split)
    flavour = FLAVOURS.get(split.model)
    model = [Choice("name", f'"{kind_of(split)}"', "its model of this kind")]
    if flavour:
        model.append(Choice("flavor", f'"{flavour[1]}"', f"{split.model}'s sizes"))
    else:
        model.append(Choice("flavor", f'"{FLAVOUR}"', f"{split.model}'s sizes, which {MODULE}.py adds"))
    again = _recompute(split.model, split.recompute[0])
    name = {"adam": "AdamW"}.get(split.optimizer)
    if name is None:
        raise InputError(split.model, f"{VERSION} has no optimizer {split.optimizer}", "plan with adam")
    quantized = _quantized(split)
    model += quantized.pop("", [])
    return {
        "model": model,
        "training": _training(split),
        "parallelism": _parallelism(split),
        "activation_checkpoint": again,
        "optimizer": [Choice("name", f'"{name}"', "as planned")],
        **({} if flavour else {"experimental": [Choice("custom_import", f'"{MODULE}"', "adds the flavor")]}),
        **quantized,
    }


def torchtitan(split: Split) -> str:
    """The job file."""
    used, found = split.processes, tables(split)
    text = (
        f"# {split.model} on {used} x {split.chip}: a job for {VERSION}, by phaze {__version__}.\n"
        f"# Start {used} processes: torchrun ... -m torchtitan.train --job.config_file THIS_FILE.\n"
        "# Release 0.3.0 reads no TOML: give [training] and [parallelism] as --table.key value; the rest in Python.\n"
    )
    text += "".join(f"# Not as planned: {one}.\n" for one in differences(split))
    if split.model not in FLAVOURS:
        text += as_comment(split)
    for name, rows in found.items():
        lines = [(f"{row.name} = {row.value}", row.why) for row in rows]
        short = [line for line in lines if "\n" not in line[0]]
        long = [line for line in lines if "\n" in line[0]]
        text += f"\n[{name}]\n{aligned(short)}\n" + "".join(f"# {why}\n{line}\n" for line, why in long)
    return text
