"""The families by their sizes: which keys they have, what their letters are, which case a point
belongs to.

Letters: b microbatch, s sequence, p positions (the longest sequence), t tensor width, h hidden, a
heads, v vocabulary; ``llama`` also k heads of keys and values, d width of a head, f width of the
MLP; ``moe`` instead of f the e experts, m active ones of a token, g width of an expert, r width of
the shared one (0: none); its first ``dense_layers`` are those of a llama. A size that a case fixes
(microbatch 1, width 1, one head on a rank, as many keys as queries) is no variable there; nor are
positions where none are learned.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, unknown_name
from phaze.graph.shipped import case_name
from phaze.graph.supply.point import RankPoint


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Keys with their letters; ``divided`` are what a tensor width must divide."""

    letters: Mapping[str, str]
    divided: tuple[str, ...]
    choices: tuple[str, ...] = ()


_SHARED: Mapping[str, str] = MappingProxyType(
    {"hidden": "h", "heads": "a", "vocabulary": "v", "sequence": "p"}
)
FAMILIES: Mapping[str, ModelFamily] = MappingProxyType(
    {
        "gpt": ModelFamily(_SHARED, ("heads", "vocabulary")),
        "llama": ModelFamily(
            MappingProxyType({**_SHARED, "kv_heads": "k", "head_dim": "d", "mlp": "f"}),
            ("heads", "kv_heads", "mlp", "vocabulary"),
            ("tied", "gated"),
        ),
        "moe": ModelFamily(
            MappingProxyType(
                {
                    **_SHARED,
                    "kv_heads": "k",
                    "head_dim": "d",
                    "experts": "e",
                    "active": "m",
                    "expert_mlp": "g",
                }
                | {"shared_mlp": "r"}
            ),
            ("heads", "kv_heads", "expert_mlp", "shared_mlp", "vocabulary"),
            ("tied", "mlp", "dense_layers"),
        ),
    }
)
UNGATED = "llama-ungated"
"""The graphs of a llama whose perceptron has no gate."""


# Sizes of which a family may have none.
# Families whose positions are computed: a longer sequence needs no more of them.
ROTARY_FAMILIES = ("llama", "moe")
MAY_BE_NONE = ("shared_mlp", "dense_layers")
# Every layer is an entry of its own; the deepest networks that were ever trained have about a
# thousand.
MOST_LAYERS = 4096


