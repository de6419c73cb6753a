"""A module that is an object already, planned from Python."""

import sys
from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze.errors import InputError
from tests.study.test_own_models import SPACE

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
    job: dict[str, Any] = {
        "chip": "h100",
        "devices": 2,
        "batch": 8,
        "microbatch": [1],
        "tensor": [1],
    }
    plan = phaze.plan(phaze.Model(module, tokens, loss=lambda out: out.float().mean()), **job)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert plan["sequence"] == 32 and plan["flops_per_token"] == 6 * (4 * 2 * 64 * 256 + 64 * 100)
    assert plan.page(tmp_path / "plan.html").is_file(), "a page needs its graphs, not the module"
    with torch.device("meta"):
        bare = decoder()
    again = phaze.plan(phaze.Model(bare, tokens, loss=lambda out: out.float().mean()), **job)
    assert again["batch_s"] == plan["batch_s"]


@pytest.mark.slow
def test_a_module_is_a_model_of_a_study_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(
        SPACE.replace("base.toml", "tpu-v4-paper"), encoding="utf-8"
    )
    tokens, before = torch.zeros(2, 32, dtype=torch.long), sys.stdout
    model = phaze.Model(decoder(), tokens, loss=lambda out: out.float().mean(), name="Own Net")
    settings = [
        "space=space.toml",
        "training.devices=8",
        "training.batch=32",
        "training.microbatches=[1]",
        "hbm=[34359738368]",
    ]
    run = phaze.api.search(model, settings=settings)
    assert run.models[0]["name"] == "own-net" and run.frame() and run.page().is_file()
    table = {"model": model, "name": "twice", "weight": 2, "widths": [1]}
    head = {"schema": "phaze.study/1", "name": "both", "models": [model, table]}
    assert [found["name"] for found in phaze.api.search(head, settings=settings).models] == [
        "own-net",
        "twice",
    ]
    assert phaze.api.front(model, of=("throughput", "area"), settings=settings).points
    swept = phaze.api.sweep(model, over="training.devices=4,8", settings=settings)
    assert [point["shown"] for point in swept.points] == ["4", "8"] and "best chip" in repr(swept)
    assert swept.points[1]["models"][0]["throughput_per_s"] == run.models[0]["throughput_per_s"]
    compared = phaze.compare(model, chips=["tpu-v4-paper"], settings=settings)
    assert {row["chip"] for row in compared.rows} == {"tpu-v4-paper"} and "own-net" in repr(
        compared
    )
    traced = phaze.api.graph(model, tensor=1, microbatch=4)
    assert traced.model.microbatch == 4 and traced.model.sequence == 32
    assert phaze.estimate(model=model, chip="h100", microbatch=4).time_s > 0
    scheduled = phaze.api.schedule(model=model, chip="h100", pass_="backward")
    assert (
        scheduled["of"]["model"] == traced.model.name
        and scheduled.makespan_s > 0
        and "backward" in repr(scheduled)
    )
    assert sys.stdout is before, "what ranks in threads print goes aside, and only while they run"


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(InputError, match="not an nn"):
        phaze.plan(phaze.Model("text", torch.zeros(1, 8)), chip="h100", devices=2, batch=8)
