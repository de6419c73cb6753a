"""Plans found by us: never beaten by the plans we can write down, and an answer when nothing
fits."""

from itertools import product

import pytest

from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.fixed import even_cuts, fixed_plan
from phaze.evaluate.heuristic_plans import heuristic_plans
from phaze.evaluate.levers import fixed_levers, sought_levers
from phaze.evaluate.plan import PlanRequest
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Job, request_of
from phaze.evaluate.run_file import job_of
from phaze.hardware.cluster import grown
from phaze.hardware.library import load_cluster
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, price
from phaze.placement.rules import MODES
from phaze.values import replace
from tests.evaluate.every_choice import as_planned, candidates

SIZES = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 1024}


def request(**changes: object) -> PlanRequest:
    asked = Job("gpt", SIZES, "a100-80gb", devices=8, batch=32, microbatch=(1, 4), tensor=(1, 2))
    return request_of(replace(asked, **changes))


def test_no_even_split_beats_the_plan() -> None:
    job = request()
    found = list(candidates(job))
    best = min(c.plan.batch_s for c in found if c.plan is not None)
    for candidate in found:
        for stages, data, mode in product((1, 2, 4), (1, 2, 4, 8), MODES):
            if candidate.model.tensor * stages * data > job.job.devices:
                continue
            cuts = even_cuts(candidate.model, stages, mode)
            problem = replace(candidate.problem, recompute=mode)
            plan = price(
                problem, Shape(candidate.model.tensor, stages, data, "data"), cuts, job.prices
            )
            assert not fits(problem, plan) or plan.batch_s >= best * (1 - 1e-9)


def test_the_rule_of_thumb_is_a_plan_that_fits() -> None:
    job = request()
    found = list(candidates(job))
    usual, _ = heuristic_plans(job, as_planned(job, found))
    assert usual is not None
    thumb = usual.plan
    assert thumb is not None
    assert thumb.tensor == 2
    assert thumb.batch_s >= min(c.plan.batch_s for c in found if c.plan is not None) * (1 - 1e-9)


def test_more_devices_never_slow_the_plan() -> None:
    times = [
        min(c.plan.batch_s for c in candidates(request(devices=n)) if c.plan is not None)
        for n in (4, 8, 16)
    ]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("mode", ["none", "selective", "full"])
def test_one_way_to_recompute_for_all_stages_is_never_faster_than_the_best_for_each(
    mode: str,
) -> None:
    best, alike = (
        min(candidates(request(recompute=r)), key=lambda c: c.rank).plan for r in ("best", mode)
    )
    assert best is not None
    assert alike is not None
    assert {stage.recompute for stage in alike.stages} == {mode}
    assert alike.batch_s >= best.batch_s


def test_recomputing_is_a_lever_where_it_was_held_fixed() -> None:
    large = {"hidden": 4096, "layers": 24, "heads": 32, "vocabulary": 51200, "sequence": 2048}
    sizes = {"sizes": large, "chip": "a100-40gb", "batch": 64, "microbatch": (16,), "tensor": (4,)}
    held = request(recompute="none", **sizes)
    found = list(candidates(held))
    assert all(candidate.plan is None for candidate in found)
    assert sought_levers(held, found).levers.recompute == "selective"


def test_nothing_fits_is_an_answer_with_levers() -> None:
    job = request(devices=1, tensor=(1,), microbatch=(1,))
    chip = replace(job.setting.chip, hbm=replace(job.setting.chip.hbm, size_bytes=2**30))
    small = replace(job, setting=replace(job.setting, chip=chip))
    found = list(candidates(small))
    assert all(candidate.plan is None for candidate in found)
    shortage = sought_levers(small, found)
    assert shortage.tightest is not None
    assert shortage.tightest.memory.total_bytes > 2**30
    assert shortage.levers.hbm_bytes is not None
    assert shortage.levers.hbm_bytes > 2**30


