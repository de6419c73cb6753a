"""Small documents of every format, cheap to answer, for tests of what single keys do."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from phaze.graph import store
from phaze.graph.zoo import load_family

GPT = {"hidden": 64, "layers": 4, "heads": 4, "vocabulary": 512, "sequence": 32}
LLAMA = {
    "hidden": 64, "layers": 4, "heads": 4, "kv_heads": 2, "head_dim": 16, "mlp": 96,
    "vocabulary": 512, "sequence": 32,
}  # fmt: skip
PLAN = {
    "tensor": 2, "pipeline": 2, "data": 4, "microbatch": 1, "chunks": 1, "recompute": "none",
    "sequence_parallel": False, "zero": 0,
}  # fmt: skip


def preset(kind: str, name: str) -> dict[str, Any]:
    """A bundled file as plain values."""
    return tomllib.loads(
        (files("phaze.hardware") / "presets" / kind / f"{name}.toml").read_text(encoding="utf-8")
    )


def run(**changes: Any) -> dict[str, Any]:
    """A ``phaze.run/1`` of a tiny decoder on two nodes."""
    found = {
        "schema": "phaze.run/1", "gpt": GPT, "chip": "a100-80gb", "cluster": "selene",
        "stack": "megatron-2021",
        "devices": 16, "batch": 64, "plan": PLAN,
    }  # fmt: skip
    return {key: value for key, value in (found | changes).items() if value is not None}


def graph(folder: Path, tensor: int = 1, microbatch: int = 1, spread: bool = False) -> str:
    """The path of a tiny decoder's graph; ``spread``: with sequence parallelism."""
    path = folder / f"graph-{tensor}-{microbatch}{'-spread' if spread else ''}.json"
    model = load_family("gpt", GPT, tensor=tensor, microbatch=microbatch, sequence_parallel=spread)
    path.write_text(store.dumps(model), encoding="utf-8")
    return str(path)


def written(folder: Path, name: str, document: dict[str, Any]) -> str:
    """The path of a document, written as JSON."""
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)
