"""A plan in a line of words, the same wherever a plan is named: answers, explanations, sweeps and
their regions."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from phaze.hardware.formats import TITLES


def recompute_words(plan: Mapping[str, Any], choice: str) -> str:
    """What is recomputed: the choice of all stages, or where it is made stage by stage in how many
    of them which."""
    if choice != "best":
        return choice
    counts = Counter(stage["recompute"] for stage in plan["stages"])
    if len(counts) == 1:
        return str(next(iter(counts)))
    parts = [
        f"{mode} in {count} of {len(plan['stages'])} stages"
        for mode, count in sorted(counts.items())
    ]
    return " and ".join(parts)


# What the stages of ZeRO shard over the replicas.
SHARED_OUT = (
    "",
    "optimizer state",
    "optimizer state and gradients",
    "optimizer state, gradients and weights",
)


def shared_words(row: Mapping[str, Any]) -> list[str]:
    """Ranks that share a sequence, experts or state, where a plan has some; ``row`` has its
    replicas."""
    names = {"context": "CP", "expert": "EP", "expert_tensor": "ETP"}
    words = [f"{name} {row[key]}" for key, name in names.items() if (row.get(key) or 1) > 1]
    return words + ([f"hybrid sharding over {_sharers(row)}"] if row.get("shard") else [])


def _sharers(row: Mapping[str, Any]) -> str:
    """The ranks with the same weights that shard state, in words."""
    alike = int(row["data"]) * int(row.get("context") or 1)
    called = "replicas" if alike == row["data"] else "ranks with the same weights"
    return f"{row['shard']} of {alike} {called}" if row.get("shard") else f"{alike} {called}"


def state_words(row: Mapping[str, Any]) -> str:
    """What is sharded over the replicas and over how many of them; empty where nothing is."""
    if not row.get("zero"):
        return ""
    hybrid = "hybrid sharding: " if row.get("shard") else ""
    return (
        f"{hybrid}{SHARED_OUT[int(row['zero'])]} sharded over {_sharers(row)} (ZeRO {row['zero']})"
    )


def offload_words(row: Mapping[str, Any]) -> str:
    """What waits in the memory of the host; empty where nothing does."""
    offloaded = row.get("offloaded_bytes")
    return f"activations offloaded to host: {offloaded / 1e9:,.3g} GB a device" if offloaded else ""


def precision_words(precision: str) -> str:
    """A precision in the field's words."""
    return {str(name): words for name, words in TITLES.items()}.get(precision, precision)


def degree_words(row: Mapping[str, Any]) -> str:
    """Tensor, pipeline and data-parallel degree of a row that names them."""
    return f"TP {row['tensor']}, PP {row['pipeline']}, DP {row['data']}"


def split_words(row: Mapping[str, Any]) -> str:
    """The degrees of a row that names them, and the virtual stages and the stage of ZeRO where
    there are any."""
    words = [degree_words(row), *shared_words(row)]
    words += [str(row["family"])] if row.get("family") else []
    words += [f"VPP {row['chunks']}"] if row["chunks"] > 1 else []
    return ", ".join(words + ([f"ZeRO {row['zero']}"] if row["zero"] else []))


def plan_words(model: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """A plan in words: its degrees, and how it is run; ``model`` names the configuration and the
    stage of ZeRO, as in a result."""
    shared = shared_words({**model, "data": plan["data"]})
    words = [degree_words({**plan, "tensor": model["tensor"]}), *shared]
    words.append(f"microbatch {model['microbatch']}")
    words.append(f"recompute {recompute_words(plan, model['recompute'])}")
    words += ["sequence parallel"] if model.get("sequence_parallel") else []
    words += [str(plan["family"])] if plan.get("family") else []
    words += [f"VPP {plan['chunks']}"] if plan.get("chunks", 1) > 1 else []
    words += [f"ZeRO {model['zero']}"] if model["zero"] else []
    if plan.get("order") and plan["pipeline"] > 1 and plan["data"] > 1:
        words.append(
            "stages of a replica adjacent" if plan["order"] == "pipeline" else "replicas adjacent"
        )
    return ", ".join(words)
