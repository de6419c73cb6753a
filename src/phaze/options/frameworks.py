"""The training frameworks that launch files are written for: what ``--to`` takes, and the name that
texts use."""

from collections.abc import Mapping
from types import MappingProxyType

FRAMEWORK_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "megatron": "Megatron-LM",
        "torchtitan": "torchtitan",
        "maxtext": "MaxText",
        "deepspeed": "DeepSpeed",
    }
)
