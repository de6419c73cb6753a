"""A model without a sequence is planned in samples: the channels of an image are none."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import phaze
from phaze.errors import InputError
from phaze.graph.torch.user import sequence_of
from phaze.report.plan_text import batch_text


class Latents(nn.Module):
    """Patches of latents, blocks over them, patches again: as a diffusion transformer has them."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(4, 64, 8, 8)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(64, 4, 128, batch_first=True) for _ in range(2)
        )
        self.out = nn.Linear(64, 4 * 64)

    def forward(self, latents: Tensor) -> Tensor:
        x = self.patches(latents).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        loss: Tensor = self.out(x).pow(2).mean()
        return loss


@pytest.mark.parametrize(
    ("shape", "dtype", "length"),
    [
        ((2, 4, 64, 64), torch.float32, 1),
        ((2, 3, 8, 64, 64), torch.float32, 1),
        ((2, 300), torch.float32, 1),
        ((2, 300), torch.long, 300),
        ((2, 300, 16), torch.float32, 300),
        ((2,), torch.long, 1),
    ],
)
def test_a_sequence_is_of_tokens_or_of_features(
    shape: tuple[int, ...], dtype: torch.dtype, length: int
) -> None:
    assert sequence_of(torch.zeros(shape, dtype=dtype)) == length


def test_an_image_model_is_planned_in_samples_and_launched_by_no_framework_of_tokens(
    tmp_path: Path,
) -> None:
    model = phaze.Model(Latents(), torch.zeros(1, 4, 64, 64, dtype=torch.bfloat16), name="latents")
    plan = phaze.plan(
        model, chip="h100", devices=2, batch=64, microbatch=4, tensor=1, html=tmp_path / "page.html"
    )
    assert plan["sequence"] == 1 and plan["tokens_per_s"] == pytest.approx(64 / plan["batch_s"])
    assert batch_text(plan.document) == "64 samples"
    assert "samples" in repr(plan) and "sequences" not in repr(plan)
    assert {one["refused"] for one in plan["launch"].values()} == {
        "the model has no sequence, and what these frameworks train has one"
    }
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (
        "samples/s a device" in page
        and "tokens/s a device" not in page
        and "seq-length" not in page
    )
    with pytest.raises(InputError, match="it is planned in samples"):
        phaze.plan(model, chip="h100", devices=2, batch=64, sequence=4)
