"""Layer times under a stack's schedule rule: equal to the formulas where there are some, ordered by
rule, bounded."""

from itertools import pairwise

import numpy as np
import pytest

from phaze.cost.chip_set import ChipSet, chip_set
from phaze.cost.collective import collective, kind_named
from phaze.cost.table import cost_table, cost_works
from phaze.cost.work import works_of
from phaze.evaluate.layer_table import FULL, SELECTIVE, LayerTable, layer_table
from phaze.evaluate.layers import Setting, model_table
from phaze.evaluate.lowered_layer import (
    LoweredLayer,
    keeping_of,
    lower_layer,
    rule_of,
    run_passes,
)
from phaze.evaluate.lowered_pass import work_times
from phaze.evaluate.overlap import companions
from phaze.evaluate.pass_builder import PassBuilder, lower_pass
from phaze.evaluate.schedule_operators import in_pieces, in_ring
from phaze.graph.fuse import fuse_graph, fuse_layer
from phaze.graph.ir import Access, Layer, Model, OperatorGraph
from phaze.graph.recompute import needed_again
from phaze.graph.rewrites import run_layer
from phaze.graph.rewrites.split_backward import input_gradients, split_backward
from phaze.graph.rewrites.unfused_softmax import launches, unfused_softmaxes
from phaze.graph.saved.modes import Modes, modes_to_try
from phaze.graph.split_context import context_parallel
from phaze.graph.split_experts import expert_parallel
from phaze.graph.zoo import load_model
from phaze.hardware.bundled import preset_names
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.hardware.overlap import Overlap
from phaze.placement.machine import Machine
from phaze.schedule.bounds import BOUNDS
from phaze.schedule.order import strong_components
from phaze.schedule.rules import COMPANIONS, ICML24, LINKS, OVERLAP, SERIAL, Rule
from phaze.values import replace
from tests.bench.test_cost import paper_chips

FREER = (SERIAL, COMPANIONS, LINKS, OVERLAP)
TIMES = ("forward_s", "backward_s", "again_s")
# Stacks whose operators run one after another; the rule of icml24 pairs tensor with vector work,
# and no sum says that.
IN_TURN = [name for name in preset_names("stacks") if name != "icml24"]


def _exact(layer: LoweredLayer, chips: ChipSet) -> LayerTable:
    """One layer on some chips by formulas and schedules."""
    return layer_table([layer], chips, IDEAL, lambda one, times: one.device_s(times))


def _block(model: Model) -> Layer:
    return model.layers[max(range(len(model.layers)), key=model.count)]


def _machine(stack: str = "ideal", cluster: str = "dgx-h100") -> Machine:
    return Machine(load_cluster(cluster), load_stack(stack))


def _some_chips(count: int, seed: int) -> ChipSet:
    chips = paper_chips()
    return chips.taken(np.random.default_rng(seed).choice(len(chips), count, replace=False))


def _plain_s(graph: OperatorGraph, setting: Setting, backward: bool) -> float:
    """Operators and collectives one after another, less what products hide of collectives; softly
    above the host.

    Of a collective c with products p beside it min(c, p) is hidden; cut into n pieces, (1 - 1/n) of
    that.
    """
    stack, cluster = setting.stack, setting.cluster
    times = cost_works(works_of(graph), chip_set([setting.chip]), setting.constants).times_s()[:, 0]
    waits = [
        collective(
            kind_named(o.kind), o.size("bytes"), o.size("group"), cluster, setting.basis
        ).time_s
        if o.core == "network"
        else 0.0
        for o in graph.operators
    ]
    device = sum(waits) + times.sum()
    weights, cut = backward and stack.hides_tensor_collectives, stack.piecewise_collectives
    for at, places in companions(graph, cut, weights).items() if weights or cut else ():
        share = 1 - 1 / graph.operators[at].size("group") if cut else 1.0
        device -= share * min(waits[at], sum(times[place] for place in places))
    host = stack.host_s * sum(launches(o) for o in graph.operators)
    return float((device**3 + host**3) ** (1 / 3))


