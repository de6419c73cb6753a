"""The energy of a plan: a hand-made one term by term, and floors that no plan undercuts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.evaluate.flow import Training
from phaze.hardware.technology_files import load_technology
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.one.layout import Shape
from phaze.placement.one.pipeline import Cut, price
from phaze.search.bound import CHEAP, layer_bounds
from phaze.search.chips import open_space
from phaze.search.energy import COMPONENTS, LINKS, Electricity, LayerJoules, dynamic_floors, plan_joules
from phaze.search.evaluation import plan_of
from phaze.search.plain import layers_on, planned
from phaze.search.task import ModelTask, Way
from tests.search.made import GIB, made_model, small_space

TABLE = load_technology("paper-22nm").energy


def test_a_plans_energy_is_the_sum_of_its_terms() -> None:
    from phaze.evaluate.flow import LayerSeconds, graph_of, placement_of

    model, training = made_model(3, blocks=2), Training(8, 6, 2.0**32)
    electricity = Electricity(TABLE, training.link_bytes_per_s)
    seconds = [LayerSeconds(1.0, 2.0)] * 3
    problem = placement_of([graph_of(model, seconds)], 1, "full", 64 * GIB, training)
    plan = price(problem, Shape(1, 2, 2), [Cut((0, 1), "full"), Cut((2, 3), "none")], RingPrices(problem.cluster))
    joules = []
    for forward, backward in ((1.0, 2.0), (3.0, 5.0), (7.0, 11.0)):
        one = LayerJoules(np.zeros(len(COMPONENTS)), np.zeros(len(COMPONENTS)))
        one.forward_j[0], one.backward_j[0] = forward, backward
        joules.append(one)
    found = plan_joules(model, plan, joules, electricity, training)
    layers = 6 * ((2 * 1 + 2) + (2 * 3 + 5) + (3 + 5) + (7 + 11))
    held = sum(model.layers[kind].parameter_bytes for kind in model.calls)
    sent = 6 * 2 * model.edges[1][2] + 4 * (2 - 1) * held
    assert found[0] == layers
    assert found[LINKS] == pytest.approx(sent * TABLE.link_j_per_byte)
    assert found.sum() == pytest.approx(layers + sent * TABLE.link_j_per_byte)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([1, 2]), recompute=st.sampled_from(["none", "full", "best"]))
def test_no_plan_undercuts_the_floor(seed: int, width: int, recompute: str) -> None:
    opened, model = open_space(small_space(rows=[64])), made_model(seed, width)
    training = Training(16, 64, 2.0**32)
    electricity = Electricity(TABLE, training.link_bytes_per_s)
    bounds = layer_bounds(model, opened.arrays(), CHEAP, electricity)
    assert bounds.dynamic_j is not None
    floors = dynamic_floors(model, bounds.dynamic_j, training)
    way = Way(0, recompute)  # type: ignore[arg-type]
    task = ModelTask("made", 1.0, training, (model,), (way,))
    for number in (0, len(opened) // 2, len(opened) - 1):
        chip = opened.chip(number, GIB)
        layers = layers_on(model, chip, electricity)
        found = planned(task, way, layers, GIB, electricity)
        if found is None:
            continue
        assert floors[number] <= found.dynamic_j * (1 + 1e-9)
        assert found.plan == plan_of(model, layers.seconds, way.recompute, GIB, training)
        document = found.document(2.0, 16)
        assert sum(document.values()) == pytest.approx(found.dynamic_j + 32 * found.plan.batch_s)
