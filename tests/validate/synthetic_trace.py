"""Profiler traces of a run as phaze itself counts it, on constants of choice: what a fit must find
again."""

from typing import Any

from phaze.cost.chip_set import chip_set
from phaze.cost.collective import Kind, collective
from phaze.evaluate.lowered_pass import work_times
from phaze.evaluate.run_file import RunJob
from phaze.hardware.cluster import Cluster
from phaze.validate.predicted_step import StepWorks, class_of_work
from phaze.values import replace

# Names that libraries give such kernels.
NAMES = {
    "gemm": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
    "attention": "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
    "vector": (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
    ),
}
NCCL: dict[Kind, str] = {
    "all_reduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "all_gather": "ncclDevKernel_AllGather_RING_LL",
    "reduce_scatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
}


def event(
    name: str, cat: str, start_s: float, length_s: float, tid: int = 7, **args: Any
) -> dict[str, Any]:
    times = {"ts": 1e6 * start_s, "dur": 1e6 * length_s}
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, **times, "args": args}


def kernels(works: StepWorks, share: float, vector_share: float) -> list[tuple[str, float]]:
    """Every kernel of a step by class, with its seconds on these constants."""
    constants, chips = works.constants(share, vector_share), chip_set([works.setting.chip])
    found = []
    for one, often in works.passes:
        if not one.works:
            continue
        times = work_times(one.works, chips, constants, one.rule).spread_s[:, 0].tolist()
        for work, seconds in zip(one.works, times, strict=True):
            what = class_of_work(work)
            if what is not None:
                found.append((what, often * seconds))
    rate = works.setting.chip.hbm.bandwidth_bytes_per_s * constants.vector_hbm_share
    return [*found, ("vector", works.added_bytes / rate)]


def collectives(
    cluster: Cluster, ranks: int, sizes: list[float]
) -> list[tuple[Kind, float, int, float]]:
    kinds: tuple[Kind, ...] = ("all_reduce", "reduce_scatter", "all_gather")
    return [
        (kind, size, ranks, collective(kind, size, ranks, cluster).time_s)
        for size in sizes
        for kind in kinds
    ]


def with_links(cluster: Cluster, at: int, share: float, start_s: float) -> Cluster:
    level = cluster.levels[at]
    measured = replace(level, share=share, start_s=start_s, small_share=1e-6)
    return replace(cluster, levels=(*cluster.levels[:at], measured, *cluster.levels[at + 1 :]))


def trace_of(
    job: RunJob,
    works: StepWorks,
    share: float,
    vector_share: float,
    host_s: float,
    sent: list[tuple[Kind, float, int, float]],
    hidden: float,
    steps: int = 2,
) -> dict[str, Any]:
    """A trace of some steps: kernels one after another, the first ``hidden`` of every collective
    behind them."""
    ran = kernels(works, share, vector_share)
    compute_s, host_total_s = sum(s for _, s in ran), host_s * works.operators
    step_s = max(compute_s + sum(s for *_, s in sent), host_total_s) * 1.01
    events: list[dict[str, Any]] = []
    for number in range(steps):
        start = number * step_s
        events.append(event(f"ProfilerStep#{number}", "user_annotation", start, step_s, tid=1))
        events.append(event("aten::linear", "cpu_op", start, host_total_s, tid=1))
        events.append(
            event("cudaLaunchKernel", "cuda_runtime", start, min(1e-6, host_total_s), tid=1)
        )
        at = start
        for what, seconds in ran:
            events.append(event(NAMES[what], "kernel", at, seconds))
            at += seconds
        busy, free = start, at
        for kind, size, ranks, seconds in sent:
            args = {
                "Collective name": kind.replace("_", ""),
                "In msg nelems": int(size) // 2,
                "dtype": "BFloat16",
            }
            parts = {**args, "Group size": ranks}
            # Either behind the kernels or after them: whole collectives, so that their durations
            # stay what they are.
            if busy + seconds <= start + (hidden + 1e-6) * sum(s for *_, s in sent):
                events.append(event(NCCL[kind], "kernel", busy, seconds, tid=20, **parts))
                busy += seconds
            else:
                events.append(event(NCCL[kind], "kernel", free, seconds, tid=20, **parts))
                free += seconds
    return {
        "schemaVersion": 1,
        "distributedInfo": {"rank": 0, "world_size": job.devices},
        "traceEvents": events,
    }
