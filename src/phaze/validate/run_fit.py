"""Constants of a chip, a cluster and a stack from one measured run: what it determines, and why it
does not the rest.

    software_share           the share of the rate of products at which GEMMs take as long as
                             measured (bisection)
    vector_hbm_share         the share of HBM at which vector kernels do
    host_time                seconds that the host worked in a step / operators that phaze counts in
                             it
    levels[l].share, start   of the level that a group spans: share from the largest message, start
                             from the smallest, in turn until both are met; one size determines the
                             share alone
    hidden_synchronisation   1 - exposed / all seconds of the collectives over the replicas
    from a log               software_share alone: the one at which the whole step takes as long as
                             measured

Nothing is fitted where the answer would lie outside what the constant may be: then the run, the
chip or the kernels are not what they are said to be, and the sentence says so. A run with pipeline
stages is compared by its mean stage.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from phaze.cost.collective import collective, members
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.run_file import RunJob
from phaze.hardware.cluster import Cluster
from phaze.validate.measured_step import MeasuredCollective, MeasuredStep
from phaze.validate.predicted_step import StepWorks, step_works, with_share
from phaze.values import replace

LEAST_SHARE = 1e-3
"""Of a rate: below a thousandth the chip is not the one that ran."""
HALVINGS = 24
"""Bisections: to the six digits that a file has."""
LEAST_KERNEL_SHARE = 0.02
"""Of a step that a class of kernels must take to say something."""
MOST_HOST_S = 1e-2
"""Host time an operator: beyond, the host did other things."""
LARGE_BYTES = float(1 << 20)
"""Below, libraries send messages another way, which says nothing of larger ones."""
NEVER_SMALL = 1e-6
"""The share of the way of small messages at which none is small enough for it; the least that a
file takes."""
WIDE_SIZES = 8.0
"""Between the largest and the smallest message that start and share are both seen in."""
ROUNDS = 30
"""Of start and share in turn: each halves what is left at least."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One constant: the file it belongs to, its key there, the value before and now, and how it was
    found."""

    file: str
    key: str
    before: float | None
    value: float
    how: str


@dataclass(frozen=True, slots=True)
class RunFit:
    """What a run determined, and what it did not, with reasons."""

    fitted: tuple[Fitted, ...]
    undetermined: tuple[tuple[str, str], ...]
    predicted_s: dict[str, float] = field(default_factory=dict)


def bisected(
    value: Callable[[float], float], target: float, low: float, high: float
) -> float | None:
    """The argument at which a falling function is ``target``; None if that lies outside of [low,
    high]."""
    if not value(high) <= target <= value(low):
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(middle) > target else (low, middle)
    return float(f"{0.5 * (low + high):.6g}")


def fit_trace(job: RunJob, step: MeasuredStep) -> RunFit:
    """The constants that a profiled step determines."""
    works = step_works(job)
    fitted: list[Fitted] = []
    open_: list[tuple[str, str]] = []
    for part in (
        _products(works, step),
        _vectors(works, step),
        _host(works, step),
        _hidden(job, step),
    ):
        (fitted if isinstance(part, Fitted) else open_).append(part)  # type: ignore[arg-type]
    links, unknown = _links(job.cluster, step)
    open_ += [
        ("attention", "kernels of attention have measured rates of their own (presets/attention)")
    ]
    predicted = {str(name): seconds for name, seconds in works.seconds(works.constants()).items()}
    return RunFit((*fitted, *links), (*open_, *unknown), predicted)


def fit_log(job: RunJob, step_s: float) -> RunFit:
    """The software share at which a run's step takes as long as its log says."""
    works = step_works(job)
    rest = "a log has no kernels: give a trace of torch.profiler"
    open_ = [
        (name, rest)
        for name in ("vector_hbm_share", "host_time", "levels", "hidden_synchronisation")
    ]
    if job.chip.lumped_share:
        return RunFit((), (("software_share", _cores(job)), *open_))

    def seconds(share: float) -> float:
        return fixed_plan(replace(job, stack=with_share(works.setting, share)))[1].batch_s

    share = bisected(seconds, step_s, LEAST_SHARE, 1.0)
    if share is None:
        fastest = seconds(1.0)
        reason = (
            f"the step took {step_s:.4g} s, and {fastest:.4g} s with all of the rate: no "
            "share of it explains that"
        )
        return RunFit((), (("software_share", reason), *open_))
    before = works.constants().software_share
    return RunFit(
        (Fitted("stack", "software_share", before, share, "the whole step of its log"),),
        tuple(open_),
    )


