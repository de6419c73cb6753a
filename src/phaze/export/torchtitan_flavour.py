"""Sizes that torchtitan 0.2.2 has no flavour for, as a module that adds one: its job names it as
``custom_import``.

Its width of the perceptron follows from a factor: ``int(factor int(8 dim / 3))``, rounded up to
``multiple_of``. With ``multiple_of`` 1 and the factor (mlp + 1/2) / int(8 dim / 3) that is mlp
exactly.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phaze import __version__
from phaze.export.source import PlannedSplit

MODULE = "phaze_flavor"
FLAVOUR = "phaze"
LLAMA2_7B: Mapping[str, int] = MappingProxyType(
    {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32, "mlp": 11008, "vocabulary": 32000}
)
"""The published configuration of the one named model that it has no flavour for."""
ROTARY_BASE = 10_000
"""Of Llama 2, and of sizes alone, whose times do not depend on it."""


def model_sizes(split: PlannedSplit) -> Mapping[str, int]:
    """The sizes of a model without a flavour."""
    return LLAMA2_7B if split.model == "llama2-7b" else split.sizes


def flavour_module(split: PlannedSplit) -> str:
    """The module as text."""
    sizes = model_sizes(split)
    base = int(8 * sizes["hidden"] / 3)
    rows = {
        "dim": sizes["hidden"],
        "n_layers": sizes["layers"],
        "n_heads": sizes["heads"],
        "n_kv_heads": sizes.get("kv_heads", sizes["heads"]),
        "vocab_size": sizes["vocabulary"],
        "multiple_of": 1,
        "ffn_dim_multiplier": (sizes["mlp"] + 0.5) / base,
        "rope_theta": ROTARY_BASE,
    }
    arguments = "".join(f"    {name}={value!r},\n" for name, value in rows.items())
    return (
        f'"""{split.model} for torchtitan 0.2.2, its perceptron {sizes["mlp"]} wide, by '
        f'phaze {__version__}."""\n\n'
        "from torchtitan.models.llama3 import TransformerModelArgs, llama3_args\n\n"
        f'llama3_args["{FLAVOUR}"] = TransformerModelArgs(\n{arguments})\n'
    )


def as_comment(split: PlannedSplit) -> str:
    """The module in comments, for a job file that stands alone."""
    lines = "".join(f"#     {line}".rstrip() + "\n" for line in flavour_module(split).splitlines())
    return f"# Save this as {MODULE}.py on the Python path (phaze export --out does):\n{lines}"