def test_a_switched_cluster_grows_and_a_torus_does_not() -> None:
    assert grown(load_cluster("dgx-h100"), 4096, "--devices").levels[-1].size == 512
    pod = load_cluster("tpu-v4-pod")
    assert grown(pod, 5000, "--devices").levels[-1].size == 2
    with pytest.raises(InfeasibleError, match="at most as many"):
        grown(replace(pod, levels=pod.levels[:1]), 5000, "--devices")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recompute": "some"}, "allowed"),
        ({"devices": 0}, "--devices"),
        ({"batch": -1}, "--batch"),
        ({"zero": 4}, "--zero"),
        ({"chip": "tpu-v2", "cluster": None}, "names no default cluster"),
        ({"tensor": (16,)}, "none of"),
        ({"model": "bert-larg", "sizes": None, "tensor": None}, "did you mean 'bert-large'"),
    ],
)
def test_a_wrong_request_is_one_sentence(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        list(candidates(request(**changes)))
    assert said in str(caught.value)


def test_each_lever_of_a_given_plan_helps_and_a_smaller_change_does_not() -> None:
    sizes = {"hidden": 4096, "layers": 24, "heads": 32, "vocabulary": 51200, "sequence": 2048}
    plan = {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 8, "recompute": "none"}
    raw = {
        "schema": "phaze.run/1",
        "gpt": sizes,
        "chip": "a100-80gb",
        "cluster": "selene",
        "devices": 8,
        "batch": 128,
    }

    def need(**change: object) -> float:
        asked = {**plan, **change}
        used = asked["tensor"] * asked["pipeline"] * asked["data"]  # type: ignore[operator]
        job = job_of({**raw, "devices": max(8, used), "plan": asked}, "run")
        return max(stage.memory.total_bytes for stage in fixed_plan(job)[1].stages)

    there = 80 * 2**30
    assert need() > there
    levers = fixed_levers({**raw, "plan": plan}, need(), "calibrated")
    assert levers["hbm_bytes"] == need()
    for name, before in (
        ("microbatch", 2),
        ("recompute", {"selective": "none", "full": "selective"}),
    ):
        chosen = levers[name]
        if chosen is not None:
            assert need(**{name: chosen}) <= there
            less = chosen * before if isinstance(before, int) else before[chosen]
            assert need(**{name: less}) > there
    for zero in range(1, levers["zero"] or 4):
        assert (need(zero=zero) <= there) == (zero == levers["zero"])
    if levers["devices"] is not None:
        stages = levers["devices"] // 4
        assert need(pipeline=stages) <= there < need(pipeline=stages - 1)
    assert levers["recompute"] == "full"


def test_the_levers_of_a_job_are_the_smallest_changes_that_let_some_plan_fit() -> None:
    job = request(devices=2, tensor=(1,), microbatch=(4,), zero=0)
    chip = replace(job.setting.chip, hbm=replace(job.setting.chip.hbm, size_bytes=int(1.9 * 2**30)))
    small = replace(job, setting=replace(job.setting, chip=chip))
    shortage = sought_levers(small, list(candidates(small)))
    levers = shortage.levers

    def fits_with(**change: object) -> bool:
        return any(one.plan is not None for one in candidates(replace(small, **change)))

    assert levers.hbm_bytes is not None
    enough = replace(chip, hbm=replace(chip.hbm, size_bytes=int(levers.hbm_bytes) + 1))
    assert fits_with(setting=replace(small.setting, chip=enough))
    short = replace(chip, hbm=replace(chip.hbm, size_bytes=int(levers.hbm_bytes * (1 - 1e-6))))
    assert not fits_with(setting=replace(small.setting, chip=short))
    if levers.devices is not None:
        assert fits_with(job=replace(small.job, devices=levers.devices))
        assert not fits_with(job=replace(small.job, devices=levers.devices - 1))
    for zero in (1, 2, 3):
        if levers.zero is None or zero < levers.zero:
            assert not fits_with(job=replace(small.job, zeros=(zero,)))
    if levers.zero is not None:
        assert fits_with(job=replace(small.job, zeros=(levers.zero,)))


def test_a_free_stage_of_zero_is_the_fastest_of_all_four() -> None:
    free = request(batch=64)
    best = planned(free).best
    alone = [planned(one).best for one in (request(batch=64, zero=zero) for zero in range(4))]
    assert best.rank == min(one.rank for one in alone)
    assert best.problem.zero == min(alone, key=lambda one: one.rank).problem.zero


def test_a_job_that_fits_only_with_shared_state_is_answered_and_levers_stand_beside_stage_3() -> (
    None
):
    job = request(tensor=(1,), microbatch=(1,))

    def small(size_bytes: float, **changes: object) -> PlanRequest:
        chip = replace(
            job.setting.chip, hbm=replace(job.setting.chip.hbm, size_bytes=int(size_bytes))
        )
        return replace(job, setting=replace(job.setting, chip=chip), **changes)

    asked = small(1.5 * 2**30)
    least = sought_levers(asked, list(candidates(asked))).levers.hbm_bytes
    assert least is not None
    enough = small(least + 1)
    assert all(one.plan is None for one in candidates(enough))
    assert planned(enough).best.plan is not None
    short = small(least * (1 - 1e-6))
    assert planned(short).best.plan is None


def test_devices_that_would_do_count_widths_beyond_those_there_are() -> None:
    job = request(devices=1, tensor=(1, 2, 4), microbatch=(1,))
    assert (job.widths, job.wider_widths) == ((1,), (2, 4))
    chip = replace(job.setting.chip, hbm=replace(job.setting.chip.hbm, size_bytes=int(1.7 * 2**30)))
    small = replace(job, setting=replace(job.setting, chip=chip))
    some = sought_levers(small, list(candidates(small))).levers.devices
    none = sought_levers(replace(small, wider_widths=()), list(candidates(small))).levers.devices
    assert some is not None
    assert none is None or some <= none


def test_the_experts_split_is_cut_evenly_and_never_beats_the_plan() -> None:
    job = request_of(
        Job("bert-large", None, "a100-80gb", devices=64, batch=64, microbatch=(1,), tensor=(1,))
    )
    found = list(candidates(job))
    _, experts = heuristic_plans(job, as_planned(job, found))
    assert experts is not None
    plan = experts.plan
    assert plan is not None
    assert (len(plan.stages), plan.data, plan.tensor) == (8, 8, 1)
    assert sum(len(stage.layers) for stage in plan.stages) == len(found[0].model.calls)
    assert {len(stage.layers) for stage in plan.stages[1:-1]} == {3}
    assert plan.batch_s >= min(c.plan.batch_s for c in found if c.plan is not None) * (1 - 1e-9)
