"""Plans of every kind that MaxText's configuration can tell: for the tests, and for the release's
own checks."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.export.source import PlannedSplit
from tests.export.splits import ALONE, EVEN, ONE, experts, split

TPU: dict[str, Any] = {"chip": "tpu-v5p", "attention": "fused"}
SIZES = {
    "layers": 16, "hidden": 4096, "heads": 32, "kv_heads": 4, "head_dim": 128, "mlp": 11008,
    "vocabulary": 50000,
    "tied": 1, "gated": 1,
}  # fmt: skip
WHOLE: dict[str, Any] = {"tensor": 1, "devices": (1,), "sequence_parallel": False, "zero": 3}
MAXTEXT: Mapping[str, PlannedSplit] = MappingProxyType(
    {
        "replicas": split(**ALONE, zero=0),
        "one device": split(**ALONE, data=1, batch=4, zero=0),
        "ZeRO 1": split(**ALONE),
        "ZeRO 1, two nodes": split(**ALONE, node=8, data=16),
        "ZeRO 3": split(**ALONE, zero=3),
        "ZeRO 3 on a pod": split(**ALONE | TPU, zero=3, node=4096),
        "ZeRO 3 on nodes": split(**ALONE, zero=3, data=64, batch=1024, node=8),
        "tensor": split(**ONE, sequence_parallel=False),
        "tensor, sequence parallel": split(**ONE, zero=3),
        "tensor over two nodes": split(**ONE | {"tensor": 16, "devices": (16,)}, node=8),
        "hybrid sharding": split(**ALONE, zero=3, data=16, shard=4, node=8),
        "recompute": split(**ALONE | {"recompute": ("full",)}, zero=3),
        "fused attention": split(**ALONE, attention="fused"),
        "fp32": split(**ALONE, precision="fp32"),
        "fp8": split(**ALONE, precision="fp8-delayed", batch=16),
        "fp8 on TPUs": split(**ALONE | TPU, precision="fp8-delayed", batch=16),
        "fp8, scale of now": split(**ALONE, precision="fp8-tensorwise"),
        "mxfp8": split(**ALONE, precision="mxfp8"),
        "nvfp4": split(**ALONE, precision="nvfp4"),
        "sgd": split(**ALONE, optimizer="sgd", zero=0),
        "llama by sizes": split(**ALONE, model="llama", sizes=SIZES),
        "llama2-7b": split(
            **ONE | {"stages": ((32, True, True),)}, model="llama2-7b", sequence=4096
        ),
        "70b": split(**ONE | {"stages": ((80, True, True),)}, model="llama3-70b", zero=3),
        "405b": split(**ONE | {"stages": ((126, True, True),)}, model="llama3.1-405b", zero=3),
        "a pipeline": split(
            model="llama",
            sizes=SIZES,
            stages=EVEN,
            family="gpipe",
            tensor=1,
            devices=(1,) * 4,
            sequence_parallel=False,
        ),
        "a pipeline, tensor": split(
            model="llama", sizes=SIZES, stages=EVEN, family="gpipe", node=8
        ),
        "stages adjacent": split(
            model="llama", sizes=SIZES, stages=EVEN, family="gpipe", node=8, order="pipeline"
        ),
        "a pipeline, ZeRO 3": split(
            model="llama", sizes=SIZES, stages=EVEN, family="gpipe", zero=3
        ),
        "context, all_gather": split(
            **ALONE | {"attention": "fused"}, zero=3, context=2, context_way="all_gather"
        ),
        "context, ring": split(**ALONE | {"attention": "fused"}, zero=3, context=2),
        "context on TPUs, ring": split(**ALONE | TPU, zero=3, context=2),
        "context on TPUs, ulysses": split(**ALONE | TPU, zero=3, context=2, context_way="ulysses"),
        "context, tensor": split(**ONE | TPU, zero=3, context=2, context_way="all_gather"),
        "mixtral": experts(32, model="mixtral-8x7b", sequence=4096, **WHOLE),
        "mixtral on TPUs": experts(
            56, model="mixtral-8x22b", sequence=4096, chip="tpu-v5p", **WHOLE
        ),
        "mixtral, no experts shared out": experts(
            32, model="mixtral-8x7b", sequence=4096, **WHOLE | {"expert": 1}
        ),
        "qwen3": experts(48, model="qwen3-30b-a3b", sequence=4096, **WHOLE),
        "qwen3, experts on nodes": experts(
            94,
            model="qwen3-235b-a22b",
            sequence=4096,
            node=8,
            **WHOLE | {"data": 64, "batch": 1024},
        ),
        "deepseek-v3": experts(61, model="deepseek-v3", sequence=4096, **WHOLE | {"expert": 16}),
        "kimi-k2": experts(61, model="kimi-k2", sequence=4096, **WHOLE | {"expert": 16}),
        "gpt-oss": experts(36, model="gpt-oss-120b", sequence=4096, **WHOLE),
        "gemma": split(**ALONE | {"stages": ((46, True, True),)}, model="gemma-2-27b", zero=3),
        "gpt3": split(
            **ONE | {"stages": ((96, True, True),)}, model="gpt3-175b", sequence=2048, zero=3
        ),
    }
)
