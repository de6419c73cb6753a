"""Attention kernels: what was measured comes back, and no more work ever takes less time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.chip_set import chip_set
from phaze.cost.table import cost_works
from phaze.cost.work import works_of
from phaze.evaluate.layers import Setting
from phaze.graph.ir import Access, Operator, OperatorGraph, Tensor
from phaze.hardware.attention import attention_rates
from phaze.hardware.calibration import constants_of
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.options.jobs import BasisName

# TFLOP/s of causal FLOP: 16,384 tokens of 2,048 features on H100,
# github.com/Dao-AILab/flash-attention assets @0251105a (forward), meta-pytorch/tritonbench pull
# 1267 (backward, batch 4, 48 heads).
MEASURED = [
    ("fa2", "forward", 128, 16, 32, 512, 191), ("fa2", "forward", 128, 16, 4, 4096, 319),
    ("fa2", "forward", 64, 32, 1, 16384, 299), ("cudnn", "forward", 128, 16, 4, 4096, 518),
    ("cudnn", "forward", 64, 32, 16, 1024, 288), ("cudnn", "forward", 256, 8, 1, 16384, 509),
    ("fa3", "forward", 128, 16, 2, 8192, 602), ("fa3", "backward", 128, 48, 4, 4096, 444.0),
    ("fa3", "backward", 128, 48, 4, 8192, 538.7),
]  # fmt: skip


def graph(
    way: str, heads: int, length: int, width: int, causal: int = 1, window: int = 0
) -> OperatorGraph:
    sizes = (
        ("batch", heads), ("queries", length), ("keys", length), ("width", width),
        ("value_width", width),
        ("causal", causal), ("window", window),
    )  # fmt: skip
    tensors = tuple(Tensor(i, heads * length * width, 2, "input") for i in range(4))
    kind = "attention" if way == "forward" else "attention_backward"
    reads = tuple(Access(t.id, t.bytes) for t in tensors[:3])
    op = Operator(0, kind, "both", sizes, reads, (Access(3, tensors[3].bytes),))
    return OperatorGraph(tensors, (op,), (0, 1, 2), (3,))


def seconds(
    found: OperatorGraph, kernel: str | None, chip: str = "h100", load: str = "alone"
) -> float:
    device = load_chip(chip)
    family = device.calibration.attention if device.calibration else None
    rates = attention_rates(family, kernel)
    constants = replace(constants_of(device.calibration, "calibrated", load), attention=rates)  # type: ignore[arg-type]
    chips = chip_set([device])
    return float(cost_works(works_of(found), chips, constants).times_s()[0, 0])


@pytest.mark.parametrize(("kernel", "way", "head", "heads", "batch", "length", "tflops"), MEASURED)
def test_a_measured_kernel_takes_what_was_measured(
    kernel: str, way: str, head: int, heads: int, batch: int, length: int, tflops: float
) -> None:
    flops = 2.0 * length * length * head * heads * batch * (1.0 if way == "forward" else 2.5)
    ours = seconds(graph(way, heads * batch, length, head), kernel)
    assert ours == pytest.approx(flops / (tflops * 1e12), rel=0.1)


@given(
    st.sampled_from(["fa2", "cudnn", None]), st.sampled_from(["forward", "backward"]),
    st.integers(1, 64),
    st.integers(64, 8192), st.sampled_from([64, 128, 192]), st.integers(1, 8192),
    st.integers(0, 8192),
)  # fmt: skip
def test_a_shorter_window_is_never_slower(
    kernel: str | None, way: str, heads: int, length: int, width: int, window: int, more: int
) -> None:
    short = seconds(graph(way, heads, length, width, window=window), kernel)
    assert short <= seconds(graph(way, heads, length, width, window=window + more), kernel) * (
        1 + 1e-12
    )
    assert short <= seconds(graph(way, heads, length, width), kernel) * (1 + 1e-12)


def test_in_training_a_kernel_loses_what_products_lose() -> None:
    chip, cluster = load_chip("h100"), load_cluster("dgx-h100")
    stack = load_stack("megatron-core")
    constants = Setting(chip, cluster, stack).constants
    alone = attention_rates("hopper", "cudnn")
    assert constants.attention is not None and alone is not None
    ratio = constants.attention.rate(False, 128).share / alone.rate(False, 128).share
    assert ratio == pytest.approx(stack.share_on("h100", chip.technology)) and ratio < 1


def test_a_kernel_measured_among_products_of_training_loses_nothing_more() -> None:
    stack = load_stack("megatron-core")
    constants = Setting(load_chip("b200"), load_cluster("dgx-b200"), stack).constants
    measured = attention_rates("blackwell", "cudnn")
    assert (
        stack.share_on(*load_chip("b200").generation) < 1
        and constants.attention is not None
        and measured is not None
    )
    assert constants.attention.rate(False, 128) == measured.rate(False, 128)
    assert constants.attention.rate(False, 64).share < measured.rate(False, 64).share


def test_without_a_measured_family_attention_is_mapped_on_the_arrays() -> None:
    for chip in ("tpu-v4", "h100"):
        basis: BasisName = "datasheet" if chip == "h100" else "calibrated"
        device, cluster = load_chip(chip), load_cluster("dgx-h100")
        setting = Setting(device, cluster, load_stack("megatron-core"), basis)
        assert setting.constants.attention is None
