"""Formulas of docs/search.md, docs/plan.md and docs/cluster.md: objectives, the cost of a run, the
limit of workers."""

import numpy as np
import pytest

from phaze.evaluate.training_run import Budget, Pace, training_run
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.library import load_chip
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import HOURS_PER_YEAR, load_terms
from phaze.search.objective import KINDS, Objective, Scale
from phaze.search.rates import J_PER_KWH, chip_rates
from phaze.values import FrozenTable, replace
from tests.formulas.stated import cells, evaluate, formulas

RUN = formulas("plan.md", "What is proved")
WORKERS = formulas("cluster.md", "The limit at 100 workers")


@pytest.mark.parametrize("kind", KINDS)
def test_a_score_is_that_of_the_document(kind: str) -> None:
    chip, terms, devices = load_chip("h100"), load_terms(), 64
    figures, making = estimates_of(chip), manufacturing_of(chip, terms)
    assert figures is not None and making is not None
    for step_s, dynamic_j in ((0.7, 2e5), (12.0, 3e7)):
        energy_j = dynamic_j + devices * figures.static_w * step_s
        names = {
            "T": step_s, "E": energy_j, "K": devices, "manufacturing cost": making.usd,
            "embodied carbon": making.kgco2e,
            "lifetime": terms.lifetime_years * HOURS_PER_YEAR * 3600,
            "PUE": terms.power_usage_effectiveness,
            "price of a joule": terms.electricity_usd_per_kwh / J_PER_KWH,
            "carbon of a joule": terms.grid_kgco2e_per_kwh / J_PER_KWH,
        }  # fmt: skip
        stated = evaluate(cells("search.md", f"`{kind}`")[0], names)
        rates = chip_rates(Objective(kind), chip, devices)  # type: ignore[arg-type]
        assert stated == pytest.approx(float(rates.value(np.asarray(step_s), dynamic_j)), rel=1e-9)


def test_several_models_are_weighed_as_the_document_says() -> None:
    values, base = np.array([3.0, 8.0]), (2.0, 10.0)
    scale = Scale(Objective(), (0.25, 0.75), (512.0, 64.0), base)
    ratios = [value / own for value, own in zip(values, base, strict=True)]
    assert float(scale.score(values)) == pytest.approx(ratios[0] ** 0.25 * ratios[1] ** 0.75)
    regret = replace(scale, objective=Objective(mean="regret"))
    assert float(regret.score(values)) == pytest.approx(max(ratios))
    mean = replace(scale, objective=Objective(mean="arithmetic"))
    assert 1 / float(mean.score(values)) == pytest.approx(0.25 * 512 / 3.0 + 0.75 * 64 / 8.0)


def test_a_whole_run_costs_what_the_document_says() -> None:
    chip, terms = load_chip("h100"), load_terms()
    price = terms.price("h100")
    assert price is not None
    making = manufacturing_of(chip, terms)
    assert making is not None and chip.published.tdp_w is not None
    run = training_run(Budget(10**12, terms), Pace(4_194_304, 5.7, 64), chip)
    names: dict[str, float] = {
        "tokens": 10**12, "tokens a step": 4_194_304, "step time": 5.7, "devices": 64,
        "power": chip.published.tdp_w * terms.utilisation, "PUE": terms.power_usage_effectiveness,
        "price of a device hour": price, "lifetime": terms.lifetime_years * HOURS_PER_YEAR,
        "manufacturing cost": making.usd, "price of a kWh": terms.electricity_usd_per_kwh,
        "grid": terms.grid_kgco2e_per_kwh, "embodied carbon": making.kgco2e,
    }  # fmt: skip
    for name in ("steps", "days", "device hours", "kWh", "kgCO2e"):
        names[name] = evaluate(RUN[name], names)
    names["USD"] = evaluate(RUN["USD"], names)
    unpriced = training_run(
        Budget(10**12, replace(terms, device_usd_per_hour=FrozenTable())),
        Pace(4_194_304, 5.7, 64),
        chip,
    )
    assert unpriced["usd"] is None
    own = {
        "steps": run["batches"],
        "days": run["days"],
        "device hours": run["device_hours"],
        "kWh": run["kwh"],
    }
    own |= {"USD": run["usd"], "kgCO2e": run["kgco2e"]}
    assert {name: names[name] for name in own} == pytest.approx(own, rel=1e-12)
    assert set(RUN) == {*own}


def test_the_limit_of_workers_follows_from_its_formula() -> None:
    total_s, evaluating, share, *limits = cells("cluster.md", "bert-large")
    total, spent = float(total_s), float(evaluating.split()[0])
    assert evaluating.endswith("(4 chips)") and share == f"{1 - spent / total:.0%}".replace(
        "%", " %"
    )
    stated = WORKERS["speed-up(W)"].replace("sum over rounds of o", "o")
    for workers, limit in zip((2, 16, 100), limits, strict=True):
        names = {"t": total, "s": 1 - spent / total, "o": spent, "W": workers, "c": 4}
        assert evaluate(stated, names) == pytest.approx(float(limit), abs=0.006)
