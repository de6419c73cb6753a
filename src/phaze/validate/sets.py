"""The bundled measured runs, by where they were published."""

from dataclasses import dataclass
from importlib.resources import files

from phaze.errors import unknown_name
from phaze.validate.rows import MeasuredRun, read_rows


@dataclass(frozen=True, slots=True)
class RunSet:
    """Runs of one publication on one kind of machine."""

    name: str
    title: str


SETS: tuple[RunSet, ...] = (
    RunSet("sc21", "Megatron-LM, SC 2021, Tables 1 and 2: A100, Selene"),
    RunSet("korthikanti", "Korthikanti et al. 2022, Table 5: A100, Selene"),
    RunSet("vtrain-multi", "vTrain, 64 to 512 A100"),
    RunSet("vtrain-single", "vTrain, 2 to 8 A100 of one node"),
    RunSet("mosaic-mpt", "MosaicML llm-foundry, MPT 125M to 70B, fully sharded: 8 to 128 A100"),
    RunSet("mt-nlg", "MT-NLG 530B: 2240 A100, Selene"),
    RunSet("megatron-core-h100", "Megatron-Core, 48 to 6144 H100"),
    RunSet("megatron-b200", "Megatron-Core, 12 blocks of Llama-3 70B: 8 B200"),
    RunSet("nemo-h100", "NeMo on Megatron-Core 24.11 to 25.04, dense, bf16: 128 to 2048 H100"),
    RunSet("nemo-h100-fp8", "NeMo 24.07, GPT-3 and Llama 2, FP8: 8 to 512 H100"),
    RunSet("nanotron-h100", "nanotron, 8 to 128 H100"),
    RunSet("torchtitan", "torchtitan, 8 to 256 H100 capped at 500 W"),
    RunSet("maxtext-v5e", "MaxText, 256 to 8192 TPU v5e"),
    RunSet("maxtext-v5p", "MaxText, 64 to 1024 TPU v5p"),
    RunSet("maxtext-v5e-32b", "MaxText, 32B: 256 to 8192 TPU v5e"),
    RunSet("nemo-dense-h100", "NeMo 24.11 to 25.04, Llama 3, context 2, bf16: 8 to 2048 H100"),
    RunSet(
        "nemo-dense-h100-fp8",
        "NeMo 24.07 to 25.04, GPT-3 and Llama 3, context 1 and 2, FP8: 8 to 2048 H100",
    ),
    RunSet(
        "nemo-long-h100-fp8",
        "NeMo 24.03, Llama 2 7B, sequences of 4,096 to 1,048,576, FP8: 4 to 1024 H100",
    ),
    RunSet(
        "grok-h100",
        "NeMo 24.11 to 25.05 and Megatron-Core, Grok-1 and Mixtral, bf16: 8 to 2048 H100",
    ),
    RunSet("grok-h100-fp8", "NeMo 24.11 to 25.05, Grok-1, FP8: 8 to 2048 H100"),
    RunSet(
        "bridge-h100-fp8",
        "Megatron-Bridge 25.09 to 26.04 and Megatron-LM, Llama 3, FP8: 8 to 64 H100",
    ),
    RunSet(
        "bridge-experts-h100-fp8", "Megatron-Bridge 25.09 to 26.06, Qwen3 30B-A3B, FP8: 16 H100"
    ),
    RunSet(
        "finetune-h100",
        "NeMo and Megatron-Bridge, fine-tuning of all weights, bf16 and FP8: 8 to 32 H100",
    ),
    RunSet("maxtext-h100", "MaxText and PaxML on XLA, bf16: 16 to 2048 H100"),
    RunSet("maxtext-h100-fp8", "MaxText and PaxML on XLA, FP8: 16 to 2048 H100"),
    RunSet(
        "mpt-h100",
        "MosaicML llm-foundry, MPT, sequences of 512 to 65,536, bf16 and FP8: 8 to 512 H100",
    ),
    RunSet("torchtitan-h100", "torchtitan, tensor 8, bf16: 64 and 256 H100 capped at 500 W"),
    RunSet(
        "torchtitan-h100-fp8", "torchtitan, float8, context 1 to 8: 8 to 256 H100 capped at 500 W"
    ),
    RunSet(
        "torchtitan-rowwise-h100-fp8",
        "torchtitan, float8 with a scale for each row: 64 and 256 H100 capped at 500 W",
    ),
    RunSet("mpt-long-a100", "MosaicML llm-foundry, MPT, sequences of 8,192 and 32,768: 8 A100"),
    RunSet(
        "mlperf-llama-8b",
        "MLPerf Training v5.1, Llama 3.1 8B: NVFP4 and FP8 on 8 to 64 B200, FP8 on 8 MI355X",
    ),
    RunSet(
        "bridge-experts-gb200",
        "Megatron-Bridge 25.11 to 26.04, Qwen3 30B-A3B and DeepSeek-V3, MXFP8: 8 and 256 GB200",
    ),
    RunSet("automodel-h100", "NeMo AutoModel on PyTorch FSDP2, bf16: 8 and 64 H100"),
)


def set_named(name: str) -> RunSet:
    """The set of that name, or an InputError with the nearest one."""
    for run_set in SETS:
        if run_set.name == name:
            return run_set
    raise unknown_name("--set", "set", name, [run_set.name for run_set in SETS])


def rows_of(run_set: RunSet) -> tuple[MeasuredRun, ...]:
    """Its rows."""
    file = files("phaze.validate") / "data" / f"{run_set.name}.csv"
    return read_rows(file.read_text(encoding="utf-8"), f"{run_set.name}.csv")
