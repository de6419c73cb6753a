"""The names of the pipeline families, as options and files state them; no heavy library is needed
for them."""

from typing import Literal, get_args

PipelineFamily = Literal[
    "gpipe", "1f1b", "interleaved", "zb-h1", "zb-interleaved", "zb-v", "dualpipe-v"
]
NAMES: tuple[PipelineFamily, ...] = get_args(PipelineFamily)