def _summed(layer: Layer, result_bytes: float) -> Layer:
    """The layer with so many bytes written for each result of a weight's gradient.

    Such a gradient is what a product of the backward pass makes, nobody reads, and has as many
    elements as a weight.
    """
    sizes = {tensor.elements for tensor in layer.forward.tensors if tensor.role == "parameter"}
    read = {access.tensor for operator in layer.backward.operators for access in operator.reads}
    gradients = {
        t.id: t.elements for t in layer.backward.tensors if t.id not in read and t.elements in sizes
    }

    def moved(access: Access) -> Access:
        made = gradients.get(access.tensor)
        return access if made is None else replace(access, bytes=round(made * result_bytes))

    operators = tuple(
        replace(operator, writes=tuple(map(moved, operator.writes)))
        if operator.kind == "product"
        else operator
        for operator in layer.backward.operators
    )
    return replace(layer, backward=replace(layer.backward, operators=operators))


def _assert_as_by_formula(model: Model, setting: Setting) -> None:
    table = model_table(model, setting)
    for kind, traced in enumerate(model.layers):
        # Softmaxes of a number of matrices that the stack's kernel does not take run as plain
        # kernels.
        layer = unfused_softmaxes(traced, setting.stack.softmax_matrices)
        # Adding a gradient to its sum: inside the product what its results move, beside it so many
        # bytes a parameter.
        fused = fuse_layer(_summed(layer, setting.stack.accumulation_inside), setting.stack.fusion)
        forward = _plain_s(fused.forward, setting, False)
        adding = (
            setting.stack.accumulation_apart
            * layer.parameter_elements
            / float(table.hbm_bytes_per_s[0])
        )
        assert table.forward_s[kind, 0] == pytest.approx(forward, rel=1e-9)
        assert table.backward_s[kind, 0] == pytest.approx(
            _plain_s(fused.backward, setting, True) + adding, rel=1e-9
        )
        rerun = Modes(layer, keeping_of(setting.stack)).selective().rerun
        again = min(forward, _plain_s(fuse_graph(rerun, setting.stack.fusion), setting, False))
        assert table.again_s[SELECTIVE, kind, 0] == pytest.approx(again, rel=1e-9)
        if setting.stack.trims_recompute:
            trimmed = _plain_s(
                fuse_graph(needed_again(layer), setting.stack.fusion), setting, False
            )
            assert table.again_s[FULL, kind, 0] == pytest.approx(min(forward, trimmed), rel=1e-9)
        else:
            assert table.again_s[FULL, kind, 0] == pytest.approx(forward, rel=1e-9)


@pytest.mark.parametrize("stack", IN_TURN)
def test_formulas_of_a_stack_are_its_schedules(stack: str) -> None:
    """Hidden collectives are order constraints, and collectives in pieces are a fusion: the same
    seconds."""
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), load_stack(stack))
    for name, width, spread in (
        ("llama2-7b", 8, True),
        ("llama2-7b", 8, False),
        ("bert-large", 1, False),
    ):
        _assert_as_by_formula(load_model(name, tensor=width, sequence_parallel=spread), setting)


@pytest.mark.slow
@pytest.mark.parametrize("stack", IN_TURN)
@pytest.mark.parametrize("chip", ["a100-80gb", "tpu-v4", "mi300x"])
@pytest.mark.parametrize(
    "model", ["gpt3-175b", "mixtral-8x7b", "t5-large", "vit-large", "llama3-70b"]
)
def test_formulas_of_a_stack_are_its_schedules_everywhere(
    stack: str, chip: str, model: str
) -> None:
    setting = Setting(load_chip(chip), load_cluster("selene"), load_stack(stack))
    for width, spread in ((1, False), (4, False), (4, True), (8, True)):
        _assert_as_by_formula(load_model(model, tensor=width, sequence_parallel=spread), setting)


