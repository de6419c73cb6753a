"""Whatever ``phaze plan --certificate`` writes ``phaze verify`` accepts: every bundled model, 256
to 16,384 devices."""

from pathlib import Path

import pytest

from phaze.check.verdict import check
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.graph.zoo import ZOO

SMALL = (
    "bert-large",
    "gpt2-xl",
    "opt-350m",
    "megatron-bert-large",
    "t5-large",
    "vit-large",
    "llama2-7b",
    "llama3-8b",
)
LARGE = ("llama3.1-405b", "nemotron-4-340b", "kimi-k2", "gpt3-175b")
CASES = [("deepseek-v3", 2048, 15360)]
CASES += [
    (name, 256, 512) if name in SMALL else (name, 16384 if name in LARGE else 2048, 16384)
    for name in ZOO
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "devices", "batch"), CASES)
def test_what_a_plan_certifies_holds(model: str, devices: int, batch: int, tmp_path: Path) -> None:
    asked = [
        "plan",
        "--model",
        model,
        "--chip",
        "h100",
        "--devices",
        str(devices),
        "--batch",
        str(batch),
    ]
    assert exit_code_of(app, [*asked, "--certificate", str(tmp_path / "proof")]) == 0
    found = check(tmp_path / "proof")
    assert found.holds, found.sentence()
