"""A decoder without a gate in its MLP: Megatron-LM has a flag for it, torchtitan has no such
model."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran
from tests.export.launching import read_back

SIZES = "hidden=1024,layers=4,heads=16,mlp=4096,vocabulary=32000,sequence=512,gated="


def test_a_model_without_a_gate_is_launched_as_one(
    phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    job = (
        "--chip",
        "h100",
        "--devices",
        "8",
        "--batch",
        "32",
        "--microbatch",
        "2",
        "--tensor",
        "1",
    )
    plan = tmp_path / "plan.json"
    for gate, flag, other in (
        ("true", "--swiglu", "--squared-relu"),
        ("false", "--squared-relu", "--swiglu"),
    ):
        plan.write_text(phaze("plan", "--llama", SIZES + gate, *job, "--json").out)
        text = phaze("export", str(plan), "--to", "megatron").out
        assert flag in text and other not in text
        launch = read_back("megatron", f"{text}\n  --vocab-size 32000\n".replace("\\\n\n", "\\\n"))
        assert launch.model["llama"].get("gated", True) == (gate == "true")
        assert phaze("export", str(plan), "--to", "torchtitan").code == (0 if gate == "true" else 2)
    assert json.loads(plan.read_text())["job"]["sizes"]["gated"] is False
