"""The frameworks whose launch files are written and read."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.export import deepspeed, maxtext, megatron, torchtitan
from phaze.export.flag import Framework

FRAMEWORKS = (megatron.FRAMEWORK, torchtitan.FRAMEWORK, maxtext.FRAMEWORK, deepspeed.FRAMEWORK)
BY_KEY: Mapping[str, Framework] = MappingProxyType({framework.key: framework for framework in FRAMEWORKS})
LAUNCH_FILES = f"{', '.join(framework.described for framework in FRAMEWORKS)} or a phaze.run/1"
"""What may be read as a launch file."""
