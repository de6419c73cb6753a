"""Models that a trace would misstate or never end with are refused in one sentence, before they are
unrolled."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from phaze.errors import InputError
from phaze.evaluate.lowered_layer import keeping_of
from phaze.graph.mixture import experts_of
from phaze.graph.saved.modes import modes_to_try
from phaze.graph.torch.source import config_source, source_of
from phaze.graph.torch.trace import trace_model
from phaze.graph.torch.worker import TracingProcess, answer
from phaze.hardware.library import load_built_stack

SCAN = """
import torch
from torch import nn
class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.out = nn.Linear(16, 16), nn.Linear(16, 16)
    def forward(self, x):
        y, state, found = self.up(x), torch.zeros_like(x[:, 0]), []
        for token in range(x.shape[1]):
            state = 0.9 * state + y[:, token]
            found.append(state)
        return x + self.out(torch.stack(found, 1))
class Channels(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = nn.Conv1d(16, 16, 4, groups=16, padding=3), nn.Linear(16, 16)
    def forward(self, x):
        return x + self.out(self.mix(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
class Net(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(2))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.mean()
def free(microbatch=1, sequence=100000):
    return Net(Scan), torch.zeros(microbatch, sequence, 16)
def fixed():
    return Net(Scan), torch.zeros(1, 512, 16)
def short():
    return Net(Scan), torch.zeros(1, 32, 16)
def channels():
    return Net(Channels), torch.zeros(1, 64, 16)
"""


def _file(folder: Path, function: str) -> str:
    (folder / "nets.py").write_text(SCAN, encoding="utf-8")
    return f"{folder / 'nets.py'}:{function}"


@pytest.mark.parametrize("function", ["free", "fixed"])
def test_a_loop_over_the_sequence_is_refused_with_its_line_before_it_is_unrolled(
    tmp_path: Path, function: str
) -> None:
    with pytest.raises(
        InputError,
        match=r"a loop over the sequence runs .* times at nets.py:1[123]; a recurrent scan",
    ):
        trace_model(source_of(_file(tmp_path, function)))


def test_a_short_recurrence_is_traced_as_it_is_written(tmp_path: Path) -> None:
    model = trace_model(source_of(_file(tmp_path, "short")))
    assert sum(op.kind == "product" for op in model.layers[0].forward.operators) == 2


def test_a_convolution_of_every_channel_by_itself_is_no_mixture_of_experts(tmp_path: Path) -> None:
    model = trace_model(source_of(_file(tmp_path, "channels")))
    layer = model.layers[0]
    assert any(op.kind == "product" and op.size("batch") == 16 for op in layer.forward.operators)
    assert experts_of(model.layers) == 0
    names = modes_to_try([(layer, 2)], keeping_of(load_built_stack("megatron-core")))
    assert not any("moe" in name or "expert" in name for name in names)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]},
            "llava is multimodal",
        ),
        (
            {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]},
            "qwen2_vl is multimodal",
        ),
        (
            {"model_type": "paligemma", "architectures": ["PaliGemmaForConditionalGeneration"]},
            "is multimodal",
        ),
        (
            {"model_type": "mamba2", "architectures": ["Mamba2ForCausalLM"]},
            "mamba2 has a recurrent scan (state_size)",
        ),
        (
            {"model_type": "mamba", "architectures": ["MambaForCausalLM"]},
            "mamba has a recurrent scan",
        ),
        (
            {"model_type": "jamba", "architectures": ["JambaForCausalLM"]},
            "jamba has a recurrent scan (mamba_d_state)",
        ),
        (
            {"model_type": "recurrent_gemma", "architectures": ["RecurrentGemmaForCausalLM"]},
            "a recurrent scan",
        ),
        (
            {"model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"]},
            "a recurrent scan",
        ),
    ],
)
def test_a_configuration_that_cannot_be_traced_is_one_sentence(
    tmp_path: Path, values: dict[str, Any], said: str
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(InputError) as fault:
        config_source(str(path))
    assert (
        said in str(fault.value) and "\n" not in str(fault.value) and str(path) in str(fault.value)
    )


def test_whatever_a_library_raises_in_the_process_that_traces_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Any:
        raise KeyError("rope")

    monkeypatch.setattr(import_module("phaze.graph.torch.worker"), "planned", broken)
    found = answer(TracingProcess(), {"open": _file(tmp_path, "short")})
    assert (
        found["problem"].startswith("it cannot be traced (KeyError: 'rope'")
        and "nets.py:short" in found["where"]
    )
