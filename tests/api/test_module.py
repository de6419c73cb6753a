"""A module that is an object already, planned from Python."""

from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze.errors import InputError

torch = pytest.importorskip("torch")


def decoder() -> Any:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return x + self.down(torch.relu(self.up(x)))

    return nn.Sequential(nn.Embedding(100, 64), *(Block() for _ in range(4)), nn.Linear(64, 100))


@pytest.mark.slow
def test_a_module_is_planned_plain_or_on_the_meta_device_and_never_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    module, tokens = decoder(), torch.zeros(2, 32, dtype=torch.long)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    job: dict[str, Any] = {"chip": "h100", "devices": 2, "batch": 8, "microbatches": [1], "widths": [1]}
    plan = phaze.plan(phaze.Model(module, tokens, loss=lambda out: out.float().mean()), **job)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert plan["sequence"] == 32 and plan["flops_per_token"] == 6 * (4 * 2 * 64 * 256 + 64 * 100)
    assert plan.page(tmp_path / "plan.html").is_file(), "a page needs its graphs, not the module"
    with torch.device("meta"):
        bare = decoder()
    again = phaze.plan(phaze.Model(bare, tokens, loss=lambda out: out.float().mean()), **job)
    assert again["batch_s"] == plan["batch_s"]


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(InputError, match="no nn"):
        phaze.plan(phaze.Model("text", torch.zeros(1, 8)), chip="h100", devices=2, batch=8)
