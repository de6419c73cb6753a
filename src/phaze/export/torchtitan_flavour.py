"""Sizes that torchtitan 0.2.2 has no flavour for, as a module that adds one: its job names it as ``custom_import``.

Its width of the perceptron follows from a factor: ``int(factor int(8 dim / 3))``, rounded up to ``multiple_of``. With
``multiple_of`` 1 and the factor (mlp + 1/2) / int(8 dim / 3) that is mlp exactly.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phaze import __version__
from phaze.errors import InputError
from phaze.export.source import Split

MODULE = "phaze_flavor"
FLAVOUR = "phaze"
SIZES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "llama2-7b": MappingProxyType(
            {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32, "mlp": 11008, "vocabulary": 32000}
        )
    }
)
"""Of a named model that it has no flavour for: the published configuration."""
ROTARY_BASE = 10_000
"""Of Llama 2, and of sizes alone, whose times do not depend on it."""


def flavour_module(split: Split) -> str:
    """The module as text; refuses sizes that its llama cannot have."""
    sizes = SIZES.get(split.model, split.sizes)
    dim, heads = sizes["hidden"], sizes["heads"]
    if sizes.get("head_dim", dim // heads) * heads != dim:
        seen = f"heads of {sizes['head_dim']} with a hidden size of {dim} and {heads} heads"
        raise InputError(split.model, seen, "torchtitan 0.2.2's llama has no such; plan with head_dim = hidden / heads")
    if sizes.get("tied", 0):
        raise InputError(split.model, "an embedding tied to the head", "torchtitan 0.2.2's llama ties none")
    base = int(8 * dim / 3)
    rows = {
        "dim": dim,
        "n_layers": sizes["layers"],
        "n_heads": heads,
        "n_kv_heads": sizes.get("kv_heads", heads),
        "vocab_size": sizes["vocabulary"],
        "multiple_of": 1,
        "ffn_dim_multiplier": (sizes["mlp"] + 0.5) / base,
        "rope_theta": ROTARY_BASE,
    }
    given = "".join(f"    {name}={value!r},\n" for name, value in rows.items())
    return (
        f'"""{split.model} for torchtitan 0.2.2, its perceptron {sizes["mlp"]} wide, by phaze {__version__}."""\n\n'
        "from torchtitan.models.llama3 import TransformerModelArgs, llama3_args\n\n"
        f'llama3_args["{FLAVOUR}"] = TransformerModelArgs(\n{given})\n'
    )


def as_comment(split: Split) -> str:
    """The module in comments, for a job file that stands alone."""
    lines = "".join(f"#     {line}".rstrip() + "\n" for line in flavour_module(split).splitlines())
    return f"# Save this as {MODULE}.py on the Python path (phaze export --out does):\n{lines}"