@pytest.mark.parametrize("stack", ["ideal", "megatron-core", "maxtext", "megatron-2022"])
def test_a_stack_that_may_overlap_more_is_never_slower(stack: str) -> None:
    chips = _some_chips(4, 1)
    for model in (
        load_model("llama2-7b", tensor=8, sequence_parallel=True),
        load_model("gpt3-175b", tensor=8),
    ):
        layer = _block(model)
        found = [_exact(lower_layer(layer, _machine(stack), rule), chips) for rule in FREER]
        for slow, fast in pairwise(found):
            for name in TIMES:
                assert np.all(getattr(fast, name) <= getattr(slow, name) * (1 + 1e-9)), (
                    stack,
                    name,
                )


def test_a_pass_that_overlaps_is_no_shorter_than_its_bytes_over_the_bandwidth() -> None:
    """Tensor and vector work share one memory; with a memory each, schedules of BERT's backward
    were 25 % too short."""
    chips = _some_chips(12, 2)
    one = lower_layer(_block(load_model("bert-large")), _machine(), OVERLAP).backward
    table = cost_table(one.works, chips, IDEAL)
    least = [
        np.minimum(table.one_core.hbm_bytes(row), table.all_cores.hbm_bytes(row))
        for row in table.rows
    ]
    bytes_ = np.sum(least, axis=0)
    lengths = one.device_s(one.times(work_times(one.works, chips, IDEAL, OVERLAP), 0, chips))
    assert np.all(lengths >= bytes_ / chips.hbm_bytes_per_s * (1 - 1e-9))


def _assert_bounded(model: Model, rule: Rule, count: int, seed: int) -> int:
    chips = _some_chips(count, seed)
    layer = lower_layer(_block(model), _machine(), rule, apart=True)
    exact = _exact(layer, chips)
    bound = layer_table([layer], chips, IDEAL, lambda one, times: one.bound(times, BOUNDS))
    for half in layer.halves or ():
        times = half.times(work_times(half.works, chips, IDEAL, rule), 0, chips)
        assert np.all(half.bound(times, BOUNDS) <= half.device_s(times) * (1 + 1e-9)), (
            model.name,
            rule.name,
        )
    for name in TIMES:
        assert np.all(getattr(bound, name) <= getattr(exact, name) * (1 + 1e-9)), (
            model.name,
            rule.name,
            name,
        )
    return count


@pytest.mark.parametrize("rule", [LINKS, ICML24, OVERLAP], ids=lambda rule: rule.name)
def test_no_bound_is_above_an_exact_layer_time(rule: Rule) -> None:
    for seed, (name, width) in enumerate((("bert-large", 4), ("gpt3-175b", 8), ("llama2-7b", 2))):
        _assert_bounded(load_model(name, tensor=width), rule, 8, seed)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [LINKS, ICML24, OVERLAP], ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "model", ["bert-large", "gpt3-175b", "llama2-7b", "llama3-8b", "vit-large"]
)
@pytest.mark.parametrize(("width", "spread"), [(1, False), (4, False), (4, True)])
def test_no_bound_is_above_an_exact_layer_time_on_many_chips(
    rule: Rule, model: str, width: int, spread: bool
) -> None:
    _assert_bounded(load_model(model, tensor=width, sequence_parallel=spread), rule, 40, width)


def test_a_ring_is_seen_only_where_its_steps_are_longer_than_a_block_of_attention() -> None:
    attention = np.array([8.0, 8.0, 8.0])
    assert in_ring(np.array([0.0, 6.0, 9.0]), attention, 4).tolist() == [8.0, 8.0, 11.0]
    assert in_ring(np.array([5.0]), np.zeros(1), 2).tolist() == [5.0]


def test_a_ring_and_its_attention_are_one_unit_on_every_rule() -> None:
    own = load_model("llama3-8b", 1, 1, 2048, attention="fused")
    for ranks in (2, 16):
        block = context_parallel(own, ranks).layers[1]
        one = lower_pass(block.forward, _machine(), SERIAL)
        joined = [unit for unit in one.units if len(unit.places) == 2]
        assert [unit.cut[0].ring for unit in joined] == [True]
        assert sum(len(unit.places) for unit in one.units) == len(block.forward.operators)


