"""What the graphs of a plan's choices have in common is fused, made a work and costed once, as it
would be alone."""

from collections.abc import Iterator

import numpy as np
import pytest

from phaze.cost.chip_set import chip_set
from phaze.cost.work import KnownOperators, works_of
from phaze.evaluate.known_works import KnownWorks
from phaze.evaluate.lowered_layer import keeping_of, rule_of
from phaze.evaluate.lowered_pass import work_times
from phaze.evaluate.plan_order import ranks_of
from phaze.evaluate.request import Job, request_of
from phaze.graph.fuse import fuse_graph
from phaze.graph.fuse.structure import Fusions, Structures
from phaze.graph.ir import OperatorGraph
from phaze.graph.mixture import mixture_of
from phaze.graph.rewrites import run_layer
from phaze.graph.saved.modes import Modes, unions
from phaze.graph.saved.regions import KnownRegions, regions_of
from phaze.graph.saved.rules import flow_of
from phaze.graph.split_experts import _ExpertsRewrite
from phaze.graph.zoo import load_model
from phaze.hardware.library import load_chip

# A mixture of experts, plain and in 8 bits; attention of a ring; one-core times beside those of all
# cores.
JOBS = (
    Job("mixtral-8x7b", None, "h100", 64, 64, tensor=(1, 2), microbatch=(1, 2), expert=(1, 4)),
    Job(
        "mixtral-8x7b",
        None,
        "h100",
        64,
        64,
        tensor=(2,),
        microbatch=(2,),
        expert=(1, 8),
        precision="fp8",
    ),
    Job("llama3-8b", None, "h100", 64, 64, tensor=(1, 4), microbatch=(1, 2), context=(1, 2)),
    Job(
        "bert-large", None, "tpu-v4", 16, 64, cluster="paper-flat", stack="ideal", microbatch=(1, 2)
    ),
)


def _graphs(asked: Job) -> Iterator[OperatorGraph]:
    """The passes of every choice of a job, and what its modes of recompute run again."""
    request = request_of(asked)
    machine, seen = request.setting.machine, dict[int, object]()
    for _, models in ranks_of(request):
        for layer in (layer for model in models for layer in model.layers):
            if id(layer) in seen:
                continue
            seen[id(layer)] = layer
            run = run_layer(layer, machine.stack, machine.precision)
            modes = Modes(run, keeping_of(machine.stack))
            again = (modes.of(name).rerun for name in ("selective", "full", *unions(modes)))
            yield from (run.forward, run.backward, *again)


@pytest.mark.parametrize("asked", JOBS, ids=lambda asked: f"{asked.model}-{asked.precision}")
def test_operators_of_several_graphs_are_what_they_are_in_each_alone(asked: Job) -> None:
    setting = request_of(asked).setting
    rule, fusion, chips = rule_of(setting.stack), setting.stack.fusion, chip_set([setting.chip])
    fusions, operators = Fusions(), KnownOperators()
    known, shared, count = KnownWorks(chips, setting.constants, rule), 0, 0
    for graph in _graphs(asked):
        alone, fused = fuse_graph(graph, fusion), fuse_graph(graph, fusion, fusions)
        assert fused == alone
        works = works_of(alone)
        before = len(operators)
        assert works_of(fused, True, operators) == works
        count, shared = count + len(works), shared + len(works) - (len(operators) - before)
        if works:
            ours, theirs = known.times(works), work_times(works, chips, setting.constants, rule)
            for name in ("one_core_s", "spread_s", "hbm_s"):
                assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    assert shared > count / 10


@pytest.mark.parametrize("asked", JOBS[:3], ids=lambda asked: f"{asked.model}-{asked.precision}")
def test_parts_of_layers_of_one_structure_are_those_of_each(asked: Job) -> None:
    request = request_of(asked)
    machine, known, count = request.setting.machine, KnownRegions(Structures()), 0
    for _, models in ranks_of(request):
        for layer in (layer for model in models for layer in model.layers):
            run = run_layer(layer, machine.stack, machine.precision)
            flow, count = flow_of(run), count + 1
            assert known.of(run, flow) == regions_of(run, flow)
    assert len(known.regions) < count


@pytest.mark.parametrize(("ep", "etp", "imbalance"), [(2, 1, 1.0), (8, 1, 1.3), (4, 2, 1.0)])
@pytest.mark.parametrize("name", ["mixtral-8x7b", "qwen3-30b-a3b"])
def test_operators_that_experts_do_not_touch_are_what_rewriting_makes_of_them(
    name: str, ep: int, etp: int, imbalance: float
) -> None:
    for layer in load_model(name, 1, 2, 4096, attention="fused").layers:
        mixture = mixture_of(layer)
        if mixture is None:
            continue
        quick, every = (_ExpertsRewrite(layer, mixture, ep, etp, imbalance, 2) for _ in range(2))
        every.moved = set(every.tensors)
        for graph in (layer.forward, layer.backward, layer.selective.rerun):
            assert quick.operators(graph) == every.operators(graph)
        assert quick.tensors == every.tensors and len(quick.moved) < len(every.moved)


def test_works_are_costed_in_any_order() -> None:
    request = request_of(JOBS[0])
    setting = request.setting
    rule, chips = rule_of(setting.stack), chip_set([load_chip("h100")])
    known = KnownWorks(chips, setting.constants, rule)
    assert known.times([]).spread_s.shape == (0, 1)
    works = [work for graph in list(_graphs(JOBS[0]))[:4] for work in works_of(graph)]
    for some in (works[:5], works[::-1], works[3:9] * 2, []):
        theirs = (
            work_times(some, chips, setting.constants, rule).spread_s if some else np.zeros((0, 1))
        )
        assert np.array_equal(known.times(some).spread_s, theirs)
