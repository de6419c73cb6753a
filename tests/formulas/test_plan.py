"""The formulas of docs/plan.md are those of the code: evaluated on layers of real models and on
plans."""

from functools import cache

import numpy as np
import pytest

from phaze import api
from phaze.cost.chip_set import chip_set
from phaze.cost.offload import HOST_SHARE, exposed_copies_s
from phaze.evaluate.layer_table import LayerTable, layer_table
from phaze.evaluate.layers import Setting
from phaze.evaluate.lowered_layer import LoweredLayer, lower_layers
from phaze.evaluate.lowered_pass import LoweredPass, work_times
from phaze.graph.supply.point import Rank
from phaze.graph.supply.rank import rank_of
from phaze.hardware.library import load_built_stack, load_chip, load_cluster
from phaze.pipeline.families import interleaved
from phaze.units import parse_batch
from tests.formulas.stated import DOCS, between, evaluate, formulas

SECTION = "From a layer to seconds"
STATED = formulas("plan.md", SECTION)
STACKS = ("megatron-2021", "megatron-2022", "torchtitan-eager")


@cache
def layers(stack: str) -> tuple[Setting, tuple[LoweredLayer, ...], LayerTable]:
    """The layers of a llama at tensor width 2 on A100s, as a stack runs them."""
    chip = load_chip("a100-80gb")
    setting = Setting(chip, load_cluster("selene", chip=chip), load_built_stack(stack))
    model = rank_of("llama2-7b", Rank(2, 1, 2048, setting.stack.attention))
    found = lower_layers(model, setting.machine)
    chips = chip_set([chip])
    table = layer_table(found, chips, setting.constants, lambda one, own: one.device_s(own))
    return setting, found, table


def device_s(one: LoweredPass, setting: Setting) -> float:
    chips = chip_set([setting.chip])
    if not one.works:
        return 0.0
    works = work_times(one.works, chips, setting.constants, one.rule)
    return float(one.device_s(one.times(works, 0, chips))[0])


@pytest.mark.parametrize("stack", STACKS)
def test_a_pass_takes_what_device_and_host_do(stack: str) -> None:
    setting, found, table = layers(stack)
    hidden_somewhere = False
    for kind, layer in enumerate(found):
        for one in (layer.forward, layer.backward):
            chips = chip_set([setting.chip])
            works = work_times(one.works, chips, setting.constants, one.rule).spread_s[:, 0]
            waits = np.array(one.waits_s)
            beside: dict[int, float] = {}
            for place, other in one.beside:
                beside[place] = beside.get(place, 0.0) + float(works[other])
            hidden = [
                evaluate(STATED["hidden(c)"],
                {"time(c)": wait, "products that may overlap c": beside.get(c, 0.0)})
                for c, wait in enumerate(waits)
            ]  # fmt: skip
            hidden_somewhere |= sum(hidden) > 0
            names = {
                "sum over o of time(o)": float(works.sum()),
                "sum over c of (time(c) - hidden(c))": float((waits - np.array(hidden)).sum()),
            }
            device = device_s(one, setting)
            if all(len(unit.places) == 1 for unit in one.units):
                assert evaluate(STATED["device"], names) == pytest.approx(device, rel=1e-9)
            host = evaluate(
                STATED["host"], {"operators": one.host_s / setting.stack.host_s if setting.stack.host_s else 0.0,
                                 "host time of the stack": setting.stack.host_s}
            )  # fmt: skip
            stated = evaluate(STATED["pass"], {"device": device, "host": host})
            assert stated == pytest.approx(float(one.with_host(np.array([device]))[0]), rel=1e-9)
        rate = setting.chip.hbm.bandwidth_bytes_per_s * setting.constants.vector_hbm_share
        apart = float(layer.backward.with_host(np.array([device_s(layer.backward, setting)]))[0])
        known = {"pass": apart, "N": layer.parameters, "HBM bandwidth": rate}
        assert evaluate(STATED["backward"], known) == pytest.approx(
            float(table.backward_s[kind, 0]), rel=1e-9
        )
    assert hidden_somewhere == (stack == "megatron-2022")


