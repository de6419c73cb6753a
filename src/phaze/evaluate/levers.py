"""What would make a job fit: the smallest change of each lever alone, every one tried out and none
of them guessed.

For a given plan (:func:`fixed_levers`) the rest of the plan stays: more HBM; a wider tensor split,
with as many replicas as the devices then allow; more devices by a deeper pipeline of as many
replicas; a smaller microbatch; the next mode of recompute; the next stage of ZeRO. For a job whose
plan is sought (:func:`sought_levers`) everything that is sought stays open: the least HBM, the
fewest devices, the first wider split, the first smaller microbatch and the first stage of ZeRO at
which some plan fits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.memo import Memo
from phaze.evaluate.plan import Candidate, PlanRequest, choices, problem_at
from phaze.evaluate.run_file import job_of
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import grown
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import MODES, ZEROS
from phaze.placement.shortage import Levers, Shortage, least_hbm, something_fits
from phaze.placement.solve import fastest_plan

T = TypeVar("T")
# Tensor groups beyond the scale-up domains of today (72 devices) are not proposed.
WIDEST = 64
# Ten times the largest cluster there is.
MOST_DEVICES = 2**20
# No microbatch that is run has more sequences; of a larger one no finer part is tried.
MOST_PARTS = 2**16


def _first(values: Iterable[T], helps: Callable[[T], bool]) -> T | None:
    return next((value for value in values if helps(value)), None)


def _further(mode: str | Sequence[str]) -> tuple[str, ...]:
    """The modes that are tried when one does not fit: those after it, and after modules all but
    none."""
    return MODES[MODES.index(mode) + 1 :] if isinstance(mode, str) and mode in MODES else MODES[1:]


def fixed_levers(
    raw: Mapping[str, Any], needed_bytes: float, basis: Basis, allow_code: bool = False
) -> dict[str, Any]:
    """The levers of a run (``phaze.run/1``) that does not fit, as plain values; None where none
    helps alone."""
    memo, plan = Memo(), dict(raw["plan"])
    tensor, pipeline, data = plan["tensor"], plan["pipeline"], plan["data"]

    def helps(devices: int, **change: Any) -> bool:
        try:
            job = job_of(
                {**raw, "devices": devices, "plan": {**plan, **change}}, "run", memo, allow_code
            )
            problem, priced = fixed_plan(job, basis, memo)
        except (InputError, InfeasibleError):
            return False
        return all(problem.fits(stage.memory.total_bytes) for stage in priced.stages)

    def deeper(stages: int) -> bool:
        return helps(max(raw["devices"], tensor * stages * data), pipeline=stages)

    here = raw["devices"]
    widths = [tensor * 2**k for k in range(1, 7) if tensor * 2**k <= min(WIDEST, here // pipeline)]
    mode, zero = plan.get("recompute", "none"), plan.get("zero", 0)
    stages = _first(range(pipeline + 1, _most_stages(raw) + 1), deeper)
    return {
        "hbm_bytes": needed_bytes,
        "devices": None if stages is None else tensor * stages * data,
        "tensor": _first(
            widths, lambda width: helps(here, tensor=width, data=max(1, here // (width * pipeline)))
        ),
        "microbatch": _first(_parts(plan["microbatch"]), lambda size: helps(here, microbatch=size)),
        "recompute": _first(_further(mode), lambda other: helps(here, recompute=other)),
        "zero": _first(ZEROS[zero + 1 :], lambda stage: helps(here, zero=stage)),
    }


def _most_stages(raw: Mapping[str, Any]) -> int:
    sizes = raw.get("gpt") or raw.get("llama") or raw.get("moe")
    return int(sizes["layers"]) if sizes else 256


def _least_hbm(problems: Sequence[PlacementProblem]) -> tuple[float, PlacementProblem] | None:
    """The least memory at which a plan of one of the problems fits, and that problem."""
    best: tuple[float, PlacementProblem] | None = None
    for problem in problems:
        if best is not None and not something_fits(
            replace(problem, hbm_bytes=best[0] * (1 - 1e-9))
        ):
            continue
        least = least_hbm(problem)
        if least is not None:
            best = (least, problem)
    return best


def _fewest_devices(problems: Sequence[PlacementProblem]) -> int | None:
    def enough(devices: int) -> bool:
        fewest_devices = []
        for problem in problems:
            try:
                fewest_devices.append(
                    replace(
                        problem, devices=devices, cluster=grown(problem.cluster, devices, "devices")
                    )
                )
            except InfeasibleError:
                return False
        return any(something_fits(problem) for problem in fewest_devices)

    short, many = problems[0].devices, 2 * problems[0].devices
    while not enough(many):
        short, many = many, 2 * many
        if many > MOST_DEVICES:
            return None
    while many - short > 1:
        middle = (short + many) // 2
        short, many = (short, middle) if enough(middle) else (middle, many)
    return many


def _parts(microbatch: int) -> list[int]:
    """A microbatch divided by 2, 3 ... where that leaves whole sequences, the largest part
    first."""
    return [
        microbatch // by for by in range(2, min(microbatch, MOST_PARTS) + 1) if microbatch % by == 0
    ]


def sought_levers(request: PlanRequest, candidates: Sequence[Candidate]) -> Shortage:
    """Why nothing fits: the plan that would in the least memory, and the levers of the whole
    job."""
    # Stage 3 over all ranks needs the least memory, so the other levers are moved beside it.
    zero = max(request.job.zeros)
    request = replace(request, job=replace(request.job, zeros=(zero,), shards=(0,)))
    problems = [candidate.problem.at_zero(zero) for candidate in candidates]

    def anything(changed: PlanRequest) -> bool:
        try:
            tried = [problem_at(changed, changed.model_at(*choice)) for choice in choices(changed)]
        except InputError:
            return False
        return any(something_fits(problem) for problem in tried)

    with_more = replace(
        request, widths=request.wider_widths, microbatches=(min(request.microbatches),)
    )
    beyond = [problem_at(with_more, with_more.model_at(*choice)) for choice in choices(with_more)]
    least = _least_hbm(problems)
    plan = None
    if least is not None:
        plan = fastest_plan(replace(least[1], hbm_bytes=least[0]), request.prices)
    smallest, widest = min(request.microbatches), max(request.widths)
    widths = [
        widest * 2**k for k in range(1, 7) if widest * 2**k <= min(WIDEST, request.job.devices)
    ]
    size = _first(_parts(smallest), lambda size: anything(replace(request, microbatches=(size,))))
    need = inf if plan is None else max(stage.memory.total_bytes for stage in plan.stages)
    levers = Levers(
        hbm_bytes=None if plan is None else need / (1 - request.job.headroom),
        devices=_fewest_devices(problems + beyond),
        tensor=_first(widths, lambda width: anything(replace(request, widths=(width,)))),
        microbatch_divisor=None if size is None else smallest // size,
        recompute=_first(
            _further(request.job.recompute) if request.job.recompute != "best" else (),
            lambda mode: any(
                something_fits(replace(problem, recompute=mode)) for problem in problems
            ),
        ),
        optimizer=None,
        zero=_first(
            ZEROS[zero + 1 :],
            lambda stage: any(something_fits(problem.at_zero(stage)) for problem in problems),
        ),
    )
    first = problems[0]
    return Shortage(
        plan,
        first.available_bytes,
        request.job.devices,
        levers,
        first.rules.name,
        request.job.headroom,
    )
