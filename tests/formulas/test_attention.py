"""The formulas of attention in docs/cost.md are those of the code: FLOP by pass, and seconds on a
chip with kernels."""

import pytest

from phaze.cost.chip_set import chip_set
from phaze.cost.table import cost_works
from phaze.cost.work import works_of
from phaze.graph.opset import flops
from phaze.hardware.attention import attention_rates
from phaze.hardware.calibration import constants_of
from phaze.hardware.library import load_chip
from tests.cost.test_attention import graph, seconds
from tests.formulas.stated import evaluate, formulas

ATTENTION = formulas("cost.md", "Attention")


@pytest.mark.parametrize("way", ["forward", "backward"])
@pytest.mark.parametrize(
    ("heads", "length", "width"), [(16, 512, 128), (3, 4096, 64), (1, 100, 192)]
)
def test_fused_attention_takes_what_the_document_says(
    way: str, heads: int, length: int, width: int
) -> None:
    kernel = graph(way, heads, length, width)
    pairs = length * (length + 1) / 2
    names: dict[str, float] = {"b": 1, "heads": heads, "P": pairs, "qk": width, "v": width}
    work = evaluate(ATTENTION[way], names)
    assert flops(kernel.operators[0], masked=True) == work
    chip = load_chip("h100")
    assert chip.calibration is not None
    rates = attention_rates(chip.calibration.attention, "fa3")
    assert rates is not None
    rate = rates.rate(way == "backward", width)
    column = cost_works(
        works_of(kernel), chip_set([chip]), constants_of(chip.calibration, "calibrated", "alone")
    )
    names |= {
        "start": rate.start_s,
        "extra keys": rate.extra_keys,
        "FLOP": work,
        "share": rate.share,
        "most": rate.most,
    }
    one_key = evaluate(ATTENTION[way], names | {"P": length})
    names |= {"FLOP of one key for every query": one_key, "peak": float(column.peak_flops[0])}
    assert evaluate(ATTENTION["seconds"], names) == pytest.approx(seconds(kernel, "fa3"), rel=1e-12)
    assert set(ATTENTION) == {"forward", "backward", "seconds"}
