"""Every kind of DeepSpeed configuration, read by the release itself: its reader, its checks, its
batch arithmetic.

    pip download --no-deps --no-binary :all: deepspeed==0.19.8 && tar xzf deepspeed-0.19.8.tar.gz
    pip install torch hjson py-cpuinfo ninja psutil
    PYTHONPATH=deepspeed-0.19.8 python -m tests.export.against_deepspeed              1 if one is refused
    PYTHONPATH=deepspeed-0.19.8 python -m tests.export.against_deepspeed --record     and write tests/export/recorded

No GPU is needed: nothing is started. The tests of every day read with what was recorded.
"""

import importlib
import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

from phaze.export.source import PlannedSplit
from tests.export.launching import written
from tests.export.splits import DEEPSPEED

RECORDED = Path(__file__).parent / "recorded" / "deepspeed-0.19.8.json"


def objection(split: PlannedSplit) -> str:
    """What the release says against a configuration; nothing where it takes it."""
    config = importlib.import_module("deepspeed.runtime.config")
    ranks = SimpleNamespace(get_data_parallel_world_size=lambda: split.data)
    # Its reader asks the process group for the ranks that share a batch.
    config.dist = SimpleNamespace(  # type: ignore[attr-defined]
        get_rank=lambda: 0, get_world_size=lambda *_: split.data, is_initialized=lambda: False
    )
    try:
        read = config.DeepSpeedConfig(json.loads(written("deepspeed", split)), mpu=ranks)
    except Exception as fault:  # whatever a release raises is an objection
        return f"{type(fault).__name__}: {fault}"
    said = (
        read.train_batch_size,
        read.train_micro_batch_size_per_gpu,
        read.gradient_accumulation_steps,
    )
    wanted = (split.batch, split.microbatch, split.rounds)
    if said != wanted or read.zero_config.stage != split.zero:
        return f"read as {said} at ZeRO {read.zero_config.stage}"
    return ""


def main() -> int:
    """Read all, say what was refused."""
    logging.disable()
    refused = 0
    for name, split in DEEPSPEED.items():
        said = objection(split)
        sys.stdout.write(f"{name:<24} {said or 'accepted'}\n")
        refused += bool(said)
    if "--record" in sys.argv:
        zero = importlib.import_module("deepspeed.runtime.zero.config").DeepSpeedZeroConfig
        tensor = importlib.import_module(
            "deepspeed.runtime.tensor_parallel.config"
        ).TPTrainingConfig
        keys = {
            "zero_optimization": sorted(zero.model_fields),
            "tensor_parallel": sorted(tensor.model_fields),
        }
        RECORDED.write_text(json.dumps(keys, indent=1) + "\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
