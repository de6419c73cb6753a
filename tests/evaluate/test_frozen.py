"""Frozen weights of one's own model: held by all, trained by none; adapters beside them as PEFT
writes them."""

from math import prod
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import phaze
from phaze.evaluate.flow import rank_problem
from phaze.evaluate.layers import Setting
from phaze.graph.ir import Model
from phaze.graph.torch.trace import trace_model
from phaze.graph.torch.user import module_source
from phaze.hardware.library import load_built_stack, load_chip, load_cluster
from phaze.placement.job import TrainingJob
from phaze.placement.solve import fastest_plan

WIDTH, WORDS, RANK = 256, 512, 4


class Adapted(nn.Module):
    """A linear map with a low-rank one beside it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False)
        self.down, self.up = (
            nn.Linear(inputs, RANK, bias=False),
            nn.Linear(RANK, outputs, bias=False),
        )

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.second = (
            nn.LayerNorm(WIDTH),
            Adapted(WIDTH, 4 * WIDTH),
            Adapted(4 * WIDTH, WIDTH),
        )

    def forward(self, x: Any) -> Any:
        return x + self.second(F.gelu(self.first(self.norm(x))))


class Net(nn.Module):
    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, tokens: Any) -> Any:
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).view(-1, WORDS), tokens.view(-1))


def _net(frozen: bool, tied: bool = False) -> nn.Module:
    net = Net(tied)
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(not frozen or "up." in name or "down." in name)
    return net


def _traced(frozen: bool, tied: bool = False) -> Model:
    tokens = torch.zeros(2, 64, dtype=torch.long)
    return trace_model(module_source("net", _net(frozen, tied), tokens, None), microbatch=2)


def _weight_gradients(model: Model) -> list[int]:
    """Elements of the results of products of a backward pass that read no parameter: gradients of
    weights."""
    found = []
    for layer in model.layers:
        own = {parameter.tensor for parameter in layer.parameters}
        sizes = {tensor.id: tensor.elements for tensor in layer.backward.tensors}
        for op in layer.backward.operators:
            if op.kind == "product" and not own & {access.tensor for access in op.reads}:
                found += [sizes[access.tensor] for access in op.writes]
    return found


def test_the_backward_pass_has_no_gradient_of_a_frozen_weight() -> None:
    matrix = 4 * WIDTH * WIDTH
    assert matrix in _weight_gradients(_traced(False)) and WIDTH * WORDS in _weight_gradients(
        _traced(False)
    )
    assert set(_weight_gradients(_traced(True))) == {4 * WIDTH * RANK, WIDTH * RANK}
    kept = []
    for model in (_traced(True), _traced(False)):
        kept.append(sum(model.layers[call.layer].none.saved_bytes for call in model.calls))
    assert kept[0] < kept[1], "what only a gradient of a weight needs is not kept"


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("tied", [False, True])
def test_state_and_reduction_count_trained_parameters_and_weights_all(
    zero: int, tied: bool
) -> None:
    plans = []
    setting = Setting(
        load_chip("h100"), load_cluster("dgx-h100"), load_built_stack("megatron-core")
    )
    for frozen in (False, True):
        model, net = _traced(frozen, tied), _net(frozen, tied)
        job = TrainingJob(setting.machine, 4, 8, "adam", (zero,))
        problem = rank_problem(job, model, setting)
        plan = fastest_plan(problem)
        assert plan is not None and len(plan.stages) == 1 and plan.data == 4
        memory, state = plan.stages[0].memory, problem.state
        every = [(prod(p.shape), p.requires_grad) for p in net.parameters()]
        trained, count = sum(n for n, own in every if own), sum(n for n, _ in every)
        shared = [4 if zero >= stage else 1 for stage in (1, 2, 3)]
        assert memory.optimizer == pytest.approx(state.optimizer * trained / shared[0])
        if zero < 2:
            assert memory.parameters == pytest.approx(state.weight * count)
        assert memory.parameters >= state.weight * count / shared[2]
        plans.append(plan)
    assert plans[1].batch_s < plans[0].batch_s
    assert plans[1].stages[0].memory.total_bytes < plans[0].stages[0].memory.total_bytes
    done = [plan.breakdown for plan in plans]
    # All devices agree on the norm of the gradients, however few there are.
    assert done[1].optimizer_s < 0.1 * done[0].optimizer_s
    assert zero > 1 or done[1].synchronisation_s < 0.5 * done[0].synchronisation_s


def test_an_adapted_model_is_planned_and_its_certificate_holds(tmp_path: Any) -> None:
    tokens = torch.zeros(1, 64, dtype=torch.long)
    for at, frozen in enumerate((False, True)):
        model = phaze.Model(_net(frozen), tokens, name="net")
        phaze.plan(
            model,
            chip="h100",
            devices=2,
            batch=4,
            microbatch=1,
            tensor=1,
            certificate=tmp_path / str(at),
        )
        assert phaze.verify(tmp_path / str(at))["holds"]
