"""A space of two chips for tests that search one."""

SPACE = """schema = "phaze.space/1"
name = "few"
title = "{title}"
base = "{base}"
[axes]
tensor_cores = [8, 32]
rows = [64]
columns = [64]
vector_cores = [8]
lanes = [64]
global_buffer = ["16 MiB"]
[core_buffers]
least = "1 KiB"
bytes_per_unit = 16
[keep]
area_of = "tpu-v4-paper"
"""


def few_chips(base: str = "tpu-v4-paper", title: str = "a few chips") -> str:
    """The text of the space, its chips like ``base``."""
    return SPACE.format(base=base, title=title)