def test_a_collective_in_pieces_shows_one_piece_of_the_shorter() -> None:
    c, p = np.array([8.0, 2.0]), np.array([2.0, 8.0])
    assert in_pieces(c, p, 1).tolist() == [10.0, 10.0]
    assert in_pieces(c, p, 4).tolist() == [8.5, 8.5]
    layer = _block(load_model("llama2-7b", tensor=8, sequence_parallel=True))
    machine = _machine("megatron-core")
    cut = lower_layer(layer, machine, LINKS)
    assert any(unit.cut and unit.network and unit.core != "none" for unit in cut.forward.units)
    whole = replace(machine, stack=replace(machine.stack, overlap=Overlap()))
    assert not any(unit.cut for unit in lower_layer(layer, whole, LINKS).forward.units)


def test_a_backward_pass_apart_is_its_two_halves() -> None:
    """Every operator is in one half, each half is shorter than the whole, and together they do its
    products."""
    chips = chip_set([load_chip("h100", form="cores")])
    for name, width in (("llama2-7b", 8), ("gpt2-xl", 1), ("bert-large", 4)):
        model = load_model(name, tensor=width)
        layer = _block(model)
        sizes = {
            tensor.id: tensor.elements * tensor.element_bytes for tensor in layer.backward.tensors
        }
        assert sum(sizes[i] for i in input_gradients(layer)) == layer.input_bytes
        lowered = lower_layer(layer, _machine(), LINKS, apart=True)
        assert lowered.halves is not None
        halves = [operator.id for half in split_backward(layer) for operator in half.operators]
        assert sorted(halves) == sorted(operator.id for operator in layer.backward.operators)
        found = _exact(lowered, chips)
        for half in lowered.halves:
            times = half.times(work_times(half.works, chips, IDEAL, LINKS), 0, chips)
            assert 0 < half.device_s(times)[0] < found.backward_s[0, 0]
        work = [sum(w.flops for w in one.works) for one in (*lowered.halves, lowered.backward)]
        assert work[0] + work[1] == work[2]


def test_nodes_that_reach_each_other_are_one_component() -> None:
    found = strong_components(6, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3)])
    assert found[0] == found[1] == found[2]
    assert found[3] == found[4]
    assert len(set(found)) == 3


@pytest.mark.parametrize("stack", ["megatron-core", "torchtitan", "maxtext", "megatron-2021"])
def test_passes_that_share_what_is_known_of_their_structure_are_those_made_alone(
    stack: str,
) -> None:
    machine = _machine(stack)
    together = PassBuilder(machine, rule_of(machine.stack))
    for microbatch, tensor, spread in (
        (1, 1, False),
        (2, 2, False),
        (4, 2, True),
        (4, 4, False),
        (8, 2, True),
    ):
        model = load_model(
            "mixtral-8x7b", tensor, microbatch, attention="fused", sequence_parallel=spread
        )
        shared = [expert_parallel(model, degree).layers for degree in (2, 8)] if tensor == 1 else []
        for layer in (*model.layers, *(layer for layers in shared for layer in layers)):
            alone = PassBuilder(machine, together.rule)
            assert run_passes(layer, together) == replace(
                run_passes(layer, alone), builder=together
            )
    assert len(together.shapes) < 40


@pytest.mark.parametrize("stack", ["megatron-core", "torchtitan", "nanotron"])
def test_in_16_bits_a_layer_as_it_runs_offers_the_modes_of_its_trace(stack: str) -> None:
    machine = _machine(stack)
    keeping = keeping_of(machine.stack, True)
    for name, tensor, microbatch in (
        ("mixtral-8x7b", 1, 2),
        ("llama3-8b", 2, 1),
        ("gpt3-175b", 8, 4),
    ):
        model = load_model(
            name, tensor, microbatch, attention="fused", sequence_parallel=tensor > 1
        )
        counted = [(layer, model.count(kind)) for kind, layer in enumerate(model.layers)]
        assert modes_to_try(counted, keeping) == modes_to_try(
            counted,
            keeping,
            lambda layer: Modes(run_layer(layer, machine.stack, machine.precision), keeping),
        )