def check_sizes(family: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes with defaults filled in, or an InputError that names the key."""
    if family not in FAMILIES:
        raise unknown_name("", "family", family, FAMILIES)
    rows = FAMILIES[family]
    wanted = (*rows.letters, "layers")
    for key in sizes:
        if key not in (*wanted, *rows.choices):
            raise unknown_name(family, "size", key, (*wanted, *rows.choices))
    values = {**({"gated": True} if family == "llama" else {}), **sizes}
    if family == "moe":
        values = {"shared_mlp": 0, "dense_layers": 0, **values}
        wanted = (*wanted, "dense_layers", *(("mlp",) if values["dense_layers"] else ()))
    if family != "gpt":
        values.setdefault("kv_heads", values.get("heads"))
        values.setdefault("tied", False)
        hidden, heads = values.get("hidden"), values.get("heads")
        if (
            "head_dim" not in values
            and isinstance(hidden, int)
            and isinstance(heads, int)
            and heads > 0
        ):
            values["head_dim"] = hidden // heads
        for key in ("tied", "gated"):
            if not isinstance(values.get(key, False), bool):
                raise InputError(f"{family}: {key}", f"{values[key]!r} is neither true nor false")
    for key in wanted:
        value = values.get(key)
        if value is None:
            raise InputError(
                f"{family}: {key}", "this size is missing", f"a {family} has {', '.join(wanted)}"
            )
        least = 0 if key in MAY_BE_NONE else 1
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**31:
            raise InputError(f"{family}: {key}", f"{value!r} is not a positive whole number")
    if values["layers"] > MOST_LAYERS:
        raise InputError(
            f"{family}: layers", f"{values['layers']} is more than {MOST_LAYERS:,}", "give fewer"
        )
    _check_fit(family, values)
    return values


def _check_fit(family: str, values: Mapping[str, Any]) -> None:
    if family == "gpt" and values["hidden"] % values["heads"]:
        raise InputError(
            f"{family}: heads",
            f"hidden {values['hidden']} does not divide by {values['heads']} heads",
        )
    if family != "gpt" and values["heads"] % values["kv_heads"]:
        raise InputError(
            f"{family}: kv_heads", f"{values['heads']} heads do not divide by {values['kv_heads']}"
        )
    if family != "gpt" and values["head_dim"] % 2:
        raise InputError(
            f"{family}: head_dim", f"{values['head_dim']} is odd and rotary positions rotate pairs"
        )
    if family == "moe":
        _check_experts(values)


def _check_experts(values: Mapping[str, Any]) -> None:
    if values["active"] > values["experts"]:
        raise InputError(
            "moe: active", f"{values['active']} of {values['experts']} experts", "use at most all"
        )
    if values["dense_layers"] >= values["layers"]:
        raise InputError(
            "moe: dense_layers",
            f"{values['dense_layers']} of {values['layers']} layers",
            "use fewer",
        )
    refused = {
        "tied": values["tied"],
        "kv_heads": values["kv_heads"] == values["heads"],
        "active": values["active"] == 1,
    }
    for key, wrong in refused.items():
        if wrong:
            problem = f"no graphs of a mixture of experts with {key} {values[key]} are bundled"
            raise InputError(
                f"moe: {key}", problem, "name a model, or a config.json, which is traced"
            )


def family_point(
    family: str, values: Mapping[str, Any], tensor: int, microbatch: int, sequence: int
) -> dict[str, int]:
    """The letters of a family at its sizes; a width that does not divide them is an InputError."""
    rows = FAMILIES[family]
    for key in rows.divided:
        if tensor < 1 or values[key] % tensor:
            fits = [
                w for w in range(1, 65) if all(values[other] % w == 0 for other in rows.divided)
            ]
            problem = f"{key} {values[key]} of {family} does not divide by {tensor}"
            raise InputError("--tensor", problem, f"TP degrees: {', '.join(map(str, fits))}")
    letters = {letter: values[key] for key, letter in rows.letters.items()}
    return {**letters, "b": microbatch, "s": sequence, "t": tensor}


def file_of(family: str, values: Mapping[str, Any]) -> str:
    """The file that a family's graphs lie in."""
    return family if values.get("gated", True) else UNGATED


def family_case(
    family: str, values: Mapping[str, Any], letters: Mapping[str, int], rank: RankPoint
) -> str:
    """The name of the case that a rank of these sizes belongs to."""
    conditions = ["t=1" if letters["t"] == 1 else "t>1", "b=1" if letters["b"] == 1 else "b>1"]
    if rank.attention == "eager":
        conditions.append("a=t" if letters["a"] == letters["t"] else "a>t")
    if family == "moe":
        if rank.attention == "eager":
            raise InputError(
                "moe",
                "its bundled graphs have fused attention",
                "use fused attention, or name a model",
            )
        conditions.append("shared" if letters["r"] else "plain")
    if family == "llama":
        conditions.append("k=a" if letters["k"] == letters["a"] else "k<a")
        conditions.append("tied" if values["tied"] else "untied")
    return case_name(rank, *conditions)


def free_letters(family: str, case: str) -> tuple[str, ...]:
    """The variables of a case: the letters that it does not fix, or fix by another."""
    words = case.split()
    fixed = {word[0] for word in words if word in ("t=1", "b=1", "a=t", "k=a")}
    if family != "gpt":
        fixed.add("p")
    if "plain" in words:
        fixed.add("r")
    return tuple(sorted({*FAMILIES[family].letters.values(), "b", "s", "t"} - fixed))