def _cores(job: RunJob) -> str:
    return (
        f"{job.chip.name} is a chip of cores: give its products to phaze calibrate MEASUREMENTS.csv"
    )


Part = Fitted | tuple[str, str]


def _enough(step: MeasuredStep, name: str, measured: float) -> str:
    if measured <= 0:
        return f"the trace has no kernels of {name}"
    share = measured / step.step_s
    return (
        ""
        if share >= LEAST_KERNEL_SHARE
        else f"{name} kernels take {share:.1%} of the step, too little to tell"
    )


def _products(works: StepWorks, step: MeasuredStep) -> Part:
    key, measured = "software_share", step.class_s.get("gemm", 0.0)
    if works.setting.chip.lumped_share:
        return (
            key,
            (
                f"{works.setting.chip.name} is a chip of cores: give its products to phaze "
                "calibrate MEASUREMENTS.csv"
            ),
        )
    if reason := _enough(step, "GEMM", measured):
        return key, reason
    share = bisected(
        lambda x: works.seconds(works.constants(x))["gemm"], measured, LEAST_SHARE, 1.0
    )
    if share is None:
        fastest = works.seconds(works.constants(1.0))["gemm"]
        return key, (
            f"GEMMs took {measured:.4g} s a step, and phaze counts {fastest:.4g} s with "
            "all of the rate of "
            f"{works.setting.chip.name}: is the run the one that was profiled?"
        )
    return Fitted(
        "stack", key, works.constants().software_share, share, "seconds of GEMM kernels a step"
    )


def _vectors(works: StepWorks, step: MeasuredStep) -> Part:
    key, measured = "vector_hbm_share", step.class_s.get("vector", 0.0)
    if reason := _enough(step, "vector", measured):
        return key, reason

    def value(share: float) -> float:
        return works.seconds(works.constants(vector_share=share))["vector"]

    share = bisected(value, measured, LEAST_SHARE, 1.0)
    if share is None:
        return key, (
            f"vector kernels took {measured:.4g} s a step, and phaze counts "
            f"{value(1.0):.4g} s at the full bandwidth: "
            "the stack fuses more, or less, than its file says"
        )
    return Fitted(
        "chip", key, works.constants().vector_hbm_share, share, "seconds of vector kernels a step"
    )


def _host(works: StepWorks, step: MeasuredStep) -> Part:
    key = "host_time"
    if not step.on_device:
        return key, "host and device are the same processor"
    if step.launches <= 0 or step.host_s <= 0:
        return key, "the trace has no launches: profile with activities CPU and CUDA"
    value = float(f"{step.host_s / works.operators:.4g}")
    if value > MOST_HOST_S:
        return key, f"it would be {value:.3g} s an operator: the host did other things"
    return Fitted(
        "stack", key, works.setting.stack.host_s, value, f"{step.launches:.0f} launches a step"
    )


def _hidden(job: RunJob, step: MeasuredStep) -> Part:
    key, data = "hidden_synchronisation", job.plan.data * job.plan.context
    if data < 2:
        return key, "there is one replica"
    if data in (job.plan.tensor, job.plan.expert) and data > 1:
        return (
            key,
            (
                f"groups of {data} are replicas and others too, and the trace tells them "
                "apart by size alone"
            ),
        )
    exposed, total = step.exposed_by_ranks.get(data, (0.0, 0.0))
    if total <= 0:
        return key, f"no collective over the {data} replicas states its group"
    value = float(f"{max(0.0, 1 - exposed / total):.4g}")
    return Fitted(
        "stack", key, job.stack.hidden_synchronisation, value, f"collectives over {data} ranks"
    )