def test_gradients_of_weights_are_their_share_of_backward() -> None:
    setting, found, table = layers("torchtitan-eager")
    assert table.weight_s is not None
    seen = 0
    for kind, layer in enumerate(found):
        assert layer.halves is not None
        inputs, weights = (
            float(half.with_host(np.array([device_s(half, setting)]))[0]) for half in layer.halves
        )
        adding = layer.accumulation_bytes * layer.parameters / float(table.hbm_bytes_per_s[0])
        names = {"backward": float(table.backward_s[kind, 0]), "w": weights + adding, "i": inputs}
        if names["w"] + names["i"]:
            assert evaluate(STATED["weight"], names) == pytest.approx(
                float(table.weight_s[kind, 0]), rel=1e-9
            )
            seen += 1
    assert seen >= 2


def test_every_formula_of_the_section_is_evaluated() -> None:
    assert set(STATED) == {"device", "hidden(c)", "host", "pass", "backward", "weight"}


def test_chunks_in_flight_are_counted_as_stated() -> None:
    text = between("plan.md", "memory in flight is ", " microbatches at stage i")
    for chunks in (2, 3, 4):
        family = interleaved(chunks)
        for stages in (2, 3, 4, 8):
            rounds = 4 * stages
            for stage in range(stages):
                stated = evaluate(text, {"S": stages, "i": stage, "v": chunks})
                assert stated == pytest.approx(family.in_flight(rounds, stages - stage, stages))


def test_exposed_transfers_to_the_host_are_as_stated() -> None:
    text = between("plan.md", "neighbour in transfer, and ", " of these transfers is exposed")
    share = float(between("plan.md", "H the bytes of a layer, B ", " of the chip's"))
    assert share == HOST_SHARE
    for size, link, window, hidden in (
        (4e9, 6.4e10, 0.01, 0.5),
        (1e9, 2.5e10, 0.002, 0.9),
        (5e8, 6.4e10, 0.004, 0.0),
    ):
        names = {
            "H": size,
            "B": share * link,
            "h": hidden,
            "forward": window / 3,
            "backward": 2 * window / 3,
        }
        exposed = exposed_copies_s(size, link, np.array([window]), hidden)
        assert float(exposed[0]) == pytest.approx(max(0.0, evaluate(text, names)), rel=1e-9)


def test_mfu_and_the_flop_of_a_token_are_as_stated() -> None:
    sizes = {"hidden": 1024, "layers": 6, "heads": 16, "kv_heads": 4, "head_dim": 64, "mlp": 2816}
    sizes |= {"vocabulary": 32000, "sequence": 2048}
    split = {"tensor": 2, "pipeline": 1, "data": 4, "microbatch": 2}
    run = {
        "schema": "phaze.run/1",
        "llama": {**sizes, "tied": False},
        "chip": "h100",
        "cluster": "dgx-h100",
    }
    plan = api.price({**run, "devices": 8, "batch": 64, "plan": split}).document
    h, f, layers_, words, kv = 1024, 2816, 6, 32000, 4 * 64
    products = layers_ * (2 * h * h + 2 * h * kv + 3 * h * f) + words * h
    token = {"N": products, "L": layers_, "h": h, "s": 2048}
    each = evaluate(
        between("plan.md", "with a causal one ", " FLOP a token of a decoder (N parameters"), token
    )
    assert each == pytest.approx(plan["flops_per_token"], rel=1e-9)
    full = evaluate(between("plan.md", "it would be ", " (full_flops_per_token)"), token)
    assert full == pytest.approx(plan["full_flops_per_token"], rel=1e-9)
    mfu = between("plan.md", "MFU = ", ", where F counts")
    names = {
        "F": each * 64 * 2048, "step time": plan["batch_s"], "devices": plan["devices"],
        "peak FLOP/s": api.chip("h100")["peak_flops"],
    }  # fmt: skip
    assert evaluate(mfu, names) == pytest.approx(plan["mfu"], rel=1e-6)


def test_a_batch_in_tokens_is_the_rounded_number_that_the_page_says() -> None:
    assert "4M tokens of 4,096 are 1,024 sequences" in " ".join(
        (DOCS / "plan.md").read_text().split()
    )
    plan = api.plan(
        "llama2-7b",
        chip="h100",
        devices=8,
        batch="4M-tokens",
        tensor=[1],
        microbatch=[1],
        zero=3,
        recompute="full",
    )
    assert parse_batch("4M-tokens") is not None
    assert plan["batch"] == 1024
