"""The frameworks whose launch files are written and read: each is ``FRAMEWORK`` of the module of
its key."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from phaze.export.flag import Framework
from phaze.options.frameworks import FRAMEWORK_NAMES

FRAMEWORKS: tuple[Framework, ...] = tuple(
    import_module(f"phaze.export.{key}").FRAMEWORK for key in FRAMEWORK_NAMES
)
BY_KEY: Mapping[str, Framework] = MappingProxyType(
    {framework.key: framework for framework in FRAMEWORKS}
)
LAUNCH_FILES = f"{', '.join(framework.described for framework in FRAMEWORKS)} or a phaze.run/1"
"""What may be read as a launch file."""
