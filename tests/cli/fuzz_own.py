"""A user's own model as code and as a configuration, its graph and its cache, with the commands
that read them.

Traces run in this process: starting one of its own for each input would take seconds.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from phaze.errors import InputError
from phaze.graph.supply.point import Facts
from phaze.graph.supply.tracing import Tracer
from phaze.graph.tensor_plan import place_and_plan
from tests.cli.fuzz_rows import Row, answer_of

CONFIG: dict[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 48,
    "max_position_embeddings": 16,
}  # fmt: skip
# No loop and no import of what a changed text could do harm with: it is run in this process.
CODE = """
from torch import device, long, nn, zeros
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(100, 32), nn.Linear(32, 100)
        self.first, self.second = Block(), Block()

    def forward(self, tokens):
        return self.head(self.second(self.first(self.table(tokens))))

def build(microbatch=1, sequence=16):
    with device("meta"):
        net, tokens = Net(), zeros(microbatch, sequence, dtype=long)
    return net, tokens, lambda logits: F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
"""
# Both blocks are cut by outputs, then by inputs.
PLAN = 'schema = "phaze.tensor-plan/1"\nsequence_parallel = true\ntokens_first = false\n' + "".join(
    f'[[cut]]\nweight = "{block}.{weight}"\ndim = {dim}\nunit = 1\n'
    for block in ("first", "second")
    for weight, dim in (("up.weight", 0), ("up.bias", 0), ("down.weight", 1))
)


def _start(self: Tracer, facts: Facts | None = None) -> Mapping[str, Any]:
    from phaze.graph.torch.worker import TracingProcess

    if "bench" not in self.answer:
        bench = TracingProcess()
        self.answer = {"bench": bench}
        known = None if facts is None else facts.document()
        self.answer = {
            **self.ask({"open": self.model, "facts": known}, self.limit_s),
            "bench": bench,
        }
    return self.answer


def _text_of(model: str) -> bytes:
    """All that a model is made from."""
    place, plan = place_and_plan(model)
    return Path(place.rpartition(":")[0] or place).read_bytes() + (
        b"" if plan is None else Path(plan).read_bytes()
    )


def _asking(
    known: dict[str, str],
) -> Callable[[Tracer, Mapping[str, Any] | None, float], Mapping[str, Any]]:
    """Requests answered in this process, one at a time, each once for a model's text."""
    turn = threading.Lock()

    def ask(self: Tracer, request: Mapping[str, Any] | None, limit_s: float) -> Mapping[str, Any]:
        from phaze.graph.torch.worker import answer

        bench, key = self.answer["bench"], f"{json.dumps(request)} {_text_of(self.model)!r}"
        with turn:
            if key not in known:
                if bench.source is None and "open" not in (request or {}):
                    answer(bench, {"open": self.model})
                known[key] = json.dumps(answer(bench, json.loads(json.dumps(request))))
        found: dict[str, Any] = json.loads(known[key])
        if "problem" in found:
            raise InputError(found["where"], found["problem"], found["remedy"])
        return found

    return ask


@contextlib.contextmanager
def traced_here() -> Iterator[None]:
    """Models are traced in this process instead of one of their own."""
    with patch.object(Tracer, "start", _start), patch.object(Tracer, "ask", _asking({})):
        yield


def rows_of_models(folder: Path) -> list[Row]:
    """PHAZE_CACHE names the folder ``cache`` here; a graph that cannot be read there is traced
    anew."""
    config, code = folder / "config.json", folder / "own.py"
    config.write_text(json.dumps(CONFIG))
    code.write_text(CODE)
    (folder / "tp.toml").write_text(PLAN)
    planned = f"graph --model {code}:build --tensor 2 --tp-plan {folder}/tp.toml"
    job = "--chip a100-80gb --devices 2 --batch 4 --microbatch 1 --tensor 1"
    plan, own = f"plan --model {config} {job}", f"plan --model {code}:build {job}"
    for command in (plan, own):
        answer_of(*command.split(), "--json")
    kept = [str(path) for path in sorted((folder / "cache").rglob("*.json"))]
    assert len(kept) >= 4, kept
    found = [
        Row(command, file, weight)
        for file in kept
        for command, weight in (("cache", 10), ("doctor", 4), (plan, 3))
    ]
    found += [Row(own, file, 3) for file in kept]
    found += [
        Row(f"graph --model {config}", str(config), 4),
        Row(f"graph --model {code}:build", str(code), 4),
    ]
    found += [
        Row(plan, str(config), 4),
        Row(own, str(code), 4),
        Row(f"graph --model {code}:build --check", str(code), 2),
        Row(planned, f"{folder}/tp.toml", 10),
        Row(f"schedule --model {code}:build --chip h100", str(code), 3),
    ]
    return [*found, Row(f"plan --model {folder}/graph.json {job}", f"{folder}/graph.json", 10)]