def _links(cluster: Cluster, step: MeasuredStep) -> tuple[list[Fitted], list[tuple[str, str]]]:
    fitted: list[Fitted] = []
    open_: list[tuple[str, str]] = []
    if step.unsized:
        open_.append(
            (
                "levels",
                (
                    f"{step.unsized} collectives state no size or group: profile with "
                    "record_shapes=True"
                ),
            )
        )
    for number, level in enumerate(cluster.levels):
        collectives = [
            measured for measured in step.collectives if _level_of(cluster, measured) == number
        ]
        if not collectives:
            open_.append((f"levels[{number}]", f"no sized collective spans the level {level.name}"))
            continue
        fit = fit_level(cluster, number, collectives)
        if isinstance(fit, str):
            open_.append((f"levels[{number}]", fit))
        else:
            fitted += fit
    return fitted, open_


def _level_of(cluster: Cluster, measured: MeasuredCollective) -> int | None:
    """The outermost level that a group spans, its ranks next to each other."""
    if measured.ranks > cluster.devices:
        return None
    return max(number for number, met in enumerate(members(cluster, measured.ranks)) if met > 1)


def fit_level(
    cluster: Cluster, number: int, collectives: Sequence[MeasuredCollective]
) -> list[Fitted] | str:
    """Share and start of a level from its collectives, or why not."""
    level = cluster.levels[number]
    collectives = [
        measured for measured in collectives if measured.bytes >= LARGE_BYTES
    ] or collectives
    tiny = max(measured.bytes for measured in collectives) < LARGE_BYTES
    large, small = (
        max(collectives, key=lambda measured: measured.bytes),
        min(collectives, key=lambda measured: measured.bytes),
    )
    both = large.bytes >= WIDE_SIZES * small.bytes

    def seconds(measured: MeasuredCollective, share: float, start: float | None) -> float:
        # The way of small messages would hide what is sought.
        alone = replace(level, share=share, start_s=start, small_share=NEVER_SMALL)
        levels = (*cluster.levels[:number], alone, *cluster.levels[number + 1 :])
        return collective(
            measured.kind, measured.bytes, measured.ranks, replace(cluster, levels=levels)
        ).time_s

    start, share = level.start_s, None
    for _ in range(ROUNDS if both else 1):
        share = bisected(lambda x, s=start: seconds(large, x, s), large.seconds, LEAST_SHARE, 1.0)  # type: ignore[misc]
        if share is None:
            if start:
                start = 0.5 * start
                continue
            break
        if both:
            start = _start(lambda s, x=share: seconds(small, x, s), small.seconds)  # type: ignore[misc]
    if share is None:
        fastest = seconds(large, 1.0, 0.0)
        return (
            f"{large.bytes:.3g} bytes over {large.ranks} ranks took {large.seconds:.3g} "
            f"s and {fastest:.3g} s at all "
            f"of the bandwidth of the level {level.name}: its file is not the network that ran"
        )
    kinds = ", ".join(sorted({measured.kind for measured in collectives}))
    how = f"{len(collectives)} sizes of {kinds}, shortest of each"
    fitted = [Fitted("cluster", f"levels[{number}].share", level.share, share, how)]
    if both and start is not None:
        fitted.append(Fitted("cluster", f"levels[{number}].start", level.start_s, start, how))
    if tiny:
        way = "all messages were small and went the one way that was fitted"
        fitted.append(
            Fitted("cluster", f"levels[{number}].small_share", level.small_share, NEVER_SMALL, way)
        )
    return fitted


def _start(value: Callable[[float], float], target: float) -> float:
    """The start at which a message takes ``target``: seconds rise with it in a straight line; at
    least 0."""
    at_none, at_one = value(0.0), value(1.0)
    return float(f"{max(0.0, (target - at_none) / max(at_one - at_none, 1e-12)):.6g}")
