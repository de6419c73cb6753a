"""The energy of a plan as published: a hand-made one term by term, and floors that no plan
undercuts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.hardware.calibration import IDEAL
from phaze.hardware.technology import load_technology
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.structure import StageCut
from phaze.search.bounds.model_bounds import CHEAP, layer_bounds
from phaze.search.chips import enumerate_space
from phaze.search.energy import COMPONENTS, LINKS, LayerJoules, plan_joules
from phaze.search.problem import pattern_of
from phaze.search.reference import layers_on, placed_on
from phaze.search.task import on_all_devices, task_of
from tests.search.made import GIB, made_model, made_training, small_space

TABLE = load_technology("paper-22nm")


def test_a_plans_energy_is_the_sum_of_its_terms() -> None:
    model = made_model(3, blocks=2)
    task = task_of("made", 1.0, made_training(8, 6), IDEAL, [model], ["full"])
    problem = pattern_of(task, task.configurations[0], 64 * GIB)
    plan = price(
        problem,
        Shape(1, 2, 2),
        [StageCut((0, 1), "full"), StageCut((2, 3), "none")],
        NetworkPrices(problem.cluster),
    )
    joules = []
    for forward, backward in ((1.0, 2.0), (3.0, 5.0), (7.0, 11.0)):
        ahead, behind = np.zeros((len(COMPONENTS), 1)), np.zeros((len(COMPONENTS), 1))
        ahead[0], behind[0] = forward, backward
        joules.append(LayerJoules(ahead + behind, {"full": ahead}))
    found = plan_joules(task, task.configurations[0], problem, plan, joules, TABLE)
    layers = 6 * ((2 * 1 + 2) + (2 * 3 + 5) + (3 + 5) + (7 + 11))
    held = sum(model.layers[kind].parameter_bytes for kind in model.calls)
    sent = 6 * 2 * model.edges[1][2] + 4 * (2 - 1) * held
    assert found[0] == layers
    assert found[LINKS] == pytest.approx(sent * TABLE.sent_j_per_byte)
    assert found.sum() == pytest.approx(layers + sent * TABLE.sent_j_per_byte)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    width=st.sampled_from([1, 2]),
    recompute=st.sampled_from(["none", "full", "best"]),
)
def test_no_plan_undercuts_the_floor(seed: int, width: int, recompute: str) -> None:
    opened, model = enumerate_space(small_space(rows=[64])), made_model(seed, width)
    task = task_of("made", 1.0, made_training(16, 64), IDEAL, [model], [recompute])
    bounds = layer_bounds(task, model, opened.arrays(), CHEAP, TABLE)
    assert bounds.dynamic_j is not None
    floors = on_all_devices(task, model, bounds.dynamic_j)
    for number in (0, len(opened) // 2, len(opened) - 1):
        layers = layers_on(task, 0, opened.chip(number, GIB), TABLE)
        found = placed_on(task, task.configurations[0], layers, GIB, TABLE)
        if found.plan is not None:
            assert floors[number] <= found.dynamic_j * (1 + 1e-9)
