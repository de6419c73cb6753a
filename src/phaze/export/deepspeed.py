"""DeepSpeed's configuration: JSON as release 0.19.8 reads it, for ``deepspeed --deepspeed_config
FILE``.

DeepSpeed shards state (ZeRO), splits tensors of Hugging Face models by their own plans
(AutoTP), and sequences by exchanging heads (Ulysses); pipelines and experts are written in the
model's code, recomputing too. A reader of the file keeps what it does not know, so the reason of
every key stands in it, under ``reasons``, and under ``reasons.planned`` what the code must do. Of a
file without it, it is taken for granted that nothing is recomputed and attention is fused.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from phaze import __version__
from phaze.documents import dumps, parse
from phaze.export.flag import SAME, Condition, Flag, Framework, Limit, Line, above_one
from phaze.export.limits import COMMON, modes
from phaze.export.notation import dotted, tables_of
from phaze.export.source import PlannedSplit
from phaze.export.values import Values

VERSION = "DeepSpeed 0.19.8"
PLANNED = "reasons.planned"
USUAL: Mapping[str, str] = MappingProxyType(
    {"recompute": "none", "attention": "fused", "optimizer": "adam"}
)
ASSUMED = ("nothing is recomputed", "attention is fused", "the optimizer is adam")


def _degree(values: Values, name: str) -> int:
    """A degree, which 0 turns off."""
    return values.whole(name) or 1


FLAGS = (
    Flag("train_batch_size", "batch", SAME, "sequences of a batch", Values.required),
    Flag("train_micro_batch_size_per_gpu", "microbatch", SAME, "sequences of a microbatch",
    Values.required),
    Flag("gradient_accumulation_steps", "devices", lambda split: split.rounds,
         "microbatches of one of {split.data} replicas", default=1),
    Flag("bf16.enabled", "precision", lambda split: split.precision == "bf16", "as planned",
         lambda values, name: "bf16" if values.value(name) is True else "fp32"),
    Flag("zero_optimization.stage", "zero", SAME, (
        "optimizer state, then gradients, then "
        "weights are sharded"
    ),
         Values.whole, default=0),
    Flag("zero_optimization.overlap_comm", "stack", lambda split: split.hides_synchronisation,
         "whether the plan overlaps synchronisation"),
    Flag("tensor_parallel.autotp_size", "tensor", SAME, "width of a tensor group", _degree,
         needed=above_one("tensor")),
    Flag("sequence_parallel_size", "context", SAME, (
        "ranks that share a sequence by "
        "exchanging heads"
    ), _degree,
         needed=above_one("context")),
    Flag(PLANNED, "recompute"),
)  # fmt: skip
NAMES = frozenset(flag.name for flag in FLAGS)


IN_CODE = "{version} has it in the model's code, not in a file; plan without"
LIMITS = (
    *COMMON,
    Limit(lambda split: split.pipeline > 1, "a pipeline", IN_CODE),
    Limit(lambda split: split.expert > 1, "experts distributed over ranks", IN_CODE),
    Limit(lambda split: split.context > 1 and split.context_way != "ulysses",
          "a sequence shared over {split.context} ranks ({split.context_way})",
          "{version} exchanges heads; plan with --context-way ulysses"),
    Limit(lambda split: split.tensor > 1 and split.zero > 2,
          "ZeRO {split.zero} with tensor parallelism",
          "{version} splits tensors with ZeRO 0 to 2; plan with --zero 2"),
    Limit(lambda split: split.shards > 1,
          "state sharded over {split.shard} ranks, in groups that are replicas",
          "{version} shards it over all; plan without --shard"),
    Limit(lambda split: split.precision not in ("bf16", "fp32"),
          "products in {split.precision}",
          "{version} has bf16 and fp32; plan with one"),
    Limit(lambda split: not {*split.recompute} <= {"none", "full"},
          lambda split: f"recompute {modes(split)}",
          "the model's code recomputes whole blocks: phaze plan --recompute full"),
)  # fmt: skip


def _together(values: Values) -> dict[str, Any]:
    """What several keys state together, or the code that ``reasons`` describes."""
    batch, microbatch = (
        values.required(name) for name in ("train_batch_size", "train_micro_batch_size_per_gpu")
    )
    rounds = values.required("gradient_accumulation_steps")
    if batch % (microbatch * rounds):
        seen = f"{batch} sequences are not a multiple of {rounds} x {microbatch}"
        raise values.fault("train_batch_size", seen, "give microbatches of whole replicas")
    tensor, context = (
        _degree(values, name) for name in ("tensor_parallel.autotp_size", "sequence_parallel_size")
    )
    planned = values.value(PLANNED) or {}
    if not isinstance(planned, Mapping):
        raise values.fault(PLANNED, "it is not a table", 'write "planned": {...}')
    return {
        **{field: str(planned.get(field, usual)) for field, usual in USUAL.items()},
        "context_way": "ulysses",
        "pipeline": 1,
        "chunks": 1,
        "sequence_parallel": False,
        "devices": batch // (microbatch * rounds) * tensor * context,
        "assumed": () if planned else ASSUMED,
    }


def _write(split: PlannedSplit, lines: Sequence[Line], deviations: Sequence[str]) -> str:
    document: dict[str, Any] = {}
    for line in lines:
        table, _, key = line.name.rpartition(".")
        target = document.setdefault(table, {}) if table else document
        target[key] = line.value
    notes = [
        f"phaze {__version__}: {split.model} on {split.processes} {split.chip}",
        f"read by {VERSION}",
    ]
    reasons = {
        **{line.name: line.reason for line in lines},
        "planned": {
            "recompute": split.recompute[0],
            "attention": split.attention,
            "optimizer": split.optimizer,
        },
        "notes": [*notes, *deviations],
    }
    return dumps({**document, "reasons": reasons}, pretty=True) + "\n"


def _parse(text: str, where: str) -> dict[str, Any]:
    """Keys by name; of its tables those that a flag names."""
    values = dotted(parse(text, "json", where), tables_of(NAMES), where, '"{}": {{...}}')
    return {name: value for name, value in values.items() if name in NAMES or "." not in name}


def _recognises(path: str, text: str, where: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    return not {"zero_optimization", "train_micro_batch_size_per_gpu"}.isdisjoint(
        parse(text, "json", where)
    )


DEVIATIONS: tuple[tuple[Condition, str], ...] = (
    (lambda split: "full" in split.recompute,
     "recompute every block: model.gradient_checkpointing_enable() in Hugging Face's classes"),
    (lambda split: split.tensor > 1 and split.sequence_parallel,
     (
         "AutoTP has no sequence parallelism: activations between its splits are held whole "
         "on every rank"
     )),
    (lambda split: split.attention == "fused",
     'fused attention: attn_implementation="flash_attention_2" or "sdpa" of the model'),
)  # fmt: skip
FRAMEWORK = Framework(
    key="deepspeed",
    version=VERSION,
    file="deepspeed.json",
    described="a DeepSpeed JSON",
    stacks=("megatron-deepspeed",),
    flags=FLAGS,
    limits=LIMITS,
    form=dumps,
    write=_write,
    parse=_parse,
    recognises=_recognises,
    deviations=DEVIATIONS,
    together=_together,
)
